"""What stays the same for a whole lifetime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gymnasium

from perdure.run.datasets import Datasets
from perdure.seeds import seed_for
from perdure.suite import Suite
from perdure.types import Curriculum, Setup, Task


@dataclass(frozen=True)
class LifetimeConfig:
    """One lifetime: its curriculum, what it stands on, and how it is run."""

    curriculum: Curriculum
    suites: Mapping[str, Suite]
    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    seed: int
    envs: int = 1
    hide_tasks: bool = False
    checkpoint: int = 50_000
    """A commit every so many steps (examples, for data). Part of the specification: where
    segments end must not depend on clocks."""

    @cached_property
    def datasets(self) -> Datasets:
        """The data of the curriculum's tasks, opened when first asked for."""
        return Datasets(self.curriculum.tasks, self.suites)

    def setup(self) -> Setup:
        """What the agent is made with."""
        shown = () if self.hide_tasks else self.curriculum.shown_tasks
        phrased = {t.id: self.phrasings(t) for t in shown}
        return Setup(
            self.observation_space,
            self.action_space,
            self.envs * self.curriculum.width,
            seed_for(self.seed, "agent"),
            tuple(dict.fromkeys(t.id for t in shown)),
            {task: phrasings for task, phrasings in phrased.items() if phrasings},
            self.datasets.examples,
            self.curriculum.protocol,
        )

    def phrasings(self, task: Task) -> tuple[str, ...]:
        """The task's instruction in all its phrasings."""
        return tuple(self.suites[task.suite].instructions(task))
