"""Sweeps: suggestions, trials that are broken off, and a record that no interruption changes."""

import json
import signal
import statistics
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from perdure import sweep
from perdure.cli.main import main
from perdure.errors import SpecError, UnknownName
from perdure.run.pruning import STARTUP, WARM_UP
from perdure.tuning import VALIDATION
from perdure.tuning.ranges import Range

POINT = """
import time
import gymnasium
import numpy as np
from gymnasium.spaces import Box
from perdure import Agent, Curriculum, Exposure, Task, evaluate, learn
from perdure.curricula import interleave


class Distance(gymnasium.Env):
    "One step, whose reward is the action's distance from a half, less than nothing."

    observation_space = action_space = Box(0, 1, (1,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1), {}

    def step(self, action):
        return np.zeros(1), -abs(float(action[0]) - 0.5), True, False, {}


gymnasium.register("Distance-v0", Distance)


class Point(Agent):
    def __init__(self, setup, x=0.0, wait=0.0):
        super().__init__(setup)
        self.x, self.wait = x, wait

    def act(self, obs, ctx):
        time.sleep(self.wait)
        return np.full((len(obs), 1), self.x)

    def learn(self, batch, ctx):
        pass


def life():
    task = Task("gym", "Distance-v0")
    return Curriculum("life", interleave([learn(Exposure(task, 1))] * 3, evaluate(Exposure(task, 4))))
"""


@pytest.fixture
def point(tmp_path):
    file = tmp_path / "point.py"
    file.write_text(POINT)
    return file


def found(file, out, agent="Point", search="uniform(0, 1)", **keys):
    keys = {"executor": "serial", "trials": 12, "batch": 2, "pruner": "median", **keys}
    return sweep(f"{file}:life", f"{file}:{agent}", {"x": search}, out=str(out), **keys)


def record(out):
    return json.loads((out / "_meta/sweep.json").read_text())


def test_the_best_is_found_and_bad_trials_are_broken_off(point, tmp_path):
    out = tmp_path / "sweep"
    made = found(point, out, trials=16)
    assert abs(made.best.params["x"] - 0.5) < 0.05
    for t in made.trials:
        if t.state == "complete":
            assert t.value == pytest.approx(-abs(t.params["x"] - 0.5))
    # The median rule, by hand: the best so far against complete trials of earlier batches.
    assert {t.state for t in made.trials} == {"complete", "pruned"}
    for n, t in enumerate(made.trials):
        complete = [o for o in made.trials[: n - n % 2] if o.state == "complete"]
        past = [o.curves[str(VALIDATION)] for o in complete]
        (curve,) = t.curves.values()
        for step in range(len(curve)):
            judged = len(past) >= STARTUP and step >= WARM_UP
            bad = judged and max(curve[: step + 1]) < statistics.median(c[step] for c in past)
            assert bad == (t.state == "pruned" and step == len(curve) - 1)
    # The same sweep again returns at once; asked for more trials it goes on from there.
    before = record(out)
    assert found(point, out, trials=16).trials == made.trials and record(out) == before
    more = found(point, out, trials=17)
    assert more.trials[:16] == made.trials and len(more.trials) == 17


def test_killed_and_resumed_it_is_the_same_sweep(point, tmp_path):
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    agent = "Point,wait=0.01"
    found(point, whole, agent, trials=8)
    command = [
        sys.executable, "-m", "perdure", "sweep", f"{point}:life", "-a", f"{point}:{agent}",
        "--search", "x=uniform(0, 1)", "--trials", "8", "--batch", "2", "--pruner", "median", "--executor", "serial",
        "--out", str(torn),
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None:
        if (torn / "_meta/sweep.json").exists() and len(record(torn)["trials"]) >= 4:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.01)
    process.wait()
    assert any(t["state"] == "running" for t in record(torn)["trials"])
    done = CliRunner().invoke(main, command[3:])
    assert done.exit_code == 0, done.output
    assert record(torn) == record(whole)
    best = min(record(whole)["trials"], key=lambda t: -(t["value"] or -9))
    assert f"best: x={best['params']['x']}" in done.output
    assert "perdure run" in done.output


def test_what_chose_is_not_reported(point, tmp_path):
    found(point, tmp_path / "runs/sweep", search="choice(0.5, 0)", sampler="grid")
    values = [t["value"] for t in record(tmp_path / "runs/sweep")["trials"]]
    assert values == [0, -0.5]
    alone = CliRunner().invoke(main, ["leaderboard", str(tmp_path / "runs")])
    assert alone.exit_code == 2 and "but sweeps" in alone.output
    args = ["--agent", f"{point}:Point", "--executor", "serial", "-q", "-o", f"{tmp_path}/runs/run"]
    assert CliRunner().invoke(main, ["run", f"{point}:life", *args]).exit_code == 0
    board = CliRunner().invoke(main, ["leaderboard", str(tmp_path / "runs")])
    assert board.exit_code == 0 and "Point" in board.output and "t000" not in board.output
    alone = CliRunner().invoke(main, ["measure", str(tmp_path / "runs/sweep")])
    assert "t000" in alone.output and "validation seeds" in alone.output


@pytest.mark.parametrize(
    ("keys", "error", "words"),
    [
        ({"search": "between(0, 1)"}, SpecError, "expected uniform"),
        ({"search": "log(0, 1)"}, SpecError, "above 0"),
        ({"search": "int(0.5, 1)"}, SpecError, "whole numbers"),
        ({"search": "uniform(1, 0)"}, SpecError, "a higher value"),
        ({"search": "choice()"}, SpecError, "nothing to choose"),
        ({"sampler": "tep"}, UnknownName, "'tpe'"),
        ({"sampler": "grid"}, SpecError, "choices alone"),
        ({"pruner": "medium"}, UnknownName, "'median'"),
        ({"metric": "summary.finl"}, UnknownName, "'summary.final'"),
        ({"metric": "cw"}, SpecError, "chooses by one metric"),
        ({"sampeler": "tpe"}, UnknownName, "did you mean 'sampler'"),
        ({"agent": "Point,x=1"}, SpecError, "not both"),
        ({"trials": 0}, SpecError, "from 1 to"),
    ],
)
def test_what_cannot_be_searched_is_refused(point, tmp_path, keys, error, words):
    with pytest.raises(error, match=words):
        found(point, tmp_path / "sweep", **keys)
    assert not (tmp_path / "sweep").exists()


def test_another_sweep_in_the_same_folder_is_refused(point, tmp_path):
    found(point, tmp_path / "sweep", trials=2)
    with pytest.raises(SpecError, match="holds another sweep"):
        found(point, tmp_path / "sweep", search="uniform(0, 2)")
    with pytest.raises(UnknownName, match="parameter of"):
        sweep(f"{point}:life", f"{point}:Point", {"y": "uniform(0, 1)"}, out=str(tmp_path / "b"))


def test_choices_may_be_words_and_lists():
    lists = Range.parse("hidden", "choice([64, 64], [8])")
    assert lists.values == ([64, 64], [8]) and lists.suggested(lists.told([8])) == [8]
    assert Range.parse("act", "choice(relu, tanh)").values == ("relu", "tanh")
    assert Range.parse("x", "[0.1, 2]").values == (0.1, 2)
