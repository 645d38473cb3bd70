"""Experience replay (Rolnick et al., 2019; Chaudhry et al., 2019): learn some of the past again.

A minibatch B of the present is learned together with as many rows M of the past, in one loss::

    L = mean over B ∪ M of ℓ

The memory holds a uniform sample: of all of life (``quota = 0``: one reservoir of ``memory`` rows),
or of each task (``quota`` rows a task; only finished tasks are replayed). Replay begins with the
second task: a reservoir of the first holds nothing of the past.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, ClassVar

from perdure.agents.networks.checks import check_ranges
from perdure.agents.networks.learner import Minibatch, NewRows, TorchLearner
from perdure.agents.strategies.base import Strategy
from perdure.agents.strategies.drawn_ahead import DrawnAhead
from perdure.agents.strategies.row_memory import (
    Keep,
    PerTaskBuffer,
    Reservoir,
    RowFormat,
    joined,
    rows_of,
)
from perdure.types import Array, State


class Replay(Strategy):
    """Replays ``share`` rows of the past for every row of the present.

    Examples of a data set are kept as references into it (``keep="references"``), which take next to no
    room. They are drawn one minibatch ahead and looked up while the one before is learned from. Who cannot ask
    the data again keeps ``copies``, in their own type. ``megabytes`` bounds all that
    is kept, if it is given; with ``quota``, the tasks share it. Transitions are always copied.

    The preset ``libero`` is LIBERO's ER: 1,000 sequences of each task, drawn uniformly (its code takes
    the first 1,000 in the file), and one of them for each new one.
    """

    needs = ("replay",)
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "libero": {"quota": 1000},
        "libero-small": {"quota": 1000},
    }

    def __init__(
        self,
        learner: TorchLearner,
        memory: int = 1000,
        quota: int = 0,
        share: float = 1.0,
        keep: Keep = "references",
        megabytes: float = 0.0,
    ) -> None:
        super().__init__(learner)
        check_ranges("replay", share=(share, 0, inf), quota=(quota, 0, inf))
        self.share = share
        form = RowFormat(learner, keep, megabytes)
        self.per_task = PerTaskBuffer(quota, form) if quota else None
        self.reservoir = Reservoir(memory, form)
        self.ahead = DrawnAhead(form)

    def begin(self) -> None:
        if self.per_task is not None:
            self.per_task.begin(self.rng)

    def collect(self, rows: NewRows) -> None:
        kept = self.reservoir if self.per_task is None else self.per_task
        kept.offer(rows, self.rng)

    def extend(self, batch: Minibatch) -> Minibatch:
        rows = max(1, round(self.share * rows_of(batch)))
        tasks, reservoir = self.per_task, self.reservoir
        if tasks is not None and tasks.held(self.past):
            past = self.ahead.draw(rows, self.tasks, lambda n: tasks.draw(n, self.rng, self.past))
        elif tasks is None and self.past and len(reservoir):
            past = self.ahead.draw(rows, self.tasks, lambda n: reservoir.draw(n, self.rng))
        else:
            return batch
        return joined([batch, past])

    def state(self) -> dict[str, Array]:
        kept = self.reservoir if self.per_task is None else self.per_task
        return {**kept.state("memory"), **self.ahead.state("ahead")}

    def load(self, state: State) -> None:
        kept = self.reservoir if self.per_task is None else self.per_task
        kept.load("memory", state)
        self.ahead.load("ahead", state)


strategy = Replay
