"""``perdure ls``: what there is, and all there is to know of one thing."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from perdure.cli.main import main

HEAVY = ("torch", "mujoco", "sklearn", "pyarrow.dataset", "matplotlib", "scipy", "minigrid", "ray")


def ls(*args):
    done = CliRunner().invoke(main, ["ls", *args])
    return done.exit_code, done.output


@pytest.mark.parametrize("args", [(), ("tasks",), ("strategies",), ("metrics",)])
def test_listing_loads_nothing_heavy(args):
    code = (
        "import sys\nfrom perdure.cli.main import main\n"
        f"main(['ls', '--json', *{args!r}], standalone_mode=False)\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stderr.strip().splitlines()[-1] == "[]"
    assert json.loads(done.stdout)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("agents", "ppo"), ["lr", "0.0003", "a list of whole numbers", "preset=quick: lr=0.002",
                             "Clipped PPO", "perdure run CURRICULUM --agent ppo,lr=0.0003"]),
        (("agents", "ewc+classifier"), ["strategy ewc", "agent classifier", "strength"]),
        (("strategies", "ewc"), ["works with", "classifier", "one of n, n-1", "--agent ewc+LEARNER"]),
        (("suites", "minigrid"), ["minigrid/SimpleCrossing@S9N1", "minigrid/condensed", "size²"]),
        (("curricula", "gym/sequence"), ["tasks", "are padded", "20000"]),
        (("curricula", "gym/CartPole-v1"), ["rounds", "One task alone", "learning 20,000 steps"]),
        (("metrics", "gem.bwt"), ["higher is better", "measure RUN --metric gem.bwt"]),
        (("executors", "processes"), ["deadline", "600.0", "--executor processes,workers=0"]),
    ],
)  # fmt: skip
def test_a_name_shows_its_parameters(args, says):
    if args[0] in ("agents", "strategies"):
        pytest.importorskip("torch")
    code, out = ls(*args)
    assert code == 0, out
    for words in says:
        assert words in out, f"{words!r} is not in\n{out}"


def test_the_same_for_programs_and_for_files(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from perdure.agents.random import RandomAgent\n"
        "class Mine(RandomAgent):\n"
        "    'Mine.'\n"
        "    def __init__(self, setup, width: int = 3, *, names: list[str]):\n"
        "        super().__init__(setup)\n"
    )
    code, out = ls("agents", f"{file}:Mine", "--json")
    assert code == 0, out
    found = json.loads(out)
    assert found["parameters"] == [
        {"name": "width", "type": "a whole number", "default": "3"},
        {"name": "names", "type": "a list of names"},
    ]


def test_tasks_of_a_suite_and_what_they_are():
    code, out = ls("tasks", "toy")
    assert code == 0 and "toy/bandit" in out and "gym/" not in out and "arm" in out
    everything = json.loads(ls("tasks", "gym", "--json")[1])
    assert {t["name"] for t in everything} >= {"gym/CartPole-v1", "gym/Taxi-v4"}
    for suite in ("gym", "libero", "metaworld", "openloris", "toy", "vision"):
        tasks = json.loads(ls("tasks", suite, "--json")[1])
        assert tasks and not [t["name"] for t in tasks if not t["about"]], suite


def test_an_unknown_name_gets_a_suggestion():
    for args, near in ((("agents", "pp"), "'ppo'"), (("metrics", "gem.bw"), "'gem.bwt'"),
                       (("curricula", "gym/sequense"), "'gym/sequence'"), (("tasks", "toi"), "'toy'")):  # fmt: skip
        done = CliRunner().invoke(main, ["ls", *args])
        assert done.exit_code == 2 and near in done.stderr, done.stderr
