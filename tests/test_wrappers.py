"""Wrappers by name in a task, joined bounds, and padding, as a user would run them."""

from __future__ import annotations

import re

import gymnasium
import numpy as np
import pytest
from click.testing import CliRunner
from gymnasium import spaces

from perdure.cli.main import main
from perdure.errors import CurriculumError, PerdureError, UnknownName
from perdure.padding import PadAction, PadObservation
from perdure.registry import suite_of
from perdure.run.guards import Observer
from perdure.run.validate import resolve, validate
from perdure.run.vector import Environments
from perdure.shared_spaces import padded
from perdure.spaces import joined
from perdure.store.run import Run
from perdure.suite import Episode
from perdure.testing import check_task
from perdure.types import Curriculum, Exposure, Task, learn
from perdure.wrappers import NAMES, SpacesOnly


def cartpole(*wrappers: str, **params) -> Task:
    return Task("gym", "CartPole-v1", params={"wrappers": list(wrappers), **params})


def spaces_of(task: Task):
    return suite_of(task).spaces(task)


def sequence(*tasks: Task) -> Curriculum:
    return Curriculum("some", (learn(*(Exposure(t, 1) for t in tasks)),))


# By name.


def test_wrappers_are_put_on_from_the_innermost_and_a_seed_still_decides() -> None:
    task = cartpole(
        "PadObservation,to=6", "FrameStackObservation,stack_size=2", "ReshapeObservation,shape=[12]"
    )
    seen, done = spaces_of(task)
    assert seen.shape == (12,) and done == spaces.Discrete(2)
    env = suite_of(task).env(task)
    obs, _ = env.reset(seed=3)
    plain, _ = gymnasium.make("CartPole-v1").reset(seed=3)
    assert np.array_equal(obs, np.tile(np.pad(plain, (0, 2)), 2))
    check_task(suite_of(task), task)
    # Wrapped, it is another task, and an unwrapped one is as before.
    assert task.key != Task("gym", "CartPole-v1").key
    assert suite_of(task).batched_env(task, 2) is None
    assert suite_of(task).batched_env(Task("gym", "CartPole-v1"), 2) is not None
    one, other = sequence(task), sequence(Task("gym", "CartPole-v1"))
    assert one.fingerprint != other.fingerprint


def test_what_a_wrapper_remembers_is_not_lost_in_a_checkpoint() -> None:
    """The environment within can save itself, but not the frames: the episode is played again."""
    plain, wrapped = (
        Task("toy", "drift"),
        Task("toy", "drift", params={"wrappers": ["DelayObservation,delay=2"]}),
    )
    observer = Observer(spaces_of(plain)[0], "environment")
    for task, saves in ((plain, True), (wrapped, False)):
        envs = Environments([(suite_of(task), task)], 1, observer, spaces_of(task)[1])
        episode = Episode.alone(4)
        envs.reset(0, episode)
        actions = [0, 1, 0, 1, 1]
        for action in actions:
            last = envs.step([0], [action])[0][0]
        assert envs.restorable(0) == saves
        saved = envs.save(0, actions)
        envs.step([0], [actions[0]])
        obs, _ = envs.restore(0, episode, saved)
        assert saves or np.array_equal(obs, last)
        envs.close()


def test_pictures_of_any_environment() -> None:
    pytest.importorskip("pygame")
    pytest.importorskip("cv2")
    task = cartpole(
        "AddRenderObservation", "ResizeObservation,shape=[40, 60]", render_mode="rgb_array"
    )
    assert spaces_of(task)[0] == spaces.Box(0, 255, (40, 60, 3), np.uint8)
    check_task(suite_of(task), task)


@pytest.mark.parametrize(
    ("wrappers", "error", "words"),
    [
        (["FlatenObservation"], UnknownName, "did you mean 'FlattenObservation'"),
        (["NormalizeObservation"], CurriculumError, "statistics from one episode to the next"),
        (["PadObservation,to=2"], CurriculumError, r"'to' must be at least \[4\], got 2"),
        (["PadObservation,size=2"], UnknownName, "it takes: env, to"),
        (["PadObservation"], PerdureError, "missing a required argument: 'to'"),
        (["GrayscaleObservation"], CurriculumError, "cannot be put around observations in Box"),
        ("FlattenObservation", CurriculumError, "must be a list such as"),
        ([{"name": "TimeLimit"}], CurriculumError, "NAME"),
    ],
)  # fmt: skip
def test_what_cannot_be_wrapped_says_why(wrappers, error, words) -> None:
    task = Task("gym", "CartPole-v1", params={"wrappers": wrappers})
    with pytest.raises(error, match=words):
        spaces_of(task)
    with pytest.raises(CurriculumError, match=f"block 0 .*{words}"):
        validate(sequence(task))


def test_all_names_are_there() -> None:
    assert {"FlattenObservation", "FrameStackObservation", "PadObservation", "PadAction"} <= set(
        NAMES
    )


MINE = """
import gymnasium
from perdure import *
from perdure.curricula import interleave
from perdure.shared_spaces import padded

class Half(gymnasium.ObservationWrapper):
    def __init__(self, env, factor=0.5):
        super().__init__(env)
        self.factor = factor
    def observation(self, obs):
        return obs * type(obs.flat[0])(self.factor)

def own() -> Curriculum:
    task = Task("gym", "CartPole-v1", params={"wrappers": [
        "mine.py:Half,factor=0.25", "DtypeObservation,dtype=float64"]})
    return Curriculum("own", interleave([learn(Exposure(task, 60, "steps"))], evaluate(Exposure(task, 1))))

def bounds() -> Curriculum:
    tasks = [Task("gym", "MountainCar-v0", f"within{m}", {"wrappers": [
        f"RescaleObservation,min_obs=-{m}.0,max_obs={m}.0", "TimeLimit,max_episode_steps=9"]}) for m in (1, 3)]
    return Curriculum("bounds", interleave([learn(Exposure(t, 30, "steps")) for t in tasks],
                                           evaluate(*(Exposure(t, 1) for t in tasks))))

def sizes() -> Curriculum:
    tasks = padded([Task("gym", "CartPole-v1"), Task("gym", "Acrobot-v1", params={"max_episode_steps": 20})])
    return Curriculum("sizes", interleave([learn(Exposure(t, 30, "steps")) for t in tasks],
                                          evaluate(*(Exposure(t, 1) for t in tasks))))

def unpadded() -> Curriculum:
    return Curriculum("x", (learn(*(Exposure(Task("gym", n), 1) for n in ("CartPole-v1", "Acrobot-v1"))),))
"""


def run(tmp_path, *arguments: str):
    (tmp_path / "mine.py").write_text(MINE)
    executor = ["--executor", "serial"]
    if "mine.py:bounds" in arguments:
        executor[1] = "processes,workers=1"  # Which plans nothing itself.
    return CliRunner().invoke(main, ["run", *arguments, "-o", "run", *executor, "-q"])


@pytest.mark.parametrize(
    ("name", "tasks"),
    [
        ("mine.py:own", {"CartPole-v1"}),
        ("mine.py:sizes", {"CartPole-v1", "Acrobot-v1"}),
        ("mine.py:bounds", {"MountainCar-v0"}),
        ('gym/sequence,tasks=["Taxi-v4","FrozenLake-v1"],steps=20,episodes=1', {"Taxi-v4", "FrozenLake-v1"}),
    ],
)  # fmt: skip
def test_runs_and_goes_on(name, tasks, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = run(tmp_path, name, "-a", "q", "--checkpoint", "7")
    assert found.exit_code == 0, found.output
    rows = Run(tmp_path / "run").rows().to_pylist()
    assert {r["task"].rpartition("/")[2] for r in rows} == tasks
    assert {r["kind"] for r in rows} == {"learn", "eval"}


def test_different_sizes_are_refused_with_the_way_out(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = run(tmp_path, "mine.py:unpadded", "-a", "q")
    assert found.exit_code == 2
    assert re.search(
        r"Acrobot-v1 is not that of gym/CartPole-v1: it is Box.*not Box.*shared_spaces\.padded\(tasks\)",
        found.output,
    )


# Bounds.


def box(low: float, high: float, shape=(2,), dtype=np.float32) -> spaces.Box:
    return spaces.Box(low, high, shape, dtype)


def test_what_is_seen_is_joined_and_what_is_done_is_not() -> None:
    one, other = (
        Task(
            "gym",
            "MountainCar-v0",
            f"within{m}",
            {"wrappers": [f"RescaleObservation,min_obs=-{m}.0,max_obs={m}.0"]},
        )
        for m in (1, 3)
    )
    assert spaces_of(one)[0] != spaces_of(other)[0]
    both = sequence(one, other)
    seen = validate(both).observation_space
    assert seen == spaces_of(other)[0] == resolve(both, joins=True).observation_space
    pendulum = Task("gym", "Pendulum-v1")
    scaled = Task(
        "gym",
        "Pendulum-v1",
        "scaled",
        {"wrappers": ["RescaleAction,min_action=-1.0,max_action=1.0"]},
    )
    with pytest.raises(CurriculumError, match=r"action space .*padded\(tasks\)"):
        validate(sequence(pendulum, scaled))
    validate(sequence(*padded([pendulum, scaled])))


def test_joined_spaces() -> None:
    assert joined(box(0, 1), box(-1, 0.5)) == box(-1, 1)
    assert joined(box(0, 1), box(0, 1, (3,))) is None
    assert joined(box(0, 1), box(0, 1, dtype=np.float64)) is None
    assert joined(box(0, 1), spaces.Discrete(2)) is None
    assert joined(spaces.Discrete(2), spaces.Discrete(5)) == spaces.Discrete(5)
    assert joined(spaces.Discrete(2), spaces.Discrete(5, start=1)) is None
    many = joined(spaces.MultiDiscrete([2, 5]), spaces.MultiDiscrete([4, 3]))
    assert many == spaces.MultiDiscrete([4, 5])
    pair = spaces.Dict({"a": box(0, 1), "b": spaces.Tuple((spaces.Discrete(2),))})
    wider = spaces.Dict({"a": box(0, 2), "b": spaces.Tuple((spaces.Discrete(3),))})
    assert joined(pair, wider) == wider
    assert joined(pair, spaces.Dict({"a": box(0, 2)})) is None


# Padding.


def test_padded_observations_and_actions() -> None:
    image = SpacesOnly(spaces.Box(0, 255, (2, 3, 3), np.uint8), box(-2, 2))
    env = PadAction(PadObservation(image, [4, 4, 3]), 3)
    seen = env.env.observation(np.full((2, 3, 3), 7, np.uint8))
    assert env.observation_space.contains(seen) and seen.sum() == 7 * 18 and seen[2:].sum() == 0
    assert env.action(np.array([1.0, 2.0, 9.0], np.float32)).tolist() == [1.0, 2.0]
    assert env.action_space.contains(env.demonstrated(np.array([2, -2], np.float32)))
    few = PadAction(SpacesOnly(spaces.Discrete(3, start=1), spaces.Discrete(3, start=1)), 5)
    assert [few.action(a) for a in range(1, 6)] == [1, 2, 3, 1, 2]
    several = PadAction(SpacesOnly(box(0, 1), spaces.MultiDiscrete([2, 3])), [4, 3, 2])
    assert several.action(np.array([3, 2, 1])).tolist() == [1, 2]
    assert several.demonstrated(np.array([1, 2])).tolist() == [1, 2, 0]
    for wrong in ([2, 3], [4, 2, 9], 7):
        with pytest.raises(ValueError, match="PadAction"):
            PadAction(SpacesOnly(box(0, 1), spaces.MultiDiscrete([2, 3, 4])), wrong)
    with pytest.raises(ValueError, match="put FlattenObservation before it"):
        PadObservation(SpacesOnly(spaces.Dict({"a": box(0, 1)}), spaces.Discrete(2)), 4)


def test_padded_tasks_share_their_spaces() -> None:
    tasks = [Task("gym", n) for n in ("CartPole-v1", "Acrobot-v1", "MountainCar-v0")]
    made = padded(tasks)
    resolved = validate(sequence(*made))
    assert resolved.observation_space.shape == (6,) and resolved.action_space == spaces.Discrete(3)
    assert dict(made[1].params) == {}
    again = padded(made)
    assert [t.key for t in again] == [t.key for t in made]
    with pytest.raises(CurriculumError, match="padded: the action spaces"):
        padded([tasks[0], Task("gym", "Pendulum-v1")])
    assert padded([]) == []


def test_data_are_shown_as_the_wrappers_say() -> None:
    params = {"observation": "Box", "action": "MultiDiscrete"}
    plain = Task("toy", "cue", params=params)
    wide = Task(
        "toy",
        "cue",
        params={**params, "wrappers": ["PadObservation,to=5", "PadAction,to=[2, 3, 4]"]},
    )
    one, other = (suite_of(t).data(t, True).batch(np.arange(6)) for t in (plain, wide))
    assert np.array_equal(other.inputs, np.pad(one.inputs, ((0, 0), (0, 3))))
    assert np.array_equal(other.targets, np.pad(one.targets, ((0, 0), (0, 1))))
    seen, done = spaces_of(wide)
    assert all(seen.contains(x) for x in other.inputs) and all(
        done.contains(a) for a in other.targets
    )
    # A task of data alone has nothing to play, but spaces.
    blobs = Task("toy", "blobs", params={"wrappers": ["PadObservation,to=3"]})
    assert spaces_of(blobs)[0].shape == (3,)
    assert suite_of(blobs).data(blobs, True).batch(np.arange(2)).inputs.shape == (2, 3)
    stacked = Task("toy", "cue", params={"wrappers": ["FrameStackObservation,stack_size=2"]})
    with pytest.raises(CurriculumError, match="needs episodes"):
        suite_of(stacked).data(stacked, True)
    flat = Task("toy", "cue", params={"observation": "Dict", "wrappers": ["FlattenObservation"]})
    assert suite_of(flat).data(flat, True).batch(np.arange(3)).inputs.shape == (3, 1201)
