"""ResNet-RNN (LIBERO; robomimic's BC-RNN): pictures by residual networks, time by an LSTM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from perdure.agents.networks.film_resnet import FilmResNet
from perdure.agents.networks.gaussian_mixture import GaussianMixtureHead
from perdure.agents.networks.sequence_policies.base import (
    Carried,
    Reads,
    Seen,
    SequencePolicy,
    encoded,
    over_time,
)


@dataclass(frozen=True)
class ResNetRNNSizes:
    """Features of a picture and of the sentence, channels of the residual networks, the LSTM, the head;
    whether the robot's numbers are standardised, which the published ones are not."""

    picture: int = 64
    sentence: int = 32
    channels: tuple[int, int] = (64, 128)
    hidden: int = 1024
    layers: int = 2
    head: int = 1024
    standardise: bool = False


class ResNetRNN(SequencePolicy):
    """Features of all pictures, the robot's numbers and the sentence side by side, into an LSTM.

    It is trained on sequences of ``look_back`` steps from a state of zeros, so while it acts its state
    begins anew after as many, as robomimic's does: it never meets a sequence longer than it knows.
    """

    needs_pictures = True
    sizes: ClassVar[Mapping[str, ResNetRNNSizes]] = {
        "paper": ResNetRNNSizes(),
        "small": ResNetRNNSizes(32, 16, (16, 32), 128, 1, 128, True),
    }

    def __init__(self, reads: Reads, sizes: ResNetRNNSizes) -> None:
        super().__init__()
        self.pictures = tuple(reads.pictures)
        numbers = self.read_numbers(reads, sizes.standardise)
        self.look_back = reads.steps
        self.encoders = nn.ModuleList(
            FilmResNet(shape[0], reads.language, sizes.picture, sizes.channels)
            for shape in reads.pictures.values()
        )
        self.sentence = nn.Linear(reads.language, sizes.sentence)
        inputs = len(self.pictures) * sizes.picture + numbers + sizes.sentence
        self.lstm = nn.LSTM(inputs, sizes.hidden, sizes.layers, batch_first=True)
        self.head = GaussianMixtureHead(sizes.hidden, reads.actions, sizes.head)

    def tokens(self, seen: Seen, language: Tensor) -> Tensor:
        found, steps = [], next(iter(seen.values())).shape[1]
        for name, encoder in zip(self.pictures, self.encoders, strict=True):
            found.append(encoded(encoder, seen[name], language))
        found.append(self.numbers_of(seen))
        return torch.cat([*found, over_time(self.sentence(language), steps)], -1)

    def through_time(self, tokens: Tensor) -> Tensor:
        out: Tensor = self.lstm(tokens)[0]
        return out

    def carried_shapes(self) -> dict[str, tuple[int, ...]]:
        shape = (self.lstm.num_layers, self.lstm.hidden_size)
        return {"hidden": shape, "cell": shape}

    def next_features(self, tokens: Tensor, carried: Carried) -> Tensor:
        anew = carried["steps"] % self.look_back == 0
        for name in ("hidden", "cell"):
            carried[name][anew] = 0.0
        state = tuple(carried[n].transpose(0, 1).contiguous() for n in ("hidden", "cell"))
        out, (hidden, cell) = self.lstm(tokens, state)
        carried["hidden"].copy_(hidden.transpose(0, 1))
        carried["cell"].copy_(cell.transpose(0, 1))
        newest: Tensor = out[:, 0]
        return newest


policy = ResNetRNN
