"""What torch learners share, and what strategies rely on: a loss on a minibatch, parameters by
name, an optimiser, predictions; and the way of all that to and from arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from perdure.agent import Agent
from perdure.seeds import seed_for
from perdure.types import Array, State, World

Minibatch: TypeAlias = Mapping[str, Tensor]
"""Named tensors whose rows belong together; ``obs`` holds the network's inputs."""

T = TypeVar("T")


class TorchLearner(Agent):
    """An agent that learns by steps down the gradient of a loss on minibatches.

    A strategy can add a penalty to :meth:`loss`, work on gradients between its two halves in
    :meth:`descend`, keep minibatches and predictions of the past, and mask or copy parameters.
    """

    net: nn.Module
    optimizer: torch.optim.Optimizer
    max_grad: float

    def __init__(self, world: World, build: Callable[[], nn.Module], lr: float) -> None:
        super().__init__(world)
        # More threads cost more than they give on small networks, and the order in which they add
        # up must not show in the results.
        torch.set_num_threads(1)
        self.net = seeded(world.seed, "init", build)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr, eps=1e-5, fused=True)

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
        loss, measures = self.loss(batch)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.net.parameters(), self.max_grad)
        self.optimizer.step()
        return {name: value.item() for name, value in measures.items()}

    def state(self) -> dict[str, Array]:
        return {**pack_module("net", self.net), **pack_optimizer("adam", self.optimizer)}

    def load(self, state: State) -> None:
        unpack_module("net", self.net, state)
        unpack_optimizer("adam", self.optimizer, state)


def seeded(seed: int, name: str, build: Callable[[], T]) -> T:
    """What ``build`` makes with torch's global generator at an address; the generator is then put
    back where it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_for(seed, name))
        return build()


def pack_module(prefix: str, module: nn.Module) -> dict[str, Array]:
    """Copies of a module's parameters and buffers."""
    return {
        f"{prefix}.{name}": value.detach().numpy().copy()
        for name, value in module.state_dict().items()
    }


def unpack_module(prefix: str, module: nn.Module, state: State) -> None:
    """Write packed arrays into a module of the same shape, in place."""
    with torch.no_grad():
        for name, value in module.state_dict().items():
            value.copy_(torch.from_numpy(np.array(state[f"{prefix}.{name}"])))


def pack_optimizer(prefix: str, optimizer: torch.optim.Optimizer) -> dict[str, Array]:
    """Copies of an optimiser's tensors, by the number of their parameter; none before its first
    step."""
    return {
        f"{prefix}.{i}.{key}": value.detach().numpy().copy()
        for i, slots in optimizer.state_dict()["state"].items()
        for key, value in slots.items()
    }


def unpack_optimizer(prefix: str, optimizer: torch.optim.Optimizer, state: State) -> None:
    """Write packed tensors into an optimiser of the same parameters."""
    optimizer.state.clear()
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for name, value in state.items():
        head, _, rest = name.partition(".")
        if head == prefix:
            i, _, key = rest.partition(".")
            optimizer.state[parameters[int(i)]][key] = torch.tensor(np.asarray(value))
