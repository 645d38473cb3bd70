"""Perdure from Python: run an experiment, then measure, compare and show it.

::

    run = perdure.experiment(curriculum, {"mine": Mine, "ppo": "ppo,lr=3e-4"}, lifetimes=3)
    run.compare()
    run.report()

Everything here does what the command of the same name does, by the same code.
"""

from __future__ import annotations

import inspect
import json
import re
import signal
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from perdure.agent import Agent
from perdure.agents.compose import Factory
from perdure.errors import (
    FailedLifetimes,
    Interrupted,
    MeasureError,
    PartialRun,
    RunFailed,
    SpecError,
    UnknownName,
)
from perdure.measure.compare import Family
from perdure.measure.results import Results
from perdure.measure.runs import MeasureOptions, compared, measured
from perdure.registry import metrics_named
from perdure.run.experiment import execute, prepare
from perdure.run.lifetime import Outcome
from perdure.run.plan import Plan, make_plan
from perdure.run.signals import interruptible
from perdure.run.spec import RunSpec
from perdure.show.measured import (
    estimates_table,
    remarks,
    scores_table,
    shown_columns,
    verdicts_table,
)
from perdure.specs import Spec, checks_keywords
from perdure.store import run as stored
from perdure.store.layout import FIGURES, REPORT
from perdure.store.plain import visible
from perdure.store.urls import output_beside, place
from perdure.types import Curriculum

Agents = str | Factory | Sequence[str | Factory] | Mapping[str, str | Factory]
"""Names, classes, or functions that take a :class:`~perdure.types.Setup` and give an agent."""
SHOWN = 3
"""Failures that a message tells."""


def experiment(
    curriculum: str | Curriculum | Callable[..., Curriculum],
    agents: Agents = ("random",),
    *,
    video: bool = False,
    mix_code: bool = False,
    eval_workers: int = 1,
    progress: bool | None = None,
    **keys: Any,
) -> Run:
    """Run agents through a curriculum; the same call again resumes or returns at once.

    ``curriculum`` is a name (``"toy/compass,steps=200"``), a :class:`~perdure.types.Curriculum`, or a
    function that gives one; if it takes ``seed``, each lifetime gets its own. ``agents`` is a name
    (``"ppo,lr=3e-4"``), a class, a function that makes an agent (``lambda setup: Mine(setup, net)``),
    several of these, or a mapping from labels to them. Classes, functions and curricula given as objects
    run in this process (``executor="serial"``); names may also run side by side.

    ``video`` records some evaluation episodes. ``mix_code`` goes on where code has changed since earlier
    lifetimes, which is an error otherwise. ``eval_workers`` processes share the evaluations of each lifetime:
    the rows are the same. ``progress`` shows how far it is, by default in terminals and
    notebooks. The other keys are those of :class:`~perdure.run.spec.RunSpec`: ``lifetimes``, ``seed``,
    ``out``, ``executor``, ``envs``, ``experts``, ``hide_tasks``, ``checkpoint``.

    Some lifetimes that fail are a warning (:class:`~perdure.errors.FailedLifetimes`); if all do, that is
    an error (:class:`~perdure.errors.RunFailed`).
    """
    known = [f.name for f in fields(RunSpec) if f.name not in ("curriculum", "agents")]
    own = ["curriculum", "agents", "video", "mix_code", "eval_workers", "progress"]
    for key in keys:
        if key not in known:
            names = [*known, *own]
            raise UnknownName(
                "keyword of experiment", key, names, f"(it takes: {', '.join(names)})"
            )
    if isinstance(keys.get("out"), Path):
        keys["out"] = str(keys["out"])
    names, factories = _agents(agents)
    name, builder = _curriculum(curriculum)
    if factories or builder is not None:
        keys.setdefault("executor", "serial")
    plan = make_plan(RunSpec(name, tuple(names), **keys), factories, builder)
    plan = replace(plan, mix_code=mix_code)
    try:
        with interruptible():
            prepare(plan, video)
            with _view(plan, progress):
                outcomes = execute(plan, video=video, prepared=True, eval_workers=eval_workers)
    except Interrupted as e:
        if e.signum != signal.SIGINT:
            raise
        raise KeyboardInterrupt("nothing is lost: the same call resumes") from e
    _tell_failed(plan, outcomes)
    return Run(plan.path)


def _agents(agents: Agents) -> tuple[list[str], dict[str, Factory]]:
    """The names of all agents as a specification has them, and those that are objects by label."""
    given: list[tuple[str, Any]] = []
    if isinstance(agents, Mapping):
        given = list(agents.items())
    elif isinstance(agents, str) or not isinstance(agents, Sequence):
        given = [("", agents)]
    else:
        given = [("", agent) for agent in agents]
    names: list[str] = []
    factories: dict[str, Factory] = {}
    for label, agent in given:
        if isinstance(agent, str):
            names.append(f"{label}={agent}" if label else agent)
            continue
        if isinstance(agent, Agent) or not callable(agent):
            raise SpecError(
                f"agent {label or agent!r}: expected a name, a class or a function that makes an agent "
                f"of its setup, got {'an agent' if isinstance(agent, Agent) else type(agent).__name__}: "
                "each lifetime needs a new one"
            )
        label = label or _called(agent)
        if label in factories:
            raise SpecError(f"two agents are called {label!r}: give them labels, {{label: agent}}")
        made = _bare(agent)
        module = getattr(made, "__module__", None) or type(made).__module__
        spec = Spec(f"{module}.{_called(agent)}", {}, label)
        factories[label] = agent
        if isinstance(agent, partial) and not agent.args and _are_plain(agent.keywords):
            # They stand in the specification, where they are checked and can be read.
            spec, factories[label] = replace(spec, params=dict(agent.keywords)), agent.func
        names.append(str(spec))
    return names, factories


def _are_plain(params: Mapping[str, Any]) -> bool:
    """Whether a specification can hold these parameters."""
    try:
        json.dumps(params)
        return Spec.parse(str(Spec("x", params))).params == params
    except (TypeError, ValueError, SpecError):
        return False


def _bare(thing: Any) -> Any:
    """What a partial calls in the end."""
    while isinstance(thing, partial):
        thing = thing.func
    return thing


def _called(thing: Any) -> str:
    """What a class or function is called, in letters that a folder may have."""
    thing = _bare(thing)
    name = getattr(thing, "__name__", type(thing).__name__)
    return re.sub(r"\W", "", name) or "agent"


def _curriculum(given: Any) -> tuple[str, Any]:
    """A curriculum's name, and the object where it is one."""
    if isinstance(given, str):
        return given, None
    if isinstance(given, Curriculum):
        return given.name, given
    if not callable(given):
        raise SpecError(
            f"curriculum {given!r}: expected a name, a Curriculum or a function that gives one, got "
            f"{type(given).__name__}"
        )
    return _called(given), given


def _view(plan: Plan, progress: bool | None) -> AbstractContextManager[Any]:
    """How far the run is, for whoever looks."""
    from perdure.show.live import LiveView, NotebookView, in_notebook
    from perdure.show.screen import SafeConsole

    if in_notebook() and progress is not False:
        return NotebookView(plan.path)
    if progress or (progress is None and sys.stderr.isatty()):
        return LiveView(plan.path, SafeConsole(stderr=True))
    return nullcontext()


def _tell_failed(plan: Plan, outcomes: Sequence[Outcome]) -> None:
    failed = [o for o in outcomes if o.status == "failed"]
    if not failed:
        return
    lines = [f"{o.job.id}: {o.error}" for o in failed[:SHOWN]]
    lines += [f"… and {len(failed) - SHOWN} more"] if len(failed) > SHOWN else []
    trace = Run(plan.path).folder.lifetime(failed[0].job.id).error_in
    text = visible(
        f"{len(failed)} of {len(outcomes)} lifetimes in {plan.path} failed (traceback: {trace}):\n  "
        + "\n  ".join(lines)
    )
    if len(failed) == len(outcomes):
        raise RunFailed(text)
    warnings.warn(text, FailedLifetimes, stacklevel=3)


@dataclass(frozen=True, repr=False)
class Measurement:
    """Lifetimes and their scores, shown as ``perdure measure`` shows them."""

    results: Results

    def values(self) -> dict[str, dict[str, dict[int, float]]]:
        """For each metric and agent: the value by seed."""
        return self.results.table()

    def to_json(self) -> dict[str, Any]:
        """Everything, as ``perdure measure --json`` writes it."""
        return self.results.to_json()

    def __repr__(self) -> str:
        notes = remarks(self.results, shown_columns(self.results))
        return "\n".join([scores_table(self.results).text(), *map(visible, notes)])


@dataclass(frozen=True, repr=False)
class AgentComparison:
    """Agents over their lifetimes, shown as ``perdure compare`` shows them."""

    results: Results
    family: Family
    better: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """Means, intervals, effects and verdicts as plain values."""
        return self.family.as_dict()

    def __repr__(self) -> str:
        sheets = (
            estimates_table(self.results, self.family, self.better),
            verdicts_table(self.family, self.better),
        )
        notes = remarks(self.results, list(self.better))
        return "\n".join([*(sheet.text() for sheet in sheets), *map(visible, notes)])


class Figures(list[Path]):
    """The files of some figures; a notebook shows the pictures."""

    def __repr__(self) -> str:
        names = dict.fromkeys(path.stem for path in self if path.suffix != ".csv")
        where = self[0].parent if self else ""
        return f"{len(names)} figures in {where}: {', '.join(names)}"

    def _repr_html_(self) -> str:
        pictures = (path.read_text("utf-8") for path in self if path.suffix == ".svg")
        return "\n".join(picture[picture.index("<svg") :] for picture in pictures)


class Run(stored.Run):
    """A run's folder: its rows, and everything that can be made of them.

    ``Run("runs/x").rows()`` is all that the lifelong agents went through, as a table.
    """

    def measure(
        self,
        *names: str,
        metrics: Sequence[str] | str = (),
        preset: str = "paper",
        ste: Sequence[str] = (),
        partial: bool = False,
        **options: Any,
    ) -> Measurement:
        """The scores of each lifetime, on some metrics by their names (also as ``metrics=[…]``) or on all. ``options`` are those of
        ``perdure measure``: ``perf_measure``, ``window_length``, …

        Lifetimes that did not end are in no number, and a warning, unless ``partial``.
        """
        _check("measure", options, preset)
        chosen = [*names, *([metrics] if isinstance(metrics, str) else metrics)]
        results = measured([self.path], MeasureOptions(preset, ste, chosen, options), metrics_named)
        _whole(results, partial)
        return Measurement(results)

    def compare(
        self,
        *others: stored.Run | str | Path,
        metrics: Sequence[str] | str = (),
        baseline: str | None = None,
        anyway: bool = False,
        preset: str = "paper",
        ste: Sequence[str] = (),
        partial: bool = False,
        **options: Any,
    ) -> AgentComparison:
        """The agents of this run, and of others, over their lifetimes: intervals, effect sizes, corrected
        significance. Runs of different curricula are refused, unless ``anyway``."""
        _check("compare", options, preset)
        paths = [
            self.path,
            *(getattr(other, "path", None) or place(str(other)) for other in others),
        ]
        names = [metrics] if isinstance(metrics, str) else metrics
        how = MeasureOptions(preset, ste, names, options)
        results, family, better = compared(
            paths, how, metrics_named, baseline=baseline, anyway=anyway
        )
        _whole(results, partial)
        assert family is not None
        return AgentComparison(results, family, better)

    @checks_keywords
    def figures(
        self, out: str | Path | None = None, formats: Sequence[str] = ("svg", "png", "pdf")
    ) -> Figures:
        """Every plot, with the table it was drawn from, as files in a folder (``RUN/_figures``)."""
        from perdure.show.figures import write_figures

        return Figures(
            write_figures(self._study(), Path(out or output_beside(self.path, FIGURES)), formats)
        )

    @checks_keywords
    def report(self, out: str | Path | None = None, *, title: str | None = None) -> Path:
        """One HTML file that opens anywhere, offline (``RUN/_report.html``)."""
        from perdure.show.pictures import videos_and_pictures
        from perdure.show.report import write_page

        study, target = self._study(), Path(out or output_beside(self.path, REPORT))
        return write_page(study, target, title=title, sections=videos_and_pictures(study))

    def _study(self) -> Any:
        from perdure.show.report import load

        return load([self.path], metrics_named(()))


def _check(what: str, options: Mapping[str, Any], preset: str) -> None:
    """UnknownName unless every option is one of the command's, or a parameter of the method."""
    from perdure.measure.results import PRESETS
    from perdure.measure.settings import PAPER_FLAGS, REFERENCE_FLAGS

    if preset not in PRESETS:
        raise UnknownName("preset", preset, PRESETS, f"(there are: {', '.join(PRESETS)})")
    known = sorted(PAPER_FLAGS if preset == "paper" else REFERENCE_FLAGS)
    kinds = (inspect.Parameter.KEYWORD_ONLY,)
    own = [
        p.name for p in inspect.signature(getattr(Run, what)).parameters.values() if p.kind in kinds
    ]
    for name in options:
        if name not in known:
            names = [*own, *known]
            raise UnknownName(f"keyword of {what}", name, names, f"(it takes: {', '.join(names)})")


def _whole(results: Results, partial: bool) -> None:
    lines = [f"{name}: {why}" for name, why in results.failed.items()]
    if not results.lifetimes:
        raise MeasureError("\n  ".join(["nothing could be measured:", *lines]))
    if lines and not partial:
        text = "\n  ".join(["the numbers are without these lifetimes:", *lines[:10]])
        warnings.warn(text, PartialRun, stacklevel=3)
