"""Runs in, results out: what the commands measure and compare show, and their namesakes in Python."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from perdure.measure import settings, sources
from perdure.measure.agent_comparison import compare_agents
from perdure.measure.compare import Family
from perdure.measure.l2m import CORE
from perdure.measure.metric import Metric
from perdure.measure.results import Results, measure_paper, measure_reference, read_all
from perdure.store.layout import RunFolder, is_run

Choose: TypeAlias = Callable[[Sequence[str]], list[Metric]]
"""Metrics by their names, and all where none is named: the registry knows them."""
Advance: TypeAlias = Callable[[int, int, str], None]
"""Called with how many lifetimes are done, of how many, and the name of the last."""
RARELY = 200_000
"""New objects before garbage is looked for."""


@dataclass(frozen=True)
class MeasureOptions:
    """What is measured, and how."""

    preset: str = "paper"
    ste: Sequence[str] = ()
    """Single-task experts: logs or runs."""
    names: Sequence[str] = ()
    """Metrics; all where there are none."""
    flags: Mapping[str, Any] = field(default_factory=dict)
    """Options of a preset; None is its default."""


def measured(
    paths: Sequence[Path],
    how: MeasureOptions,
    choose: Choose,
    *,
    same_curriculum: bool = False,
    progress: Callable[[int], Advance | None] | None = None,
) -> Results:
    """The scores of all lifetimes of some runs. ``progress`` is told how many there are."""
    preset, names = how.preset, how.names
    given = {k: v for k, v in how.flags.items() if v is not None}
    name = given.get("perf_measure")
    read = None if preset == "reference" and name == "reward" else name
    with _little_garbage():
        found = sources.merge([sources.find(p, how.ste, read) for p in paths])
        if same_curriculum:
            sources.refuse_different(found)
        advance = None if progress is None else progress(len(found.sources))
        if preset == "reference":
            # Its own values need no scores; those of metrics asked for by name come on top.
            wanted = choose(names) if names else []
            results = measure_reference(
                found, settings.reference_options_of(given), wanted, advance
            )
        else:
            options, metrics = settings.paper_options_of(given), choose(names)
            histories, failed = read_all(found, advance)
            results = measure_paper(histories, options, metrics, failed)
    sweeps = tuple(str(p) for p in paths if is_run(p) and RunFolder(p).is_sweep)
    return replace(results, protocols=found.protocols, sweeps=sweeps)


def compared(
    paths: Sequence[Path],
    how: MeasureOptions,
    choose: Choose,
    *,
    baseline: str | None = None,
    anyway: bool = False,
    progress: Callable[[int], Advance | None] | None = None,
) -> tuple[Results, Family | None, dict[str, str]]:
    """The results, the comparisons if there are any, and which way each metric is better."""
    asked = how.names or ([] if how.preset == "paper" else CORE)
    results = measured(
        paths, replace(how, names=asked), choose, same_curriculum=not anyway, progress=progress
    )
    chosen = choose(how.names or results.leading or results.headline or CORE)
    better: dict[str, str] = {m.name: m.better for m in chosen}
    if not results.lifetimes:
        return results, None, better
    return results, compare_agents(results, chosen, baseline=baseline), better


@contextmanager
def _little_garbage() -> Iterator[None]:
    """Next to nothing of what is read and measured is garbage, and looking for it takes time."""
    usual = gc.get_threshold()
    gc.set_threshold(RARELY, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
