"""Behaviour cloning: a network that answers what a demonstrator did, in continuous actions."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from perdure.agents.networks.adam import Adam
from perdure.agents.networks.checks import check_ranges
from perdure.agents.networks.encoders import Inputs, encoder_for
from perdure.agents.networks.learner import Minibatch, TorchLearner, network
from perdure.errors import AgentFault, SpecError
from perdure.types import Array, Batch, Context, Examples, Measures, Setup, State

FLOOR = 0.1
"""The least spread that is divided by: small numbers that hardly vary are not to become large."""


class Standardise(nn.Module):
    """Shifts and scales each input by the first minibatch of life, and never changes again.

    Statistics that went on moving would change what was learned about earlier tasks. An input that
    is the same in the whole minibatch, such as a one-hot of the task, may well vary later, and is
    to be heard beside the others then: it is divided by the least spread too.
    """

    mean: Tensor
    spread: Tensor
    known: Tensor

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(shape))
        self.register_buffer("spread", torch.ones(shape))
        self.register_buffer("known", torch.zeros(()))

    def meet(self, inputs: Tensor) -> None:
        """Look at a minibatch, if it is the first."""
        if self.known or len(inputs) < 2:
            return
        self.mean.copy_(inputs.mean(dim=0))
        self.spread.copy_(inputs.std(dim=0).clamp(min=FLOOR))
        self.known.fill_(1.0)

    def forward(self, inputs: Tensor) -> Tensor:
        """The inputs, about one in size."""
        return (inputs - self.mean) / self.spread


class BCAgent(TorchLearner):
    """Learns each minibatch of demonstrations once, by Adam down the squared error.

    ``hidden`` are the widths of the layers. Inputs are standardised by the first minibatch unless
    ``standardise`` is false. The network works on actions scaled to −1…1; what it says beyond the
    bounds is cut off when it acts.

    Steps become smaller within a block: the n-th is made with lr / (1 + n / ``halving``). Tasks side
    by side take turns, a minibatch each, and with steps of one size the last ones to be shown would
    be known better than the others.
    """

    learns_from = ("data",)
    predicts = "numbers"
    replayable = True

    def __init__(
        self,
        setup: Setup,
        lr: float = 1e-3,
        hidden: Sequence[int] = (256, 256, 256),
        halving: float = 1000.0,
        max_grad: float = inf,
        standardise: bool = True,
    ) -> None:
        super().__init__(setup)
        check_ranges("bc", lr=(lr, 0, inf), halving=(halving, 1, inf), max_grad=(max_grad, 0, inf))
        space = setup.action_space
        if not isinstance(space, spaces.Box) or not space.is_bounded():
            raise SpecError(
                f"bc needs a bounded Box action space, got {space}; try classifier for classes"
            )
        self.inputs, self.space, self.max_grad = Inputs(setup.observation_space), space, max_grad
        low, high = space.low.astype(np.float32).ravel(), space.high.astype(np.float32).ravel()
        self.middle, self.half = (low + high) / 2, (high - low) / 2

        self.standard = Standardise(self.inputs.shape) if standardise else None

        def build() -> nn.Module:
            encoder, features = encoder_for(self.inputs, hidden, nn.ReLU)
            first = [] if self.standard is None else [self.standard]
            return nn.Sequential(*first, encoder, nn.Linear(features, low.size))

        self.net = network(setup, build)
        self.optimizer = Adam(self.net.parameters(), lr)
        self.lr, self.halving = lr, halving
        self.updates = 0
        """In this block."""

    def enter(self, ctx: Context) -> None:
        if ctx.learning and ctx.event == "block":
            self.updates = 0

    def act(self, obs: Any, ctx: Context) -> Array:
        with torch.inference_mode():
            answers: Array = self.net(self.inputs(obs)).numpy()
        actions = (answers * self.half + self.middle).reshape(-1, *self.space.shape)
        return np.clip(actions, self.space.low, self.space.high).astype(self.space.dtype)

    def learn(self, batch: Batch, ctx: Context) -> Measures | None:
        if not isinstance(batch, Examples):
            raise AgentFault(
                f"bc learns from demonstrations, got {type(batch).__name__}: expose it to epochs or "
                "batches"
            )
        targets = np.asarray(batch.targets, np.float32).reshape(len(batch), -1)
        scaled = torch.tensor((targets - self.middle) / self.half)
        inputs = self.inputs(batch.inputs)
        if self.standard is not None:
            self.standard.meet(inputs)
        self.updates += 1
        self._pace()
        return self.descend({"obs": inputs, "targets": scaled})

    def _pace(self) -> None:
        self.optimizer.lr = self.lr / (1 + self.updates / self.halving)

    def loss(self, batch: Minibatch) -> tuple[Tensor, dict[str, Tensor]]:
        answers = self.predict(batch)
        self.last_outputs = {"predictions": answers}
        loss = nn.functional.mse_loss(answers, batch["targets"])
        return loss, {"loss": loss.detach()}

    def predict(self, batch: Minibatch) -> Tensor:
        answers: Tensor = self.net(batch["obs"])
        return answers

    def state(self) -> dict[str, Array]:
        return {**super().state(), "updates": np.array(self.updates)}

    def load(self, state: State) -> None:
        super().load(state)
        self.updates = int(state["updates"])
        self._pace()


agent = BCAgent
