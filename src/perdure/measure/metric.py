"""What a metric is: a pure function of one lifetime, with a name, a direction and its needs.

A metric of one's own is one decorated function::

    from perdure.measure.metric import metric

    @metric("mine.worst", better="higher", needs=("final",))
    def worst(life):
        "Score on the worst task at the end of life."
        return min(life.matrix.last().values())
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isnan, nan
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from perdure.arrays import mean
from perdure.errors import MeasureError, UnknownName
from perdure.measure.matrix import Matrix, evaluation_matrix
from perdure.measure.stats import Bounds, Estimate, mean_interval, share_interval
from perdure.store.history import History

if TYPE_CHECKING:
    from perdure.measure.benchmark import Benchmark

Better = Literal["higher", "lower"]
Scorer: TypeAlias = Callable[[History], Mapping[str, "Score"]]

_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")


MEASURE_BOUNDS: Mapping[str, Bounds] = {
    "success": (0.0, 1.0), "success_end": (0.0, 1.0), "accuracy": (0.0, 1.0),
}  # fmt: skip
"""What measures of performance lie between by their nature."""


class Moment(NamedTuple):
    """A value that belongs to one block of the lifetime."""

    block: int
    task: str
    value: float


@dataclass(frozen=True)
class Score:
    """A metric's value for one lifetime, and what it is made of."""

    value: float
    """NaN where undefined; then ``reason`` says why."""
    per_task: Mapping[str, float] = field(default_factory=dict)
    pairs: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """By source and target task: the transfer matrices."""
    over_time: tuple[Moment, ...] = ()
    stages: Mapping[str, float] = field(default_factory=dict)
    """By stage of an adaptation, in order."""
    stages_by_task: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The same for each task."""
    reason: str = ""
    notes: tuple[str, ...] = ()
    """What a reader should know before trusting the value."""
    trials: tuple[tuple[float, int], ...] = ()
    """Share of successes and number of episodes, by task, where the agent learned nothing: what was
    sampled are then the episodes."""

    def __post_init__(self) -> None:
        if isnan(self.value) and not self.reason:
            object.__setattr__(self, "reason", "the metric gave no value and no reason")


@dataclass(frozen=True, eq=False)
class LifetimeData:
    """One lifetime as metrics see it."""

    history: History
    measure: str
    """The measure of performance."""
    l2m_scorer: Scorer | None = None
    """How the L2M metrics are computed: a preset."""

    @cached_property
    def matrix(self) -> Matrix:
        """The evaluation matrix of the measure."""
        return evaluation_matrix(self.history, self.measure)

    @cached_property
    def evaluated(self) -> bool:
        """Whether any task was."""
        return bool(np.any(~np.isnan(self.matrix.values)))

    @cached_property
    def l2m(self) -> Mapping[str, Score]:
        """The L2M scores of the preset, by short name."""
        if self.l2m_scorer is None:
            raise MeasureError("the L2M metrics need a preset")
        return self.l2m_scorer(self.history)


def _has_learning(life: LifetimeData) -> bool:
    return bool(life.history.learned_tasks)


def _has_evaluations(life: LifetimeData) -> bool:
    return life.evaluated


def _has_initial(life: LifetimeData) -> bool:
    return any(
        not past and bool(np.any(~np.isnan(row)))
        for past, row in zip(life.matrix.learned, life.matrix.values, strict=True)
    )


def _has_experts(life: LifetimeData) -> bool:
    return any(t in life.history.experts for t in life.history.learned_tasks)


NEEDS: dict[str, tuple[Callable[[LifetimeData], bool], str]] = {
    "learning": (_has_learning, "nothing was learned in this lifetime"),
    "evaluations": (_has_evaluations, "no task was evaluated"),
    "initial": (_has_initial, "no task was evaluated before any learning"),
    "final": (
        lambda life: bool(life.matrix.last()),
        "no learned task was evaluated after its learning",
    ),
    "experts": (
        _has_experts,
        "no single-task expert of a learned task (run with --experts, or give --ste DIR)",
    ),
    "success": (lambda life: "success" in life.history.columns, "the rows hold no success"),
}
"""What a metric may ask of a lifetime, and what is said when it is not there."""


@dataclass(frozen=True)
class Metric:
    """A named metric; call it with a :class:`LifetimeData`."""

    name: str
    about: str
    better: Better
    needs: tuple[str, ...]
    function: Callable[[LifetimeData], Score | float | Mapping[str, float]]
    title: str = ""
    """What people call it; as a column's head."""
    bounds: Bounds | Literal["measure", "difference"] | None = None
    """What its values lie between: two numbers, what the measure does, or what a difference of two
    scores does; None where nothing bounds them."""
    keeping: bool = False
    """Whether it says how much is kept of what was learned: who learned nothing cannot win on it."""
    unit: str = ""
    """What its values are in, where that is neither the measure nor a difference of it."""
    benchmark: Benchmark | None = field(default=None, compare=False, repr=False)
    """How the benchmark that it belongs to shows its results."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise MeasureError(
                f"metric name {self.name!r}: expected the form paper.name, in lower case"
            )
        if self.better not in ("higher", "lower"):
            raise MeasureError(
                f"{self.name}: better must be 'higher' or 'lower', got {self.better!r}"
            )
        for need in self.needs:
            if need not in NEEDS:
                raise UnknownName(f"need of metric {self.name}", need, NEEDS, f"(of {list(NEEDS)})")

    def bounds_with(self, measure: str) -> Bounds | None:
        """What its values lie between when performance is measured by ``measure``."""
        if not isinstance(self.bounds, str):
            return self.bounds
        of_measure = MEASURE_BOUNDS.get(measure)
        if of_measure is None or self.bounds == "measure":
            return of_measure
        width = of_measure[1] - of_measure[0]
        return -width, width

    def unit_with(self, measure: str) -> str:
        """What its values are in when performance is measured by ``measure``."""
        if self.unit or not self.bounds:
            return self.unit
        if self.bounds in ("measure", "difference"):
            return measure if self.bounds == "measure" else f"difference in {measure}"
        return f"from {self.bounds[0]:g} to {self.bounds[1]:g}"

    def __call__(self, life: LifetimeData) -> Score:
        """The score; NaN with the reason where a need is not met."""
        for need in self.needs:
            met, why_not = NEEDS[need]
            if not met(life):
                return Score(nan, reason=why_not)
        found = self.function(life)
        if isinstance(found, Score):
            return found
        if isinstance(found, Mapping):
            return mean_over_tasks(found)
        return Score(float(found))


def metric(
    name: str,
    *,
    better: Better,
    needs: Sequence[str] = (),
    title: str = "",
    bounds: Bounds | Literal["measure", "difference"] | None = None,
    keeping: bool = False,
    unit: str = "",
) -> Callable[[Callable[[LifetimeData], Score | float | Mapping[str, float]]], Metric]:
    """Turn a function of a :class:`LifetimeData` into a metric. It gives a Score, a number, or one number a
    task; its docstring's first line says what it measures."""

    def decorate(function: Callable[[LifetimeData], Score | float | Mapping[str, float]]) -> Metric:
        about = (function.__doc__ or "").strip().split("\n")[0]
        return Metric(name, about, better, tuple(needs), function, title, bounds, keeping, unit)

    return decorate


def estimate(
    scores: Sequence[Score], level: float = 0.95, bounds: Bounds | None = None
) -> Estimate:
    """The mean over lifetimes with its interval: of ``mean_interval``, or Wilson's over episodes where
    the agents only were evaluated."""
    if scores and all(s.trials for s in scores):
        return share_interval([trial for s in scores for trial in s.trials], len(scores), level)
    return mean_interval([s.value for s in scores], level, bounds)


def mean_over_tasks(values: Mapping[str, float], reason: str = "") -> Score:
    """The mean of the defined values; undefined tasks are named in the notes."""
    defined = [v for v in values.values() if not isnan(v)]
    if not defined:
        return Score(nan, dict(values), reason=reason or "undefined for every task")
    missing = [t for t, v in values.items() if isnan(v)]
    notes = (f"without {', '.join(missing)}: undefined there",) if missing else ()
    return Score(mean(defined), dict(values), notes=notes)


def mean_of_moments(moments: Sequence[Moment], reason: str) -> Score:
    """Values of single blocks: their mean over each task's blocks, then over tasks."""
    groups: dict[str, list[float]] = {}
    for m in moments:
        if not isnan(m.value):
            groups.setdefault(m.task, []).append(m.value)
    found = mean_over_tasks({t: mean(v) for t, v in groups.items()}, reason)
    return replace(found, over_time=tuple(moments))
