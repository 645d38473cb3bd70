"""Tidy tables of experiences for other tools."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from perdure.errors import StoreError
from perdure.store import files
from perdure.store.history import History
from perdure.store.run import Run

FORMATS = ("csv", "json", "parquet")


def export_rows(
    source: Run | Sequence[History], out: Path, format: str | None = None, partial: bool = False
) -> Path:
    """Write every experience as one row of a table, every measure a column, into a new file.

    Of a run these are all committed rows, single-task experts' too: ``expert`` is empty for the
    lifelong agents'. Of histories, what they hold. The format is that of the file's ending unless
    it is given. Of a run that is damaged nothing is written, unless ``partial``: then what is good.
    """
    chosen = format or out.suffix.removeprefix(".")
    if chosen not in FORMATS:
        raise StoreError(f"{out}: format {chosen!r} unknown, expected one of {', '.join(FORMATS)}")
    if out.exists() or out.is_symlink():
        raise StoreError(f"{out} exists, and nothing is overwritten: remove it or name another")
    table = _run_table(source, partial) if isinstance(source, Run) else history_table(source)
    temporary = out.with_name(f"_{out.name}.{os.getpid()}.tmp")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as f:
                _WRITERS[chosen](table, f)
            temporary.rename(out)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as e:
        raise files.typed(e, out) from e
    return out


def _run_table(run: Run, partial: bool) -> pa.Table:
    both = [run.rows(partial=partial), run.rows(experts=True, partial=partial)]
    return pa.concat_tables(both, promote_options="default")


def history_table(histories: Sequence[History]) -> pa.Table:
    """Histories as one table, each with its experts after it."""
    if not histories:
        raise StoreError("no lifetime to export")
    tables = []
    for history in histories:
        tables.append(_history_rows(history, ""))
        for task, runs in history.experts.items():
            tables += [_history_rows(h, task) for h in runs]
    return pa.concat_tables(tables, promote_options="permissive")


def _history_rows(history: History, expert: str) -> pa.Table:
    n = len(history)
    place = ("learning", "adapt", "sleep", "before", "complete", "steps")
    columns: dict[str, Any] = {
        "lifetime": pa.repeat(history.name, n),
        "agent": pa.repeat(history.agent, n),
        "seed": pa.repeat(pa.scalar(history.seed, pa.int64()), n),
        "expert": pa.repeat(expert, n),
        "exp": pa.array(history.exp),
        "block": pa.array(history.block),
        "task": pa.array(history.tasks, pa.string()).take(pa.array(history.task)),
        **{name: pa.array(getattr(history, name)) for name in place},
    }
    for measure, column in history.columns.items():
        columns[f"{measure}_" if measure in columns else measure] = column
    return pa.table(columns)


def _write_csv(table: pa.Table, sink: BinaryIO) -> None:
    from pyarrow import csv

    csv.write_csv(table, sink)


def _write_parquet(table: pa.Table, sink: BinaryIO) -> None:
    from pyarrow import parquet

    parquet.write_table(table, sink, compression="zstd")


def _write_json(table: pa.Table, sink: BinaryIO) -> None:
    """An array with one row a line."""
    for i, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            column = table.column(i)
            finite = pc.if_else(pc.is_finite(column), column, None)
            table = table.set_column(i, field, finite)
    between = b"[\n"
    for batch in table.to_batches(max_chunksize=1 << 14):
        for row in batch.to_pylist():
            sink.write(between + json.dumps(row, allow_nan=False).encode())
            between = b",\n"
    sink.write(b"\n]\n" if between == b",\n" else b"[]\n")


_WRITERS = {"csv": _write_csv, "json": _write_json, "parquet": _write_parquet}
