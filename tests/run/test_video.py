"""Videos of evaluation episodes: real ones, decoded again; and rows that do not know of them."""

import json
import os
import signal
import subprocess
import sys
import time

import gymnasium
import imageio_ffmpeg
import numpy as np
import pytest

import perdure
from kit import Recorder as Recording
from kit import setting_of
from perdure.curricula.named import curriculum_of
from perdure.errors import MissingExtra
from perdure.registry import suite
from perdure.run.loop import LifetimeLoop, Services
from perdure.run.plan import load_plan, make_plan
from perdure.run.spec import RunSpec
from perdure.run.video import LONGEST, Recorder, unseen
from perdure.specs import Spec
from perdure.store import layout
from perdure.store.layout import LifetimeFolder
from perdure.store.log import Lifetime, LifetimeLog
from perdure.suite import Suite
from perdure.suites.toy.envs import GridGoal
from perdure.testing.agents import cut_journal, read_rows
from perdure.types import Curriculum, Exposure, Task, evaluate, learn

WAYS = {
    "toy": ("toy/compass,steps=90,episodes=4", {"envs": 2, "checkpoint": 70}),
    "minigrid": ("life.py:grids", {}),
    "cartpole": ("gym/cartpole,learn=4,episodes=3", {"envs": 2, "checkpoint": 45}),
    "probes": ("toy/check,task=goal-ne", {"checkpoint": 30}),
}
LIFE = """
from perdure import Curriculum, Exposure, Task, curricula, evaluate, learn

def grids():
    tasks = [Task("minigrid", "DoorKey", "S5"), Task("minigrid", "DynObstacles", "S6N1")]
    blocks = [learn(Exposure(t, 60, "steps")) for t in tasks]
    return Curriculum("grids", curricula.interleave(blocks, evaluate(*(Exposure(t, 2) for t in tasks))))
"""


def index(lifetime):
    return json.loads((lifetime / "_video/index.json").read_text())


def decode(path):
    """(meta, frames) of a video."""
    reader = imageio_ffmpeg.read_frames(str(path))
    meta = next(reader)
    width, height = meta["size"]
    return meta, [np.frombuffer(f, np.uint8).reshape(height, width, 3) for f in reader]


def check_videos(lifetime, rows):
    """Every video the index names is whole and is the episode it says; no other file is there."""
    found = index(lifetime)
    names = {f["file"] for f in found["videos"]} | {"index.json"}
    assert {p.name for p in (lifetime / "_video").iterdir()} == names
    by_exp = {r.exp: r for r in rows}
    for video in found["videos"]:
        row = by_exp[video["exp"]]
        assert video["task"] == (f"{row.task}@{row.variant}" if row.variant else row.task)
        assert not row.learning and row.status == "complete"
        assert (video["seed"], video["steps"]) == (row.seed, row.steps)
        assert (video["return"], video["success"]) == (row.ret, row.success)
        path = lifetime / "_video" / video["file"]
        meta, frames = decode(path)
        assert meta["codec"] == "h264" and max(meta["size"]) <= 320
        assert meta["size"] == (video["width"], video["height"])
        assert len(frames) == video["frames"] == 1 + -(-row.steps // video["every"])
        assert video["frames"] <= LONGEST + 1
        assert path.stat().st_size < 300_000
    return found["videos"]


@pytest.mark.parametrize("way", WAYS)
def test_rows_are_equal_with_and_without_and_videos_are_the_right_episodes(
    way, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "life.py").write_text(LIFE)
    curriculum, keys = WAYS[way]
    agent = "q" if way in ("toy", "probes") else "ppo,rollout=16"
    keys = {"agents": [agent], "seed": 3, "executor": "serial", **keys}
    plain = perdure.experiment(curriculum, out="plain", **keys)
    recorded = perdure.experiment(curriculum, out="recorded", video=True, **keys)
    (life,) = (i.path for i in recorded.lifetimes())
    (other,) = (i.path for i in plain.lifetimes())
    names = sorted(p.name for p in (life / "rows").iterdir())
    assert names == sorted(p.name for p in (other / "rows").iterdir())
    for name in names:
        assert (life / "rows" / name).read_bytes() == (other / "rows" / name).read_bytes()
    assert not (other / "_video").exists()
    assert recorded.spec == plain.spec
    rows = read_rows(life)
    videos = check_videos(life, rows)
    # First, best and worst by hand.
    for task in {f["task"] for f in videos}:
        mine = [r for r in rows if not r.learning and f"{r.task}@{r.variant}".strip("@") == task]
        rank = {r.exp: (r.success or 0.0, r.ret) for r in mine}
        by_hand = {
            "first": min(rank),
            "best": max(rank, key=lambda e: (rank[e], -e)),
            "worst": min(rank, key=lambda e: (rank[e], e)),
        }
        shown = {f["which"]: f["exp"] for f in videos if f["task"] == task}
        assert {which: shown.pop(which) for which in by_hand} == by_hand
        # What is left are moments of its life: tests/show/test_animation.py says which.
        assert set(shown) <= {"before", "learned", "later", "end"}
    evaluated = {f"{r.task}@{r.variant}".strip("@") for r in rows if not r.learning}
    assert {f["task"] for f in videos} == evaluated
    assert index(life)["watched"] == [[0, len(rows)]] and index(life)["notes"] == {}


def test_processes_record_too_and_the_session_says_so(tmp_path):
    run = perdure.experiment(
        "toy/compass,steps=60,episodes=2", ["q"], lifetimes=2, video=True, out=str(tmp_path / "x"),
        executor="processes,workers=2",
    )  # fmt: skip
    for seed in (0, 1):
        folder = run.path / f"q/{seed}"
        # First, best and worst of three tasks; each before and right after learning, two at the end.
        assert len(check_videos(folder, read_rows(folder))) == 9 + 3 + 3 + 2
        (session,) = LifetimeFolder(folder).sessions()
        assert session["video"] is True
    assert "video" not in json.loads((run.path / "_meta/spec.json").read_text())


def test_what_one_sees(tmp_path):
    """The video shows the walk: the walker's cell is blue in each frame, the goal green."""
    run = perdure.experiment(
        "toy/compass,steps=60,episodes=2", ["random"], video=True, out=str(tmp_path / "x"),
        executor="serial",
    )  # fmt: skip
    video = next(f for f in index(run.path / "random/0")["videos"] if f["which"] == "first")
    _, frames = decode(run.path / "random/0/_video" / video["file"])
    env = GridGoal("ne")
    env.reset(seed=video["seed"])
    cell = GridGoal.CELL
    for t, frame in enumerate(frames):
        middles = frame[cell // 2 :: cell, cell // 2 :: cell].astype(int)
        blue = (middles[:, :, 2] - middles[:, :, 0]) > 100
        assert blue.sum() == 1, t
        if t == 0:
            assert blue[env.y, env.x]
    assert video["task"] == "toy/goal-ne" and middles[0, 4, 1] > middles[0, 4, 0] + 30


def test_long_episodes_are_thinned_and_keep_their_last_frame(tmp_path):
    class Slow(GridGoal):
        """Never there before its horizon; the picture counts the steps."""

        def __init__(self):
            super().__init__("ne", horizon=1000)

        def step(self, action):
            obs, _, _, _, info = super().step(3)  # Always west: away from the goal.
            return obs, 0.0, False, self.t >= self.horizon, info

        def render(self):
            return np.full((64, 512, 3), self.t // 4, np.uint8)

    task = Task("slow", "x")
    videos, notes = video_one(tmp_path, task, Slow, steps=1000)
    (first,) = {f["file"] for f in videos}
    every = videos[0]["every"]
    assert every == 11 and videos[0]["frames"] <= LONGEST and not notes
    meta, frames = decode(tmp_path / "life/_video" / first)
    assert meta["size"] == (320, 40) and len(frames) == videos[0]["frames"] == 1 + 90 + 1
    assert abs(int(frames[0].mean()) - 0) < 6 and abs(int(frames[-1].mean()) - 250) < 6


def video_one(tmp_path, task, env, steps=None, blocks=None):
    """One lifetime of one evaluation of a task of its own: (videos, notes)."""

    class Mine(Suite):
        name = "slow"

        def tasks(self):
            return [task]

        def env(self, task):
            return env()

    from unittest.mock import patch

    life = Curriculum("x", blocks or (evaluate(Exposure(task, 1)), learn(Exposure(task, 1))))
    with patch("perdure.registry.suite", lambda name: Mine()):
        config = setting_of(life)
    said = []
    with LifetimeLog(tmp_path / "life", "test", 0) as log:
        recorder = Recorder(log.folder, config.suites, 0, said.append)
        LifetimeLoop(config, Recording(config.setup()), log, Services(recorder=recorder)).run()
    found = index(tmp_path / "life")
    assert list(found["notes"].values()) == said or not said
    return found["videos"], found["notes"]


class Blind(gymnasium.Wrapper):
    """An environment without a picture."""

    render_mode = None

    def __init__(self):
        super().__init__(GridGoal())


class Broken(GridGoal):
    def render(self):
        raise RuntimeError("no display")


class Strange(GridGoal):
    def render(self):
        return [[0]]


class Dishonest(GridGoal):
    """Its second instance plays by other rules."""

    made = 0

    def __init__(self):
        super().__init__()
        Dishonest.made += 1
        self.other = Dishonest.made

    def step(self, action):
        obs, reward, end, cut, info = super().step(action)
        return obs, reward + 0.001 * self.other, end, cut, info


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (Blind, "does not render rgb_array"),
        (Broken, "RuntimeError: no display"),
        (Strange, "render.. gave list"),
        (Dishonest, "played again with seed .* gave return"),
    ],
)
def test_what_cannot_be_recorded_gives_a_note_and_the_life_goes_on(env, words, tmp_path):
    videos, notes = video_one(tmp_path, Task("slow", "x"), env)
    (note,) = notes.values()
    import re

    assert not videos and re.search(words, note) and "slow/x is not recorded" in note
    assert len(read_rows(tmp_path / "life")) == 2
    assert {p.name for p in (tmp_path / "life/_video").iterdir()} == {"index.json"}


def test_tasks_that_cannot_be_seen_are_named_once_before_the_run(tmp_path, capfd):
    keys = {"executor": "serial", "lifetimes": 2, "out": str(tmp_path / "x")}
    perdure.experiment("toy/parallel,steps=20,episodes=1", ["q"], video=True, **keys)
    said = [x for x in capfd.readouterr().err.splitlines() if "not recorded" in x]
    assert len(said) == 3 and said[0].startswith("perdure: toy/bandit@shift0 is not recorded")
    perdure.experiment("toy/parallel,steps=20,episodes=1", ["q"], video=True, **keys)
    assert "not recorded" not in capfd.readouterr().err


def test_continuing_tasks_and_data_are_passed_over(tmp_path):
    for k, curriculum in enumerate(("toy/drift,steps=300", "toy/blobs,epochs=1")):
        run = perdure.experiment(
            curriculum, ["random"], video=True, executor="serial", out=str(tmp_path / str(k))
        )
        assert index(run.path / "random/0")["videos"] == []


def test_unseen_looks_at_evaluated_environments_alone():
    made = curriculum_of(Spec("toy/blobs"))
    assert unseen(made, {"toy": suite("toy")}) == []
    task = Task("toy", "bandit")
    made = Curriculum(
        "x", (learn(Exposure(task, 1)), evaluate(Exposure(Task("toy", "goal-ne"), 1)))
    )
    assert unseen(made, {"toy": suite("toy")}) == []


def test_without_the_encoder_it_is_said_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(MissingExtra, match=r"\[video\]"):
        perdure.experiment("toy/compass", ["q"], video=True, out=str(tmp_path / "x"))
    assert not (tmp_path / "x").exists()


def test_finished_lifetimes_stay_without_videos_and_it_says_so(tmp_path, capfd):
    keys = {"executor": "serial", "out": str(tmp_path / "x")}
    perdure.experiment("toy/compass,steps=20,episodes=1", ["q"], **keys)
    perdure.experiment("toy/compass,steps=20,episodes=1", ["q"], video=True, **keys)
    assert "1 finished lifetimes were run without video" in capfd.readouterr().err


SPEC = ("toy/compass,steps=120,episodes=6", {"agents": ("q",), "checkpoint": 60})


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The videos and rows of a lifetime that nobody kills."""
    out = str(tmp_path_factory.mktemp("video") / "x")
    run = perdure.experiment(SPEC[0], video=True, out=out, executor="serial", **SPEC[1])
    return index(run.path / "q/0"), read_rows(run.path / "q/0")


def test_killed_at_any_moment_no_half_video_and_the_same_videos_in_the_end(undisturbed, tmp_path):
    plan = make_plan(RunSpec(SPEC[0], out=str(tmp_path / "x"), **SPEC[1]))
    plan.save()
    life = plan.path / "q/0"
    command = [*plan.command(plan.jobs[0]), "--video"]
    kills, journal = 0, life / "_journal"
    for progress in (1, 0, 2, 1, None):
        process = subprocess.Popen(command, start_new_session=True)
        reached = len(list(journal.glob("*"))) + 1  # the session's own claim
        while process.poll() is None:
            entries = len(list(journal.glob("*")))
            if (
                progress is not None
                and (life / "_video").exists()
                and entries >= reached + progress
            ):
                kills += 1
                os.killpg(process.pid, signal.SIGKILL)
                break
            time.sleep(0.003)
        process.wait()
        if (life / "_video/index.json").exists():
            for video in index(life)["videos"]:
                assert len(decode(life / "_video" / video["file"])[1]) == video["frames"]
    assert kills >= 3 and process.returncode == 0
    videos, rows = undisturbed
    assert read_rows(life) == rows
    assert index(life) == videos
    check_videos(life, rows)


def test_a_session_without_video_leaves_a_gap_that_is_told(undisturbed, tmp_path):
    """Resumed with video: no video claims to be the first, and what was not seen is written down."""
    _, rows = undisturbed
    plan = make_plan(RunSpec(SPEC[0], out=str(tmp_path / "x"), **SPEC[1]))
    plan.save()
    job, life = plan.jobs[0], plan.path / "q/0"
    subprocess.run(plan.command(job), check=True)
    cut_journal(life, 4)
    start = Lifetime.read(life).commits[-1].position["exp"]
    subprocess.run([*plan.command(job), "--video"], check=True)
    assert read_rows(life) == rows
    found = index(life)
    assert found["watched"] == [[start, len(rows)]]
    assert "first" not in {f["which"] for f in found["videos"]}
    assert {"best", "worst"} <= {f["which"] for f in found["videos"]}
    assert all(f["exp"] >= start for f in found["videos"])
    check_videos(life, rows)


def test_an_index_of_something_else_is_begun_again(tmp_path):
    """No row depends on videos: a damaged index stops no lifetime."""
    folder = tmp_path / "_video"
    folder.mkdir()
    (folder / "index.json").write_text('{"videos": 3}')
    notes = []
    recorder = Recorder(LifetimeFolder(tmp_path), {}, 5, notes.append)
    assert "not an index of videos" in notes[0] and str(folder) in notes[0]
    assert recorder.watched == [[5, 5]] and not recorder.kept


def test_a_plan_carries_the_wish_to_its_workers(tmp_path):
    from dataclasses import replace

    plan = make_plan(RunSpec("toy/compass,steps=20", out=str(tmp_path / "x")))
    assert "--video" not in plan.command(plan.jobs[0])
    assert replace(plan, video=True).command(plan.jobs[0])[-1] == "--video"
    plan.save()
    assert load_plan(plan.path).video is False
    assert layout.VIDEO.startswith("_")  # pandas and others take the folder for no rows.
