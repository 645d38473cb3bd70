"""ViT-T (LIBERO; after ViLT): pictures and the sentence by a vision transformer, time by another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from perdure.agents.networks.gaussian_mixture import GaussianMixtureHead
from perdure.agents.networks.sequence_policies.base import (
    NumberTokens,
    Reads,
    Seen,
    TransformerPolicy,
    each_step,
    over_time,
)
from perdure.agents.networks.tensors import CPU
from perdure.agents.networks.transformer import TEMPORAL, Transformer, TransformerSizes
from perdure.errors import SpecError

SPATIAL = TransformerSizes(7, 8, 120, 256)
"""LIBERO's transformer through the patches of a step."""


@dataclass(frozen=True)
class ViTTSizes:
    """Width of the tokens of a picture, channels and side of a patch (after the picture was halved), the
    spatial transformer; width of the tokens of time, their transformer; the head; whether the robot's numbers
    are standardised, which the published ones are not."""

    spatial_width: int = 128
    channels: int = 64
    patch: int = 8
    spatial: TransformerSizes = SPATIAL
    width: int = 64
    temporal: TransformerSizes = TEMPORAL
    head: int = 1024
    standardise: bool = False


class Patches(nn.Module):
    """A picture in patches: a convolution that halves it, then one for each patch, each with a norm."""

    def __init__(self, channels: int, sizes: ViTTSizes) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(channels, sizes.channels, 7, 2, 3, bias=False),
            nn.BatchNorm2d(sizes.channels),
            nn.ReLU(),
        )
        self.patch = nn.Conv2d(sizes.channels, sizes.spatial_width, sizes.patch, sizes.patch)
        self.norm = nn.BatchNorm2d(sizes.spatial_width)

    def forward(self, pictures: Tensor) -> Tensor:
        """(rows, channels, height, width) to (rows, patches, width)."""
        maps: Tensor = self.norm(self.patch(self.stem(pictures)))
        return maps.flatten(2).transpose(1, 2)


class ViTT(TransformerPolicy):
    """The patches of all pictures and the sentence, each with its place and its kind added, are read by a
    token that stands for the step; it is one of the tokens of time, beside the sentence and the parts of
    the robot's numbers."""

    needs_pictures = True
    sizes: ClassVar[Mapping[str, ViTTSizes]] = {
        "paper": ViTTSizes(),
        "small": ViTTSizes(
            48, 16, 8, TransformerSizes(2, 4, 16, 96), 32, TransformerSizes(2, 4, 16, 64), 128, True
        ),
    }

    def __init__(self, reads: Reads, sizes: ViTTSizes) -> None:
        super().__init__()
        self.pictures = tuple(reads.pictures)
        self.read_numbers(reads, sizes.standardise)
        self.encoders = nn.ModuleList(Patches(shape[0], sizes) for shape in reads.pictures.values())
        self.places = [_patches(name, shape, sizes.patch) for name, shape in reads.pictures.items()]
        """How many patches each picture has."""
        width = sizes.spatial_width
        self.place = nn.Parameter(torch.randn(sum(self.places), width, device=CPU))
        self.kind = nn.Parameter(torch.randn(len(self.pictures) + 1, width, device=CPU))
        self.step = nn.Parameter(torch.randn(1, width, device=CPU))
        self.spatial_sentence = nn.Linear(reads.language, width)
        self.spatial = Transformer(width, sizes.spatial, reads.rng)
        self.smaller = nn.Linear(width, sizes.width)
        self.sentence = nn.Linear(reads.language, sizes.width)
        self.numbers = NumberTokens(reads.numbers, sizes.width)
        self.make_transformer(reads, sizes.width, 2 + len(reads.numbers), sizes.temporal)
        self.head = GaussianMixtureHead(sizes.width, reads.actions, sizes.head)

    def tokens(self, seen: Seen, language: Tensor) -> Tensor:
        steps = next(iter(seen.values())).shape[1]
        patches = []
        for name, encoder in zip(self.pictures, self.encoders, strict=True):
            pictures, sentences = each_step(seen[name], language)
            patches.append(encoder(pictures))
        words = self.spatial_sentence(sentences)[:, None]
        kinds = [self.kind[k].expand(n, -1) for k, n in enumerate([*self.places, 1])]
        read = torch.cat([torch.cat(patches, 1) + self.place, words], 1) + torch.cat(kinds)
        read = torch.cat([self.step.expand(len(read), 1, -1), read], 1)
        step = self.smaller(self.spatial(read)[:, 0]).unflatten(0, (-1, steps))
        told = over_time(self.sentence(language), steps)
        return torch.stack([told, step, *self.numbers(self.numbers_of(seen))], 2)


def _patches(name: str, shape: tuple[int, ...], patch: int) -> int:
    """How many patches a picture has; SpecError if it has none."""
    count = (-(-shape[1] // 2) // patch) * (-(-shape[2] // 2) // patch)
    if not count:
        raise SpecError(
            f"vit_t: {name} has {shape[1]} × {shape[2]} pixels, and a patch takes {2 * patch}: draw "
            "larger pictures or give size={patch=…}"
        )
    return count


policy = ViTT
