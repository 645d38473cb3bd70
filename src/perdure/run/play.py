"""A trained agent once more on a task: its score, and a video of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from pathlib import Path

from perdure import registry
from perdure.errors import CurriculumError, SpecError, UnknownName
from perdure.names import task_slug
from perdure.run.config import LifetimeConfig
from perdure.run.from_run import agent as from_run
from perdure.run.from_run import lifetime_of
from perdure.run.loop import LifetimeLoop, Services
from perdure.run.video import Recorder, encoder
from perdure.store.files import write_output
from perdure.store.layout import LifetimeFolder, RunFolder
from perdure.store.log import Lifetime, LifetimeLog
from perdure.store.places import job_of
from perdure.store.rows import Row
from perdure.store.saved import AgentReference, SavedAgent, saved_agent
from perdure.types import Curriculum, Exposure, Task, evaluate


@dataclass(frozen=True)
class Played:
    """What was played, and how it went."""

    saved: SavedAgent
    task: Task
    rows: list[Row]
    video: Path | None

    def mean(self, measure: str) -> float:
        """The mean of a measure over episodes, or over examples; NaN if there is none."""
        values = [(getattr(r, measure), r.steps) for r in self.rows]
        known = [(v, n if measure == "accuracy" else 1) for v, n in values if v is not None]
        weight = sum(n for _, n in known)
        return sum(v * n for v, n in known) / weight if weight else nan


def play(
    which: AgentReference,
    task: str = "",
    episodes: int = 1,
    out: Path | None = None,
    video: bool = True,
    note: Callable[[str], None] = print,
) -> Played:
    """Evaluate a trained agent on a task: any whose spaces are those it was trained with.

    The episodes are those that its lifetime was evaluated on. The first is recorded into ``out``
    (``AGENT--TASK.mp4``) if the task can be seen; of a task that has only data, all held-out data are
    gone through.
    """
    if video:
        encoder()
    saved = saved_agent(which)
    life = lifetime_of(saved)
    chosen = _task(life.curriculum, task)
    suite = registry.suite_of(chosen)
    exposure = _exposure(life.curriculum, chosen, episodes)
    config = LifetimeConfig(
        Curriculum("play", (evaluate(exposure),)),
        {chosen.suite: suite},
        *suite.spaces(chosen),
        life.seed,
        hide_tasks=life.hide_tasks,
    )
    info = saved.info
    found = (str(which.run.path), info.agent, info.seed, saved.commit.n, which.expert)
    made = from_run(config.setup(), *found, frozen=True)
    with tempfile.TemporaryDirectory(prefix="perdure-play-") as temporary:
        folder = RunFolder(temporary).lifetime(job_of(info.agent, info.seed))
        recorder = None
        if video and not exposure.on_data:
            recorder = Recorder(folder, config.suites, 0, note)
        with LifetimeLog(folder.path, info.agent, info.seed) as log:
            LifetimeLoop(config, made, log, Services(recorder=recorder)).run()
            if recorder is not None:
                recorder.close()
        rows = Lifetime.read(folder.path).rows()
        shown = _video(folder, out or Path(f"{info.agent}--{task_slug(chosen.id)}.mp4"), note)
    return Played(saved, chosen, rows, shown)


def _task(curriculum: Curriculum, name: str) -> Task:
    """The task of this id in the curriculum, or else of its suite."""
    known = {t.id: t for t in reversed(curriculum.tasks)}
    if not name and len(known) == 1:
        return curriculum.tasks[0]
    if not name:
        raise SpecError(f"name a task with --task: {', '.join(reversed(known))}")
    if name in known:
        return known[name]
    try:
        return registry.task(name)
    except UnknownName as e:
        raise UnknownName("task", name, known, f"({e})") from e


def _exposure(curriculum: Curriculum, task: Task, episodes: int) -> Exposure:
    """Episodes, unless the task has data alone."""
    data = {e.on_data for _, e in curriculum.placed_exposures() if e.task.key == task.key}
    if not data:
        try:
            registry.suite_of(task).env(task).close()
        except CurriculumError:
            data = {True}
    return Exposure(task, 1, "epochs") if data == {True} else Exposure(task, episodes)


def _video(folder: LifetimeFolder, out: Path, note: Callable[[str], None]) -> Path | None:
    """The video of the first episode, at its place; None if there is none."""
    index = folder.videos() or {"videos": [], "notes": {}}
    for why in index["notes"].values():
        note(why)
    for entry in index["videos"]:
        if entry["which"] == "first":
            write_output(out, folder.video(entry["file"]))
            return out
    return None
