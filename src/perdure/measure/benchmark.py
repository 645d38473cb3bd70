"""How a benchmark shows its results: declared once, beside its metrics.

::

    BENCHMARK = Benchmark("mine", "My benchmark", leads=("mine.kept", "mine.won"), picture="spider")
    metrics = BENCHMARK.of(kept, won, rest)

Tables, reports and figures read the record from the metrics; nothing else is to be edited.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from perdure.errors import MeasureError, UnknownName
from perdure.measure.metric import Metric

Picture = Literal["spider", "bars", "stages", "table"]
"""``spider``: a spoke for each leading metric. ``bars``: the first of them, task by task. ``stages``: the
first of them, by stage of adaptation. ``table``: agents × leading metrics, mean ± standard error."""


@dataclass(frozen=True)
class Benchmark:
    """What a benchmark's own paper shows of runs on its tasks. A suite may have several, of different
    metrics each."""

    suite: str
    """The suite of its tasks: the record applies where a run has some."""
    title: str
    leads: tuple[str, ...]
    """Names of the metrics that lead the first table, and that the picture shows."""
    picture: Picture = "table"
    about: str = ""
    """A sentence below the picture's title."""
    bounds: tuple[float, float] | None = None
    """The ends of the picture's scale; as wide as the values where none are given."""
    adapted: str = ""
    """The metric that also counts evaluations within adapt blocks; it leads where there are some."""
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By algorithm and metric: the paper's own numbers, for comparison."""

    def __post_init__(self) -> None:
        if self.picture not in get_args(Picture):
            raise UnknownName(f"picture of benchmark {self.title}", self.picture, get_args(Picture))
        if not self.leads:
            raise MeasureError(f"benchmark {self.title}: name at least one leading metric")

    def of(self, *metrics: Metric) -> tuple[Metric, ...]:
        """The metrics, each with this record."""
        known = [m.name for m in metrics]
        wanted = (*self.leads, *filter(None, [self.adapted]))
        named = (*wanted, *(m for row in self.published.values() for m in row))
        for name in named:
            if name not in known:
                raise UnknownName(f"metric of benchmark {self.title}", name, known)
        return tuple(replace(m, benchmark=self) for m in metrics)
