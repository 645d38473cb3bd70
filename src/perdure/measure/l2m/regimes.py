"""The reference's view of a log: regimes, which are runs of rows of one task in one block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import pairwise
from math import nan
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np

from perdure.arrays import Array, mean
from perdure.errors import MeasureError
from perdure.measure.l2m.smoothing import Window, smooth_reference
from perdure.store.history import History


@dataclass(frozen=True)
class ReferenceOptions:
    """The reference's own options, under its own names."""

    perf_measure: str | None = None
    variant_mode: Literal["aware", "agnostic"] = "aware"
    ste_averaging_method: Literal["metrics", "time"] = "metrics"
    aggregation_method: Literal["mean", "median"] = "mean"
    maintenance_method: Literal["mrlep", "mrtlp", "both"] = "mrlep"
    transfer_method: Literal["ratio", "contrast", "both"] = "ratio"
    normalization_method: Literal["task", "run", "none"] = "task"
    smoothing_method: Window = "flat"
    smooth_eval_data: bool = False
    window_length: int | None = None
    clamp_outliers: bool = False
    data_range: Mapping[str, Mapping[str, float]] | None = None

    @property
    def maintenance(self) -> tuple[str, ...]:
        """The maintenance references to report."""
        chosen = self.maintenance_method
        return ("mrlep", "mrtlp") if chosen == "both" else (chosen,)

    @property
    def transfer(self) -> tuple[str, ...]:
        """The transfer forms to report."""
        return ("ratio", "contrast") if self.transfer_method == "both" else (self.transfer_method,)


@dataclass(eq=False)
class Regime:
    """A maximal run of rows with equal block, type, subtype and task."""

    number: int
    block: int
    train: bool
    sleep: bool
    task: str
    exp: Array
    values: Array
    """Performance: raw at first, then smoothed, clamped and normalised in place of it."""
    means: Array = field(init=False)
    """One value an experience number."""
    terminal: float = nan
    average: float = nan

    def finish(self) -> None:
        """Compute the quantities of the processed curve."""
        self.means = by_experience(self.exp, self.values)
        n = len(self.means)
        self.terminal = mean(self.means[int(0.9 * n) :] if self.train else self.means)
        self.average = mean(self.values)

    def row(self) -> dict[str, Any]:
        """The regime as the reference's regime table has it."""
        height, reached = saturated(self.means)
        return {
            "block_num": self.block,
            "block_type": "train" if self.train else "test",
            "block_subtype": "sleep" if self.sleep else "wake",
            "task_name": self.task,
            "regime_num": self.number,
            "saturation": height,
            "exp_to_sat": reached,
            "term_perf": self.terminal,
            "exp_to_term_perf": int((0.95 if self.train else 0.5) * len(self.means)),
            "avg_perf": self.average,
        }


def by_experience(exp: Array, values: Array) -> Array:
    """One value an experience number, in order: the mean where several rows share it."""
    if len(exp) < 2 or np.all(np.diff(exp) > 0):
        return values
    _, place, counts = np.unique(exp, return_inverse=True, return_counts=True)
    return np.asarray(np.bincount(place, values) / counts)


def saturated(curve: Array) -> tuple[float, int]:
    """The maximum of the smoothed curve, and its 0-based place."""
    smoothed = smooth_reference(curve)
    at = int(np.argmax(smoothed))
    return float(smoothed[at]), at


def regimes(history: History, options: ReferenceOptions, what: str) -> list[Regime]:
    """A log's regimes, of complete rows that have the measure.

    An expert's are cut before the rows without the measure go, a lifetime's after.
    """
    values = history.values(options.perf_measure)
    there = ~np.isnan(values)
    if not np.any(history.complete & there):
        raise MeasureError(
            f"{what} {history.name} has no complete experience with a value of "
            f"{options.perf_measure or history.measure}"
        )
    keep = history.complete if what == "expert" else history.complete & there
    if not np.all(keep):
        history, values, there = history.only(keep), values[keep], there[keep]
    names = [task_name(t, options) for t in history.tasks]
    merged = list(dict.fromkeys(names))
    task = np.array([merged.index(n) for n in names], np.int32)[history.task]
    key = (history.block * 2 + history.learning) * 2 + history.sleep
    cuts = np.flatnonzero((np.diff(key) != 0) | (np.diff(task) != 0)) + 1
    edges = [0, *cuts.tolist(), len(task)]
    return [
        Regime(
            number,
            int(history.block[a]),
            bool(history.learning[a]),
            bool(history.sleep[a]),
            merged[task[a]],
            history.exp[a:b][there[a:b]],
            values[a:b][there[a:b]],
        )
        for number, (a, b) in enumerate(pairwise(edges))
        if np.any(there[a:b])
    ]


_experts: WeakKeyDictionary[History, dict[tuple[Any, ...], list[Regime]]] = WeakKeyDictionary()


def expert(history: History, options: ReferenceOptions) -> list[Regime]:
    """An expert's smoothed regimes: the same for every lifetime, so computed once."""
    o = options
    key = (o.perf_measure, o.variant_mode, o.smoothing_method, o.window_length)
    known = _experts.setdefault(history, {})
    if key not in known:
        known[key] = regimes(history, options, "expert")
        for regime in known[key]:
            regime.values = smooth_reference(regime.values, o.smoothing_method, o.window_length)
    return [copy(regime) for regime in known[key]]


def task_name(name: str, options: ReferenceOptions) -> str:
    """The task's name; without the variant where variants do not count."""
    return name.split("_")[0] if options.variant_mode == "agnostic" else name


def joined(regimes: Sequence[Regime]) -> Array:
    """The values of several regimes in a row."""
    return np.concatenate([r.values for r in regimes]) if regimes else np.zeros(0)


def curve_of(regimes: Sequence[Regime]) -> Array:
    """The regimes as one curve, a value an experience number."""
    return by_experience(np.concatenate([r.exp for r in regimes]), joined(regimes))
