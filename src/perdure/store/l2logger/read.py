"""Reading and checking L2Logger directories."""

from __future__ import annotations

import csv as python_csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from perdure.arrays import Array
from perdure.store.history import History, codes, equals, floats, numbers
from perdure.store.l2logger.check import (
    DataLog,
    LogError,
    explain,
    read_object,
    refuse_special,
    validate,
)
from perdure.store.l2logger.names import STEPS
from perdure.store.l2logger.times import extremes
from perdure.store.rows import truths

REQUIRED = ("block_num", "exp_num", "worker_id", "block_type", "task_name", "task_params")
OPTIONAL = {"block_subtype": "wake", "exp_status": "complete"}
SCENARIO = {
    "complexity": ("1-low", "2-intermediate", "3-high"),
    "difficulty": ("1-easy", "2-medium", "3-hard"),
    "scenario_type": ("condensed", "dispersed", "permuted", "alternating", "ste", "custom"),
}
_BLOCK = 4 << 20
_MOST = 2.0**62
MOST_TASKS = 2000
"""Of one log. Transfer is between any two tasks: its cost goes with their square."""


def is_log(path: Path) -> bool:
    """Whether a folder is one L2Logger log."""
    return (path / "logger_info.json").is_file()


def find_logs(path: Path) -> list[Path]:
    """The logs at or below a folder, sorted by path."""
    if is_log(path):
        return [path]
    found = []
    for folder, below, names in os.walk(path):
        if "logger_info.json" in names:
            found.append(Path(folder))
            below.clear()
        # Exports that were not finished.
        below[:] = [b for b in below if not (b.startswith("_") and b.endswith(".tmp"))]
    return sorted(found)


def read_log(path: Path, measures: Sequence[str] | None = None) -> History:
    """The history in a log's folder, validated.

    ``measures`` are the columns to read as numbers; all of the log's metrics columns by default.
    """
    logger = read_object(path / "logger_info.json")
    declared = logger.get("metrics_columns")
    if (
        not isinstance(declared, list)
        or not declared
        or not all(isinstance(n, str) for n in declared)
    ):
        raise LogError(
            f"{path}/logger_info.json: metrics_columns must be a list of at least one column name, "
            f"got {declared!r}"
        )
    declared = list(dict.fromkeys(declared))
    wanted = [m for m in declared if measures is None or m in measures]
    words = [m for m in wanted if m in (*REQUIRED[2:], *OPTIONAL, "timestamp")]
    if words:
        raise LogError(f"{path}/logger_info.json: {', '.join(words)} cannot be a metrics column")
    notes: list[str] = []
    scenario = scenario_info(path, notes)
    files = sorted(path.rglob("data-log.tsv"), key=_file_order)
    if not files:
        raise LogError(f"{path} has no <worker>/<block>-<type>/data-log.tsv below it")
    spans: list[dict[str, tuple[str, str]]] = []
    parts = []
    for file in files:
        refuse_special(file)
        table = _read_tsv(file, wanted)
        if table.num_rows:
            spans.append(_spans(table, wanted))
            table = table.drop_columns([c for c in table.column_names if c == "timestamp"])
            parts.append(DataLog(file, table))
    if not parts:
        raise LogError(f"{path} holds no rows")
    validate(parts)
    span = {
        m: (min(s[m][0] for s in spans if m in s), max(s[m][1] for s in spans if m in s))
        for m in wanted
        if any(m in s for s in spans)
    }
    info = {**scenario, "metrics_columns": declared, "span": span}
    return _history(path.name, parts, wanted, declared, info, notes)


def _file_order(path: Path) -> tuple[int, str]:
    number = path.parent.name.split("-")[0]
    return (int(number) if number.isdecimal() else 0, str(path))


def scenario_info(path: Path, notes: list[str] | None = None) -> dict[str, Any]:
    """What a log says of its scenario; oddities go to ``notes``."""
    notes = [] if notes is None else notes
    file = path / "scenario_info.json"
    if not file.is_file():
        notes.append(f"{file} is missing")
        return dict.fromkeys(SCENARIO, "")
    found = read_object(file)
    for key, allowed in SCENARIO.items():
        if key not in found:
            found[key] = ""
        elif str(found[key]).lower() not in allowed:
            notes.append(f"{file}: {key} is {found[key]!r}, expected one of {', '.join(allowed)}")
    return found


def _read_tsv(path: Path, measures: Sequence[str]) -> pa.Table:
    try:
        with path.open("rb") as f:
            first = f.readline().decode("utf-8-sig")
        header = next(python_csv.reader([first], delimiter="\t"), [])
    except (OSError, UnicodeDecodeError, python_csv.Error) as e:
        said = "not UTF-8" if isinstance(e, UnicodeDecodeError) else "cannot be read"
        raise LogError(f"{path}, line 1: {said} ({e})") from e
    missing = [c for c in (*REQUIRED, *measures) if c not in header]
    if missing:
        raise LogError(
            f"{path}, line 1: no column {', '.join(missing)}; it has {', '.join(header)}"
        )
    word = pa.dictionary(pa.int32(), pa.string())
    types: dict[str, pa.DataType] = {STEPS: pa.float64(), **{m: pa.float64() for m in measures}}
    types |= {n: word for n in (*REQUIRED, *OPTIONAL)}
    types |= {"block_num": pa.int64(), "exp_num": pa.int64(), "timestamp": pa.string()}
    try:
        return _parse(path, types, [c for c in types if c in header])
    except (pa.ArrowException, OSError) as e:
        raise LogError(explain(path, types, str(e))) from e


def _parse(path: Path, types: Mapping[str, pa.DataType], wanted: list[str]) -> pa.Table:
    from pyarrow import csv

    data = path.read_bytes()
    convert = csv.ConvertOptions(
        column_types=types, include_columns=wanted, check_utf8=not data.isascii()
    )
    read = csv.ReadOptions(use_threads=False, block_size=_BLOCK)
    # A reader that need not look for quotes is a tenth quicker.
    quote = '"' if b'"' in data else False
    try:
        plain = csv.ParseOptions(delimiter="\t", quote_char=quote)
        return csv.read_csv(pa.BufferReader(data), read, plain, convert)
    except pa.ArrowInvalid:
        if len(data) < _BLOCK:
            raise
        # Some quoted text may hold the line end at which a block was cut.
        careful = csv.ParseOptions(delimiter="\t", newlines_in_values=True)
        return csv.read_csv(pa.BufferReader(data), read, careful, convert)


def _spans(table: pa.Table, measures: Sequence[str]) -> dict[str, tuple[str, str]]:
    """For each measure: the first and last time stamp of a complete row that has it."""
    if "timestamp" not in table.column_names:
        return {}
    times = table.column("timestamp")
    unfinished = _column_is(table, "exp_status", "incomplete")
    found = {}
    for measure in measures:
        column = table.column(measure)
        kept = times
        if column.null_count or unfinished.any():
            kept = times.filter(truths(numbers(column.is_valid()) & ~unfinished))
        ends = extremes(kept)
        if ends is not None:
            found[measure] = ends
    return found


def _history(
    name: str,
    parts: Sequence[DataLog],
    measures: Sequence[str],
    declared: Sequence[str],
    info: Mapping[str, Any],
    notes: list[str],
) -> History:
    wanted = ["block_num", "exp_num", "block_type", "task_name", *measures]
    tables = [p.table for p in parts]
    optional = [c for c in (*OPTIONAL, STEPS) if all(c in t.column_names for t in tables)]
    for column in OPTIONAL:
        if column not in optional and any(column in t.column_names for t in tables):
            tables = [_with_default(t, column) for t in tables]
            optional.append(column)
    chosen = list(dict.fromkeys([*wanted, *optional]))
    table = pa.concat_tables([t.select(chosen) for t in tables])
    exp = numbers(table.column("exp_num"))
    block = numbers(table.column("block_num"))
    steps = np.diff(exp)
    if np.any(steps < 0) or np.any((steps == 0) & (np.diff(block) < 0)):
        table = table.take(np.lexsort((block, exp)))
        exp, block = numbers(table.column("exp_num")), numbers(table.column("block_num"))
    falling = np.diff(block) < 0
    if np.any(falling):
        i = int(np.argmax(falling))
        raise LogError(
            f"{name}: block_num falls from {block[i]} (exp_num {exp[i]}) to {block[i + 1]} "
            f"(exp_num {exp[i + 1]}): in order of exp_num, blocks must not go back"
        )
    types, kind = codes(table.column("block_type"))
    labels, task = codes(table.column("task_name"))
    # Names that differ in case alone are one task: the format's own reader lower-cases them.
    lower = [t.lower() for t in labels]
    number = {t: i for i, t in enumerate(dict.fromkeys(lower))}
    tasks = tuple(number)
    if len(tasks) > MOST_TASKS:
        raise LogError(
            f"{name} has {len(tasks):,} different values of task_name, at most {MOST_TASKS:,} can be "
            f"measured (the first: {', '.join(map(repr, tasks[:3]))}); what differs between the "
            "episodes of a task belongs into task_params"
        )
    task = np.array([number[t] for t in lower], np.int32)[task]
    n = len(exp)
    return History(
        name=name,
        tasks=tasks,
        exp=exp,
        block=block,
        task=task,
        learning=equals("train", types, kind),
        adapt=np.zeros(n, bool),
        sleep=_column_is(table, "block_subtype", "sleep"),
        before=np.zeros(n, bool),
        complete=~_column_is(table, "exp_status", "incomplete"),
        steps=_steps(table, n),
        columns={m: table.column(m) for m in measures},
        measure="reward" if "reward" in declared else declared[0],
        agent=_text(info.get("agent_name")),
        seed=_number(info.get("seed", info.get("agent_seed"))),
        info=info,
        notes=tuple(notes),
    )


def _with_default(table: pa.Table, column: str) -> pa.Table:
    if column in table.column_names:
        return table
    word = pa.dictionary(pa.int32(), pa.string())
    values = pa.array([OPTIONAL[column]] * len(table), pa.string()).cast(word)
    return table.append_column(pa.field(column, word), values)


def _column_is(table: pa.Table, name: str, value: str) -> Array:
    if name not in table.column_names:
        return np.zeros(len(table), bool)
    return equals(value, *codes(table.column(name)))


def _steps(table: pa.Table, n: int) -> Array:
    if STEPS not in table.column_names:
        return np.ones(n, np.int64)
    steps = floats(table.column(STEPS))
    return np.where(np.abs(steps) < _MOST, steps, 0.0).astype(np.int64)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
