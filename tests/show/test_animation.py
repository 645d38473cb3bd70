"""A looping picture of what was kept, from the videos of a run; and videos that show the life of a task."""

import io
import json

import pytest
from click.testing import CliRunner
from PIL import Image

import perdure
from perdure.cli.main import PURPOSES, main
from perdure.run.video import moments, videos_expected
from perdure.types import Curriculum, Exposure, Task, evaluate, learn


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("animated") / "run"
    args = [
        "run",
        "toy/compass,steps=60,episodes=2",
        "-a",
        "q",
        "-a",
        "random",
        "-n",
        "2",
        "--videos",
        "1",
    ]
    done = CliRunner().invoke(main, [*args, "--executor", "serial", "-o", str(out), "-q"])
    assert done.exit_code == 0, done.output
    return out


def life(order):
    tasks = {name: Task("toy", name) for name in dict.fromkeys(order)}
    played = evaluate(*(Exposure(t, 1) for t in tasks.values()))
    blocks = [played]
    for name in order:
        blocks += [learn(Exposure(tasks[name], 1)), played]
    return Curriculum("c", tuple(blocks))


def test_the_moments_of_a_tasks_life():
    # Blocks: 0 evaluates, 1 learns a, 2 evaluates, 3 learns b, … 8 evaluates last.
    found = moments(life("abcd"))
    assert found["toy/a"] == {0: "before", 2: "learned", 6: "later", 8: "end"}
    assert found["toy/b"] == {0: "before", 4: "learned", 8: "end"}
    assert found["toy/d"] == {0: "before", 8: "learned"}
    # A task that is learned again: what counts is the last time.
    assert moments(life("aba"))["toy/a"] == {0: "before", 6: "learned"}
    assert videos_expected(life("ab")) == 2 * 3 + 2 + 1


def test_only_some_lifetimes_are_recorded(run):
    assert (run / "q/0/_video/index.json").exists() and not (run / "q/1/_video").exists()
    videos = json.loads((run / "q/0/_video/index.json").read_text())["videos"]
    own = {f["which"]: f for f in videos if f["task"] == "toy/goal-ne"}
    assert own["before"]["block"] == 0 and own["learned"]["block"] == 2 and own["end"]["block"] == 6
    # The same episode at each moment.
    assert len({own[w]["seed"] for w in ("before", "learned", "end")}) == 1
    assert all(f["frames"] / f["fps"] >= 2.9 for f in videos), "too short to be followed"


def test_the_animation_loops_and_is_small(run, tmp_path):
    out = tmp_path / "kept.gif"
    done = CliRunner().invoke(
        main, ["animate", str(run), "-a", "q", "-a", "random", "-o", str(out)]
    )
    assert done.exit_code == 0, done.output
    assert out.stat().st_size < 3_000_000
    picture = Image.open(io.BytesIO(out.read_bytes()))
    assert picture.is_animated and picture.info["loop"] == 0
    wrong = CliRunner().invoke(main, ["animate", str(run), "-a", "p", "-o", str(out)])
    assert wrong.exit_code == 2


def test_an_animation_needs_videos(tmp_path):
    bare = perdure.experiment(
        "toy/compass,steps=20,episodes=1", ["q"], out=str(tmp_path / "bare"), executor="serial"
    )
    done = CliRunner().invoke(main, ["animate", str(bare.path), "-o", str(tmp_path / "x.gif")])
    assert done.exit_code == 2 and "--videos 1" in done.output


def test_commands_are_listed_by_purpose():
    text = CliRunner().invoke(main, ["--help"]).output
    for title, names in PURPOSES.items():
        there = [n for n in names if n in main.commands]
        assert f"\n{title}:\n" in text and there
    assert all(f"\n  {name} " in text for name in main.commands)
    assert text.index("\nRun:") < text.index("\nLook:") < text.index("\nMeasure:")
