"""Histories written out by hand: what the tests of metrics are made of."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from perdure.measure.metric import LifetimeData
from perdure.store import rows
from perdure.store.history import History, from_table

Cell = tuple  # (block, task, learning, value[, steps])


def history(
    cells: Sequence[Cell],
    *,
    measure: str = "success",
    adapt: Sequence[int] = (),
    before: Sequence[int] = (),
    cut: Sequence[int] = (),
    ends: Mapping[int, float] | None = None,
    experts: Mapping[str, Sequence[History]] | None = None,
) -> History:
    """A history from (block, task, learning, value) or (block, task, learning, value, steps).

    ``measure`` is the column of the values: success, accuracy or return. ``adapt`` and ``before``
    are blocks, ``cut`` the indices of cells whose episode the budget cut off, ``ends`` success at
    the last step for some indices.
    """
    made = []
    for i, (block, task, learning, value, *steps) in enumerate(cells):
        kind = "adapt" if block in adapt else "learn" if learning else "eval"
        row = rows.Row(
            exp=i, block=block, deployed=block not in before, kind=kind,
            learning=learning, exposure=0, task=task, variant="", params="", slot=0, episode=0, trial=0,
            seed=0, trial_seed=0, steps=steps[0] if steps else 1, learning_steps=0,
            status="incomplete" if i in cut else "complete", terminated=True, truncated=False,
            ret=value if measure == "return" else None,
            success=value if measure == "success" else None, success_end=(ends or {}).get(i),
            accuracy=value if measure == "accuracy" else None, loss=None, more=None,
        )  # fmt: skip
        made.append(row)
    found = from_table(rows.decode(rows.encode(made, "a", 0, "")), "a/0", "a", 0)
    return replace(found, experts={t: tuple(hs) for t, hs in (experts or {}).items()})


def life(cells: Sequence[Cell], **keys) -> LifetimeData:
    """What a metric takes, of the history's own measure."""
    made = history(cells, **keys)
    return LifetimeData(made, made.measure)


def in_turn(
    tasks: Sequence[str],
    table: Sequence[Sequence[float | None]],
    order: Sequence[int] | None = None,
) -> list[Cell]:
    """Cells of a lifetime that learns each task once and evaluates all before, between and after.

    ``table`` has a row before any learning and one after each task; None is not evaluated.
    ``order`` is that of the tasks within each evaluation.
    """
    cells: list[Cell] = []
    columns = range(len(tasks)) if order is None else order
    for i, scores in enumerate(table):
        if i:
            cells.append((2 * i - 1, tasks[i - 1], True, 0.5))
        cells += [
            (2 * i, tasks[j], False, float(scores[j])) for j in columns if scores[j] is not None
        ]
    return cells
