"""TELLA's agents under Perdure: the same callbacks in the same order as under TELLA itself."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from perdure import registry
from perdure.agents.adapters import _standins
from perdure.agents.adapters.tella import TellaAgent
from perdure.errors import AgentFault, PerdureError, SpecError, UnknownName
from perdure.run.config import LifetimeConfig
from perdure.run.loop import LifetimeLoop
from perdure.store.log import LifetimeLog
from perdure.types import (
    Context,
    Curriculum,
    Examples,
    Exposure,
    Setup,
    Task,
    adapt,
    evaluate,
    learn,
)

REAL = os.environ.get("PERDURE_TELLA_PYTHON", "")
"""A Python with tella 2.1.0, if there is one: then the recordings below are made anew."""

AGENT = """\
import typing

import gym
import tella
from tella.agents import ContinualRLAgent
from tella.curriculum import Action, Observation, Transition


class Scribe(ContinualRLAgent):
    # Ends its episodes after uneven numbers of steps and writes down whatever it is told.

    def __init__(self, rng_seed, observation_space, action_space, num_envs, config_file=None):
        super().__init__(rng_seed, observation_space, action_space, num_envs, config_file)
        assert isinstance(action_space, gym.spaces.Discrete)
        self.trace = []
        self.episodes = [0] * num_envs

    def write(self, *words):
        self.trace.append(" ".join(str(w) for w in words))

    def block_start(self, is_learning_allowed):
        assert self.is_learning_allowed is is_learning_allowed
        self.write("block", is_learning_allowed)

    def block_end(self, is_learning_allowed):
        self.write("end block", is_learning_allowed)

    def task_start(self, task_name):
        self.write("task", task_name)

    def task_end(self, task_name):
        self.write("end task", task_name)

    def task_variant_start(self, task_name, variant_name):
        self.write("variant", task_name, variant_name)

    def task_variant_end(self, task_name, variant_name):
        self.write("end variant", task_name, variant_name)

    def choose_actions(
        self, observations: typing.List[typing.Optional[Observation]]
    ) -> typing.List[typing.Optional[Action]]:
        assert len(observations) == self.num_envs
        self.write("?", *("-" if o is None else f"{o[0]:g}" for o in observations))
        return [
            None if o is None else int(o[0] >= (i + self.episodes[i]) % 3 + i)
            for i, o in enumerate(observations)
        ]

    def receive_transitions(self, transitions: typing.List[typing.Optional[Transition]]):
        assert len(transitions) == self.num_envs
        words = []
        for i, t in enumerate(transitions):
            if t is None:
                words.append("-")
                continue
            assert isinstance(t, Transition)
            reward = "~" if t.reward is None else f"{t.reward:g}"
            end = "!" if t.done else ""
            words.append(f"{t.observation[0]:g}:{t.action}:{reward}:{t.next_observation[0]:g}{end}")
            self.episodes[i] += bool(t.done)
        self.write("!", *words)


if __name__ == "__main__":
    tella.rl_cli(Scribe)
"""

RECORD = """\
import json
import sys
import tempfile

import gym
import numpy as np
from agent import Scribe
from tella.curriculum import AbstractCurriculum, EvalBlock, LearnBlock, TaskBlock, TaskVariant
from tella.experiment import run


class Until(gym.Env):
    def __init__(self):
        self.observation_space = gym.spaces.Box(0, 100, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def seed(self, seed=None):
        return [seed]

    def reset(self):
        self.t = 0
        return np.array([0], np.float32)

    def step(self, action):
        self.t += 1
        return np.array([self.t], np.float32), self.t / 2, bool(action), {}


def variant(label, name, **limit):
    return TaskVariant(Until, rng_seed=1, task_label=label, variant_label=name, **limit)


class Lesson(AbstractCurriculum):
    def learn_blocks_and_eval_blocks(self):
        first = [variant("T-v0", "a", num_episodes=4), variant("T-v0", "b", num_steps=10)]
        second = [variant("U-v0", "Default", num_episodes=2)]
        yield LearnBlock([TaskBlock("T-v0", first), TaskBlock("U-v0", second)])
        yield EvalBlock([TaskBlock("T-v0", [variant("T-v0", "a", num_steps=4)])])
        yield LearnBlock([TaskBlock("U-v0", [variant("U-v0", "Default", num_steps=2)])])


if __name__ == "__main__":
    envs = int(sys.argv[1])
    env = Until()
    agent = Scribe(1, env.observation_space, env.action_space, envs)
    run(agent, Lesson(0), render=False, log_dir=tempfile.mkdtemp(), num_envs=envs)
    print(json.dumps(agent.trace))
"""

TOLD = {
    1: """\
block True
task T-v0
variant T-v0 a
? 0
! 0:1:0.5:1!
? 0
! 0:0:0.5:1
? 1
! 1:1:1:2!
? 0
! 0:0:0.5:1
? 1
! 1:0:1:2
? 2
! 2:1:1.5:3!
? 0
! 0:1:0.5:1!
end variant T-v0 a
variant T-v0 b
? 0
! 0:0:0.5:1
? 1
! 1:1:1:2!
? 0
! 0:0:0.5:1
? 1
! 1:0:1:2
? 2
! 2:1:1.5:3!
? 0
! 0:1:0.5:1!
? 0
! 0:0:0.5:1
? 1
! 1:1:1:2!
? 0
! 0:0:0.5:1
? 1
! 1:0:1:2
end variant T-v0 b
end task T-v0
task U-v0
variant U-v0 Default
? 0
! 0:0:0.5:1
? 1
! 1:0:1:2
? 2
! 2:1:1.5:3!
? 0
! 0:1:0.5:1!
end variant U-v0 Default
end task U-v0
end block True
block False
task T-v0
variant T-v0 a
? 0
! 0:0:~:1
? 1
! 1:1:~:2!
? 0
! 0:0:~:1
? 1
! 1:0:~:2
end variant T-v0 a
end task T-v0
end block False
block True
task U-v0
variant U-v0 Default
? 0
! 0:0:0.5:1
? 1
! 1:0:1:2
end variant U-v0 Default
end task U-v0
end block True
""",
    3: """\
block True
task T-v0
variant T-v0 a
? 0 0 0
! 0:1:0.5:1! 0:0:0.5:1 0:0:0.5:1
? 0 1 1
! 0:0:0.5:1 1:0:1:2 1:0:1:2
? 1 2 2
! 1:1:1:2! 2:1:1.5:3! 2:0:1.5:3
? - - 3
! - - 3:0:2:4
? - - 4
! - - 4:1:2.5:5!
end variant T-v0 a
variant T-v0 b
? 0 0 0
! 0:0:0.5:1 0:0:0.5:1 0:0:0.5:1
? 1 1 1
! 1:0:1:2 1:0:1:2 1:0:1:2
? 2 2 2
! 2:1:1.5:3! 2:0:1.5:3 2:1:1.5:3!
? 0 - -
! 0:1:0.5:1! - -
end variant T-v0 b
end task T-v0
task U-v0
variant U-v0 Default
? 0 0 -
! 0:0:0.5:1 0:0:0.5:1 -
? 1 1 -
! 1:1:1:2! 1:0:1:2 -
? - 2 -
! - 2:0:1.5:3 -
? - 3 -
! - 3:1:2:4! -
end variant U-v0 Default
end task U-v0
end block True
block False
task T-v0
variant T-v0 a
? 0 0 0
! 0:0:~:1 0:0:~:1 0:0:~:1
? 1 - -
! 1:0:~:2 - -
end variant T-v0 a
end task T-v0
end block False
block True
task U-v0
variant U-v0 Default
? 0 0 -
! 0:0:0.5:1 0:0:0.5:1 -
end variant U-v0 Default
end task U-v0
end block True
""",
}
"""What TELLA 2.1.0 told the agent, with one environment and with three."""


class Until(gymnasium.Env[Any, Any]):
    """Ends when the action is 1; the observation counts the steps."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0, 100, (1,), np.float32)
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.t = 0
        return np.array([0], np.float32), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.t += 1
        # Truncation is an end too.
        over = bool(action)
        cut = over and self.t % 2 == 0
        return np.array([self.t], np.float32), self.t / 2, over and not cut, cut, {}


for name in ("T-v0", "U-v0"):
    if name not in gymnasium.registry:
        gymnasium.register(name, Until)

T_A, T_B, U = Task("gym", "T-v0", "a"), Task("gym", "T-v0", "b"), Task("gym", "U-v0")

LESSON = Curriculum(
    "lesson",
    (
        learn(Exposure(T_A, 4), Exposure(T_B, 10, "steps"), Exposure(U, 2)),
        evaluate(Exposure(T_A, 4, "steps")),
        learn(Exposure(U, 2, "steps")),
    ),
)


def written(folder: Path, source: str = AGENT, name: str = "agent.py") -> Path:
    file = folder / name
    file.write_text(source)
    return file


def live(
    folder: Path,
    cls: str,
    curriculum: Curriculum = LESSON,
    envs: int = 1,
    hide: bool = False,
    checkpoint: int = 10**9,
    **params: Any,
) -> TellaAgent:
    suites = {t.suite: registry.suite(t.suite) for t in curriculum.tasks}
    seen, done = suites["gym"].spaces(curriculum.tasks[0])
    job = LifetimeConfig(curriculum, suites, seen, done, 5, envs, hide, checkpoint)
    agent = TellaAgent(job.setup(), cls, **params)
    with LifetimeLog(folder, "tella", 0) as log:
        LifetimeLoop(job, agent, log).run()
    return agent


@pytest.mark.parametrize("envs", [1, 3])
def test_told_what_tella_tells(tmp_path: Path, envs: int) -> None:
    file = written(tmp_path)
    agent = live(tmp_path / "life", f"{file}:Scribe", envs=envs)
    assert agent.inner.trace == TOLD[envs].splitlines()


@pytest.mark.skipif(not REAL, reason="PERDURE_TELLA_PYTHON names no Python with tella 2.1.0")
@pytest.mark.parametrize("envs", [1, 3])
def test_the_recordings_are_tellas(tmp_path: Path, envs: int) -> None:
    written(tmp_path)
    script = written(tmp_path, RECORD, "record.py")
    command = [REAL, "-W", "ignore", str(script), str(envs)]
    output = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert json.loads(output.stdout.splitlines()[-1]) == TOLD[envs].splitlines()


def test_hidden_identity_and_side_by_side(tmp_path: Path) -> None:
    cls = f"{written(tmp_path)}:Scribe"
    hidden = live(tmp_path / "hidden", cls, hide=True).inner.trace
    assert {line for line in hidden if "task" in line or "variant" in line} == {
        "task None",
        "end task None",
        "variant None None",
        "end variant None None",
    }
    both = Curriculum("both", (learn(Exposure(T_A, 1), Exposure(U, 1), parallel=True),))
    told = live(tmp_path / "both", cls, both).inner.trace
    assert told[1:5] == ["task T-v0+U-v0", "variant T-v0+U-v0 a+Default", "? 0 0", told[4]]
    assert told[5] == "? - 1", "the first task is over, the other goes on"


def test_the_constructor_gets_what_tella_gives(tmp_path: Path) -> None:
    source = (
        "class Bare:\n"
        "    def __init__(self, *args):\n"
        "        self.args = args\n"
        "    def choose_actions(self, observations):\n"
        "        return [None if o is None else 1 for o in observations]\n"
        "    def receive_transitions(self, transitions):\n"
        "        pass\n"
    )
    cls = f"{written(tmp_path, source, 'bare.py')}:Bare"
    agent = live(tmp_path / "life", cls, envs=2, config="some/file.yml")
    seed, seen, done, envs, config = agent.inner.args
    assert isinstance(seed, int) and 0 <= seed < 2**32
    assert (seen, done) == (agent.setup.observation_space, agent.setup.action_space)
    assert done is not agent.setup.action_space, "TELLA's base class seeds what it gets"
    assert (envs, config) == (2, "some/file.yml")
    assert agent.inner.is_learning_allowed is True, "set although no callback is there"
    assert agent.state() is None


# Files written for tella and gym.


def test_tella_and_gym_are_there_only_while_loading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (_standins.missing("tella") and _standins.missing("gym")):
        pytest.skip("the real libraries are installed here")
    source = (
        "import gym, gym.spaces, tella\n"
        "from gym.spaces import Box\n"
        "from gym import Space\n"
        "from tella import ContinualRLAgent, rl_cli, Transition, Observation, Action\n"
        "from tella.agents import ContinualRLAgent as Same\n"
        "from tella.curriculum import AbstractCurriculum, TaskVariant, Transition as T\n"
        "from tella.experiment import rl_experiment\n"
        "assert Same is ContinualRLAgent is tella.agents.ContinualRLAgent and T is Transition\n"
        "class Mine(ContinualRLAgent):\n"
        "    def choose_actions(self, observations):\n"
        "        assert isinstance(self.observation_space, Box)\n"
        "        return [None if o is None else self.action_space.sample() for o in observations]\n"
        "    def receive_transitions(self, transitions):\n"
        "        pass\n"
        "def start():\n"
        "    tella.rl_cli(Mine)\n"
        "def task():\n"
        "    return TaskVariant(None, rng_seed=1)\n"
        "class Lazy(ContinualRLAgent):\n"
        "    pass\n"
    )
    file = written(tmp_path, source, "imports.py")
    (tmp_path / "tella").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))  # A folder of that name is not the library.
    live(tmp_path / "life", f"{file}:Mine")
    assert not [m for m in sys.modules if m.split(".")[0] in ("tella", "gym")]
    for function in ("start", "task"):
        with pytest.raises(SpecError, match="perdure run"):
            registry.load_file(f"{file}:{function}")()
    with pytest.raises(AgentFault, match="choose_actions"):
        live(tmp_path / "lazy", f"{file}:Lazy")


def test_installed_libraries_are_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "tella"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("real = True\n")
    (package / "curriculum.py").write_text(
        "import collections\n"
        "names = 'observation action reward done next_observation'\n"
        "Transition = collections.namedtuple('Real', names)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    source = (
        "import tella\n"
        "assert tella.real\n"
        "class Mine:\n"
        "    def __init__(self, *args):\n"
        "        self.seen = set()\n"
        "    def choose_actions(self, observations):\n"
        "        return [1 for o in observations]\n"
        "    def receive_transitions(self, transitions):\n"
        "        self.seen |= {type(t).__name__ for t in transitions}\n"
    )
    agent = live(tmp_path / "life", f"{written(tmp_path, source, 'real.py')}:Mine", envs=3)
    assert agent.inner.seen == {"Real", "NoneType"}


@pytest.mark.parametrize(
    ("cls", "error", "words"),
    [
        ("agent.Scribe", SpecError, "file.py:Class"),
        ("nowhere.py:Scribe", UnknownName, "nowhere.py"),
        ("agent.py:Scrib", UnknownName, "did you mean 'Scribe'"),
        ("broken.py:X", SpecError, "no_such_library"),
        ("other.py:NUMBER", SpecError, "is a int, expected an agent class"),
        ("other.py:Deaf", SpecError, "no method 'receive_transitions'"),
    ],
)
def test_what_is_not_an_agent_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cls: str, error: type[Exception], words: str
) -> None:
    written(tmp_path)
    written(tmp_path, "import no_such_library\n", "broken.py")
    deaf = "class Deaf:\n    def __init__(self, *a): ...\n    def choose_actions(self, o): ...\n"
    written(tmp_path, "NUMBER = 3\n" + deaf, "other.py")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=words):
        TellaAgent(Setup(spaces.Box(0, 1, (1,)), spaces.Discrete(2), 1, 0), cls)


def test_bad_answers_and_data_are_refused(tmp_path: Path) -> None:
    source = (
        "class Short:\n"
        "    def __init__(self, *args):\n"
        "        pass\n"
        "    def choose_actions(self, observations):\n"
        "        return [1]\n"
        "    def receive_transitions(self, transitions):\n"
        "        pass\n"
    )
    cls = f"{written(tmp_path, source, 'short.py')}:Short"
    with pytest.raises(AgentFault, match=r"Short\.choose_actions: expected a list of 2 actions"):
        live(tmp_path / "life", cls, envs=2)
    agent = TellaAgent(Setup(spaces.Box(0, 1, (1,)), spaces.Discrete(2), 1, 0), cls)
    ctx = Context("learn", True, 0, None, np.arange(1), np.ones(1, bool))
    with pytest.raises(AgentFault, match="episodes or steps"):
        agent.learn(Examples(np.zeros((1, 1)), np.zeros(1)), ctx)
    many = Context("learn", True, 0, None, np.arange(4), np.ones(4, bool))
    with pytest.raises(AgentFault, match="episodes or steps"):
        agent.act(np.zeros((4, 1)), many)


# Randomness and state.

DICE = """\
import random
import numpy as np
from tella import ContinualRLAgent

class Dice(ContinualRLAgent):
    def __init__(self, *args):
        super().__init__(*args)
        self.drawn = []
        self.weights = np.zeros(2)

    def choose_actions(self, observations):
        dice = (random.random(), np.random.normal(), self.action_space.sample())
        self.drawn.append(dice)
        return [None if o is None else int(sum(dice) > 1) for o in observations]

    def receive_transitions(self, transitions):
        if self.is_learning_allowed:
            self.weights[0] += random.random()
            self.weights[1] += sum(t is not None for t in transitions)

class Saved(Dice):
    dies = 0

    def receive_transitions(self, transitions):
        super().receive_transitions(transitions)
        if self.dies and self.is_learning_allowed and self.weights[1] > self.dies:
            raise RuntimeError("switched off")

    def state(self):
        return {"weights": self.weights.copy()}

    def load(self, state):
        self.weights = np.array(state["weights"])
"""


def test_same_seed_same_dice_and_nobody_else_notices(tmp_path: Path) -> None:
    cls = f"{written(tmp_path, DICE, 'dice.py')}:Dice"
    random.seed(7)
    np.random.seed(7)
    np.random.normal()
    before = random.getstate(), np.random.get_state(legacy=False)
    one = live(tmp_path / "1", cls, envs=2)
    assert random.getstate() == before[0]
    assert str(np.random.get_state(legacy=False)) == str(before[1])
    random.seed(8)
    np.random.seed(8)
    two = live(tmp_path / "2", cls, envs=2)
    assert one.inner.drawn == two.inner.drawn
    assert len(set(one.inner.drawn)) == len(one.inner.drawn)


def test_a_class_that_saves_itself_is_resumed_exactly(tmp_path: Path) -> None:
    file = written(tmp_path, DICE, "dice.py")
    block = learn(Exposure(T_A, 40, "steps"))
    probe = adapt(Exposure(T_B, 5, "steps"), then=[Exposure(T_B, 2)])
    curriculum = Curriculum("saved", (block, evaluate(Exposure(T_A, 5)), probe, block))
    cls = f"{file}:Saved"
    whole = live(tmp_path / "whole", cls, curriculum, 2, checkpoint=7)
    module = sys.modules[type(whole.inner).__module__]
    module.Saved.dies = 53  # type: ignore[attr-defined]
    with pytest.raises(AgentFault, match="switched off"):
        live(tmp_path / "cut", cls, curriculum, 2, checkpoint=7)
    module.Saved.dies = 0  # type: ignore[attr-defined]
    resumed = live(tmp_path / "cut", cls, curriculum, 2, checkpoint=7)
    assert whole.inner.weights[1] == 80
    mine, same = whole.state(), resumed.state()
    assert mine is not None and same is not None
    assert mine.keys() == same.keys()
    assert all(np.array_equal(mine[k], same[k]) for k in mine)
    assert resumed.inner.drawn == whole.inner.drawn[-len(resumed.inner.drawn) :]
    assert len(resumed.inner.drawn) < len(whole.inner.drawn)


def test_a_class_that_does_not_save_itself_cannot_adapt(tmp_path: Path) -> None:
    probe = adapt(Exposure(T_B, 5, "steps"), then=[Exposure(T_B, 2)])
    with pytest.raises(PerdureError, match="adapt block"):
        live(tmp_path / "life", f"{written(tmp_path)}:Scribe", Curriculum("probe", (probe,)))


def test_resumed_at_the_very_end_of_a_block(tmp_path: Path) -> None:
    setup = Setup(spaces.Box(0, 100, (1,), np.float32), spaces.Discrete(2), 1, 0)
    agent = TellaAgent(setup, f"{written(tmp_path)}:Scribe")
    none = np.zeros(0, int)
    for event in ("variant", "task", "block"):
        agent.leave(Context("learn", True, 0, ("gym/U-v0",), none, none.astype(bool), event))
    assert agent.inner.trace == ["end variant U-v0 Default", "end task U-v0", "end block True"]


def test_adapt_looks_like_two_blocks(tmp_path: Path) -> None:
    source = AGENT + (
        "\n    \nclass Kept(Scribe):\n"
        "    def state(self):\n"
        "        import numpy as np\n"
        "        return {'nothing': np.zeros(0)}\n"
        "    def load(self, state):\n"
        "        pass\n"
    )
    probe = adapt(Exposure(T_A, 1), then=[Exposure(U, 1)])
    cls = f"{written(tmp_path, source)}:Kept"
    told = live(tmp_path / "life", cls, Curriculum("probe", (probe,))).inner.trace
    assert [line for line in told if "block" in line or line.startswith("task")] == [
        "block True",
        "task T-v0",
        "end block True",
        "block False",
        "task U-v0",
        "end block False",
    ]


def test_it_is_found_by_name() -> None:
    assert registry.load("agents", "tella") is TellaAgent
    assert importlib.util.find_spec("perdure.agents.adapters.tella") is not None
