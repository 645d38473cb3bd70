"""Videos of evaluation episodes: of each task the first, the best and the worst, and of a task that is
learned the same episode before learning, right after it, two lessons later and at the end of life.

An episode is recorded after it has ended, by playing it once more: its seed and its actions, in an
environment of its own that can be seen. So recording comes near neither the agent nor the
environments that make the rows, and rows are the same without it. A video whose playing does not
give the episode's return is not kept.

::

    <lifetime>/_video/toy--goal-ne-00000120.mp4    one episode, named by its row's exp
                      index.json                   which video is what; what it does not name is not
                                                   a video

Videos are made before the rows of their episodes are committed, so that no committed row is left
unseen by a lifetime that is killed and resumed.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from math import isnan
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from perdure.errors import EnvironmentFault, MissingExtra
from perdure.names import task_slug
from perdure.run.progress import BEAT, VideoProgress
from perdure.run.runner import EndedEpisode
from perdure.run.vector import reset_env
from perdure.store.layout import LifetimeFolder
from perdure.store.rows import params_json
from perdure.suite import Episode, Suite
from perdure.types import Array, Curriculum, Task

WHICH = ("first", "best", "worst", "before", "learned", "later", "end")
SIDE = 320
"""The longer side of a video in pixels, at most."""
LONGEST = 100
"""Frames of a video; of longer episodes every second, third, … frame is taken."""
SHORTEST = 3.0
"""Seconds that a video lasts at least: what a robot does in one cannot be followed."""
FPS = 10.0
"""Where an environment does not say."""
LATER = 2
"""Lessons of other tasks after which a task is looked at again."""
ENCODING = (
    "-crf", "28", "-preset", "veryfast", "-threads", "1", "-movflags", "+faststart",
    "-fflags", "+bitexact", "-flags:v", "+bitexact", "-map_metadata", "-1",
)  # fmt: skip


@dataclass(frozen=True)
class Video:
    """A file and what one sees in it."""

    file: str
    frames: int
    every: int
    """Steps from one frame to the next."""
    fps: float
    width: int
    height: int


@dataclass(frozen=True)
class RecordedEpisode:
    """One evaluation episode, with all that it takes to play it again."""

    task: str
    params: str
    exp: int
    block: int
    kind: str
    episode: int
    seed: int
    trial_seed: int
    steps: int
    ret: float
    success: float | None
    instance: int | None = None
    actions: tuple[Any, ...] = field(default=(), repr=False, compare=False)
    video: Video | None = None

    @property
    def rank(self) -> tuple[float, float]:
        """Success first, then return."""
        return (self.success or 0.0, self.ret)

    @property
    def wanted(self) -> bool:
        """Whether it has no video yet and can have one."""
        return self.video is None and bool(self.actions)

    def entry(self, which: str) -> dict[str, Any]:
        """As it stands in the index."""
        assert self.video is not None
        own = {k: v for k, v in asdict(self).items() if k not in ("actions", "video", "ret")}
        return {"which": which, **own, "return": self.ret, **asdict(self.video)}


class Recorder:
    """Sees every evaluation episode of one lifetime and keeps the videos worth keeping."""

    def __init__(
        self,
        folder: LifetimeFolder,
        suites: Mapping[str, Suite],
        start: int,
        note: Callable[[str], None],
        progress: VideoProgress | None = None,
        moments: Mapping[str, Mapping[int, str]] | None = None,
    ) -> None:
        self.folder, self.suites, self.note = folder, suites, note
        self.moments = moments or {}
        """By task and block: which moment of its life an evaluation shows."""
        self.progress = progress or VideoProgress(0)
        self.kept: dict[tuple[str, str], dict[str, RecordedEpisode]] = {}
        """By task and parameters, then first, best and worst."""
        self.tasks: dict[tuple[str, str], Task] = {}
        self.notes: dict[str, str] = {}
        self.watched = [[start, start]]
        """Ranges of experiences that were looked at; a session without video leaves a gap."""
        self._stages: dict[tuple[str, str], gymnasium.Env[Any, Any]] = {}
        """Environments that can be seen, by task and parameters: opening one takes as long as a video."""
        self._read(start)

    def close(self) -> None:
        """Close the environments that videos were made in."""
        while self._stages:
            self._stages.popitem()[1].close()

    def _stage(self, key: tuple[str, str]) -> gymnasium.Env[Any, Any]:
        if key not in self._stages:
            task = self.tasks[key]
            self._stages[key] = _open(self.suites[task.suite], task)
        return self._stages[key]

    def _read(self, start: int) -> None:
        """Go on from the index; what it says of rows that were not committed is forgotten."""
        index = self.folder.videos()
        if index is None:
            return
        try:
            before = [[a, min(b, start)] for a, b in index["watched"] if a < start]
            for entry in index["videos"]:
                if entry["exp"] < start:
                    found = _episode(entry)
                    self.kept.setdefault((found.task, found.params), {})[entry["which"]] = found
        except (TypeError, KeyError, ValueError, AttributeError) as e:
            # No row depends on videos: they are made again, of episodes that are played from here on.
            self.kept.clear()
            self.note(f"{self.folder.videos_in} is not an index of videos ({e!r}), and begun again")
            return
        if before and before[-1][1] == start:
            self.watched = before
        else:
            self.watched = [*before, [start, start]]

    def on_episode_end(self, ended: EndedEpisode) -> None:
        """An evaluation episode ended. One whose actions are not all known is passed over."""
        if len(ended.actions) != ended.steps:
            return
        task, block, episode = ended.task, ended.place.number, ended.address
        key = (task.id, params_json(task.params))
        seen = RecordedEpisode(
            *key,
            exp=ended.exp,
            block=block,
            kind=ended.place.block.kind,
            episode=episode.number,
            seed=episode.seed,
            trial_seed=episode.trial_seed,
            steps=ended.steps,
            ret=ended.ret,
            success=None if ended.success is None or isnan(ended.success) else ended.success,
            instance=episode.instance,
            actions=tuple(ended.actions),
        )
        self.tasks[key] = task
        mine = self.kept.setdefault(key, {})
        if self.watched[0][0] == 0 and len(self.watched) == 1:
            mine.setdefault("first", seen)
        moment = self.moments.get(task.id, {}).get(block)
        if moment and episode.number == 0:  # The same episode at every moment.
            mine[moment] = seen
        if "best" not in mine or seen.rank > mine["best"].rank:
            mine["best"] = seen
        if "worst" not in mine or seen.rank < mine["worst"].rank:
            mine["worst"] = seen

    def save(self, until: int, beat: Callable[[], None]) -> None:
        """Make the videos that are missing, then the index, and remove what it no longer names."""
        from perdure.agents.adapters._globals import GlobalRng

        # An environment being made or drawn may draw from global generators: the agent's are safe.
        left = len({(k, e.exp) for k, mine in self.kept.items() for e in mine.values() if e.wanted})
        with GlobalRng(0).swapped_in():
            for key, mine in self.kept.items():
                made: dict[int, RecordedEpisode] = {}
                for which, episode in mine.items():
                    if episode.exp not in made:
                        if episode.wanted:
                            self.progress.begin(episode.task, left)
                            left -= 1
                        made[episode.exp] = self._with_video(key, episode, beat)
                        if episode.wanted:
                            self.progress.end()
                    mine[which] = made[episode.exp]
        self.watched[-1][1] = until
        kept = [
            mine[which].entry(which)
            for _, mine in sorted(self.kept.items())
            for which in WHICH
            if which in mine and mine[which].video
        ]
        index = {"format": 1, "watched": self.watched, "videos": kept, "notes": self.notes}
        self.folder.write_videos(index, {entry["file"] for entry in kept})

    def _with_video(
        self, key: tuple[str, str], e: RecordedEpisode, beat: Callable[[], None]
    ) -> RecordedEpisode:
        if e.task in self.notes or not e.wanted:
            return e
        try:
            task, env = self.tasks[key], self._stage(key)
            with tempfile.TemporaryDirectory(prefix="perdure-video-") as folder:
                video = shoot(self.suites[task.suite], env, e, Path(folder) / "video.mp4", beat)
                data = (Path(folder) / "video.mp4").read_bytes()
        except Unseen as error:
            self.notes[e.task] = str(error)
            return e
        except Exception as error:
            # Any error of a simulator's renderer: no video, and the lifetime goes on.
            self.close()
            self.notes[e.task] = f"{e.task} is not recorded: {type(error).__name__}: {error}"
            self.note(self.notes[e.task])
            return e
        name = f"{task_slug(e.task)}-{e.exp:08d}.mp4"
        self.folder.write_video(name, data)
        return replace(e, video=replace(video, file=name), actions=())


def _episode(entry: Mapping[str, Any]) -> RecordedEpisode:
    video = Video(**{k: entry[k] for k in Video.__dataclass_fields__})
    own = [k for k in RecordedEpisode.__dataclass_fields__ if k not in ("actions", "video", "ret")]
    # Videos of older versions know no instance.
    known = {k: entry[k] for k in own if k in entry}
    return RecordedEpisode(**known, ret=entry["return"], video=video)


class Unseen(EnvironmentFault):
    """An environment that shows nothing."""


def encoder() -> Any:
    """What writes videos; MissingExtra if it is not installed."""
    try:
        import imageio_ffmpeg
    except ImportError as e:
        raise MissingExtra("recording video", "video") from e
    return imageio_ffmpeg


def unseen(curriculum: Curriculum, suites: Mapping[str, Suite]) -> list[str]:
    """Why some of a curriculum's evaluated tasks cannot be recorded, a sentence each."""
    out = []
    for task in _evaluated(curriculum):
        try:
            _open(suites[task.suite], task).close()
        except Exception as e:
            out.append(str(e) if isinstance(e, Unseen) else f"{task.id} is not recorded: {e}")
    return out


def _evaluated(curriculum: Curriculum) -> Iterable[Task]:
    """Tasks that are evaluated in their environment."""
    if curriculum.generate is not None:
        return curriculum.tasks
    phases = (phase for block in curriculum.fixed for phase in block.phases)
    found = {
        e.task.key: e.task
        for phase in phases
        for e in phase.exposures
        if not phase.learning and not e.on_data
    }
    return found.values()


def moments(curriculum: Curriculum) -> dict[str, dict[int, str]]:
    """For each task that is learned and evaluated: which evaluation block shows it before any learning,
    right after it was last learned, two lessons later, and at the end of life. None of a generated
    curriculum, whose end is not known."""
    if curriculum.generate is not None:
        return {}
    first = len(curriculum.before)
    blocks = list(enumerate(curriculum.fixed))[first:]
    lessons = [(i, {e.task.id for e in b.exposures}) for i, b in blocks if b.kind == "learn"]
    out: dict[str, dict[int, str]] = {}
    for task in {t: None for _, own in lessons for t in own}:
        evals = [
            i for i, b in blocks
            if b.kind == "eval" and any(e.task.id == task and not e.on_data for e in b.exposures)
        ]  # fmt: skip
        last = max(i for i, own in lessons if task in own)
        after = [i for i in evals if i > last]
        found = {i: "before" for i in evals[:1] if i < lessons[0][0]}
        others = [i for i, own in lessons if i > last and task not in own]
        later = [i for i in after if len(others) >= LATER and i > others[LATER - 1]]
        found |= {i: "end" for i in after[-1:]}
        found |= {i: "later" for i in later[:1] if i not in found}
        found |= {i: "learned" for i in after[:1]}
        out[task] = found
    return out


def videos_expected(curriculum: Curriculum) -> int:
    """How many videos a lifetime makes, if none is made of an episode that a later one outdoes."""
    own = moments(curriculum)
    return sum(
        3 + len([w for w in own.get(task.id, {}).values() if w != "before"])
        for task in _evaluated(curriculum)
    )


def _open(suite: Suite, task: Task) -> gymnasium.Env[Any, Any]:
    env = suite.render_env(task)
    if env.render_mode != "rgb_array":
        env.close()
        raise Unseen(
            f"{task.id} is not recorded: its environment does not render rgb_array (a suite offers "
            "one that does by render_env(task))"
        )
    return env


def shoot(
    suite: Suite,
    env: gymnasium.Env[Any, Any],
    episode: RecordedEpisode,
    path: Path,
    beat: Callable[[], None],
) -> Video:
    """Play an episode again and write its video to ``path``."""
    every = -(-(episode.steps + 1) // LONGEST)
    frames = _frames(suite, env, episode, every)
    first = next(frames)
    height, width = first.shape[:2]
    scale = min(1.0, SIDE / max(height, width))
    # H.264 in the form that browsers play needs even sides.
    w, h = (max(2, int(n * scale) // 2 * 2) for n in (width, height))
    fps = float(env.metadata.get("render_fps") or FPS)
    frames_in_all = -(-episode.steps // every) + 1
    fps = max(min(fps / every, frames_in_all / SHORTEST), 1.0)
    writer = encoder().write_frames(
        str(path), (width, height), fps=fps, codec="libx264", quality=None, macro_block_size=1,
        ffmpeg_log_level="error",
        output_params=["-vf", f"scale={w}:{h}:flags=area", *ENCODING],
    )  # fmt: skip
    count, next_beat = 0, 0.0
    try:
        writer.send(None)
        for frame in (f for part in ([first], frames) for f in part):
            if frame.shape != first.shape:
                raise EnvironmentFault(f"frames of {first.shape} and {frame.shape}")
            writer.send(np.ascontiguousarray(frame))
            count += 1
            if time.monotonic() >= next_beat:
                beat()
                next_beat = time.monotonic() + BEAT
    finally:
        writer.close()
    return Video("", count, every, fps, w, h)


def _frames(
    suite: Suite, env: gymnasium.Env[Any, Any], episode: RecordedEpisode, every: int
) -> Iterator[Array]:
    """The frames of an episode: its start, and after its steps; always the last."""
    address = Episode(episode.seed, episode.trial_seed, episode.episode, episode.instance)
    reset_env(suite, env, address)
    yield _frame(env)
    whole = isinstance(env.action_space, spaces.Discrete)
    ret, last = 0.0, episode.steps
    for step, action in enumerate(episode.actions, 1):
        _, reward, end, cut, _ = env.step(np.int64(action) if whole else action)
        ret += float(reward)
        if bool(end or cut) != (step == last):
            raise EnvironmentFault(f"{_again(episode)} it ended otherwise after {step} steps")
        if step % every == 0 or step == last:
            yield _frame(env)
    if ret != episode.ret:
        raise EnvironmentFault(f"{_again(episode)} it gave return {ret} instead of {episode.ret}")


def _again(episode: RecordedEpisode) -> str:
    return (
        f"played again with seed {episode.seed}, which alone should decide an episode "
        f"(perdure check {episode.task}),"
    )


def _frame(env: gymnasium.Env[Any, Any]) -> Array:
    frame: Any = env.render()
    if (
        not isinstance(frame, np.ndarray)
        or frame.dtype != np.uint8
        or frame.ndim != 3
        or frame.shape[2] != 3
    ):
        raise EnvironmentFault(f"render() gave {type(frame).__name__}, expected uint8 (h, w, 3)")
    return frame
