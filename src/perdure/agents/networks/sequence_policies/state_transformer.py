"""A policy on states with ResNet-T's transformer through time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from perdure.agents.networks.gaussian_mixture import GaussianMixtureHead
from perdure.agents.networks.sequence_policies.base import (
    Reads,
    Seen,
    TransformerPolicy,
    over_time,
)
from perdure.agents.networks.transformer import TEMPORAL, TransformerSizes


@dataclass(frozen=True)
class StateTransformerSizes:
    """Width of a token and of the layer that makes it, the transformer, the head."""

    width: int = 64
    hidden: int = 256
    temporal: TransformerSizes = TEMPORAL
    head: int = 1024


class StateTransformer(TransformerPolicy):
    """Tokens of a step: the sentence, and all numbers, standardised by the first minibatch."""

    sizes: ClassVar[Mapping[str, StateTransformerSizes]] = {
        "paper": StateTransformerSizes(),
        "small": StateTransformerSizes(48, 128, TransformerSizes(2, 4, 16, 96, 0.0), 128),
    }

    def __init__(self, reads: Reads, sizes: StateTransformerSizes) -> None:
        super().__init__()
        count = self.read_numbers(reads, standardise=True)
        self.sentence = nn.Linear(reads.language, sizes.width)
        self.state = nn.Sequential(
            nn.Linear(count, sizes.hidden), nn.ReLU(), nn.Linear(sizes.hidden, sizes.width)
        )
        self.make_transformer(reads, sizes.width, 2, sizes.temporal)
        self.head = GaussianMixtureHead(sizes.width, reads.actions, sizes.head)

    def tokens(self, seen: Seen, language: Tensor) -> Tensor:
        state = self.state(self.numbers_of(seen))
        return torch.stack([over_time(self.sentence(language), state.shape[1]), state], 2)


policy = StateTransformer
