"""Reading and checking L2Logger directories."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from perdure.errors import StoreError
from perdure.store.history import History, codes
from perdure.types import Array

REQUIRED = ("block_num", "exp_num", "worker_id", "block_type", "task_name", "task_params")
OPTIONAL = {"block_subtype": "wake", "exp_status": "complete"}
WORDS = {
    "block_type": ("train", "test"),
    "block_subtype": ("wake", "sleep"),
    "exp_status": ("complete", "incomplete"),
}
SCENARIO = {
    "complexity": ("1-low", "2-intermediate", "3-high"),
    "difficulty": ("1-easy", "2-medium", "3-hard"),
    "scenario_type": ("condensed", "dispersed", "permuted", "alternating", "ste", "custom"),
}
STEPS = "episode_step_count"
_WORKER = re.compile(r"[0-9a-zA-Z_\-.]+")


class LogError(StoreError):
    """An L2Logger directory that breaks the format; says the file, the line and the rule."""


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
    return sorted(found)


@dataclass(frozen=True)
class _Part:
    """One data-log.tsv."""

    path: Path
    table: pa.Table


def read_log(path: Path, measures: Sequence[str] | None = None) -> History:
    """The history in a log's folder, validated.

    ``measures`` are the columns to read as numbers; all of the log's metrics columns by default.
    """
    logger = _json(path / "logger_info.json")
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
    wanted = [m for m in declared if measures is None or m in measures]
    notes: list[str] = []
    scenario = _scenario(path, notes)
    files = sorted(path.rglob("data-log.tsv"), key=_file_order)
    if not files:
        raise LogError(f"{path} has no <worker>/<block>-<type>/data-log.tsv below it")
    spans: list[dict[str, tuple[str, str]]] = []
    parts = []
    for file in files:
        table = _read_tsv(file, wanted)
        if table.num_rows:
            spans.append(_spans(table, wanted))
            table = table.drop_columns([c for c in table.column_names if c == "timestamp"])
            parts.append(_Part(file, table))
    if not parts:
        raise LogError(f"{path} holds no rows")
    _validate(parts)
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


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LogError(f"{path} is missing") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as e:
        raise LogError(f"{path} is not JSON: {e}") from e
    if not isinstance(found, dict):
        raise LogError(f"{path} must hold a JSON object, got {type(found).__name__}")
    return found


def _scenario(path: Path, notes: list[str]) -> dict[str, Any]:
    file = path / "scenario_info.json"
    if not file.is_file():
        notes.append(f"{file} is missing")
        return dict.fromkeys(SCENARIO, "")
    found = _json(file)
    for key, allowed in SCENARIO.items():
        if key not in found:
            found[key] = ""
        elif found[key] not in allowed:
            notes.append(f"{file}: {key} is {found[key]!r}, expected one of {', '.join(allowed)}")
    return found


def _read_tsv(path: Path, measures: Sequence[str]) -> pa.Table:
    from pyarrow import csv

    try:
        with path.open("rb") as f:
            header = f.readline().decode("utf-8").rstrip("\r\n").split("\t")
    except UnicodeDecodeError as e:
        raise LogError(f"{path}, line 1: not UTF-8 ({e})") from e
    missing = [c for c in (*REQUIRED, *measures) if c not in header]
    if missing:
        raise LogError(
            f"{path}, line 1: no column {', '.join(missing)}; it has {', '.join(header)}"
        )
    word = pa.dictionary(pa.int32(), pa.string())
    types: dict[str, pa.DataType] = {n: word for n in (*REQUIRED, *OPTIONAL)}
    types |= {"block_num": pa.int64(), "exp_num": pa.int64(), "timestamp": pa.string()}
    types |= {STEPS: pa.float64(), **{m: pa.float64() for m in measures}}
    try:
        return csv.read_csv(
            path,
            read_options=csv.ReadOptions(use_threads=False, block_size=4 << 20),
            parse_options=csv.ParseOptions(delimiter="\t"),
            convert_options=csv.ConvertOptions(
                column_types=types, include_columns=[c for c in types if c in header]
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError) as e:
        raise LogError(f"{path}: {_plain(str(e), path)}") from e


def _plain(message: str, path: Path) -> str:
    """Arrow's complaint with the line it is about, where one can be found."""
    value = re.search(r"invalid value '(.*)'", message)
    column = re.search(r"In CSV column #(\d+)", message)
    if value and column:
        with path.open(encoding="utf-8", errors="replace") as f:
            names = f.readline().rstrip("\n").split("\t")
            for number, line in enumerate(f, 2):
                if value[1] in line.split("\t"):
                    where = names[int(column[1])] if int(column[1]) < len(names) else "?"
                    return f"line {number}: {where} is {value[1]!r}, expected a number"
    return message


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
            kept = times.filter(pc.and_(pc.is_valid(column), pa.array(~unfinished)))
        ends = pc.min_max(kept).as_py()
        if ends["min"] is not None:
            found[measure] = (ends["min"], ends["max"])
    return found


def _validate(parts: Sequence[_Part]) -> None:
    for part in parts:
        for name in ("block_num", "exp_num"):
            column = part.table.column(name)
            if column.null_count:
                _refuse(part, pc.is_null(column), f"{name} is empty, expected a whole number ≥ 0")
            negative = pc.less(column, 0)
            if pc.any(negative).as_py():
                _refuse(part, negative, f"{name} is negative, expected a whole number ≥ 0")
        for name, allowed in WORDS.items():
            if name in part.table.column_names:
                _check_words(part, name, allowed.__contains__, f"one of {', '.join(allowed)}")
        _check_words(
            part, "worker_id", lambda v: bool(v and _WORKER.fullmatch(v)), "letters, digits and _-."
        )
        _check_words(part, "task_name", lambda v: bool(v), "a name")
        _check_words(part, "task_params", _is_json, "a JSON object")


def _is_json(value: str | None) -> bool:
    try:
        return isinstance(json.loads(value or ""), dict)
    except json.JSONDecodeError:
        return False


def _check_words(part: _Part, name: str, good: Callable[[Any], bool], expected: str) -> None:
    for value in part.table.column(name).unique().to_pylist():
        if not good(value):
            column = part.table.column(name)
            if pa.types.is_dictionary(column.type):
                column = column.cast(pa.string())
            same = pc.is_null(column) if value is None else pc.equal(column, value)
            _refuse(part, same, f"{name} is {value!r}, expected {expected}")


def _refuse(part: _Part, mask: pa.ChunkedArray, what: str) -> None:
    line = int(np.argmax(pc.fill_null(mask, False).to_numpy())) + 2
    raise LogError(f"{part.path}, line {line}: {what}")


def _history(
    name: str,
    parts: Sequence[_Part],
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
    table = pa.concat_tables([t.select([*wanted, *optional]) for t in tables])
    exp = table.column("exp_num").to_numpy()
    block = table.column("block_num").to_numpy()
    steps = np.diff(exp)
    if np.any(steps < 0) or np.any((steps == 0) & (np.diff(block) < 0)):
        table = table.take(np.lexsort((block, exp)))
        exp, block = table.column("exp_num").to_numpy(), table.column("block_num").to_numpy()
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
    tasks = tuple(dict.fromkeys(lower))
    task = np.array([tasks.index(t) for t in lower], np.int32)[task]
    n = len(exp)
    return History(
        name=name,
        tasks=tasks,
        exp=exp,
        block=block,
        task=task,
        learning=_equal(types, kind, "train"),
        adapt=np.zeros(n, bool),
        sleep=_column_is(table, "block_subtype", "sleep"),
        before=np.zeros(n, bool),
        complete=~_column_is(table, "exp_status", "incomplete"),
        steps=_steps(table, n),
        columns={m: table.column(m) for m in measures},
        measure="reward" if "reward" in declared else declared[0],
        info=info,
        notes=tuple(notes),
    )


def _with_default(table: pa.Table, column: str) -> pa.Table:
    if column in table.column_names:
        return table
    word = pa.dictionary(pa.int32(), pa.string())
    values = pa.array([OPTIONAL[column]] * len(table), pa.string()).cast(word)
    return table.append_column(pa.field(column, word), values)


def _equal(labels: Sequence[Any], index: Array, value: str) -> Array:
    return index == labels.index(value) if value in labels else np.zeros(len(index), bool)


def _column_is(table: pa.Table, name: str, value: str) -> Array:
    if name not in table.column_names:
        return np.zeros(len(table), bool)
    return _equal(*codes(table.column(name)), value)


def _steps(table: pa.Table, n: int) -> Array:
    if STEPS not in table.column_names:
        return np.ones(n, np.int64)
    return np.asarray(pc.fill_null(table.column(STEPS), 0.0).to_numpy(), np.int64)
