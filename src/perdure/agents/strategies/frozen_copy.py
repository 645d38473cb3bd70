"""A network as it was at some moment: the teacher of distillation, the source of replay."""

from __future__ import annotations

import copy
from typing import Generic

import torch
from torch import Tensor, nn

from perdure.agents.networks.learner import Minibatch, N, TorchLearner, pack, unpack
from perdure.types import Array, State


class FrozenCopy(Generic[N]):
    """A frozen copy of a network that goes on learning, in evaluation mode; none at first."""

    def __init__(self, live: N) -> None:
        self.live = live
        self.net: N | None = None

    def take(self) -> None:
        """Copy the network as it is now."""
        self.net = copy.deepcopy(self.live).eval().requires_grad_(False)

    def state(self, prefix: str) -> dict[str, Array]:
        """The copy's arrays, if there is one."""
        return {} if self.net is None else pack(self.net, prefix)

    def load(self, prefix: str, state: State) -> None:
        """Take over what :meth:`state` gave."""
        self.net = None
        if any(key.startswith(f"{prefix}.") for key in state):
            self.take()
            assert self.net is not None
            unpack(self.net, prefix, state)


def predictions(learner: TorchLearner, net: nn.Module, batch: Minibatch) -> Tensor:
    """What every head would predict with another network of the same shape, (rows, heads, outputs)."""
    live, learner.net = learner.net, net
    try:
        with torch.no_grad():
            return learner.predict_heads(batch)
    finally:
        learner.net = live
