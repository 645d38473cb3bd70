"""What learners can be told, as records: what all share, what those of rollouts and those of replay
share. A learner's own record adds to one of these and says its defaults.

A constructor takes the fields one by one (:func:`perdure.specs.takes_fields`): ``ppo,lr=1e-3``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, TypeAlias

from torch import nn

from perdure.agents.networks.checks import check_ranges
from perdure.agents.networks.encoders import check_widths
from perdure.agents.networks.optimizers import (
    Optimizer,
    OptimizerSettings,
    OptimizerSpec,
    make_optimizer,
    settings_of,
)
from perdure.errors import SpecError

PRECISE = OptimizerSettings(eps=1e-8)
"""Adam as torch has it."""
Ranges: TypeAlias = Mapping[str, tuple[float, float]]
"""The least and the most that fields may be."""


@dataclass(frozen=True, kw_only=True)
class TorchSettings:
    """Of every torch learner: layers, optimiser, the longest gradient, device.

    ``threads=2`` lets torch use two cores, for large networks in a lifetime that has the machine to itself;
    results differ in their last digits from those of one thread.
    ``layer_norm`` puts a layer norm between each linear layer and its activation.
    ``plasticity=512`` measures at every evaluation how well it can still learn, on the first 512 rows
    that it learned from (at least as many as the widest layer has units), and ``trainability=100``
    by learning random answers for them in 100 steps (:mod:`perdure.agents.networks.plasticity`).
    """

    agent: ClassVar[str]
    """The learner's name, for what is refused."""
    ranges: ClassVar[Ranges] = {
        "lr": (0, inf),
        "max_grad": (0, inf),
        "threads": (1, inf),
        "plasticity": (0, inf),
        "trainability": (0, inf),
    }

    lr: float = 1e-3
    hidden: Sequence[int] = (64, 64)
    max_grad: float = inf
    optimizer: OptimizerSpec = "adam"
    layer_norm: bool = False
    device: str = "auto"
    threads: int = 1
    plasticity: int = 0
    trainability: int = 0

    def __post_init__(self) -> None:
        check_widths(self.hidden)
        for field in dataclasses.fields(self):
            if field.type == "int" and not isinstance(getattr(self, field.name), int):
                got = getattr(self, field.name)
                raise SpecError(f"{self.agent}: {field.name} must be a whole number, got {got!r}")
        for name, (least, most) in self.ranges.items():
            check_ranges(self.agent, **{name: (getattr(self, name), least, most)})
        if self.trainability and not self.plasticity:
            raise SpecError(
                f"{self.agent}: trainability is measured on the rows of plasticity=ROWS"
            )

    @property
    def shared(self) -> dict[str, Any]:
        """What :class:`~perdure.agents.networks.learner.TorchAgent` is made with."""
        return {
            "device": self.device,
            "threads": self.threads,
            "plasticity": self.plasticity,
            "trainability": self.trainability,
        }

    def make_optimizer(self, parameters: Iterable[nn.Parameter]) -> Optimizer:
        """The optimiser of these parameters. What a name or a table leaves open is as in the
        learner's default."""
        default = type(self).optimizer
        given = self.optimizer
        if isinstance(default, OptimizerSettings):
            return make_optimizer(parameters, self.lr, settings_of(given, default))
        return make_optimizer(parameters, self.lr, settings_of(given))


@dataclass(frozen=True, kw_only=True)
class RolloutSettings(TorchSettings):
    """Of learners that gather ``rollout`` steps by a policy and learn them ``epochs`` times, in
    minibatches of ``batch``. ``std`` is the first spread of continuous actions, in units of half
    their range; evaluation does what is most probable if ``greedy``."""

    ranges: ClassVar[Ranges] = {
        **TorchSettings.ranges,
        "gamma": (0, 1),
        "lam": (0, 1),
        "rollout": (2, inf),
        "batch": (1, inf),
        "epochs": (1, inf),
        "std": (1e-6, inf),
    }

    gamma: float = 0.99
    lam: float = 0.95
    rollout: int = 1500
    batch: int = 64
    epochs: int = 10
    std: float = 1.0
    greedy: bool = True


@dataclass(frozen=True, kw_only=True)
class ReplaySettings(TorchSettings):
    """Of learners that learn ``batch`` rows out of the last ``replay`` for every ``every`` steps.
    At a new task they start anew if ``restart``."""

    ranges: ClassVar[Ranges] = {
        **TorchSettings.ranges,
        "gamma": (0, 1),
        "replay": (1, inf),
        "every": (1, inf),
    }

    gamma: float = 0.99
    replay: int = 100_000
    batch: int = 256
    every: int = 1
    optimizer: OptimizerSpec = PRECISE
    restart: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self.agent, batch=(self.batch, 1, self.replay))
