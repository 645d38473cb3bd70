"""A lifetime plays a few of its episodes again, and says whether they were alike."""

from __future__ import annotations

import itertools
import time
from collections import Counter

import gymnasium
import numpy as np
import pytest
from click.testing import CliRunner
from gymnasium import spaces

from perdure.cli.main import main
from perdure.run import repeat, vector
from perdure.run.experiment import execute
from perdure.run.plan import make_plan
from perdure.run.spec import RunSpec
from perdure.store.layout import LifetimeFolder
from perdure.store.repeats import repeats

_clock = itertools.count()


class Odd(gymnasium.Env):
    """Repeats, or does not in the way it is told."""

    steps: Counter = Counter()

    def __init__(self, how="", length=5):
        self.observation_space = spaces.Box(-1e9, 1e9, (2,), np.float64)
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.how, self.length, self.episodes, self.moves = how, length, 0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episodes += 1
        self.t, self.place = 0, self.np_random.normal(size=2)
        return self.place.copy(), {}

    def step(self, action):
        Odd.steps[self.how, self.length] += 1
        self.t += 1
        self.moves += 1
        self.place = self.place + action + self.np_random.normal(size=2)
        reward, end = float(self.place.sum()), self.t >= self.length
        if self.how == "global generator":
            self.place = self.place + np.random.random()
        if self.how == "clock":
            reward += next(_clock)
        if self.how == "episodes before":
            reward += self.episodes
        if self.how == "length":
            end = next(_clock) % 7 == 0
        if self.how == "last observation" and end:
            self.place[0] = next(_clock)
        if self.how == "raises" and self.moves == 1 and Odd.steps[self.how, self.length] > 75:
            raise RuntimeError("no more")
        if self.how == "hangs" and self.moves == 1 and Odd.steps[self.how, self.length] > 75:
            time.sleep(3600)
        return self.place.copy(), reward, end, False, {}


class Saved(Odd):
    """One that can save itself."""

    def save_state(self):
        return {"place": self.place, "t": np.array(self.t)}

    def load_state(self, state):
        self.place, self.t = state["place"], int(state["t"])


for _class in (Odd, Saved):
    if f"Perdure{_class.__name__}-v0" not in gymnasium.registry:
        gymnasium.register(
            f"Perdure{_class.__name__}-v0", _class, disable_env_checker=True,
            order_enforce=False,
        )  # fmt: skip


@pytest.fixture
def run(tmp_path):
    """Runs an environment for some steps and gives what came of playing again."""
    file = tmp_path / "odd.py"
    file.write_text(
        "from perdure.types import *\n"
        "def life(how='', steps=60, length=5, name='Odd'):\n"
        "    task = Task('gym', f'Perdure{name}-v0', params={'how': how, 'length': length})\n"
        "    blocks = learn(Exposure(task, steps, 'steps')), evaluate(Exposure(task, 3))\n"
        "    return Curriculum('odd', blocks)\n"
    )
    Odd.steps.clear()

    def go(how="", executor="serial", **keys):
        params = "".join(f",{k}={v}" for k, v in keys.items())
        spec = RunSpec(
            f'{file}:life,how="{how}"{params}', ("random",), out=str(tmp_path / "run"),
            executor=executor,
        )  # fmt: skip
        outcomes = execute(make_plan(spec))
        assert [o.status for o in outcomes] == ["done"], outcomes
        return repeats([LifetimeFolder(tmp_path / "run/random/0")])

    return go


@pytest.mark.parametrize("name", ["Odd", "Saved"])
def test_honest_environments_repeat(run, name):
    found = run(name=name)
    assert found.played == found.agreed == 4, "two learning and two evaluation episodes"
    assert not found.differences and str(found) == "4 episodes played again, all alike"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("global generator", "its return was"),
        ("clock", "its return was"),
        ("episodes before", "its return was"),
        ("length", "it "),
        ("last observation", "its last observation was another"),
        ("raises", "it raised EnvironmentFault"),
    ],
)
def test_environments_that_do_not_repeat_are_told(run, how, said):
    found = run(how)
    assert found.agreed < found.played
    assert said in found.differences[0] and "gym/PerdureOdd-v0" in found.differences[0]
    assert "episode of seed" in found.differences[0] and "not alike" in str(found)


def test_one_that_hangs_when_it_is_played_again_does_no_harm(run, tmp_path):
    assert run("hangs", "serial,deadline=3,retries=0") == repeats([])


@pytest.mark.parametrize(("steps", "length"), [(20_000, 10), (5_000, 900), (5_000, 1500), (60, 5)])
def test_it_costs_little(run, steps, length):
    """Two parts in a hundred of the steps; of few steps some more, but never many."""
    found = run(steps=steps, length=length)
    made = steps + 3 * length
    again = Odd.steps["", length] - made
    assert again <= max(repeat.SHARE * made, repeat.SOME[0], length) + 1
    assert found.played == (0 if length > repeat.LONGEST else min(4, max(1, again // length)))


def test_an_agent_that_uses_its_array_again(tmp_path):
    """What was played is kept, whatever the agent writes over it."""
    file = tmp_path / "same.py"
    file.write_text(
        "import numpy as np\n"
        "from perdure.agent import Agent\n"
        "from perdure.types import *\n"
        "class Same(Agent):\n"
        "    buffer = np.zeros((1, 2), np.float32)\n"
        "    def act(self, obs, ctx):\n"
        "        self.buffer[:] = self.rng.uniform(-1, 1, (1, 2))\n"
        "        return self.buffer\n"
        "def life():\n"
        "    return Curriculum('same', [learn(Exposure(Task('gym', 'PerdureOdd-v0'), 9))])\n"
    )
    out = tmp_path / "run"
    execute(
        make_plan(RunSpec(f"{file}:life", (f"a={file}:Same",), out=str(out), executor="serial"))
    )
    found = repeats([LifetimeFolder(out / "a/0")])
    assert found.played == found.agreed == 2


def test_the_run_and_the_report_say_it(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for how, said in (("", "all alike"), ("clock", "4 not alike")):
        args = ["run", f'odd.py:life,how="{how}"', "-a", "random", "--executor", "serial", "-o"]
        result = CliRunner().invoke(main, [*args, f"r{how}"])
        assert result.exit_code == 0, result.output
        assert f"environments: 4 episodes played again, {said}" in result.stdout
        assert ("does not repeat" in result.stderr) == bool(how)
        assert CliRunner().invoke(main, ["report", f"r{how}", "-o", "p.html"]).exit_code == 0
        page = (tmp_path / "p.html").read_text()
        assert said in page and ("do not repeat" in page) == bool(how)


def test_endless_episodes_that_cannot_be_saved_are_refused(tmp_path, monkeypatch):
    """Rather than growing checkpoints for ever; one that can save itself goes on."""
    monkeypatch.setattr(vector, "MOST_ACTIONS", 100)
    file = tmp_path / "endless.py"
    file.write_text(
        "from perdure.types import *\n"
        "def life(name):\n"
        "    params = {'length': 10**9, 'window': 10}\n"
        "    task = Task('gym', f'Perdure{name}-v0', params=params)\n"
        "    return Curriculum('endless', [learn(Exposure(task, 300, 'steps'))])\n"
    )
    for name, status in (("Odd", "failed"), ("Saved", "done")):
        spec = RunSpec(
            f"{file}:life,name={name}", ("random",), out=str(tmp_path / name), executor="serial",
            checkpoint=60,
        )  # fmt: skip
        (outcome,) = execute(make_plan(spec))
        assert outcome.status == status, outcome
        assert status == "done" or "save_state() and load_state()" in outcome.error
