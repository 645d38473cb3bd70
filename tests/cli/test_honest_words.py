"""What doctor, errors and progress say is what is."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

import perdure
from perdure.cli import doctor
from perdure.cli.main import main
from perdure.errors import MissingExtra
from perdure.registry import EXTRAS
from perdure.store.layout import LifetimeFolder

ROOT = Path(__file__).parents[2]
BROKEN = """
import gymnasium
import numpy as np
from gymnasium import spaces

from perdure import Task, curricula


class Broken(gymnasium.Env):
    observation_space = spaces.Box(0, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.seed = 0, seed
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        if self.seed % 3 == 0 and self.steps == 3:
            raise ValueError("the arm fell off")
        return np.zeros(1, np.float32), 0.0, self.steps >= 5, False, {}


gymnasium.register("Broken-v0", Broken)


def life():
    return curricula.tasks_in_turn("life", [Task("gym", "Broken-v0")], amount=30)
"""


def test_doctor_knows_the_extras_there_are():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert set(extras) - {"all", "dev", "docs"} == set(EXTRAS) == set(doctor.PURPOSES) - {"core"}
    assert extras["all"] == [f"perdure[{','.join(EXTRAS)}]"]


def test_doctor_imports_nothing_heavy_and_says_so(monkeypatch):
    code = (
        "import sys\nfrom perdure.cli.main import main\n"
        "try:\n    main(['doctor'], standalone_mode=False)\nexcept SystemExit as e:\n    assert not e.code\n"
        "print([m for m in ('torch', 'mujoco', 'sklearn', 'matplotlib', 'ray', 'obstore') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]" and "doctor --thorough" in done.stdout
    assert "executor ray" in done.stdout and "suite libero" in done.stdout


def test_doctor_tells_what_is_missing_and_what_is_broken(monkeypatch, tmp_path):
    (tmp_path / "perdure_broken.py").write_text("import perdure_libsomething_so\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    monkeypatch.syspath_prepend(str(tmp_path))
    parts = {"vision": ("perdure_nowhere",), "video": ("perdure_broken",)}
    monkeypatch.setattr(doctor, "EXTRAS", parts)
    monkeypatch.setattr(
        doctor, "probe", lambda m, probe=doctor.probe: probe(m) if m != doctor.CORE else ""
    )
    quick = CliRunner().invoke(main, ["doctor"])
    assert quick.exit_code == 0 and "not installed" in quick.output, quick.output
    assert "pip install '.[vision]'" in " ".join(quick.output.split())
    thorough = CliRunner().invoke(main, ["doctor", "--thorough"])
    assert thorough.exit_code == 1 and "broken" in thorough.output


def test_hints_are_the_readmes():
    readme = (ROOT / "README.md").read_text()
    assert "pip install '.[all]'" in readme
    assert "pip install '.[vision]'" in str(MissingExtra("x", "vision"))


@pytest.mark.parametrize("envs", [3])
def test_an_environments_error_names_the_episode_and_how_to_repeat_it(tmp_path, monkeypatch, envs):
    monkeypatch.chdir(tmp_path)
    Path("broken.py").write_text(BROKEN)
    args = [
        "run",
        "broken.py:life",
        "-a",
        "random",
        "-o",
        "o",
        "--executor",
        "serial",
        "--envs",
        str(envs),
    ]
    monkeypatch.setattr(sys, "argv", ["perdure", *args])
    done = CliRunner().invoke(main, args)
    assert done.exit_code == 1 and "Traceback" not in done.stderr
    seed = int(done.stderr.partition("in the episode of seed ")[2].split()[0])
    assert seed % 3 == 0, "the seed of the slot that failed, not of another"
    command = "perdure run broken.py:life -a random -o o --envs"
    assert f"{command} {envs} --executor serial --debug" in done.stderr

    again = subprocess.run(
        [sys.executable, "-m", "perdure", *args, "--debug"],
        input="p ('seed', self.seed)\nq\n", capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert again.returncode == 1
    assert f"('seed', {seed})" in again.stdout, "the debugger is in the environment's step"
    assert "ValueError: the arm fell off" in again.stderr and "Traceback" in again.stderr


def test_debug_prints_the_traceback_of_any_error(tmp_path):
    args = ["measure", str(tmp_path / "nowhere")]
    plain, debug = (CliRunner().invoke(main, a) for a in (args, ["--debug", *args]))
    assert plain.exit_code == debug.exit_code == 2
    assert "Traceback" not in plain.stderr and "Traceback" in debug.stderr


def test_progress_counts_recording(tmp_path, monkeypatch):
    pytest.importorskip("imageio_ffmpeg")
    pytest.importorskip("pygame")
    signs = []
    write = LifetimeFolder.write_progress
    monkeypatch.setattr(
        LifetimeFolder, "write_progress", lambda self, v: (signs.append(dict(v)), write(self, v))
    )
    out = str(tmp_path / "x")
    perdure.experiment("gym/cartpole,learn=2", "random", video=True, executor="serial", out=out)
    recorded = [s for s in signs if s["kind"] == "video"]
    assert recorded and all(s["fraction"] < 1 and s["eta"] > 0 for s in recorded)
    assert {s["task"] for s in recorded} == {"gym/CartPole-v1"}
    assert signs[-1]["fraction"] == 1.0
