"""What a report is made of: the runs named on the command line, read and measured once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from perdure.errors import MeasureError, PerdureError
from perdure.measure import sources
from perdure.measure.l2m import paper
from perdure.measure.matrix import Matrix, evaluation_matrix
from perdure.measure.metric import MEASURE_BOUNDS, Metric, Score
from perdure.measure.outlines import stored_blocks
from perdure.measure.results import Results, measure_paper
from perdure.names import without_variant
from perdure.show.colours import Style, agent_styles, task_styles
from perdure.show.report.timeline import Schedule, Timeline, budgets, schedules, timeline
from perdure.store.history import History, common_measure
from perdure.store.layout import LifetimeFolder, RunFolder, runs_below
from perdure.store.places import job_of
from perdure.store.repeats import Repeats, repeats
from perdure.store.run import Run

NAMELESS = "agent"
"""What the agent of a log is called that names none."""


@dataclass(frozen=True)
class Folder:
    """A run, or a folder of logs, that the report was asked for."""

    label: str
    """Its name, as short as tells it from the others."""
    path: Path
    name: str
    """Of its curriculum; empty for logs."""
    fingerprint: str
    curriculum: Mapping[str, Any]
    """The outline stored with the lifetimes; empty for logs and for a run that did not begin."""
    spec: Mapping[str, Any]
    sessions: tuple[Mapping[str, Any], ...]
    """What each lifetime said of the machine it last ran on."""
    jobs: tuple[str, ...]
    """Lifetimes that the run was to have, experts among them; none where unknown."""
    repeats: Repeats = field(default_factory=Repeats)
    """What came of playing some episodes again."""


@dataclass(frozen=True)
class LifetimeSummary:
    """One lifetime that is there, measured or not."""

    name: str
    agent: str
    """As the report calls it: with its folder in front where two folders have an agent of that
    name."""
    base: str
    """As its run calls it."""
    folder: str
    seed: int | None
    status: str
    progress: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Its last sign of life."""
    error: str = ""
    expert: str = ""
    curriculum: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The outline stored with a lifelong lifetime; empty for logs. Orders of tasks may differ from
    seed to seed."""


@dataclass(frozen=True, eq=False)
class Study:
    """Everything a report shows, before it is arranged."""

    folders: tuple[Folder, ...]
    lifetimes: tuple[LifetimeSummary, ...]
    """All that began, experts too."""
    histories: Mapping[str, History]
    """Of the lifetimes that were measured, by name; as what is shown, goals of a test task together."""
    unfinished: Mapping[str, History]
    """What there is of lifetimes that did not end; in no number, and in no mean."""
    results: Results
    metrics: tuple[Metric, ...]
    lacking: Mapping[str, str] = field(default_factory=dict)
    """What the numbers are without, and why: lifetimes planned, begun or damaged, and folders that
    are none."""
    goals: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What is adapted to and never learned is a goal of a test task, of which there may be hundreds: which
    task each is shown as."""

    @cached_property
    def by_name(self) -> dict[str, LifetimeSummary]:
        """The lifelong lifetimes."""
        return {life.name: life for life in self.lifetimes if not life.expert}

    @cached_property
    def measure(self) -> str:
        """The measure of performance; before there is any row, what running lifetimes say of it. Empty
        while nobody knows."""
        there = [h for h in self.unfinished.values() if h.measure in h.columns]
        said = (str(life.progress.get("measure") or "") for life in self.lifetimes)
        found = common_measure(there) if there else next(filter(None, said), "")
        return self.results.measure or found

    @cached_property
    def agents(self) -> tuple[str, ...]:
        """In the order of the folders, then by name."""
        return tuple(dict.fromkeys(life.agent for life in self.by_name.values()))

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """Every task of any lifetime, those that are learned first, in order of appearance; and while
        lifetimes are to come, those of the plan."""
        every = [*self.histories.values(), *self.unfinished.values()]
        learned = dict.fromkeys(t for h in every for t in h.learned_tasks)
        seen = learned | dict.fromkeys(t for h in every for t in h.tasks)
        if not self.lacking:
            return tuple(seen)
        plan = [
            pair for f in self.folders for b in stored_blocks(f.curriculum) for pair in b.purposes
        ]
        taught = {e.task: None for what, e in plan if what == "learning"}
        named = learned | taught | seen | {e.task: None for _, e in plan}
        return tuple(dict.fromkeys(self.goals.get(t, t) for t in named))

    @cached_property
    def task_styles(self) -> dict[str, Style]:
        """How each task is drawn."""
        return task_styles(self.tasks)

    @cached_property
    def agent_styles(self) -> dict[str, Style]:
        """How each agent is drawn."""
        return agent_styles(self.agents)

    @cached_property
    def matrices(self) -> dict[str, Matrix]:
        """The evaluation matrix of each measured lifetime."""
        return {n: evaluation_matrix(h, self.measure) for n, h in self.histories.items()}

    @cached_property
    def timelines(self) -> dict[str, Timeline]:
        """Each lifetime block by block, unfinished ones too."""
        found = {n: timeline(h, self.measure) for n, h in self.histories.items()}
        return found | {
            n: timeline(h, self.measure, ended=False) for n, h in self.unfinished.items()
        }

    @cached_property
    def schedules(self) -> tuple[Schedule, ...]:
        """The different ways that the lifetimes went. Those that were to learn different amounts
        went different ways."""
        return schedules(
            self.timelines, {n: budgets(self.by_name[n].curriculum) for n in self.timelines}
        )

    def of_agent(self, agent: str) -> list[str]:
        """The agent's measured lifetimes, by seed."""
        return [n for n in self.histories if self.by_name[n].agent == agent]

    def lifetime_folder(self, life: LifetimeSummary) -> LifetimeFolder | None:
        """Where a lifelong lifetime of a run is; None of a log."""
        if life.seed is None or life.expert:
            return None
        run = next(f.path for f in self.folders if f.label == life.folder)
        return RunFolder(run).lifetime(job_of(life.base, life.seed))

    def scores(self, metric: str) -> dict[str, Score]:
        """A metric's score of each measured lifetime."""
        found = self.results.lifetimes
        return {life.name: life.scores[metric] for life in found if metric in life.scores}

    @property
    def bounds(self) -> tuple[float, float] | None:
        """What the measure lies between by its nature; None where that is not known."""
        return MEASURE_BOUNDS.get(self.measure)


def load(
    paths: Sequence[Path],
    metrics: Sequence[Metric],
    *,
    options: paper.PaperOptions | None = None,
    ste: Sequence[str] = (),
    anyway: bool = False,
) -> Study:
    """Read and measure. Runs of different curricula are refused with their difference, unless
    ``anyway``."""
    options = options or paper.PaperOptions()
    folders = _folders(paths)
    labels = _labels(folders)
    found = dict(zip(labels, (sources.find(f, ste, options.measure) for f in folders), strict=True))
    if not anyway:
        curricula = {la: c for la, one in found.items() for c in one.curricula.values()}
        outlines = {la: o for la, one in found.items() for o in one.outlines.values()}
        sources.refuse_different(sources.Found(folders[0], (), curricula, outlines))
    lifetimes, readers = _all_lifetimes(found)
    histories: dict[str, History] = {}
    unfinished: dict[str, History] = {}
    failed: dict[str, str] = {}
    for life in lifetimes:
        if life.name not in readers or life.status == "damaged":
            continue
        try:
            history = replace(readers[life.name](), name=life.name, agent=life.agent)
        except PerdureError as e:
            if life.status == "done":
                failed[life.name] = str(e)
            continue
        (histories if life.status == "done" else unfinished)[life.name] = history
    results = measure_paper(histories, options, metrics, failed)
    shown = tuple(_folder(f, la, found[la]) for f, la in zip(folders, labels, strict=True))
    goals = _goals([*histories.values(), *unfinished.values()], shown)
    lacking = {
        f"{label}/{s.name}" if len(found) > 1 else s.name: s.problem
        for label, one in found.items()
        for s in one.sources
        if s.problem
    }
    lacking |= results.failed
    return Study(
        shown,
        tuple(
            replace(life, status="not measured", error=lacking[life.name])
            if life.name in lacking and life.status == "done"
            else life
            for life in lifetimes
        ),
        {n: h.renamed(goals) for n, h in histories.items() if n not in results.failed},
        {n: h.renamed(goals) for n, h in unfinished.items()},
        results,
        tuple(metrics),
        lacking,
        goals,
    )


def _goals(histories: Sequence[History], folders: Sequence[Folder]) -> dict[str, str]:
    """Goals of test tasks, in what happened and in what is planned."""
    planned = [b for f in folders for b in stored_blocks(f.curriculum)]
    learned = {e.task for b in planned if b.kind == "learn" for e in b.exposures}
    learned |= {t for h in histories for t in h.learned_tasks}
    goals = {t for h in histories for t in h.goals}
    goals |= {e.task for b in planned if b.kind == "adapt" for e in b.exposures}
    return {t: without_variant(t) for t in goals - learned}


def _all_lifetimes(
    found: Mapping[str, sources.Found],
) -> tuple[list[LifetimeSummary], dict[str, Callable[[], History]]]:
    """Every lifetime under the name it has in the report, and how the lifelong ones are read."""
    parts = {label: _lifetimes(label, one) for label, one in found.items()}
    owners = Counter(base for part in parts.values() for base in {life.base for life in part})
    lifetimes: list[LifetimeSummary] = []
    readers: dict[str, Callable[[], History]] = {}
    for label, part in parts.items():
        own = {s.name: s.load for s in found[label].sources}
        for life in part:
            name = f"{label}/{life.name}" if len(found) > 1 else life.name
            agent = f"{label}/{life.base}" if owners[life.base] > 1 else life.base
            lifetimes.append(replace(life, name=name, agent=agent))
            if life.name in own:
                readers[name] = own[life.name]
    return lifetimes, readers


def _folders(paths: Sequence[Path]) -> list[Path]:
    """The runs at or below each path; a path without one holds logs."""
    out: dict[Path, Path] = {}
    for path in paths:
        for folder in list(runs_below(path)) or [path]:
            out.setdefault(folder.resolve(), folder)
    if not out:
        raise MeasureError("no run was named: give the folder of at least one")
    return list(out.values())


def _labels(folders: Sequence[Path]) -> list[str]:
    """The last parts of each path, as many as it takes to tell them apart."""
    parts = [folder.resolve().parts for folder in folders]
    for depth in range(1, max(map(len, parts)) + 1):
        labels = ["/".join(p[-depth:]) for p in parts]
        if len(set(labels)) == len(labels):
            break
    return labels


def _lifetimes(label: str, found: sources.Found) -> list[LifetimeSummary]:
    if not found.curricula:
        owners = {s.name: s.agent or NAMELESS for s in found.sources}
        return [LifetimeSummary(n, a, a, label, None, "done") for n, a in owners.items()]
    known: dict[str, Mapping[str, Any]] = {}
    return [
        LifetimeSummary(i.id, i.agent, i.agent, label, i.seed, i.status, i.progress, i.error, i.expert,
                 _curriculum({} if i.expert or i.status == "damaged" else i.description, known))
        for i in Run(found.path).lifetimes()
    ]  # fmt: skip


def _curriculum(
    described: Mapping[str, Any], known: dict[str, Mapping[str, Any]]
) -> Mapping[str, Any]:
    """The outline in a lifetime's description. Equal ones are kept once: they may be large."""
    found = described.get("curriculum")
    outline = found if isinstance(found, dict) else {}
    return known.setdefault(str(described.get("fingerprint") or len(known)), outline)


def _folder(path: Path, label: str, found: sources.Found) -> Folder:
    if not found.curricula:
        return Folder(label, path, "", "", {}, {}, (), ())
    run = Run(path)
    infos = [i for i in run.lifetimes() if i.status != "damaged"]
    described = next((i.description for i in infos if not i.expert), {})
    curriculum = _curriculum(described, {}) or _curriculum(
        {"curriculum": run.spec.get("outline")}, {}
    )
    return Folder(
        label,
        path,
        str(curriculum.get("name") or run.spec.get("curriculum", "")),
        str(described.get("fingerprint", "")),
        curriculum,
        run.spec,
        tuple(s for i in infos for s in i.folder.sessions()[-1:]),
        tuple(run.folder.jobs()),
        repeats(i.folder for i in infos),
    )
