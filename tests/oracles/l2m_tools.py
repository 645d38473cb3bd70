"""What the tests against l2metrics share: its options as ours, and a comparison of every value."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from perdure.measure.l2m.reference import ReferenceOptions
from perdure.store.history import History
from perdure.store.l2logger.read import find_logs, read_log

TOLERANCE = 1e-9
"""Relative and absolute: l2metrics rounds lifetime values to ten decimals."""

WITH_VALUE = {
    "-p": "perf_measure", "-r": "variant_mode", "-v": "ste_averaging_method",
    "-a": "aggregation_method", "-m": "maintenance_method", "-t": "transfer_method",
    "-n": "normalization_method", "-g": "smoothing_method", "-w": "window_length",
}  # fmt: skip
FLAGS = {"-x": "clamp_outliers", "-G": "smooth_eval_data"}
SETTINGS = {f.name: f.name for f in fields(ReferenceOptions)} | {
    "do_smooth_eval_data": "smooth_eval_data"
}
WITHOUT_EFFECT = {"noise", "show_eval_lines", "do_plot", "do_save", "do_save_settings"}


def options_of(arguments: list[str], folder: Path, **given) -> ReferenceOptions:
    """The command line's options as ours. A settings file overrides the command line."""
    chosen, settings = dict(given), {}
    left = iter(arguments)
    for flag in left:
        if flag in WITH_VALUE:
            value = next(left)
            chosen[WITH_VALUE[flag]] = int(value) if flag == "-w" else value
        elif flag in FLAGS:
            chosen[FLAGS[flag]] = True
        elif flag == "-d":
            chosen["data_range"] = json.loads((folder / next(left)).read_text())
        elif flag == "-c":
            settings = json.loads((folder / next(left)).read_text())
        elif flag == "-u":
            next(left)  # The unit of plots.
        else:
            raise AssertionError(f"option {flag} of l2metrics has no counterpart")
    for key, value in settings.items():
        if key in WITHOUT_EFFECT:
            assert key != "noise" or value == [0, 0]
        else:
            chosen[SETTINGS[key]] = value
    return ReferenceOptions(**chosen)


def experts_in(folder: Path) -> dict[str, tuple[History, ...]]:
    """The single-task experts below a folder, in the order in which l2metrics stores them."""
    found: dict[str, list[History]] = {}
    for log in reversed(find_logs(folder) if folder.exists() else []):
        history = read_log(log)
        (task,) = history.learned_tasks
        found.setdefault(task, []).append(history)
    return {task: tuple(runs) for task, runs in found.items()}


def differences(ours, theirs, where: tuple = ()) -> Iterator[tuple[tuple, str]]:
    """Where a value is missing, too much, or not the same. Theirs has null for not finite."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in ours.keys() | theirs.keys():
            here = (*where, key)
            if key not in ours:
                yield here, f"missing, expected {theirs[key]!r}"
            elif key not in theirs:
                yield here, f"{ours[key]!r}, expected no such value"
            else:
                yield from differences(ours[key], theirs[key], here)
    elif isinstance(theirs, list) and isinstance(ours, list) and len(ours) == len(theirs):
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(a, b, (*where, i))
    elif not same(ours, theirs):
        yield where, f"{ours!r}, expected {theirs!r}"


def same(a, b) -> bool:
    """Whether two plain values are equal within the tolerance."""
    if isinstance(b, (int, float)) and not isinstance(b, bool):
        number = isinstance(a, (int, float)) and not isinstance(a, bool)
        return number and math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    if b is None:
        return a is None or (isinstance(a, float) and not math.isfinite(a))
    return a == b


def count(value) -> int:
    """How many plain values there are."""
    if isinstance(value, dict):
        return sum(map(count, value.values()))
    return sum(map(count, value)) if isinstance(value, list) else 1
