"""Breaking off lifetimes of a sweep that do badly, at their evaluations.

A lifetime is compared with those of earlier trials under the same seed, evaluation by evaluation. What
those reached stands in the sweep's record, which does not change while a trial runs: whether a
lifetime is broken off does not depend on how fast others are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import isnan, nan
from typing import Any

from perdure.errors import MissingExtra, Pruned, UnknownName
from perdure.run.results import ResultsView, RunningResults
from perdure.store.history import PREFERRED
from perdure.store.layout import LifetimeFolder

WARM_UP = 1
"""Evaluations of a lifetime that decide nothing: the first is often before any learning."""
STARTUP = 4
"""Trials that are never broken off: there is too little to compare them with."""


def optuna() -> Any:
    """The library, quiet."""
    try:
        import optuna as library
    except ImportError as e:
        raise MissingExtra("perdure sweep", "sweep") from e
    library.logging.set_verbosity(library.logging.ERROR)
    return library


PRUNERS: dict[str, Callable[[Any], Any]] = {
    "median": lambda o: o.pruners.MedianPruner(STARTUP, WARM_UP),
    "quarter": lambda o: o.pruners.PercentilePruner(75.0, STARTUP, WARM_UP),
    "halving": lambda o: o.pruners.SuccessiveHalvingPruner(min_resource=WARM_UP + 1),
    "none": lambda o: o.pruners.NopPruner(),
}
"""``median``: below the median of earlier trials; ``quarter``: in their lowest quarter; ``halving``:
successive halving."""


def make_pruner(name: str) -> Any:
    """The pruner of this name."""
    if name not in PRUNERS:
        raise UnknownName("pruner", name, PRUNERS, f"(of {', '.join(PRUNERS)})")
    return PRUNERS[name](optuna())


def performance(results: ResultsView) -> float:
    """The mean of the last block's evaluation, in the first of success, accuracy and return that it
    has."""
    means = (results.mean(measure, learning=False) for measure in PREFERRED)
    return next((value for value in means if not isnan(value)), nan)


def curve(results: RunningResults, evaluations: Iterable[int]) -> list[float]:
    """:func:`performance` of each of these blocks that has rows."""
    values = [performance(results.until(block + 1)) for block in evaluations]
    return [value for value in values if not isnan(value)]


class PruningGate:
    """What a lifetime of a sweep passes through after each evaluation."""

    def __init__(
        self, record: Mapping[str, Any], label: str, seed: int, folder: LifetimeFolder
    ) -> None:
        library = optuna()
        self.study = library.create_study(
            pruner=make_pruner(record["settings"]["pruner"]), direction="maximize"
        )
        states = library.trial.TrialState
        for other in record["trials"]:
            values = other["curves"].get(str(seed))
            if (
                other["label"] == label
                or other["state"] not in ("complete", "pruned")
                or not values
            ):
                continue
            self.study.add_trial(
                library.trial.create_trial(
                    state=states.COMPLETE if other["state"] == "complete" else states.PRUNED,
                    value=values[-1],
                    intermediate_values=dict(enumerate(values)),
                )
            )
        self.trial = self.study.ask()
        self.folder, self.reported = folder, 0

    def passed(self, results: RunningResults, evaluations: Iterable[int]) -> None:
        """The last of these blocks has ended. Pruned if the lifetime is not worth going on with."""
        values = curve(results, evaluations)
        if not values:
            return
        for step in range(self.reported, len(values)):
            self.trial.report(values[step], step)
        self.reported = len(values)
        if self.trial.should_prune():
            self.folder.write_pruned({"values": values})
            raise Pruned(
                f"broken off after evaluation {len(values)}: {values[-1]:.3g} is worse than what earlier "
                "trials of the sweep had there"
            )
