"""A run as TensorBoard event files: one folder a lifetime, one scalar a task and measure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from perdure.errors import MissingExtra, StoreError
from perdure.names import join_task_id
from perdure.store.files import new_folder
from perdure.store.log import Lifetime
from perdure.store.rows import MEASURES, flatten
from perdure.store.run import Run

FILE = "events.out.tfevents.0.perdure"
"""TensorBoard takes any name with ``tfevents`` in it; without clock and host, exporting twice gives
the same bytes."""
_PLACE = ("block", "kind", "learning", "task", "variant", "learning_steps", "status")

Point = tuple[int, dict[str, float]]
"""A step, and the scalars there by tag."""


def write_tensorboard(run: Run, out: Path, without: Collection[str] = ()) -> list[Path]:
    """Write a run's committed rows into a new folder; ``tensorboard --logdir OUT`` shows them.

    Every lifetime has a folder of its own, single-task experts too. The step is the number of
    learning steps (or examples) so far. ``learn_MEASURE/TASK`` is each learning experience,
    ``eval_MEASURE/TASK`` the mean of each evaluation block, ``adapt_…`` those of adapt blocks.
    Experiences that a budget cut off are left out, and lifetimes whose ids are in ``without``.
    """
    try:
        from tensorboard.summary.writer.record_writer import RecordWriter
    except ImportError as e:
        raise MissingExtra("exporting to TensorBoard", "tensorboard") from e

    infos = [i for i in run.lifetimes() if i.rows and i.id not in without]
    if not infos:
        raise StoreError(f"{run.path} has no committed rows yet")
    with new_folder(out) as root:
        for info in infos:
            folder = root / info.id
            folder.mkdir(parents=True)
            with (folder / FILE).open("xb") as sink:
                _write(RecordWriter(sink).write, points(info.read()))
    return [out / info.id for info in infos]


def _write(record: Callable[[bytes], Any], found: Iterator[Point]) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    record(Event(file_version="brain.Event:2").SerializeToString())
    for step, scalars in found:
        values = [Summary.Value(tag=tag, simple_value=v) for tag, v in scalars.items()]
        record(Event(step=step, summary=Summary(value=values)).SerializeToString())


def points(lifetime: Lifetime) -> Iterator[Point]:
    """The scalars of a lifetime, in order."""
    means: dict[str, list[float]] = {}
    under_way: tuple[int, int] | None = None
    for row, measures in _rows(lifetime):
        task = join_task_id("", row["task"], row["variant"])
        here = (row["block"], row["learning_steps"])
        if under_way is not None and (row["learning"] or here != under_way):
            yield under_way[1], _averaged(means)
            means, under_way = {}, None
        if row["learning"]:
            head = "learn" if row["kind"] == "learn" else "adapt_learn"
            yield row["learning_steps"], {f"{head}_{m}/{task}": v for m, v in measures.items()}
        else:
            under_way = here
            for m, v in measures.items():
                total = means.setdefault(f"{row['kind']}_{m}/{task}", [0.0, 0.0])
                total[0] += v
                total[1] += 1
    if under_way is not None:
        yield under_way[1], _averaged(means)


def _averaged(means: Mapping[str, list[float]]) -> dict[str, float]:
    return {tag: total / count for tag, (total, count) in means.items()}


def _rows(lifetime: Lifetime) -> Iterator[tuple[dict[str, Any], dict[str, float]]]:
    """Each experience that ended by itself: its place and its measures."""
    for table in lifetime.tables([*_PLACE, "steps", *MEASURES, "more"]):
        for row in flatten(table).to_pylist():
            if row["status"] == "incomplete":
                continue
            place = {name: row.pop(name) for name in _PLACE}
            yield place, {name: v for name, v in row.items() if v is not None}
