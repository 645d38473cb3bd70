"""What torch learners share, and what strategies rely on: a loss on a minibatch, parameters by
name, an optimiser, predictions; and the way of all that to and from arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isinf
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from perdure.agent import Agent
from perdure.agents.networks.checks import check_spaces
from perdure.agents.networks.inputs import Inputs, channels_last
from perdure.agents.networks.optimizers import Optimizer
from perdure.agents.networks.plasticity import PlasticityProbe
from perdure.agents.networks.products import largest_matrix, products
from perdure.agents.networks.tasks import Tasks
from perdure.agents.networks.tensors import (
    keep_freed_memory,
    resolve_device,
    to_array,
    to_floats,
    to_tensor,
)
from perdure.agents.networks.units import add_layer_norms
from perdure.errors import AgentFault
from perdure.seeds import seed_for
from perdure.types import Array, Context, Examples, Measures, Setup, State

if TYPE_CHECKING:
    from perdure.agents.strategies.base import Strategy

Minibatch: TypeAlias = Mapping[str, Tensor]
"""Named tensors whose rows belong together; ``obs`` holds the network's inputs."""

N = TypeVar("N", bound=nn.Module)


@dataclass(frozen=True, slots=True)
class NewRows:
    """Rows of the present task that were not shown before. Most of a long task's rows are kept by
    nobody, so they are made when they are asked for."""

    count: int
    at: Callable[[Array], Minibatch]
    """The rows at these indices."""
    examples: Examples | None = None
    """The labelled data that they were made of, as it came."""


def new_rows(batch: Minibatch, examples: Examples | None = None) -> NewRows:
    """All rows of a minibatch, and the labelled data that it was made of, if it was."""
    first = next(iter(batch.values()))

    def at(indices: Array) -> Minibatch:
        if len(indices) == len(first):
            return batch
        where = to_tensor(indices, first.device)
        return {name: v[where] for name, v in batch.items()}

    return NewRows(len(first), at, examples)


LEAST_STD = 0.01
"""A policy that has become sure counts as one of this deviation, in units of its action space: the
information about it grows without bound, and would be the only one."""


class TorchAgent(Agent):
    """An agent whose networks live on one device: ``auto`` (the first GPU, or the CPU if there is
    none), ``cpu``, ``cuda``, ``cuda:1`` or ``mps``.

    Random numbers come from the agent's numpy generator and networks are initialised on the CPU, so
    that a seed means the same everywhere; what is saved are arrays.

    Sets torch to ``threads``, which is one unless the agent was told otherwise: more cost more than they
    give on small networks, and the order in which they add up shows in the last digits of results.
    """

    net: nn.Module

    def __init__(
        self,
        setup: Setup,
        device: str = "auto",
        threads: int = 1,
        plasticity: int = 0,
        trainability: int = 0,
    ) -> None:
        super().__init__(setup)
        check_spaces(type(self), setup)
        torch.set_num_threads(threads)
        keep_freed_memory()
        self.device = resolve_device(device)
        self.probing = (plasticity, trainability)
        """Rows that plasticity is measured on, and steps that random answers are learned in."""

    @cached_property
    def probe(self) -> PlasticityProbe | None:
        """What measures plasticity, if that is asked for. Made before anything is learned."""
        return PlasticityProbe(self, *self.probing) if self.probing[0] else None

    def probe_inputs(self, obs: Tensor) -> None:
        """Show the probe what is learned from, where there is nothing but inputs to be kept."""
        if self.probe is not None:
            self.probe.collect(new_rows({"obs": obs}))

    def diagnose(self) -> Measures | None:
        return None if self.probe is None else self.probe.measure()

    def predict(self, batch: Minibatch) -> Tensor:
        """The network's differentiable outputs for ``batch["obs"]``."""
        raise NotImplementedError(f"{type(self).__name__} predicts nothing for rows")

    def predict_values(self, batch: Minibatch) -> Tensor | None:
        """What the critics give for a minibatch, where there are networks of them."""
        return None

    @property
    def by_gradient(self) -> TorchLearner | None:
        """Itself, if it learns by steps of an optimiser down a loss."""
        return None

    @property
    def flat_weights(self) -> Tensor:
        """All that is learned, as one vector."""
        return torch.cat([p.detach().reshape(-1) for p in self.net.parameters()])


class TorchLearner(TorchAgent):
    """An agent that learns by steps down the gradient of a loss on minibatches.

    A strategy can extend the minibatch, add to the loss, work on the gradients between ``backward``
    and ``step``, keep rows and predictions of the past, and mask or copy parameters in place.
    """

    optimizer: Optimizer
    inputs: Inputs
    """How it reads observations."""
    max_grad: float
    predicts: Literal["logits", "regression"] = "regression"
    """Whether predictions are logits of classes (or actions), or real numbers."""
    replayable: bool = False
    """Whether the loss still means something on rows of long ago. It is then a mean over rows."""
    sequences: bool = False
    """Whether a row of a minibatch is a whole sequence, with a prediction for each of its steps."""
    non_policy_parameters: tuple[str, ...] = ()
    """How the names begin of parameters that only steer learning and are no part of predictions:
    critics, a temperature."""
    heads: int = 1
    """How many heads it reads predictions from; several are one for each task of ``tasks``, and
    minibatches then have a column ``task``."""
    rows_tell_task: bool = False
    """Whether minibatches are drawn from all tasks being learned, and have that column with one head too."""
    tasks: Tasks
    plain_layers: bool = True
    """Whether hidden units can be told apart by the weights in and out of them (:mod:`~perdure.agents.networks.units`)."""
    strategy: Strategy | None = None
    """How the past is kept; None is to keep nothing."""
    last_outputs: Mapping[str, Tensor] = {}
    """What the last loss made on its way, where it did: its ``predictions``, the ``features`` they
    were read from. They save a strategy a second pass through the network."""

    @property
    def by_gradient(self) -> TorchLearner:
        return self

    @property
    def flat_weights(self) -> Tensor:
        return self.optimizer.weights

    def minibatch(self, examples: Examples) -> Minibatch:
        """Examples as the loss takes them; a learner of data writes it with :meth:`labelled`."""
        raise NotImplementedError(f"{type(self).__name__} does not learn from data")

    def read(self, inputs: Any) -> Tensor:
        """The inputs of a minibatch as the column ``obs``."""
        return self.inputs(inputs)

    def labelled(self, examples: Examples, targets: Tensor) -> Minibatch:
        """A minibatch of examples and their targets. Where each is from is told as well, if it can
        be looked up again: ``source`` and ``index``."""
        batch = {"obs": self.read(examples.inputs), "targets": targets}
        if examples.source >= 0 and examples.indices is not None:
            sources = np.full(len(examples), examples.source)
            batch["source"] = to_tensor(sources, self.device, torch.int64)
            batch["index"] = to_tensor(examples.indices, self.device, torch.int64)
        return batch

    def task_column(self, ctx: Context) -> dict[str, Tensor]:
        """The column ``task`` of a minibatch, where there is a head for each."""
        return {"task": to_tensor(self.tasks.of(ctx), self.device)} if self.heads > 1 else {}

    @abstractmethod
    def loss(self, batch: Minibatch) -> tuple[Tensor, dict[str, Tensor]]:
        """The differentiable loss on a minibatch, and measures worth logging."""

    @abstractmethod
    def predict(self, batch: Minibatch) -> Tensor:
        """The network's differentiable outputs for ``batch["obs"]``: what distillation keeps."""

    def predict_heads(self, batch: Minibatch) -> Tensor:
        """What every head predicts, (rows, heads, outputs)."""
        return self.predict(batch).unsqueeze(1)

    def head_parameters(self) -> Mapping[str, int]:
        """Names of the heads' parameters, where there is a head for each task, with the axis along
        which the heads lie side by side."""
        return {}

    def output_fisher(self, batch: Minibatch, outputs: Tensor) -> Tensor:
        """The diagonal of the Fisher information that real-valued predictions have about the
        distribution they describe: for the mean of a Gaussian 1/σ², for its log σ 2. Without a
        distribution of its own a learner counts as one of unit variance. The rows are a sample of a
        task. A deviation below :data:`LEAST_STD` is to count as that."""
        return torch.ones_like(outputs)

    def parameters(self) -> dict[str, nn.Parameter]:
        """What is learned, by name."""
        return dict(self.net.named_parameters())

    def collect(self, rows: NewRows) -> None:
        """Show the strategy what comes in, each row once, in the order it came. A sample of the past
        is drawn from these: minibatches repeat what is old."""
        if self.probe is not None:
            self.probe.collect(rows)
        if self.strategy is not None:
            self.strategy.collect(rows)

    def enter(self, ctx: Context) -> None:
        if ctx.learning and ctx.event == "block":
            self.optimizer.restart_schedule()

    def descend(self, batch: Minibatch) -> dict[str, float]:
        """One step of the optimiser down the loss of a minibatch.

        For a minibatch of the present ``optimizer.advance`` comes first: it moves the learning-rate
        schedule on. A strategy that learns rows of the past once more goes without it.
        """
        with products(self._rows_of(batch) * self._largest_matrix):
            return self._descend(batch)

    @cached_property
    def _largest_matrix(self) -> int:
        return largest_matrix(self.net)

    def _rows_of(self, batch: Minibatch) -> int:
        """Rows that a layer multiplies: of sequences each step."""
        lead = batch["obs"].shape
        return lead[0] * lead[1] if self.sequences else lead[0]

    def _descend(self, batch: Minibatch) -> dict[str, float]:
        keep = self.strategy
        parts: Sequence[Minibatch] = (batch,)
        if keep is not None:
            batch = keep.extend(batch)
            parts = keep.split({**batch, "obs": channels_last(batch["obs"])})
        gradients: list[Tensor] = []
        found: list[dict[str, Tensor]] = []
        for part in parts:
            loss, measures = self.loss(part)
            if keep is not None:
                loss = keep.objective(part, loss)
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            found.append(measures)
            if len(parts) > 1:
                gradients.append(self.optimizer.grads.clone())
        if keep is not None:
            if gradients:
                keep.merge(gradients)
            keep.project()
        if not isinf(self.max_grad):
            self.optimizer.clip(self.max_grad)
        self.optimizer.step()
        if keep is not None:
            keep.stepped()
        if len(found) > 1:
            measures = {k: torch.stack([m[k] for m in found]).mean() for k in measures}
        return to_floats(measures)

    def state(self) -> dict[str, Array]:
        probe = {} if self.probe is None else self.probe.state()
        return {**pack(self.net, "net"), **self.optimizer.state("optimizer"), **probe}

    def load(self, state: State) -> None:
        if self.probe is not None:  # Before the weights it began with are gone.
            self.probe.load(state)
        unpack(self.net, "net", state)
        self.optimizer.load("optimizer", state)


def pick_head(outputs: Tensor, batch: Minibatch) -> Tensor:
    """Each row's own head of (rows, heads, outputs)."""
    if outputs.shape[1] == 1:
        return outputs[:, 0]
    return outputs[torch.arange(len(outputs), device=outputs.device), batch["task"]]


def head_of_linear(net: nn.Module, heads: int) -> dict[str, int]:
    """:meth:`TorchLearner.head_parameters` of a network whose last layer is linear."""
    last = [name for name, _ in net.named_parameters()][-2:]
    return dict.fromkeys(last, 0) if heads > 1 else {}


def network(
    setup: Setup, device: torch.device, build: Callable[[], N], layer_norm: bool = False
) -> N:
    """A network initialised on the CPU, at an address of its own, and then moved to its device;
    torch's global generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_for(setup.seed, "init"))
        net = build()
    if layer_norm:
        add_layer_norms(net)
    return net.to(device)


def pack(module: nn.Module, prefix: str) -> dict[str, Array]:
    """Copies of a module's parameters and buffers."""
    return {
        f"{prefix}.{name}": to_array(value).copy() for name, value in module.state_dict().items()
    }


def unpack(module: nn.Module, prefix: str, state: State) -> None:
    """Write packed arrays into a module of the same shape, in place."""
    with torch.no_grad():
        for name, value in module.state_dict().items():
            saved = to_tensor(state[f"{prefix}.{name}"], value.device)
            if saved.shape != value.shape:  # copy_ would spread one row over many.
                raise AgentFault(
                    f"{prefix}.{name} was saved with the shape {tuple(saved.shape)}, and is "
                    f"{tuple(value.shape)} here"
                )
            value.copy_(saved)
