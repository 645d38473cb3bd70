"""The results so far, as generated curricula and choosing agents see them."""

from __future__ import annotations

from collections.abc import Iterable
from math import nan

from perdure.names import join_task_id
from perdure.store.rows import Row


class RunningResults:
    """Sums per block, task and phase; a pure function of the rows, so that a resumed lifetime
    sees what the interrupted one saw."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._sums: dict[tuple[int, str, bool], dict[str, list[float]]] = {}
        for row in rows:
            self.add(row)

    def add(self, row: Row) -> None:
        """Count a row in."""
        task = join_task_id("", row.task, row.variant)
        sums = self._sums.setdefault((row.block, task, row.learning), {"steps": [0.0, 0]})
        sums["steps"][0] += row.steps
        sums["steps"][1] += 1
        measures = {
            "return": row.ret,
            "success": row.success,
            "success_end": row.success_end,
            "accuracy": row.accuracy,
            "loss": row.loss,
            **(row.more or {}),
        }
        for name, value in measures.items():
            if value is not None:
                total = sums.setdefault(name, [0.0, 0])
                total[0] += value
                total[1] += 1

    def until(self, block: int) -> ResultsView:
        """The results of all blocks before this one."""
        return ResultsView(self, block)


class ResultsView:
    """The results at the end of a block."""

    def __init__(self, results: RunningResults, blocks: int) -> None:
        self._results, self.blocks = results, blocks

    def mean(
        self,
        measure: str,
        *,
        task: str | None = None,
        block: int = -1,
        learning: bool | None = None,
    ) -> float:
        """Mean of a measure over a block's rows (-1: the last that ran); NaN if there are none."""
        wanted = block if block >= 0 else self.blocks + block
        total, count = 0.0, 0.0
        for (b, t, learned), sums in self._results._sums.items():
            if b == wanted < self.blocks and task in (None, t) and learning in (None, learned):
                s = sums.get(measure, (0.0, 0))
                total, count = total + s[0], count + s[1]
        return total / count if count else nan

    def steps(self, *, learning: bool = True) -> int:
        """Steps (or examples) taken so far."""
        return int(
            sum(
                sums["steps"][0]
                for (b, _, learned), sums in self._results._sums.items()
                if learned == learning and b < self.blocks
            )
        )
