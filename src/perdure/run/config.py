"""What stays the same for a whole lifetime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gymnasium

from perdure.run.datasets import Datasets
from perdure.seeds import seed_for
from perdure.suite import Suite
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
        """Where each fixed block lies in its stage."""
        fixed = self.curriculum.fixed
        return [stage_of(fixed, k) for k in range(len(fixed))]

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


def stage_of(blocks: Sequence[Block], number: int) -> tuple[float, float]:
    """Of consecutive learn blocks of the same tasks, whatever is evaluated between them: the part
    that comes before the block of this number, and the part that it is. Blocks that are generated
    are known one at a time, so each is a stage of its own."""
    if number >= len(blocks) or blocks[number].kind != "learn":
        return 0.0, 1.0
    learned = [(k, b) for k, b in enumerate(blocks) if b.kind == "learn"]
    tasks = [{e.task.key for e in b.exposures} for _, b in learned]
    here = next(i for i, (k, _) in enumerate(learned) if k == number)
    first = last = here
    while first > 0 and tasks[first - 1] == tasks[here]:
        first -= 1
    while last + 1 < len(tasks) and tasks[last + 1] == tasks[here]:
        last += 1
    stage = [b for _, b in learned[first : last + 1]]
    units = {e.unit for b in stage for e in b.exposures}
    # Amounts of different units cannot be added up: then blocks count alike.
    sizes = [sum(e.amount for e in b.exposures) if len(units) == 1 else 1 for b in stage]
    return sum(sizes[: here - first]) / sum(sizes), sizes[here - first] / sum(sizes)
