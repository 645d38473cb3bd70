"""What stays the same for a whole lifetime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, groupby
from typing import Any

import gymnasium

from perdure.run.datasets import Datasets
from perdure.seeds import seed_for
from perdure.suite import Suite, phrasings_of
from perdure.types import Block, Curriculum, Setup, Task


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

    @cached_property
    def stages(self) -> list[tuple[float, float]]:
        """Where each fixed block lies in its stage. Blocks that are generated are known one at a time,
        so each is a stage of its own."""
        return stages_of(self.curriculum.fixed)

    @property
    def measure(self) -> str:
        """What evaluations are scored by, where the plan tells; empty where it does not."""
        evaluated = [
            e
            for block in self.curriculum.fixed
            for phase in block.phases
            if not phase.learning
            for e in phase.exposures
        ]
        classes = isinstance(self.action_space, gymnasium.spaces.Discrete)
        found = {
            ("accuracy" if classes else "") if e.on_data else self.suites[e.task.suite].measure
            for e in evaluated
        }
        return found.pop() if len(found) == 1 else ""

    def setup(self) -> Setup:
        """What the agent is made with."""
        shown = () if self.hide_tasks else self.curriculum.shown_tasks
        told = set(self.curriculum.told_tasks)
        phrased = {t.id: self.phrasings(t) for t in shown if t in told}
        return Setup(
            self.observation_space,
            self.action_space,
            self.envs * self.curriculum.width,
            seed_for(self.seed, "agent"),
            tuple(dict.fromkeys(t.id for t in shown)),
            {task: phrasings for task, phrasings in phrased.items() if phrasings},
            self.datasets.examples,
            self.curriculum.protocol,
            tuple(shown),
            self.curriculum.least_trial,
        )

    def phrasings(self, task: Task) -> tuple[str, ...]:
        """The task's instruction in all its phrasings."""
        return phrasings_of(self.suites[task.suite], task)


def stages_of(blocks: Sequence[Block]) -> list[tuple[float, float]]:
    """For each block, of the consecutive learn blocks of its tasks, whatever is evaluated between
    them: the part that comes before it, and the part that it is."""
    found = [(0.0, 1.0)] * len(blocks)
    learned = ((k, b) for k, b in enumerate(blocks) if b.kind == "learn")
    for _, same in groupby(learned, lambda pair: {e.task.key for e in pair[1].exposures}):
        stage = list(same)
        units = {e.unit for _, b in stage for e in b.exposures}
        # Amounts of different units cannot be added up: then blocks count alike.
        sizes = [sum(e.amount for e in b.exposures) if len(units) == 1 else 1 for _, b in stage]
        ends = list(accumulate(sizes))
        for (k, _), size, end in zip(stage, sizes, ends, strict=True):
            found[k] = (end - size) / ends[-1], size / ends[-1]
    return found
