"""Parts of one's own from files: composed, run in every executor, checked; files beside each other."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from perdure import experiment
from perdure.cli.main import main
from perdure.store.run import Run

PLAIN = """
import numpy as np
from gymnasium import spaces
from perdure import Agent, Curriculum, Examples, Exposure, Suite, Task, evaluate, learn
"""
FILES = {
    "widths.py": "WIDTH = 12\n",
    "mynet.py": """
from torch import nn
from perdure.agents.learners.classifier import ClassifierAgent
class Net(nn.Module):
    def __init__(self, shape):
        from widths import WIDTH                # a neighbour, imported late
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(shape[0], WIDTH), nn.GELU())
    def forward(self, x):
        return self.layers(x)
class MyNet(ClassifierAgent):
    pass
""",
    "l2.py": """
from perdure.agents.strategies.base import Strategy
from mynet import MyNet                         # the same class as -a …+mynet.py:MyNet has
class L2(Strategy):
    def __init__(self, learner, strength=0.01):
        super().__init__(learner)
        self.strength = strength
        self.known = isinstance(learner, MyNet)
class Picky(L2):
    def __init__(self, learner):
        super().__init__(learner)
        assert self.known
""",
    "halves.py": """
import numpy as np
def halves(name, learning):
    rng = np.random.default_rng(learning)
    labels = rng.integers(0, 5, 60) + (5 if name == "high" else 0)
    return np.eye(10, dtype=np.float32)[labels], labels
""",
    "digits.py": PLAIN
    + """
from halves import halves
class Data:
    batch_size = 16
    def __init__(self, x, y):
        self.x, self.y = x, y
    def __len__(self):
        return len(self.x)
    def batch(self, indices):
        return Examples(self.x[indices], self.y[indices])
class Digits(Suite):
    name = "mydigits"
    def tasks(self):
        return [Task("mydigits", half) for half in ("low", "high")]
    def spaces(self, task):
        return spaces.Box(0, 1, (10,), np.float32), spaces.Discrete(10)
    def data(self, task, learning):
        return Data(*halves(task.name, learning))
    def curricula(self):
        return {"in-turn": in_turn}
def in_turn(epochs: int = 2):
    tasks = suite.tasks()
    blocks = [learn(Exposure(t, epochs, "epochs")) for t in tasks]
    return Curriculum("mydigits/in-turn", [*blocks, evaluate(*(Exposure(t, 1, "epochs") for t in tasks))])
suite = Digits()
""",
    "policy39.py": PLAIN
    + """
class Policy(Agent):
    def __init__(self, setup):
        super().__init__(setup)
        assert setup.observation_space.shape == (39,), "39 inputs are needed"
    def act(self, obs, ctx):
        return np.clip(obs[:, :4], -1, 1).astype(np.float32)
""",
    "forgetful.py": PLAIN
    + """
import gymnasium
from perdure import curricula
class Forgetful(gymnasium.Env):
    observation_space, action_space = spaces.Box(0, 1, (2,), np.float32), spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        self.rng = getattr(self, "rng", np.random.default_rng(0))   # the seed decides nothing
        return self.rng.random(2, np.float32), {}
    def step(self, action):
        return self.rng.random(2, np.float32), 1.0, bool(self.rng.random() < 0.2), False, {}
gymnasium.register("Forgetful-v0", Forgetful)
def life():
    task = Task("gym", "forgetful:Forgetful-v0")
    return curricula.tasks_in_turn("mine/life", [task], amount=20, unit="steps", episodes=2)
""",
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Files in a folder that is not the one that commands run in; one for all: a process has one module
    of a name."""
    there = tmp_path_factory.mktemp("own") / "mine"
    there.mkdir()
    for name, text in FILES.items():
        (there / name).write_text(text)
    before = list(sys.path)
    yield there
    sys.path[:] = before
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(there.parent)):
            del sys.modules[name]


@pytest.fixture
def mine(written, monkeypatch):
    monkeypatch.chdir(written.parent)
    return written


def perdure(*args):
    return CliRunner().invoke(main, list(args))


def test_own_strategy_learner_network_and_suite_run_in_every_executor(mine):
    agents = (
        "mine/l2.py:L2+classifier,strength=0.1",
        "ewc+mine/mynet.py:MyNet",
        "si+classifier,network=mine/mynet.py:Net",
    )
    more = ("mine/l2.py:Picky+mine/mynet.py:MyNet", "classifier,network=mine/mynet.py:Net")
    rows = []
    for executor, chosen in (("processes", agents), ("serial", agents), ("serial", agents + more)):
        flags = [f for agent in chosen for f in ("-a", agent)]
        out = f"runs/{executor}"
        done = perdure(
            "run", "mine/digits.py:in_turn", *flags, "-o", out, "--executor", executor, "-q"
        )
        assert done.exit_code == 0, done.output
        rows.append(Run(out).rows())
    assert rows[0].equals(rows[1]) and len(rows[0].column("agent").unique()) == 3
    assert len(rows[2].column("agent").unique()) == 5


def test_own_networks_in_learners_for_environments(mine):
    network = "network=mine/mynet.py:Net"
    agents = {name: f"{name},{network}" for name in ("dqn", "ppo", "trpo")}
    agents["ewc"] = f"ewc+ppo,{network},rollout=32"
    run = experiment("toy/compass,steps=40,episodes=1", agents, out="runs/rl", executor="serial")
    assert [i.status for i in run.lifetimes()] == ["done"] * 4, run.lifetimes()
    for label in agents:
        agent = run.agent(label)
        within = {type(m).__name__ for m in getattr(agent, "learner", agent).net.modules()}
        assert "Net" in within and "Tanh" not in within


def test_check_knows_what_is_in_a_file(mine):
    for name in ("mine/digits.py:suite", "mine/digits.py:Digits", "mine/digits.py:in_turn"):
        done = perdure("check", name)
        assert done.exit_code == 0 and f"{name}: ok" in done.output, done.output
    done = perdure("check", "mine/forgetful.py:life")
    assert done.exit_code == 1 and "reset(seed=11) a second time" in done.output
    done = perdure("check", "mine/mynet.py:Net")
    assert done.exit_code == 2 and "classifier,network=mine/mynet.py:Net" in done.output


def test_check_an_agent_on_a_curriculum(mine):
    pytest.importorskip("metaworld")
    name = "mine/policy39.py:Policy"
    done = perdure("check", name)
    assert done.exit_code == 1 and "--on CURRICULUM" in done.output
    done = perdure("check", name, "--on", "metaworld/mt1")
    assert done.exit_code == 0 and f"{name}: ok" in done.output, done.output


def test_check_on_what_does_not_fit_or_is_no_agent(mine):
    done = perdure("check", "q", "--on", "mine/digits.py:in_turn")
    assert (
        done.exit_code == 1 and "but mine/digits.py:in_turn has learn blocks on data" in done.output
    )
    done = perdure("check", "toy", "--on", "toy/check")
    assert done.exit_code == 2 and "toy is a suite" in done.output
    for curriculum in ("toy/until", "toy/chosen"):  # generated as they go
        done = perdure("check", "q", "--on", curriculum)
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("ewc+mine/mynet.py:Net", "put it into a learner, classifier,network=mine/mynet.py:Net"),
        ("mine/mynet.py:MyNet+classifier", "is of kind agent, expected strategy"),
        ("mine/l2.py:L2", "is of kind strategy, expected agent"),
    ],
)
def test_a_part_in_the_wrong_place_is_told_what_it_is(mine, agent, words):
    done = perdure("run", "toy/blobs", "-a", agent, "-o", "runs/wrong")
    assert done.exit_code == 2 and words in done.output, done.output


def test_two_neighbours_of_one_name_are_not_mistaken_for_each_other(mine):
    other = mine.parent / "other"
    other.mkdir()
    (other / "widths.py").write_text("WIDTH = 99\n")
    (other / "wide.py").write_text("import widths\n" + FILES["mynet.py"])
    done = perdure(
        "run", "toy/blobs", "-a", "classifier,network=mine/mynet.py:Net",
        "-a", "wide=classifier,network=other/wide.py:Net", "-o", "runs/two",
    )  # fmt: skip
    assert done.exit_code == 2 and "imports widths" in done.output, done.output
    assert "give one of the two another name" in done.output


def test_a_suite_of_ones_own_may_not_take_an_installed_ones_name(mine):
    (mine / "toys.py").write_text(FILES["digits.py"].replace("mydigits", "toy"))
    done = perdure("check", "mine/toys.py:suite")
    assert done.exit_code == 2 and "installed one" in done.output


def test_the_installed_command_imports_from_where_it_is_called(mine):
    """As python -m perdure and workers do: a console script has its own folder on its path instead."""
    script = mine / "bin"
    script.mkdir()
    (script / "perdure").write_text("from perdure.cli.main import entry\nentry()\n")
    command = [sys.executable, str(script / "perdure"), "check", "gym/forgetful:Forgetful-v0"]
    done = subprocess.run(command, cwd=mine, capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 1 and "gave another episode" in done.stderr, done.stderr


@pytest.mark.parametrize("how", ["--executor=processes", "--eval-workers=2"])
def test_a_file_called_as_one_of_pythons_own_modules_harms_no_process(mine, how):
    """It lies where the command is called; what lies there is imported all the same, and so are neighbours."""
    for name in ("signal", "socket", "queue"):
        (mine / f"{name}.py").write_text("raise RuntimeError('imported by mistake')\n")
    script = mine / "bin"
    script.mkdir(exist_ok=True)
    (script / "perdure").write_text("from perdure.cli.main import entry\nentry()\n")
    done = subprocess.run(
        [sys.executable, str(script / "perdure"), "run", "gym/forgetful:Forgetful-v0,steps=20,episodes=2",
         "-a", "random", "-o", f"runs/own{how}", how],
        cwd=mine, capture_output=True, text=True, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
