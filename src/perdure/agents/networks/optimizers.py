"""Optimisers on one flat vector: Adam, AdamW, SGD; and learning-rate schedules.

A small network has a dozen small tensors, and torch.optim spends more time going through them than
computing; its first use also imports a second of compiler. Here all parameters are views of one
vector, and so are their gradients: a step is a few operations at most, whatever the network. The
numbers are those of torch.optim.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from perdure.agents.networks.checks import check_ranges
from perdure.agents.networks.tensors import CPU, to_array, to_tensor
from perdure.errors import AgentFault, SpecError, UnknownName
from perdure.types import Array, State

SCHEDULES = {"constant": (), "linear": ("final",), "cosine": ("final",), "inverse": ("halving",)}
"""How the rate changes, and which settings each reads that others do not."""
WARMUP_START = 0.01
"""The part of the learning rate that a warm-up begins with; with 0 a first step would be lost."""


@dataclass(frozen=True, slots=True)
class OptimizerSettings:
    """Which optimiser, and how its learning rate changes: ``optimizer={name="adamw", eps=1e-8}``.

    ``linear`` and ``cosine`` let the rate fall to zero over an exposure (``ctx.progress``), after it
    rose from near zero in the first part ``warmup`` of it; with ``final`` they end at that part of the
    rate instead of zero. ``inverse`` is lr / (1 + n / ``halving``)
    at the n-th minibatch of a block. ``weight_decay`` is decoupled in AdamW and part of the gradient
    in Adam and SGD, as in torch.optim.
    """

    name: str = "adam"
    eps: float = 1e-5
    betas: tuple[float, float] = (0.9, 0.999)
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    schedule: str = "constant"
    warmup: float = 0.0
    halving: float = 1000.0
    final: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in OPTIMIZERS:
            raise UnknownName("optimizer", self.name, OPTIMIZERS, f"({', '.join(OPTIMIZERS)})")
        if self.schedule not in SCHEDULES:
            raise UnknownName("schedule", self.schedule, SCHEDULES, f"({', '.join(SCHEDULES)})")
        if isinstance(self.betas, str) or len(self.betas) != 2:
            raise SpecError(f"optimizer: betas must be two numbers, got {self.betas!r}")
        object.__setattr__(self, "betas", tuple(self.betas))
        for beta in self.betas:
            check_ranges("optimizer", betas=(beta, 0, 1))
        check_ranges("optimizer", eps=(self.eps, 0, math.inf), momentum=(self.momentum, 0, 1))
        check_ranges("optimizer", weight_decay=(self.weight_decay, 0, math.inf))
        check_ranges("optimizer", final=(self.final, 0, 1))
        check_ranges("optimizer", warmup=(self.warmup, 0, 1), halving=(self.halving, 1, math.inf))
        if self.nesterov and not self.momentum:
            raise SpecError("optimizer: nesterov needs a momentum above 0")

    def learning_rate(self, lr: float, progress: float, updates: int) -> float:
        """The rate at this part of an exposure and this minibatch of a block, counted from 1."""
        if self.warmup and progress < self.warmup:
            return lr * max(progress / self.warmup, WARMUP_START)
        done = (progress - self.warmup) / (1 - self.warmup) if self.warmup < 1 else 1.0
        match self.schedule:
            case "linear":
                return lr * (1 - (1 - self.final) * done)
            case "cosine":
                part = (1 + math.cos(math.pi * done)) / 2
                return lr * (self.final + (1 - self.final) * part)
            case "inverse":
                return lr / (1 + updates / self.halving)
        return lr


OptimizerSpec: TypeAlias = str | Mapping[str, Any] | OptimizerSettings
"""As learners take it: a name, a table of settings, or the record itself."""


def settings_of(
    given: OptimizerSpec, default: OptimizerSettings | None = None
) -> OptimizerSettings:
    """The record; what a name or table leaves open is as in ``default``, but for the weight decay where
    AdamW takes another's place: 0.01, as torch has it."""
    if isinstance(given, OptimizerSettings):
        return given
    table: Mapping[str, Any] = {"name": given} if isinstance(given, str) else given
    if not isinstance(table, Mapping):
        raise SpecError(
            'optimizer must be a name or a table such as {name="adamw", weight_decay=1e-4}, got '
            f"{given!r}"
        )
    known = [f.name for f in dataclasses.fields(OptimizerSettings)]
    for name in table:
        if name not in known:
            raise UnknownName("optimizer setting", str(name), known, f"({', '.join(known)})")
    default = default or OptimizerSettings()
    turns = table.get("name") == "adamw" != default.name
    usual = {"weight_decay": 0.01} if turns else {}
    found = dataclasses.replace(default, **{**usual, **table})
    readers = {name: kind.reads for name, kind in OPTIMIZERS.items()}
    _check_read(table, found.name, readers, "optimizer")
    _check_read(table, found.schedule, SCHEDULES, "schedule")
    return found


def _check_read(
    table: Mapping[str, Any], chosen: str, readers: Mapping[str, tuple[str, ...]], what: str
) -> None:
    """SpecError if a table has settings that others of this kind read, and the chosen one does not; their
    usual values, as in a table of all, ask for nothing."""
    usual = OptimizerSettings()
    for name, value in table.items():
        if value == getattr(usual, name):
            continue
        able = [other for other, reads in readers.items() if name in reads]
        if able and chosen not in able:
            raise SpecError(
                f"optimizer: {name} has no effect with {what} {chosen!r}; it is a setting of "
                f"{what} {' and '.join(map(repr, able))}: name one of these, or leave {name} out"
            )


class Optimizer(ABC):
    """Owns the memory of the parameters it is given.

    A parameter that a loss does not use has a gradient of zero, not None. Gradients are forgotten
    with :meth:`zero_grad` here, not with that of the network, which would cut the views.
    """

    moments: ClassVar[tuple[str, ...]]
    """Names of the vectors that it keeps between steps."""
    reads: ClassVar[tuple[str, ...]]
    """The settings that change its steps."""

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float,
        settings: OptimizerSettings | None = None,
    ) -> None:
        self.settings = settings or OptimizerSettings()
        self.lr = self.current_lr = lr
        """The learning rate as given, and by its schedule now."""
        self.steps = self.updates = 0
        """Steps ever made; minibatches of this block."""
        self.parameters = list(parameters)
        self.weights: Tensor = torch.cat([p.detach().reshape(-1) for p in self.parameters])
        self.grads = torch.zeros_like(self.weights)
        self.buffers = {name: torch.zeros_like(self.weights) for name in self.moments}
        self._places: dict[int, tuple[int, int]] = {}
        start = 0
        for p in self.parameters:
            end = start + p.numel()
            p.data = self.weights[start:end].view_as(p)
            p.grad = self.grads[start:end].view_as(p)
            self._places[id(p)] = (start, end)
            start = end
        self._first_grad = self.parameters[0].grad

    def part_of(self, flat: Tensor, parameter: Tensor) -> Tensor:
        """A parameter's part of a vector in the order of all of them, as a view of its shape."""
        start, end = self._places[id(parameter)]
        return flat[start:end].view_as(parameter)

    def forget(self) -> None:
        """Begin anew: nothing is known of former steps."""
        for buffer in self.buffers.values():
            buffer.zero_()
        self.steps = 0

    def advance(self, progress: float) -> None:
        """Another minibatch comes, at this part of the exposure: the schedule goes on."""
        self.updates += 1
        self.current_lr = self.settings.learning_rate(self.lr, progress, self.updates)

    def restart_schedule(self) -> None:
        """A block begins: minibatches are counted from its beginning."""
        self.updates = 0

    def zero_grad(self) -> None:
        """Forget the gradients; backward() adds to what is there."""
        self.grads.zero_()

    @torch.no_grad()
    def clip(self, norm: float) -> None:
        """Shorten the gradient to this length if it is longer."""
        length = torch.linalg.vector_norm(self.grads)
        self.grads.mul_((norm / (length + 1e-6)).clamp_(max=1.0))

    @torch.no_grad()
    def step(self) -> None:
        """Move the parameters by what the gradients of this and former steps say."""
        if self.parameters[0].grad is not self._first_grad:
            raise AgentFault(
                "the gradients are no longer the optimizer's own; forget them with "
                "optimizer.zero_grad(), not with net.zero_grad(), and change them in place"
            )
        self.steps += 1
        self.move(self.current_lr)

    @abstractmethod
    def move(self, lr: float) -> None:
        """One step with this learning rate."""

    def state(self, prefix: str) -> dict[str, Array]:
        """Copies of the moments and the place in the schedule; the parameters themselves belong to
        their network."""
        return {
            **{f"{prefix}.{name}": to_array(v).copy() for name, v in self.buffers.items()},
            f"{prefix}.steps": np.array(self.steps),
            f"{prefix}.updates": np.array(self.updates),
            f"{prefix}.lr": np.array(self.current_lr),
        }

    def load(self, prefix: str, state: State) -> None:
        """Take over what :meth:`state` gave."""
        for name, v in self.buffers.items():
            v.copy_(to_tensor(state[f"{prefix}.{name}"], v.device))
        self.steps = int(state[f"{prefix}.steps"])
        self.updates = int(state[f"{prefix}.updates"])
        self.current_lr = float(state[f"{prefix}.lr"])


class Adam(Optimizer):
    """Kingma and Ba's Adam (2015); with the name ``adamw``, Loshchilov and Hutter's AdamW (2019)."""

    moments = ("mean", "square")
    reads = ("eps", "betas", "weight_decay")

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float,
        settings: OptimizerSettings | None = None,
    ) -> None:
        super().__init__(parameters, lr, settings)
        self.fused = self.weights.device.type == "cpu" and fused_works()
        """Whether torch's private operation makes the step: one pass over the vectors, where public
        ones take seven. Only on the CPU, where it has been measured and compared."""

    def move(self, lr: float) -> None:
        s, (mean, square) = self.settings, self.buffers.values()
        beta1, beta2 = s.betas
        if self.fused:
            fused_step(self.weights, self.grads, mean, square, self.steps, lr, s)
            return
        grads = self.grads
        if s.name == "adamw":
            self.weights.mul_(1 - lr * s.weight_decay)
        elif s.weight_decay:
            grads = grads.add(self.weights, alpha=s.weight_decay)
        mean.lerp_(grads, 1 - beta1)
        square.mul_(beta2).addcmul_(grads, grads, value=1 - beta2)
        scale = math.sqrt(1 - beta2**self.steps)
        size = lr / (1 - beta1**self.steps)
        self.weights.addcdiv_(mean, (square.sqrt() / scale).add_(s.eps), value=-size)


class SGD(Optimizer):
    """Gradient descent, with momentum (or Nesterov's) if there is any."""

    moments = ("momentum",)
    reads = ("momentum", "nesterov", "weight_decay")

    def move(self, lr: float) -> None:
        s, grads, momentum = self.settings, self.grads, self.buffers["momentum"]
        if s.weight_decay:
            grads = grads.add(self.weights, alpha=s.weight_decay)
        if s.momentum:
            momentum.mul_(s.momentum).add_(grads)
            grads = grads.add(momentum, alpha=s.momentum) if s.nesterov else momentum
        self.weights.add_(grads, alpha=-lr)


OPTIMIZERS: dict[str, type[Optimizer]] = {"adam": Adam, "adamw": Adam, "sgd": SGD}


def make_optimizer(
    parameters: Iterable[nn.Parameter], lr: float, settings: OptimizerSettings
) -> Optimizer:
    """The optimiser that the settings name."""
    return OPTIMIZERS[settings.name](parameters, lr, settings)


def fused_step(
    weights: Tensor,
    grads: Tensor,
    mean: Tensor,
    square: Tensor,
    steps: int,
    lr: float,
    settings: OptimizerSettings,
) -> None:
    """What torch.optim.Adam(fused=True) and AdamW come down to."""
    private = torch._fused_adamw_ if settings.name == "adamw" else torch._fused_adam_
    private(
        [weights],
        [grads],
        [mean],
        [square],
        [],
        [to_tensor(float(steps), weights.device)],
        lr=lr,
        beta1=settings.betas[0],
        beta2=settings.betas[1],
        weight_decay=settings.weight_decay,
        eps=settings.eps,
        amsgrad=False,
        maximize=False,
    )


@cache
def fused_works() -> bool:
    """Whether this torch still has its private operations as they are called here."""
    a, b, c, d = (torch.zeros(1, device=CPU) for _ in range(4))
    try:
        for name in ("adam", "adamw"):
            fused_step(a, b, c, d, 1, 0.0, OptimizerSettings(name))
    except (AttributeError, TypeError, RuntimeError):
        return False
    return True
