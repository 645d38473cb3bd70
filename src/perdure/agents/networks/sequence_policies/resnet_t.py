"""ResNet-T (LIBERO; VIOLA's decoder): pictures by residual networks, time by a transformer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from perdure.agents.networks.film_resnet import FilmResNet
from perdure.agents.networks.gaussian_mixture import GaussianMixtureHead
from perdure.agents.networks.sequence_policies.base import (
    NumberTokens,
    Reads,
    Seen,
    TransformerPolicy,
    encoded,
    over_time,
)
from perdure.agents.networks.transformer import TEMPORAL, TransformerSizes


@dataclass(frozen=True)
class ResNetTSizes:
    """Width of a token, channels of the residual networks, the transformer, the head; whether the robot's
    numbers are standardised, which the published ones are not."""

    width: int = 64
    channels: tuple[int, int] = (64, 128)
    temporal: TransformerSizes = TEMPORAL
    head: int = 1024
    standardise: bool = False


class ResNetT(TransformerPolicy):
    """Tokens of a step: the sentence, each part of the robot's numbers, each picture."""

    needs_pictures = True
    sizes: ClassVar[Mapping[str, ResNetTSizes]] = {
        "paper": ResNetTSizes(),
        "small": ResNetTSizes(32, (16, 32), TransformerSizes(2, 4, 16, 64), 128, True),
    }

    def __init__(self, reads: Reads, sizes: ResNetTSizes) -> None:
        super().__init__()
        self.pictures = tuple(reads.pictures)
        self.read_numbers(reads, sizes.standardise)
        self.encoders = nn.ModuleList(
            FilmResNet(shape[0], reads.language, sizes.width, sizes.channels)
            for shape in reads.pictures.values()
        )
        self.sentence = nn.Linear(reads.language, sizes.width)
        self.numbers = NumberTokens(reads.numbers, sizes.width)
        count = 1 + len(reads.numbers) + len(self.pictures)
        self.make_transformer(reads, sizes.width, count, sizes.temporal)
        self.head = GaussianMixtureHead(sizes.width, reads.actions, sizes.head)

    def tokens(self, seen: Seen, language: Tensor) -> Tensor:
        steps = next(iter(seen.values())).shape[1]
        found = [over_time(self.sentence(language), steps), *self.numbers(self.numbers_of(seen))]
        for name, encoder in zip(self.pictures, self.encoders, strict=True):
            found.append(encoded(encoder, seen[name], language))
        return torch.stack(found, 2)


policy = ResNetT
