"""The rules of the L2Logger format, and words for what breaks them: file, line and rule."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from perdure.arrays import Array
from perdure.errors import StoreError
from perdure.store.history import numbers

WORDS = {
    "block_type": ("train", "test"),
    "block_subtype": ("wake", "sleep"),
    "exp_status": ("complete", "incomplete"),
}
_WORKER = re.compile(r"[0-9a-zA-Z_\-.]+")
_COUNT = "a whole number ≥ 0"
_LIMIT = 1 << 63


class LogError(StoreError):
    """An L2Logger directory that breaks the format; says the file, the line and the rule."""


@dataclass(frozen=True)
class DataLog:
    """One data-log.tsv."""

    path: Path
    table: pa.Table


def refuse_special(path: Path) -> None:
    """LogError for a pipe or a device: reading it may never end."""
    if path.exists() and not path.is_file():
        raise LogError(f"{path} is not a regular file")


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file."""
    refuse_special(path)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LogError(f"{path} is missing") from None
    except (OSError, ValueError, RecursionError) as e:
        raise LogError(f"{path} cannot be read as JSON: {e}") from e
    if not isinstance(found, dict):
        raise LogError(f"{path} must hold a JSON object, got {type(found).__name__}")
    return found


def validate(parts: Sequence[DataLog]) -> None:
    """LogError for the first cell that breaks a rule."""
    for part in parts:
        for name in ("block_num", "exp_num"):
            column = part.table.column(name)
            if column.null_count:
                _refuse(part, numbers(column.is_null()), f"{name} is empty, expected {_COUNT}")
            negative = numbers(column) < 0
            if negative.any():
                _refuse(part, negative, f"{name} is negative, expected {_COUNT}")
        for name, allowed in WORDS.items():
            if name in part.table.column_names:
                _check_words(part, name, allowed.__contains__, f"one of {', '.join(allowed)}")
        _check_words(part, "worker_id", _is_worker, "letters, digits and _-.")
        _check_words(part, "task_name", bool, "a name")
        _check_words(part, "task_params", _is_json, "JSON")


def _is_worker(value: str | None) -> bool:
    return bool(value and _WORKER.fullmatch(value))


def _is_json(value: str | None) -> bool:
    """Nothing at all is well too: so the format's own validator has it."""
    try:
        json.loads(value or "{}")
    except (ValueError, RecursionError):
        return False
    return True


def _check_words(part: DataLog, name: str, good: Callable[[Any], bool], expected: str) -> None:
    column = part.table.column(name)
    for value in _different(column):
        if not good(value):
            same = np.array([v == value for v in column.to_pylist()])
            _refuse(part, same, f"{name} is {_short(value)}, expected {expected}")


def _different(column: pa.ChunkedArray) -> set[str | None]:
    """The different values of a column of words: a chunk's dictionary holds what is in the chunk."""
    found = {v for chunk in column.chunks for v in chunk.dictionary.to_pylist()}
    return found | {None} if column.null_count else found


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _refuse(part: DataLog, mask: Array, what: str) -> None:
    index = int(np.argmax(mask))
    raise LogError(f"{part.path}, line {_line_of(part.path, index)}: {what}")


def _line_of(path: Path, index: int) -> int:
    """The line of a row: empty lines are no rows, and quoted text may hold several lines."""
    try:
        return next(islice(_records(path), index + 1, None))[0]
    except (csv.Error, UnicodeDecodeError, StopIteration):
        return index + 2


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The records of a file that are not empty, with the number of their last line."""
    with path.open(encoding="utf-8-sig", newline="") as f:
        lines = csv.reader(f, delimiter="\t")
        for cells in lines:
            if cells:
                yield lines.line_num, cells


def explain(path: Path, types: Mapping[str, pa.DataType], complaint: str) -> str:
    """Where a file that cannot be read as a table goes wrong: our own slow reading of it, since the
    quick one does not say the line."""
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as e:
            return f"{path}, line {number}: not UTF-8 ({e})"
    header: list[str] = []
    number = 0
    try:
        for number, cells in _records(path):
            header = header or cells
            if len(cells) != len(header):
                return f"{path}, line {number}: {len(cells)} columns, expected {len(header)}"
            for name, cell in zip(header, cells, strict=True) if header is not cells else ():
                wrong = _wrong_number(cell, types.get(name))
                if wrong:
                    return f"{path}, line {number}: {name} is {_short(cell)}, expected {wrong}"
    except csv.Error as e:
        return f"{path}, after line {number}: {e}"
    return f"{path}: {complaint}"


def _wrong_number(cell: str, kind: pa.DataType | None) -> str:
    """What was expected, if a cell does not hold it."""
    if kind is None or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return ""
    whole = pa.types.is_integer(kind)
    try:
        value = float(cell or "nan")
        fits = not whole or value != value or -_LIMIT <= int(cell) < _LIMIT
    except ValueError:
        fits = not whole and cell.lower() in ("na", "n/a", "null")
    return "" if fits else _COUNT if whole else "a number"
