"""A broken plugin warns and stops nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers import arguments, finish
from plugins import distribution, installed

GROUPS = ("suites", "agents", "strategies", "metrics", "executors")
SOUND = (
    "from perdure.agents.random import RandomAgent as agent\n"
    "from perdure.run.executors.serial import Serial as executor\n"
)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An installation with a sound plugin and several broken ones."""
    everywhere = {g: {f"broken-{g}": "broken_plugin:thing"} for g in GROUPS}
    distribution(tmp_path, "broken_plugin", everywhere, "raise RuntimeError('boom at import')\n")
    missing = {g: {f"missing-{g}": "no_such_module_at_all:thing"} for g in GROUPS}
    distribution(tmp_path, "missing_plugin", missing)
    hollow = {"suites": {"hollow": "hollow_plugin:suite"}}
    distribution(tmp_path, "hollow_plugin", hollow, "suite = 3\n")
    sound = {
        "agents": {"sound": "sound_plugin:agent"},
        "executors": {"one-by-one": "sound_plugin:executor"},
    }
    distribution(tmp_path, "sound_plugin", sound, SOUND)
    return installed(tmp_path)


def test_ls_warns_and_lists_the_rest(env: dict[str, str]) -> None:
    code, out, err = finish(["ls", "--json"], env=env)
    assert code == 0, err
    found = {part: {i["name"] for i in items} for part, items in json.loads(out).items()}
    assert {"toy", "gym"} <= found["suites"]
    assert {"q", "random", "sound"} <= found["agents"]
    assert {"serial", "processes", "ray", "one-by-one"} == found["executors"]
    assert "toy/check" in found["curricula"]
    for group in GROUPS:
        assert f"broken-{group}" not in found[group]
        assert any(f"broken-{group}" in x and "boom" in x for x in err.splitlines()), err
        assert any(f"missing-{group}" in x for x in err.splitlines()), err
    assert "Traceback" not in err
    code, out, err = finish(["ls", "suites"], env=env)
    assert code == 0 and "toy" in out


def test_everything_else_works_beside_it(env: dict[str, str], tmp_path: Path) -> None:
    args = arguments(tmp_path / "run", "toy/check", ["q", "sound"])
    code, _, err = finish(args, env=env)
    assert code == 0, err
    assert finish(["check", "toy/check"], env=env)[0] == 0


def test_an_executor_comes_by_entry_point(env: dict[str, str], tmp_path: Path) -> None:
    plugged = ["--executor", "one-by-one,retries=1"]
    code, _, err = finish([*arguments(tmp_path / "run", "toy/check", ["q"]), *plugged], env=env)
    assert code == 0, err
    for name, words in (
        ("broken-executors", "RuntimeError: boom at import"),
        ("one-by-on", "did you mean"),
    ):
        args = [*arguments(tmp_path / "other", "toy/check", ["q"]), "--executor", name]
        code, _, err = finish(args, env=env)
        assert code == 2 and words in err and "Traceback" not in err, err


def test_a_broken_plugin_that_is_asked_for_says_why(env: dict[str, str], tmp_path: Path) -> None:
    args = arguments(tmp_path / "run", "toy/check", ["broken-agents"])
    code, _, err = finish(args, env=env)
    assert code == 2
    assert "broken-agents" in err and "RuntimeError: boom at import" in err
    assert "Traceback" not in err


def test_names_that_could_escape_are_refused(tmp_path: Path) -> None:
    names = ("../x", "/etc/x", "a/../../x", "x" * 300, ".hidden", "a\x1b[2Jb")
    distribution(
        tmp_path,
        "odd_plugin",
        {"agents": {**{n: "odd_plugin:agent" for n in names}, "fine": "odd_plugin:agent"}},
        SOUND,
    )
    env = installed(tmp_path)
    code, out, err = finish(["ls", "agents", "--json"], env=env)
    assert code == 0, err
    listed = {i["name"] for i in json.loads(out)}
    assert "fine" in listed and not listed & set(names)
    assert err.count("plugin") >= len(names) and "\x1b" not in err
    code, _, err = finish(arguments(tmp_path / "run", "toy/check", ["label=../x"]), env=env)
    assert code == 2 and "NameRefused" in err, "known to the installation, and refused all the same"
    assert not (tmp_path / "run").exists()
