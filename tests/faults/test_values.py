"""What may pass between agent and environment: anything else is refused with what was expected
and what was got, never clipped, cast or logged. Through the loop itself, whose hot path has its
own shortcuts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from lives import Quiet

from perdure.errors import AgentFault, EnvironmentFault
from perdure.run.config import LifetimeConfig
from perdure.run.loop import LifetimeLoop
from perdure.store.log import Lifetime, LifetimeLog
from perdure.suite import Suite
from perdure.types import Context, Curriculum, Examples, Exposure, Setup, Task, evaluate, learn

NAN, INF = float("nan"), float("inf")
DISCRETE, BOX = spaces.Discrete(3, start=1), spaces.Box(-1.0, 1.0, (2,), np.float32)
OPEN = spaces.Box(-np.inf, np.inf, (2,), np.float32)
PIXELS = spaces.Box(0, 255, (2,), np.uint8)
NESTED = spaces.Dict({"a": OPEN, "b": spaces.Discrete(2)})
AT = 3
"""The step (or episode) at which things go wrong: the loop is warm by then."""


class Thing:
    """Neither a number nor an array, under the same name in every process."""

    def __repr__(self) -> str:
        return "thing"


USUAL = Thing()


class Honest(gymnasium.Env[Any, Any]):
    """Right in all but one value, from one step on."""

    def __init__(
        self, observation_space: Any, action_space: Any, what: str = "", value: Any = None
    ) -> None:
        self.observation_space, self.action_space = observation_space, action_space
        self.what, self.value, self.steps, self.resets = what, value, 0, 0

    def _right(self) -> Any:
        zeros = np.zeros(2, np.float32)
        space = self.observation_space
        if isinstance(space, spaces.Dict):
            return {"a": zeros, "b": np.int64(0)}
        return space.start if isinstance(space, spaces.Discrete) else zeros.astype(space.dtype)

    def reset(self, **keys: Any) -> Any:
        super().reset(**keys)
        self.resets += 1
        wrong = self.what == "reset" and self.resets == AT
        return (self.value if wrong else self._right()), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        values = {
            "observation": self._right(),
            "reward": 1.0,
            "terminated": False,
            "truncated": self.steps % 2 == 0,
            "info": {},
        }
        if self.steps >= AT and self.what in values:
            values[self.what] = self.value
        return tuple(values.values()) if self.what != "tuple" else self.value


class Scripted(Quiet):
    """Acts rightly until it does not."""

    def __init__(self, setup: Setup, actions: Any = USUAL) -> None:
        super().__init__(setup)
        self.actions, self.calls = actions, 0

    def act(self, obs: Any, ctx: Context) -> Any:
        self.calls += 1
        n = len(ctx.slots)
        if self.calls >= AT and self.actions is not USUAL:
            return self.actions
        if isinstance(self.setup.action_space, spaces.Discrete):
            return np.full(n, self.setup.action_space.start)
        return np.zeros((n, 2), self.setup.action_space.dtype)


class Labelled:
    """Twenty points in batches of four."""

    batch_size = 4

    def __init__(self) -> None:
        self.inputs = np.zeros((20, 2), np.float32)

    def __len__(self) -> int:
        return len(self.inputs)

    def batch(self, indices: Any) -> Examples:
        return Examples(self.inputs[indices], np.ones(len(indices), int))


def live(
    folder: Path,
    env: Callable[[], Any],
    agent: type[Quiet] = Scripted,
    learning: bool = True,
    unit: Any = "steps",
    data: Any = None,
    **params: Any,
) -> None:
    """A life of one block, on two environments or on data."""

    class One(Suite):
        name = "one"

        def tasks(self) -> Sequence[Task]:
            return [Task("one", "task")]

        def env(self, task: Task) -> Any:
            return env()

        def data(self, task: Task, learning: bool) -> Any:
            return data or Labelled()

    sample = env()
    task = Task("one", "task")
    block = (learn if learning else evaluate)(Exposure(task, 20, unit))
    config = LifetimeConfig(
        Curriculum("one/life", (block,)),
        {"one": One()},
        sample.observation_space,
        sample.action_space,
        seed=1,
        envs=2,
    )
    with LifetimeLog(folder, "scripted", 1) as log:
        LifetimeLoop(config, agent(config.setup(), **params), log).run()


def refused(folder: Path, error: type[Exception], *words: str, **keys: Any) -> str:
    with pytest.raises(error) as caught:
        live(folder, **keys)
    text = str(caught.value)
    for word in words:
        assert word in text, f"{word!r} is not in {text!r}"
    assert not Lifetime.read(folder).commits, "nothing was committed"
    return text


both = pytest.mark.parametrize("learning", [True, False], ids=["learn", "eval"])


@pytest.mark.parametrize("observation_space", [BOX, DISCRETE, OPEN, PIXELS, NESTED], ids=str)
@pytest.mark.parametrize("action_space", [BOX, DISCRETE, OPEN], ids=str)
@both
def test_what_is_right_passes(
    observation_space: Any, action_space: Any, learning: bool, tmp_path: Path
) -> None:
    live(tmp_path, lambda: Honest(observation_space, action_space), learning=learning)


@both
@pytest.mark.parametrize(
    "reward",
    [NAN, INF, -INF, np.float32(NAN), np.float64(INF), np.array(NAN), None, "1", b"1", [1.0, 2.0]],
    ids=repr,
)
def test_rewards(reward: Any, learning: bool, tmp_path: Path) -> None:
    """In evaluation too: the agent does not see it, the table would."""
    refused(
        tmp_path,
        EnvironmentFault,
        "one/task.step",
        "expected a finite number as reward",
        f"got {type(reward).__name__}" if not isinstance(reward, np.ndarray) else "got array",
        env=lambda: Honest(BOX, DISCRETE, "reward", reward),
        learning=learning,
    )


@pytest.mark.parametrize("reward", [1, np.float32(0.5), np.int64(3), True], ids=repr)
def test_numbers_are_rewards(reward: Any, tmp_path: Path) -> None:
    live(tmp_path, lambda: Honest(BOX, DISCRETE, "reward", reward))


F32 = np.float32
OBSERVATIONS = [
    (OPEN, np.array([NAN, 0], F32)),
    (OPEN, np.array([0, INF], F32)),
    (OPEN, np.array([INF, -INF], F32)),
    (OPEN, np.array([1e300, 0.0])),
    (BOX, np.array([NAN, 0.0])),
    (BOX, [NAN, 0.0]),
    (BOX, np.zeros(3, F32)),
    (BOX, np.zeros((2, 1), F32)),
    (BOX, F32(0)),
    (BOX, np.array(["a", "b"])),
    (BOX, np.array([None, None])),
    (BOX, np.zeros(2, complex)),
    (BOX, [[0.0], [0.0, 1.0]]),
    (BOX, None),
    (PIXELS, np.zeros(2, F32)),
    (PIXELS, np.array([0.5, 0.5])),
    (DISCRETE, 1.5),
    (DISCRETE, "1"),
    (DISCRETE, np.zeros(2, int)),
    (DISCRETE, None),
    (NESTED, {"a": np.zeros(2, F32)}),
    (NESTED, {"a": np.array([NAN, 0], F32), "b": np.int64(0)}),
    (NESTED, {"a": np.array([INF, 0], F32), "b": np.int64(0)}),
    (NESTED, {"a": np.zeros(3, F32), "b": np.int64(0)}),
    (NESTED, {"a": np.zeros(2, F32), "b": np.int64(7)}),
    (NESTED, np.zeros(2, F32)),
]


@both
@pytest.mark.parametrize("what", ["observation", "reset"])
@pytest.mark.parametrize(("space", "value"), OBSERVATIONS, ids=repr)
@pytest.mark.filterwarnings("ignore:overflow")
def test_observations(space: Any, value: Any, what: str, learning: bool, tmp_path: Path) -> None:
    refused(
        tmp_path,
        EnvironmentFault,
        f"one/task.{'step' if what == 'observation' else 'reset'}",
        "observation",
        "expected",
        "got",
        env=lambda: Honest(space, DISCRETE, what, value),
        learning=learning,
    )


@both
@pytest.mark.parametrize("what", ["terminated", "truncated"])
@pytest.mark.parametrize("flag", [1, 0, 0.0, "no", None, NAN, np.array([True])], ids=repr)
def test_flags(flag: Any, what: str, learning: bool, tmp_path: Path) -> None:
    refused(
        tmp_path,
        EnvironmentFault,
        f"expected {what} to be True or False",
        "got",
        env=lambda: Honest(BOX, DISCRETE, what, flag),
        learning=learning,
    )


def test_numpy_booleans_are_flags(tmp_path: Path) -> None:
    live(tmp_path, lambda: Honest(BOX, DISCRETE, "terminated", np.bool_(True)))


@pytest.mark.parametrize("info", [[1], "text", 3], ids=repr)
def test_infos(info: Any, tmp_path: Path) -> None:
    refused(
        tmp_path,
        EnvironmentFault,
        "one/task.step",
        "info",
        "got",
        env=lambda: Honest(BOX, DISCRETE, "info", info),
    )


@pytest.mark.parametrize(
    "info", [{"success": "yes"}, {"success": [1, 2]}, {"measures": 3}, {"measures": {"x": "y"}}]
)
def test_measures_in_infos(info: Any, tmp_path: Path) -> None:
    words = ("one/task.step", "info", "got")
    refused(tmp_path, EnvironmentFault, *words, env=lambda: Honest(BOX, DISCRETE, "info", info))


@pytest.mark.parametrize("value", [(), (1, 2, 3, 4), None, 3], ids=repr)
def test_steps_that_give_no_five_things(value: Any, tmp_path: Path) -> None:
    words = ("one/task.step", "5" if isinstance(value, tuple) else "unpack")
    refused(tmp_path, EnvironmentFault, *words, env=lambda: Honest(BOX, DISCRETE, "tuple", value))


ACTIONS = [
    (DISCRETE, np.array([1, 4]), "actions from 1 to 3"),
    (DISCRETE, np.array([0, 1]), "actions from 1 to 3"),
    (DISCRETE, [1, 99], "actions from 1 to 3"),
    (DISCRETE, np.array([1]), "2"),
    (DISCRETE, [1, 1, 1], "2"),
    (DISCRETE, [], "2"),
    (DISCRETE, np.array([[1], [1]]), "2"),
    (DISCRETE, np.array([1.0, 1.0]), "whole numbers"),
    (DISCRETE, [1, 1.5], "whole numbers"),
    (DISCRETE, np.array([1.0, NAN]), "whole numbers"),
    (DISCRETE, [1, NAN], "whole numbers"),
    (DISCRETE, np.array([True, True]), "whole numbers"),
    (DISCRETE, [True, True], "whole numbers"),
    (DISCRETE, ["1", "1"], "whole numbers"),
    (DISCRETE, [None, None], "whole numbers"),
    (DISCRETE, "11", "2"),
    (DISCRETE, 1, "2"),
    (DISCRETE, None, "2"),
    (DISCRETE, np.array(1), "2"),
    (DISCRETE, Thing(), "2"),
    (DISCRETE, {1: 1, 2: 2}, "2"),
    (BOX, np.array([[0, NAN], [0, 0]]), "finite"),
    (BOX, np.array([[0, INF], [0, 0]]), "finite"),
    (BOX, np.array([[0, 1.5], [0, 0]]), "within"),
    (BOX, np.array([[0, 0], [-1.01, 0]]), "within"),
    (BOX, np.zeros((2, 3)), "(2, 2)"),
    (BOX, np.zeros((1, 2)), "(2, 2)"),
    (BOX, np.zeros(2), "(2, 2)"),
    (BOX, [[0.0], [0.0, 0.0]], "2"),
    (BOX, np.array([["0", "0"], ["0", "0"]]), "(2, 2)"),
    (BOX, np.zeros((2, 2), bool), "(2, 2)"),
    (BOX, np.zeros((2, 2), complex), "(2, 2)"),
    (BOX, None, "(2, 2)"),
    (OPEN, np.array([[0, INF], [0, 0]]), "finite"),
    (OPEN, np.array([[0, NAN], [0, 0]]), "finite"),
    (OPEN, np.array([[0, 1e300], [0, 0]]), "finite"),
    (PIXELS, np.array([[0.5, 0], [0, 0]]), "(2, 2)"),
    (PIXELS, np.array([[0, 256], [0, 0]]), "within"),
]


@both
@pytest.mark.parametrize(("space", "actions", "expected"), ACTIONS, ids=repr)
def test_actions(space: Any, actions: Any, expected: str, learning: bool, tmp_path: Path) -> None:
    text = refused(
        tmp_path,
        AgentFault,
        "Scripted.act: expected",
        expected,
        str(space),
        env=lambda: Honest(BOX, space),
        learning=learning,
        actions=actions,
    )
    assert "got" in text


@pytest.mark.parametrize(
    ("space", "actions"),
    [(DISCRETE, [1, np.int64(3)]), (DISCRETE, (2, 2)), (BOX, [[0, 0], [1, -1]])],
    ids=repr,
)
def test_sequences_are_actions(space: Any, actions: Any, tmp_path: Path) -> None:
    live(tmp_path, lambda: Honest(BOX, space), actions=actions)


@pytest.mark.parametrize("unit", ["steps", "batches"])
@pytest.mark.parametrize("measures", [[1.0], "loss", {"loss": "low"}, {"loss": None}], ids=repr)
def test_measures_of_learning(measures: Any, unit: Any, tmp_path: Path) -> None:
    class Boaster(Scripted):
        def learn(self, batch: Any, ctx: Context) -> Any:
            return measures

    words = ("Boaster.learn", "expected", "got")
    env = lambda: Honest(BOX, DISCRETE)  # noqa: E731
    refused(tmp_path, AgentFault, *words, env=env, agent=Boaster, unit=unit)


@both
def test_data(learning: bool, tmp_path: Path) -> None:
    data = Labelled()
    data.inputs[5, 0] = np.nan
    words = ("data of one/task", "expected finite inputs", "batch")
    env = lambda: Honest(BOX, DISCRETE)  # noqa: E731
    keys = {"env": env, "unit": "batches", "learning": learning}
    live(tmp_path / "right", **keys, data=Labelled())
    refused(tmp_path / "wrong", EnvironmentFault, *words, **keys, data=data)


def test_labels_are_actions_too(tmp_path: Path) -> None:
    words = ("Scripted.act", "expected actions from 1 to 3", "got")
    env = lambda: Honest(BOX, DISCRETE)  # noqa: E731
    keys = {"env": env, "unit": "batches", "learning": False}
    refused(tmp_path, AgentFault, *words, **keys, actions=[1, 2, 3, 4])


@pytest.mark.parametrize(
    "state",
    [[1], {"a": Thing()}, {"a": [Thing()]}, {1: np.zeros(2)}, {"a": {"b": 1}}, 3],
    ids=repr,
)
def test_states(state: Any, tmp_path: Path) -> None:
    class Odd(Scripted):
        def state(self) -> Any:
            return state

    refused(
        tmp_path, AgentFault, "Odd", "state()", "got", env=lambda: Honest(BOX, DISCRETE), agent=Odd
    )
