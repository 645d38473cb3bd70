"""What torch learners share, and what strategies rely on: a loss on a minibatch, parameters by
name, an optimiser, predictions; and the way of all that to and from arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from math import isinf
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from perdure.agent import Agent
from perdure.agents.networks.adam import Adam
from perdure.agents.networks.encoders import Inputs, laid_out
from perdure.seeds import seed_for
from perdure.types import Array, Setup, State

if TYPE_CHECKING:
    from perdure.agents.strategies.base import Strategy

Minibatch: TypeAlias = Mapping[str, Tensor]
"""Named tensors whose rows belong together; ``obs`` holds the network's inputs."""

N = TypeVar("N", bound=nn.Module)


class TorchLearner(Agent):
    """An agent that learns by steps down the gradient of a loss on minibatches.

    A strategy can extend the minibatch, add to the loss, work on the gradients between ``backward``
    and ``step``, keep rows and predictions of the past, and mask or copy parameters in place.
    """

    net: nn.Module
    optimizer: Adam
    inputs: Inputs
    """How it reads observations."""
    max_grad: float
    predicts: Literal["logits", "numbers"] = "numbers"
    """Whether predictions are logits of classes (or actions), or just numbers."""
    replayable: bool = False
    """Whether the loss still means something on rows of long ago. It is then a mean over rows."""
    non_policy_parameters: tuple[str, ...] = ()
    """Parameters that only steer learning and are no part of predictions, such as a temperature."""
    strategy: Strategy | None = None
    """How the past is kept; None is to keep nothing."""
    last_outputs: Mapping[str, Tensor] = {}
    """What the last loss made on its way, where it did: its ``predictions``, the ``features`` they
    were read from. They save a strategy a second pass through the network."""

    @abstractmethod
    def loss(self, batch: Minibatch) -> tuple[Tensor, dict[str, Tensor]]:
        """The differentiable loss on a minibatch, and measures worth logging."""

    @abstractmethod
    def predict(self, batch: Minibatch) -> Tensor:
        """The network's differentiable outputs for ``batch["obs"]``: what distillation keeps."""

    def parameters(self) -> dict[str, nn.Parameter]:
        """What is learned, by name."""
        return dict(self.net.named_parameters())

    def descend(self, batch: Minibatch) -> dict[str, float]:
        """One step of the optimiser down the loss of a minibatch."""
        keep = self.strategy
        if keep is not None:
            batch = keep.extend(batch)
            batch = {**batch, "obs": laid_out(batch["obs"])}
        loss, measures = self.loss(batch)
        if keep is not None:
            loss = keep.objective(batch, loss)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if keep is not None:
            keep.project()
        if not isinf(self.max_grad):
            self.optimizer.clip(self.max_grad)
        self.optimizer.step()
        if keep is not None:
            keep.stepped()
        return {name: value.item() for name, value in measures.items()}

    def state(self) -> dict[str, Array]:
        return {**pack(self.net, "net"), **self.optimizer.state("adam")}

    def load(self, state: State) -> None:
        unpack(self.net, "net", state)
        self.optimizer.load("adam", state)


def network(setup: Setup, build: Callable[[], N]) -> N:
    """A network initialised at an address of its own; torch's global generator is left as it was.

    Sets torch to one thread: more cost more than they give on small networks, and the order in
    which they add up must not show in the results.
    """
    torch.set_num_threads(1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_for(setup.seed, "init"))
        return build()


def pack(module: nn.Module, prefix: str) -> dict[str, Array]:
    """Copies of a module's parameters and buffers."""
    return {
        f"{prefix}.{name}": value.detach().numpy().copy()
        for name, value in module.state_dict().items()
    }


def unpack(module: nn.Module, prefix: str, state: State) -> None:
    """Write packed arrays into a module of the same shape, in place."""
    with torch.no_grad():
        for name, value in module.state_dict().items():
            value.copy_(torch.tensor(np.asarray(state[f"{prefix}.{name}"])))
