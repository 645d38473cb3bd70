"""A policy on states, without memory: all numbers and the sentence through linear layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from perdure.agents.networks.encoders import mlp
from perdure.agents.networks.gaussian_mixture import GaussianMixtureHead
from perdure.agents.networks.sequence_policies.base import (
    Reads,
    Seen,
    SequencePolicy,
    over_time,
)


@dataclass(frozen=True)
class StateMLPSizes:
    """Features of the sentence, widths of the layers, the head and how many layers it has."""

    sentence: int = 32
    hidden: tuple[int, ...] = (512, 512)
    head: int = 512
    head_layers: int = 1


class StateMLP(SequencePolicy):
    """Each step on its own; numbers are standardised by the first minibatch."""

    sizes: ClassVar[Mapping[str, StateMLPSizes]] = {
        "paper": StateMLPSizes(),
        "small": StateMLPSizes(32, (256, 256), 128),
    }

    def __init__(self, reads: Reads, sizes: StateMLPSizes) -> None:
        super().__init__()
        count = self.read_numbers(reads, standardise=True)
        self.sentence = nn.Linear(reads.language, sizes.sentence)
        self.layers = mlp([count + sizes.sentence, *sizes.hidden], nn.ReLU)
        self.head = GaussianMixtureHead(
            sizes.hidden[-1], reads.actions, sizes.head, sizes.head_layers
        )

    def tokens(self, seen: Seen, language: Tensor) -> Tensor:
        numbers = self.numbers_of(seen)
        told = over_time(self.sentence(language), numbers.shape[1])
        return torch.cat([numbers, told], -1)

    def through_time(self, tokens: Tensor) -> Tensor:
        features: Tensor = self.layers(tokens)
        return features


policy = StateMLP
