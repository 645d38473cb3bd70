"""Meta-World's pictures wherever a state works: protocols, hidden goals, one-hots, demonstrations."""

from __future__ import annotations

import inspect
import os

import numpy as np
import pytest
from click.testing import CliRunner
from gymnasium import spaces

pytest.importorskip("metaworld")

from perdure.cli.main import main
from perdure.curricula.named import curriculum_of
from perdure.registry import suite
from perdure.seeds import seed_for
from perdure.specs import Spec
from perdure.store.run import Run
from perdure.suite import Episode
from perdure.suites.metaworld.protocols import CURRICULA
from perdure.types import Task

SUITE = suite("metaworld")
SIZE = 24


@pytest.fixture(scope="module", autouse=True)
def pictures_kept(tmp_path_factory):
    """Models and demonstrations are made once, away from the user's own; without graphics nothing
    can be tested here."""
    root = tmp_path_factory.getbasetemp()
    shared = root.parent if os.environ.get("PYTEST_XDIST_WORKER") else root
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERDURE_CACHE", str(shared / "perdure-cache"))
        env = SUITE.env(task())
        try:
            env.reset(seed=0)
        except Exception as e:
            pytest.skip(f"nothing can be drawn here: {e}")
        env.close()
        yield


def task(name: str = "reach", **params) -> Task:
    return Task("metaworld", name, params={"observation": "image", "size": SIZE, **params})


def test_every_protocol_can_show_pictures() -> None:
    for name, builder in CURRICULA.items():
        assert {"observation", "size", "camera"} <= set(inspect.signature(builder).parameters)
        plain = curriculum_of(Spec.parse(f"metaworld/{name}"))
        made = curriculum_of(
            Spec.parse(f"metaworld/{name},observation=image,size=30,camera=topview")
        )
        assert len(made.tasks) == len(plain.tasks)
        for one, other in zip(made.tasks, plain.tasks, strict=True):
            shown = {"observation": "image", "size": 30, "camera": "topview"}
            assert dict(one.params) == {**other.params, **shown}
            seen, _ = SUITE.spaces(one)
            image = seen["image"] if "one_hot" in one.params else seen
            assert image == spaces.Box(0, 255, (30, 30, 3), np.uint8)


def test_a_one_hot_stands_beside_the_picture() -> None:
    one = task(one_hot=[1, 3])
    env, batch = SUITE.env(one), SUITE.batched_env(one, 2)
    seen, _ = env.reset(seed=3)
    assert env.observation_space.contains(seen) and seen["task"].tolist() == [0, 1, 0]
    assert np.array_equal(batch.reset(1, Episode.alone(3))["image"], seen["image"])
    action = np.ones(4, np.float32)
    after, *_ = env.step(action)
    (both,), *_ = batch.step([1], [action])
    assert np.array_equal(both["image"], after["image"]) and env.observation_space.contains(both)
    env.close(), batch.close()


def test_a_hidden_goal_leaves_no_mark() -> None:
    for name in ("reach", "push"):
        shown, hidden = (SUITE.env(task(name, size=168, hide_goal=h)) for h in (False, True))
        pictures = [env.reset(seed=5)[0] for env in (shown, hidden)]
        differs = (pictures[0] != pictures[1]).any(axis=2).mean()
        assert 0 < differs < 0.05
        for env, before in zip((shown, hidden), pictures, strict=True):
            env.robot._target_pos = env.robot._target_pos + np.array([0.0, 0.0, 0.1])
            assert np.array_equal(env.render(), before) == (env is hidden)
            env.close()


def test_pictures_of_demonstrations_are_what_the_task_shows() -> None:
    states = SUITE.data(Task("metaworld", "reach", params={"demonstrations": 1}), True)
    seen = SUITE.data(task(demonstrations=1, one_hot=[0, 2], hide_goal=True), True)
    plain = SUITE.data(task(demonstrations=1), True)
    assert len(seen) == len(states) == len(plain)
    some = np.array([0, 7, 3])
    batch = seen.batch(some)
    assert np.array_equal(batch.targets, states.batch(some).targets)
    assert batch.inputs["image"].shape == (3, SIZE, SIZE, 3)
    assert batch.inputs["task"].tolist() == [[1, 0]] * 3
    assert SUITE.spaces(seen.task)[0]["image"].contains(batch.inputs["image"][0])
    # The first step of a demonstration is what the reset shows.
    env = SUITE.env(task(demonstrations=1))
    first, _ = env.reset(seed=seed_for(0, "demonstration", "reach", "learning", 0))
    assert np.array_equal(plain.inputs[0], first)
    env.close()


MINE = f"""
from perdure import *
from perdure.curricula import interleave

def bc() -> Curriculum:
    task = Task("metaworld", "reach", params={{
        "observation": "image", "size": {SIZE}, "demonstrations": 1, "horizon": 100}})
    block = learn(Exposure(task, 2, "epochs"))
    return Curriculum("bc", interleave([block], evaluate(Exposure(task, 5, "steps"))))
"""


@pytest.mark.parametrize(
    ("name", "agent"),
    [
        (
            f"metaworld/mt1,task=reach,observation=image,size={SIZE},steps=30,rounds=1,episodes=1,"
            "horizon=10",
            "sac,hidden=[8],batch=4,start=4,every=10,replay=100",
        ),
        ("mine.py:bc", "bc,hidden=[8]"),
    ],
    ids=["sac", "bc"],
)
def test_runs(name, agent, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    found = CliRunner().invoke(
        main, ["run", name, "-a", f"x={agent}", "-o", "run", "--executor", "serial", "-q"]
    )
    assert found.exit_code == 0, found.output
    rows = Run(tmp_path / "run").rows().to_pylist()
    assert any(r["kind"] == "learn" and np.isfinite(r["loss"] or np.nan) for r in rows)
    assert any(r["kind"] == "eval" for r in rows)
