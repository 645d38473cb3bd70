"""Runs in, results out: what the commands measure and compare show, and their namesakes in Python."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
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


def measured(
    paths: Sequence[Path],
    preset: str,
    ste: Sequence[str],
    names: Sequence[str],
    flags: Mapping[str, Any],
    choose: Choose,
    *,
    same_curriculum: bool = False,
    progress: Callable[[int], Advance | None] | None = None,
) -> Results:
    """The scores of all lifetimes of some runs. ``progress`` is told how many there are."""
    given = {k: v for k, v in flags.items() if v is not None}
    name = given.get("perf_measure")
    read = None if preset == "reference" and name == "reward" else name
    with _little_garbage():
        found = sources.merge([sources.find(p, ste, read) for p in paths])
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
    preset: str,
    ste: Sequence[str],
    names: Sequence[str],
    baseline: str | None,
    anyway: bool,
    flags: Mapping[str, Any],
    choose: Choose,
    *,
    progress: Callable[[int], Advance | None] | None = None,
) -> tuple[Results, Family | None, dict[str, str]]:
    """The results, the comparisons if there are any, and which way each metric is better."""
    asked = names or ([] if preset == "paper" else CORE)
    results = measured(
        paths, preset, ste, asked, flags, choose, same_curriculum=not anyway, progress=progress
    )
    chosen = choose(names or results.leading or results.headline or CORE)
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
