"""Measuring: lifetimes in, scores out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from perdure.errors import MeasureError, PerdureError
from perdure.measure import sources
from perdure.measure.kept import KeptAgent, kept
from perdure.measure.l2m import reference
from perdure.measure.matrix import Matrix
from perdure.measure.metric import MEASURE_BOUNDS, LifetimeData, Metric, Score, estimate
from perdure.measure.online import came_online
from perdure.measure.sources import Found, Source
from perdure.measure.stats import Bounds, Estimate
from perdure.measure.summary import distinct, headline
from perdure.store import code
from perdure.store.code import Record
from perdure.store.history import History, common_measure
from perdure.store.l2logger.view import as_log

if TYPE_CHECKING:
    from perdure.measure.l2m import paper

Preset = Literal["paper", "reference"]
PRESETS: tuple[Preset, ...] = ("paper", "reference")


MIXED = "mixed code"
"""How a note begins that says so."""


@dataclass(frozen=True)
class Measured:
    """One lifetime's scores."""

    name: str
    agent: str
    seed: int | None
    scores: Mapping[str, Score]
    reference: Mapping[str, Any] | None = None
    """In preset ``reference``: the metrics JSON under the reference's own keys."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """For those keys: why one is undefined."""
    notes: tuple[str, ...] = ()
    chance: bool = False
    """Whether its agent acts at random."""
    mixed: bool = False
    """Whether its agent's lifetimes ran different code, or it itself did."""


@dataclass(frozen=True)
class Results:
    """Everything measured, and what could not be."""

    preset: Preset
    measure: str
    options: Mapping[str, Any]
    lifetimes: tuple[Measured, ...]
    failed: Mapping[str, str]
    headline: tuple[str, ...] = ()
    """The metrics that lead: those of every benchmark, of the tasks' own, and L2M's core."""
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    """What the values of some metrics lie between by their nature."""
    kept: tuple[KeptAgent, ...] = ()
    """What each agent learned and kept, who kept most first."""
    protocols: Mapping[str, str] = field(default_factory=dict)
    """For each run that evaluates by a named protocol: its name and hash."""
    sweeps: tuple[str, ...] = ()
    """Runs that are sweeps: their seeds chose parameters."""

    @property
    def agents(self) -> tuple[str, ...]:
        """In the order of the lifetimes."""
        return tuple(dict.fromkeys(life.agent for life in self.lifetimes))

    @property
    def chance(self) -> tuple[str, ...]:
        """The agents that act at random: what others are compared with, no contestants."""
        return tuple(dict.fromkeys(life.agent for life in self.lifetimes if life.chance))

    @property
    def little(self) -> tuple[str, ...]:
        """The agents that never learned most of their tasks: they cannot win by keeping."""
        return tuple(a.agent for a in self.kept if a.little)

    @property
    def leading(self) -> tuple[str, ...]:
        """The metrics that lead and say something of their own: those with a value, each once."""
        return tuple(distinct(self.headline, [life.scores for life in self.lifetimes]))

    @property
    def mixed(self) -> tuple[str, ...]:
        """Agents whose lifetimes ran different code."""
        return tuple(dict.fromkeys(life.agent for life in self.lifetimes if life.mixed))

    def table(self) -> dict[str, dict[str, dict[int, float]]]:
        """For each metric and agent: the value by seed; lifetimes without a seed are counted."""
        out: dict[str, dict[str, dict[int, float]]] = {}
        for i, life in enumerate(self.lifetimes):
            for name, score in life.scores.items():
                by_agent = out.setdefault(name, {}).setdefault(life.agent, {})
                by_agent[life.seed if life.seed is not None else i] = score.value
        return out

    def estimates(self, level: float = 0.95) -> dict[tuple[str, str], Estimate]:
        """For each metric and agent: the mean with its interval."""
        found: dict[tuple[str, str], list[Score]] = {}
        for life in self.lifetimes:
            for name, score in life.scores.items():
                found.setdefault((name, life.agent), []).append(score)
        return {
            key: estimate(scores, level, self.bounds.get(key[0])) for key, scores in found.items()
        }

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN where undefined."""
        lifetimes: dict[str, Any] = {}
        for life in self.lifetimes:
            if life.reference is not None:
                lifetimes[life.name] = dict(life.reference)
            else:
                lifetimes[life.name] = {n: score_json(s) for n, s in life.scores.items()}
        out = {
            "preset": self.preset,
            "measure": self.measure,
            "options": dict(self.options),
            "n": len(self.lifetimes),
            "lifetimes": lifetimes,
            "failed": dict(self.failed),
            "notes": {life.name: list(life.notes) for life in self.lifetimes if life.notes},
            "mixed_code": list(self.mixed),
            "protocols": dict(self.protocols),
        }
        if self.preset == "reference":
            out["reasons"] = {life.name: dict(life.reasons) for life in self.lifetimes}
        return out


def score_json(score: Score) -> dict[str, Any]:
    """A score as plain values; empty parts are left out."""
    out: dict[str, Any] = {"value": score.value}
    if score.per_task:
        out["per_task"] = dict(score.per_task)
    if score.pairs:
        pairs: dict[str, dict[str, float]] = {}
        for (source, target), value in score.pairs.items():
            pairs.setdefault(source, {})[target] = value
        out["pairs"] = pairs
    if score.over_time:
        out["over_time"] = [m._asdict() for m in score.over_time]
    if score.stages:
        out["stages"] = dict(score.stages)
    if score.trials:
        out["episodes"] = sum(n for _, n in score.trials)
        found = estimate([score])
        out["interval"] = [found.low, found.high]
    if score.reason:
        out["reason"] = score.reason
    if score.notes:
        out["notes"] = list(score.notes)
    return out


Progress = Callable[[int, int, str], None]


def measure_reference(
    found: Found,
    options: reference.ReferenceOptions,
    metrics: Sequence[Metric] = (),
    progress: Progress | None = None,
) -> Results:
    """Each lifetime by itself, as l2metrics 3.1.0 would measure it. ``metrics`` are scored too."""
    lifetimes, failed, name = [], {}, options.perf_measure or "reward"
    known: dict[History, History] = {}

    def scorer(history: History) -> dict[str, Score]:
        return reference.scores(history, options)

    codes: dict[str, History] = {}
    for source in _each(found.sources, progress):
        try:
            history = codes[source.name] = sources.load(source)
            history = as_log(history, known=known)
            analysis = reference.analyse(history, options)
            scores = _scored(metrics, LifetimeData(history, _measure_of(history, options), scorer))
        except PerdureError as e:
            failed[source.name] = str(e)
            continue
        name = analysis.metrics["metrics_column"]
        lifetimes.append(
            Measured(
                source.name, history.agent, history.seed, scores,
                analysis.metrics, analysis.reasons, (*analysis.notes, *_without(history)),
                history.chance,
            )
        )  # fmt: skip
    given = {k: v for k, v in asdict(options).items() if k != "perf_measure"}
    bounds = bounds_of(metrics, name)
    return Results("reference", name, given, marked(lifetimes, codes), failed, bounds=bounds)


def _scored(metrics: Sequence[Metric], life: LifetimeData) -> dict[str, Score]:
    """A lifetime's scores; those that need experts are marked where one is missing."""
    out = {m.name: m(life) for m in metrics}
    lost = _without(life.history)
    for m in metrics:
        if lost and "experts" in m.needs:
            out[m.name] = replace(out[m.name], notes=(*out[m.name].notes, *lost))
    return out


def _without(history: History) -> tuple[str, ...]:
    n = len(history.lost)
    if not n:
        return ()
    which = ", ".join(line.partition(":")[0] for line in history.lost[:3]) + ", …" * (n > 3)
    return (
        f"measured without {n} of its single-task experts ({which}): what needs them, and the scale "
        "of tasks where it is taken from the data, would be others with them",
    )


def _measure_of(history: History, options: reference.ReferenceOptions) -> str:
    return options.perf_measure or history.measure


def read_all(
    found: Found, progress: Progress | None = None
) -> tuple[dict[str, History], dict[str, str]]:
    """The histories that can be read, and why the others cannot."""
    histories: dict[str, History] = {}
    failed: dict[str, str] = {}
    for source in _each(found.sources, progress):
        try:
            histories[source.name] = sources.load(source)
        except PerdureError as e:
            failed[source.name] = str(e)
    return histories, failed


def measure_paper(
    histories: Mapping[str, History],
    options: paper.PaperOptions,
    metrics: Sequence[Metric],
    failed: Mapping[str, str] | None = None,
) -> Results:
    """All lifetimes on one scale, as the papers define their metrics."""
    from perdure.measure.l2m import paper

    problems = dict(failed or {})
    lives = list(histories.values())
    if not lives:
        return Results("paper", options.measure or "", {}, (), problems)
    measure = options.measure or common_measure(lives)
    options = replace(options, measure=measure)
    options = replace(options, limits=paper.limits(lives, options))

    def scorer(history: History) -> Mapping[str, Score]:
        return paper.scores(history, options)

    lifetimes = []
    matrices: dict[str, list[Matrix]] = {}
    for name, history in histories.items():
        life = LifetimeData(history, measure, scorer)
        try:
            scores = _scored(metrics, life)
        except PerdureError as e:
            problems[name] = str(e)
            continue
        notes = (*history.notes, *_without(history))
        matrices.setdefault(history.agent, []).append(life.matrix)
        lifetimes.append(
            Measured(
                name, history.agent, history.seed, scores, notes=notes, chance=history.chance
            )
        )  # fmt: skip
    tasks = dict.fromkeys(task for history in lives for task in history.tasks)
    adapted = any(history.adapt.any() for history in lives)
    online = any(map(came_online, lives))
    leads = tuple(m.name for m in headline(metrics, tasks, adapted, online))
    marks = marked(lifetimes, histories)
    chance = list(dict.fromkeys(life.agent for life in lifetimes if life.chance))
    return Results(
        "paper", measure, paper.describe(options), marks, problems, leads,
        bounds_of(metrics, measure), tuple(kept(matrices, MEASURE_BOUNDS.get(measure), chance)),
    )  # fmt: skip


def bounds_of(metrics: Iterable[Metric], measure: str) -> dict[str, Bounds]:
    """What the values of the metrics that have bounds lie between."""
    found = {m.name: m.bounds_with(measure) for m in metrics}
    return {name: bounds for name, bounds in found.items() if bounds is not None}


def marked(lifetimes: Sequence[Measured], histories: Mapping[str, History]) -> tuple[Measured, ...]:
    """The lifetimes, with a note where those of an agent ran different code, or where agents ran in
    environments of different code."""
    own: dict[str, list[Record]] = {}
    for life in lifetimes:
        own.setdefault(life.agent, []).extend(histories[life.name].code)
    within = {agent: code.among(records) for agent, records in own.items()}
    across: list[str] = []
    if len({frozenset(histories[life.name].tasks) for life in lifetimes}) == 1:
        across = code.among([r for records in own.values() for r in records], agent=False)
        across = [n for n in across if not any(n in names for names in within.values())]
    out = []
    for life in lifetimes:
        notes = []
        if names := within[life.agent]:
            who = life.agent or "the agent"
            notes.append(f"{MIXED}: lifetimes of {who} ran with different {code.told(names)}")
        if across:
            notes.append(f"{MIXED}: agents ran with different {code.told(across)}")
        out.append(replace(life, notes=(*life.notes, *notes), mixed=bool(names)))
    return tuple(out)


def _each(items: Sequence[Source], progress: Progress | None) -> Iterable[Source]:
    for i, item in enumerate(items):
        if progress is not None:
            progress(i, len(items), item.name)
        yield item
    if progress is not None:
        progress(len(items), len(items), "")


def reference_options(settings: Mapping[str, Any]) -> reference.ReferenceOptions:
    """Options from a settings file of the reference; keys that concern plots and files are its own
    business and are left aside."""
    known = set(reference.ReferenceOptions.__dataclass_fields__)
    chosen = {k: v for k, v in settings.items() if k in known}
    for key, value in settings.items():
        if key not in known and key not in _ASIDE:
            raise MeasureError(f"settings: unknown key {key!r}; known: {', '.join(sorted(known))}")
        if key == "noise" and any(value or ()):
            raise MeasureError("settings: noise is random in the reference and not offered here")
    return reference.ReferenceOptions(**chosen)


_ASIDE = {
    "log_dir", "recursive", "ste_store_mode", "noise", "output_dir", "output", "unit",
    "show_eval_lines", "do_plot", "plot_types", "do_save", "do_save_settings", "load_settings",
}  # fmt: skip
