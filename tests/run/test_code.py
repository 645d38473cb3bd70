"""Versions never mix in silence: what a lifetime executes is hashed, and rows of different code are
neither averaged nor handed out as others' unless the user says so, and then it shows."""

import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import perdure
from perdure.errors import CodeChanged, SpecError
from perdure.run.experiment import execute
from perdure.run.plan import load_plan, make_plan
from perdure.run.spec import RunSpec
from perdure.store.code import differences, recorded
from perdure.store.layout import LifetimeFolder

HELPER = "STEP = 1\n\ndef choose(count):\n    return [STEP] * count\n"
AGENT = """import os
import perdure
from helper import choose

class Mine(perdure.Agent):
    n = 0

    def act(self, obs, ctx):
        self.n += 1
        if self.n > 8 and os.path.exists("stop"):
            raise RuntimeError("stop here")
        return choose(len(obs))
"""
ENV = """import gymnasium
import numpy as np

class Coin(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.t += 1
        return np.zeros(2, np.float32), float(action), self.t >= 5, False, {}
"""
PACKAGE = "import gymnasium\n\ngymnasium.register('Coin-v0', entry_point='coins.env:Coin')\n"
CURRICULUM = """from perdure import Task, curricula

def coins(learn: int = 4):
    task = Task("gym", "coins:Coin-v0")
    return curricula.tasks_in_turn("coins", [task], amount=learn, episodes=1)
"""
RUN = ("run", "curriculum.py:coins", "-o", "o", "--checkpoint", "4", "-q", "-a", "mine.py:Mine")


def write(folder):
    """An agent with a helper, a curriculum, and a package with the environment, as an editable
    install leaves it: outside the folders of installed packages, on the path."""
    package = folder / "src" / "coins"
    package.mkdir(parents=True)
    for path, text in {
        folder / "helper.py": HELPER, folder / "mine.py": AGENT, folder / "curriculum.py": CURRICULUM,
        package / "__init__.py": PACKAGE, package / "env.py": ENV,
    }.items():  # fmt: skip
        path.write_text(text)
    return folder


def command(*args, cwd):
    """``perdure …`` in a folder."""
    import os

    paths = os.pathsep.join([str(cwd / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-m", "perdure", *args], cwd=cwd, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": paths}, timeout=120,
    )  # fmt: skip


def codes(path):
    return recorded(LifetimeFolder(path).description())


def test_lifetimes_of_other_code_are_refused_and_marked(tmp_path):
    write(tmp_path)
    first = command(*RUN, "-a", "random", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    [code] = codes(tmp_path / "o/Mine/0")
    assert {*code["agent"]} == {"mine.py", "helper.py"}
    assert {*code["world"]} == {"curriculum.py", "coins/__init__.py", "coins/env.py", "perdure"}
    assert {"python", "numpy", "gymnasium"} <= {*code["versions"]}
    assert {*codes(tmp_path / "o/random/0")[0]["agent"]} == {"perdure"}
    # The environment's module, or an import of the agent's: refused with its name, nothing planned.
    (tmp_path / "src/coins/env.py").write_text(ENV.replace("float(action)", "1.0 - action"))
    (tmp_path / "helper.py").write_text(HELPER.replace("STEP = 1", "STEP = 0"))
    refused = command(*RUN, "-n", "2", cwd=tmp_path)
    assert refused.returncode == 2
    for words in ("helper.py, coins/env.py changed since Mine/0 ran", "--mix-code", "--out"):
        assert words in refused.stderr
    assert json.loads((tmp_path / "o/_meta/spec.json").read_text())["lifetimes"] == 1
    # Another agent in the same environments would be compared with those in the old ones.
    other = command(*RUN[:-1], "random", "-n", "2", cwd=tmp_path)
    assert other.returncode == 2 and "coins/env.py changed since" in other.stderr
    assert command(*RUN, cwd=tmp_path).returncode == 2  # Nor are old rows shown as the new code's.
    mixed = command(*RUN, "-n", "2", "--mix-code", cwd=tmp_path)
    assert mixed.returncode == 0 and "helper.py, coins/env.py changed since Mine/0" in mixed.stderr
    assert codes(tmp_path / "o/Mine/0") == (code,)
    assert differences(code, codes(tmp_path / "o/Mine/1")[0]) == ["helper.py", "coins/env.py"]
    note = "mixed code: lifetimes of Mine ran with different helper.py, coins/env.py"
    for verb in ("measure", "compare"):
        done = command(
            verb, "o", "--metric", "gem.acc", "--json", f"{verb}.json", "--partial", cwd=tmp_path
        )
        assert note in done.stdout and "(mixed code)" in done.stdout.replace(note, "")
        assert json.loads((tmp_path / f"{verb}.json").read_text())["mixed_code"] == ["Mine"]
    done = command("leaderboard", ".", "--html", "b.html", "--partial", cwd=tmp_path)
    assert (
        "Mine (mixed code)" in done.stdout
        and "<strong>mixed code" in (tmp_path / "b.html").read_text()
    )
    command("report", "o", "--partial", cwd=tmp_path)
    page = (tmp_path / "o/_report.html").read_text()
    assert "Mixed code:</strong> lifetimes of Mine ran with" in page
    assert '<div class="small warn">mixed code</div>' in page


def test_a_lifetime_is_not_resumed_with_other_code(tmp_path):
    write(tmp_path)
    (tmp_path / "stop").touch()
    assert command(*RUN, cwd=tmp_path).returncode == 1
    (tmp_path / "stop").unlink()
    (tmp_path / "mine.py").write_text(AGENT + "# mended\n")
    refused = command(*RUN, cwd=tmp_path)
    assert refused.returncode == 2 and "mine.py changed since Mine/0 ran" in refused.stderr
    done = command(*RUN, "--mix-code", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    old, new = codes(tmp_path / "o/Mine/0")
    assert differences(old, new) == ["mine.py"]
    # From here on the new code is the run's; where nothing was committed yet, there is nothing to mix.
    assert command(*RUN, cwd=tmp_path).returncode == 2
    shutil.rmtree(tmp_path / "o")
    (tmp_path / "helper.py").write_text("raise RuntimeError('broken')\n")
    assert command(*RUN, cwd=tmp_path).returncode == 2
    (tmp_path / "helper.py").write_text(HELPER)
    assert command(*RUN, cwd=tmp_path).returncode == 0


def test_a_worker_finds_what_serial_does_and_what_changed_since(tmp_path, monkeypatch):
    monkeypatch.chdir(write(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path / "src"))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'src'}:{Path(perdure.__file__).parents[1]}")
    before = set(sys.modules)
    try:
        spec = RunSpec(
            "curriculum.py:coins", ("mine.py:Mine",), lifetimes=2, out="o", executor="serial"
        )
        plan = make_plan(spec)
        [first, second] = plan.jobs
        execute(plan)
        serial = codes(plan.path / first.id)
        shutil.rmtree("o")
        plan.save()
        subprocess.run(plan.command(first), check=True)
        assert codes(plan.path / first.id) == serial
        # What runs here is what was loaded, whatever its file says by now; a new plan is refused.
        from perdure.run.mixing import check_plan, write_plan

        write_plan(plan)
        Path("helper.py").write_text(HELPER.replace("STEP = 1", "STEP = 0"))
        assert plan.code("Mine") == serial[0]
        with pytest.raises(
            SpecError, match=r"helper\.py has changed since this process imported it"
        ):
            check_plan(plan)
        # A worker that starts while the run goes on has the new file, and says so.
        done = subprocess.run(plan.command(second), capture_output=True, text=True)
        assert done.returncode == 1 and "helper.py changed since the run began" in done.stderr
        assert not LifetimeFolder(plan.path / second.id).journal().commits
        assert load_plan(plan.path).mix_code is False
    finally:
        for name in set(sys.modules) - before:
            del sys.modules[name]


def make(action, bonus=0):
    """A class as a notebook defines it: its module has no file."""
    text = (
        f"import perdure\nSHARED = {bonus}\ndef helper(n):\n    return [{action} + SHARED] * n\n"
        "class Mine(perdure.Agent):\n    def act(self, obs, ctx):\n        return helper(len(obs))\n"
    )
    cell = {"__name__": "__main__"}
    exec(compile(text, "<cell>", "exec"), cell)
    return cell["Mine"]


def test_a_class_that_is_redefined_never_gives_old_rows(tmp_path):
    keys = {"out": str(tmp_path / "o"), "checkpoint": 100}
    where = "toy/compass,steps=20,episodes=1"
    old = perdure.experiment(where, {"mine": make(1)}, **keys).rows()
    again = perdure.experiment(where, {"mine": make(1)}, **keys).rows()
    assert again.equals(old)
    for other in (make(2), make(1, bonus=1)):
        with pytest.raises(CodeChanged, match=r"__main__\.\w+.* changed since mine/0 ran"):
            perdure.experiment(where, {"mine": other}, **keys)
    [found] = codes(tmp_path / "o/mine/0")
    assert {"__main__.Mine", "__main__.helper"} <= {*found["agent"]}
    run = perdure.experiment(where, {"mine": make(2)}, lifetimes=2, mix_code=True, **keys)
    assert [i.status for i in run.lifetimes()] == ["done"] * 2


def test_factories_are_told_apart_by_what_they_hold(tmp_path):
    from functools import partial

    from perdure.run.code import code_record

    def code(factory):
        return code_record([factory], [])["agent"]

    class Net:
        def __init__(self, size):
            self.size = size

    Net.__module__ = "__main__"
    made = make(1)
    assert code(partial(made, lr=0.1)) == code(partial(made, lr=0.1))
    # What surrounds the code (this file) stands for its functions; a notebook's stand for themselves.
    assert "test_code.py" in "".join(code(lambda setup: made(setup)))
    cell = {"__name__": "__main__", "made": made, "net": Net(3), "table": {"a": [1, 2]}}
    exec("factory = lambda setup: made(setup, net, table)\nother = 1", cell)
    one = code(cell["factory"])
    cell["net"].size = 4
    two = code(cell["factory"])
    cell["net"].size, cell["table"] = 3, {"a": [1, 3]}
    three = code(cell["factory"])
    cell["table"], cell["other"] = {"a": [1, 2]}, 2
    assert one != two and one != three and code(cell["factory"]) == one


def test_what_a_file_does_not_tell_of_its_functions_is_told(tmp_path, monkeypatch):
    """Functions that a function made, and classes of a module that was loaded anew since."""
    from perdure.run.code import code_record

    (tmp_path / "workshop.py").write_text(
        "class Mine:\n    lr = 1\n\ndef with_rate(lr):\n    return lambda setup: (Mine(), lr)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    workshop = importlib.import_module("workshop")
    try:
        plain, one, two = (
            code_record([f], [])["agent"]
            for f in (workshop.Mine, workshop.with_rate(1), workshop.with_rate(2))
        )
        assert {*plain} == {"workshop.py"} and one["workshop.py"] == two["workshop.py"]
        assert {*one} == {"workshop.py", "workshop.py:with_rate.<locals>.<lambda>"}
        assert one != two and one == code_record([workshop.with_rate(1)], [])["agent"]
        old = workshop.Mine
        (tmp_path / "workshop.py").write_text("class Mine:\n    lr = 2  # Another size, too.\n")
        importlib.reload(workshop)
        assert code_record([old], [])["agent"] != code_record([workshop.Mine], [])["agent"]
    finally:
        del sys.modules["workshop"]


def test_imports_by_made_up_names_count_what_they_may_find(tmp_path, monkeypatch):
    from perdure.run.code import code_record

    package = tmp_path / "zoo"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import importlib\nnet = importlib.import_module('zoo.' + 'a')\n"
    )
    for name in ("a", "b"):
        (package / f"{name}.py").write_text("from . import c  # noqa\n" if name == "a" else "")
    (package / "c.py").write_text("from .sub.d import (\n    x,  # a comment\n    y,\n)\n")
    (package / "sub").mkdir()
    (package / "sub/d.py").write_text("x = y = 1\nimport scipy.stats, PIL\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = code_record(["zoo.a"], [])
    assert {*found["agent"]} == {f"zoo/{n}.py" for n in ("__init__", "a", "b", "c", "sub/d")}
    assert {"scipy", "PIL"} <= {*found["versions"]}
    assert "zoo" not in sys.modules
