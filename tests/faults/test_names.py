"""Names that could escape their folder, break a terminal or a file system: refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import LIVES, arguments, cli

from perdure import registry
from perdure.curricula.named import curriculum_of
from perdure.errors import NameRefused, PerdureError, SpecError
from perdure.names import check_name, slug
from perdure.run.plan import load_plan, make_plan
from perdure.run.spec import RunSpec
from perdure.specs import Spec
from perdure.types import Curriculum, Exposure, Task, learn

BAD = {
    "parent": "../x",
    "inside": "a/../../x",
    "absolute": "/etc/x",
    "nul": "a\0b",
    "long": "x" * 300,
    "hidden": ".x",
    "empty": "",
    "escape": "a\x1b[2Jb",
    "newline": "a\nb",
    "backslash": "..\\x",
    "twice": "a//b",
}
bad = pytest.mark.parametrize("name", BAD.values(), ids=BAD)


@bad
def test_tasks(name: str) -> None:
    for make in (lambda: Task(name, "x"), lambda: Task("toy", name), lambda: slug(name)):
        with pytest.raises(NameRefused):
            make()
    if name:
        with pytest.raises(NameRefused):
            Task("toy", "x", name)
        with pytest.raises(PerdureError):
            registry.task(f"toy/{name}")
        with pytest.raises(PerdureError):
            registry.task(name)


@bad
def test_curricula(name: str) -> None:
    with pytest.raises(NameRefused):
        Curriculum(name, (learn(Exposure(Task("toy", "bandit"), 1)),))
    with pytest.raises(PerdureError):
        curriculum_of(Spec(name))


@bad
def test_agents(name: str, tmp_path: Path) -> None:
    """As a label and as a name, on the command line, and nothing is written anywhere."""
    for agent in (f"{name}=q", name):
        if agent == "=q" or not agent:
            continue
        code, _, err = cli(*arguments(tmp_path / "deep/er/run", "toy/check", [agent]))
        assert code == 2, agent
        assert "NameRefused" in err or "SpecError" in err or "UnknownName" in err, err
        assert "\x1b" not in err and "\0" not in err
    with pytest.raises((NameRefused, SpecError)):
        Spec.parse(f"{name}=q")
    assert list(tmp_path.iterdir()) == []


def test_labels_that_are_our_own_folders(tmp_path: Path) -> None:
    for label in ("experts", "rows"):
        with pytest.raises(NameRefused):
            make_plan(RunSpec("toy/check", (f"{label}=q",), out=str(tmp_path / "run")))


def test_runs(tmp_path: Path) -> None:
    """A run's folder is a path the user chooses, but one that can be."""
    for out in (f"{tmp_path}/a\0b", f"{tmp_path}/{'x' * 300}", f"{tmp_path}/{'x' * 300}/y"):
        code, _, err = cli(*arguments(Path(out), "toy/check"))
        assert code == 2 and "NameRefused" in err, err
    assert list(tmp_path.iterdir()) == []


@bad
def test_lifetimes(name: str, tmp_path: Path) -> None:
    """The name of a lifetime that a worker is told to run comes from the plan or not at all."""
    plan = make_plan(RunSpec("toy/check", ("q",), out=str(tmp_path / "run"), executor="serial"))
    plan.save()
    for job in (name, f"q/{name}", f"q/0/../../{name}"):
        with pytest.raises(PerdureError):
            load_plan(plan.path).job(job)


def test_default_folders_stay_inside_runs() -> None:
    for curriculum in ("toy/check", "toy/check,task=reach", f"{LIVES}:life", "../x/../y.py:z"):
        folder = RunSpec(curriculum).folder
        assert folder.parts[0] == "runs" and len(folder.parts) == 2 and ".." not in folder.parts


def test_files_with_nul() -> None:
    with pytest.raises(NameRefused):
        registry.load_file("a\0b.py:x")


@bad
def test_a_sound_name_passes_and_this_one_does_not(name: str) -> None:
    assert check_name("task", "CartPole-v1") == "CartPole-v1"
    with pytest.raises(NameRefused) as refused:
        check_name("task", name)
    assert "task" in str(refused.value) and "\x1b" not in str(refused.value)
