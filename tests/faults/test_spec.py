"""``run`` again is resume, never something else: a changed specification is refused with a
diff."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers import LIFE, LIVES, arguments, cli, done, finish, run_here, same, snapshot, statuses

from perdure.store.layout import LifetimeFolder
from perdure.store.log import Lifetime
from perdure.testing.agents import cut_journal, read_rows

SMALL = {"curriculum": f"{LIFE},steps=20", "agents": ["a=q,lr=0.5"]}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A run that was interrupted."""
    done(run_here(tmp_path / "run", **SMALL))
    cut_journal(tmp_path / "run/a/0", 1)
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("change", "was", "now"),
    [
        ({"seed": 1}, '"seed": 0', '"seed": 1'),
        ({"envs": 2}, '"envs": 1', '"envs": 2'),
        ({"checkpoint": 50}, '"checkpoint": 40', '"checkpoint": 50'),
        ({"curriculum": f"{LIFE},steps=21"}, "steps=20", "steps=21"),
        ({"curriculum": "toy/check"}, "lives.py:life", "toy/check"),
        ({"agents": ["a=q,lr=0.25"]}, "q,lr=0.5", "q,lr=0.25"),
        ({"agents": ["a=random"]}, "q,lr=0.5", "random"),
    ],
    ids=["seed", "envs", "checkpoint", "parameter", "curriculum", "agent parameter", "agent"],
)
def test_a_changed_command_is_refused(
    change: dict[str, Any], was: str, now: str, out: Path
) -> None:
    before = sorted((p, p.stat().st_mtime_ns) for p in out.rglob("*"))
    code, _, err = cli(*arguments(out, **{**SMALL, **change}))
    assert code == 2 and "SpecError" in err and "holds another run" in err
    diff = err.splitlines()
    assert any(x.startswith("-") and was in x for x in diff), err
    assert any(x.startswith("+") and now in x for x in diff), err
    assert "--out" in err, "the way out is named"
    assert sorted((p, p.stat().st_mtime_ns) for p in out.rglob("*")) == before, "untouched"


@pytest.mark.parametrize("executor", ["serial", "processes"])
@pytest.mark.parametrize(
    ("file", "key", "value"),
    [
        ("_meta/spec.json", "seed", 5),
        ("_meta/spec.json", "envs", 4),
        ("_meta/spec.json", "agents", {"a": "random"}),
        ("a/0", "seed", 5),
        ("a/0", "fingerprint", "0" * 12),
        ("a/0", "agent", "q,lr=0.1"),
    ],
)
def test_a_folder_of_another_specification_is_refused(
    file: str, key: str, value: Any, executor: str, out: Path
) -> None:
    path, rows = out / file, snapshot(out)
    if path.is_dir():
        folder = LifetimeFolder(path)
        folder.write_description({**(folder.description() or {}), key: value})
    else:
        path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    code, _, err = cli(*arguments(out, executor=executor, **SMALL))
    assert code == (2 if "spec" in file else 1), err
    assert "SpecError" in err and "--- on disk" in err and "+++ asked for" in err
    shown = json.dumps(value).strip("{}")
    assert any(x.startswith("-") and shown in x for x in err.splitlines()), err
    life = Lifetime.read(out / "a/0", verify=True)
    assert not life.notes and read_rows(out / "a/0") == rows["a/0"]["rows"], "no row was touched"


NONE = ["", "{", "[]", "{}", '{"agents": ["q"]}', "null", "\x00", "[" * 100_000, '{"a":' * 500]


@pytest.mark.parametrize("text", NONE, ids=range(len(NONE)))
def test_a_specification_that_is_none(text: str, out: Path) -> None:
    path = out / "_meta/spec.json"
    path.write_text(text)
    code, _, err = cli(*arguments(out, **SMALL))
    assert code in (1, 2)
    assert "SpecError" in err or "StoreError" in err, err
    assert str(path) in err or "on disk" in err, err


@pytest.mark.parametrize("text", [*NONE, None, "edited"], ids=range(len(NONE) + 2))
def test_a_description_that_is_none_is_made_anew(
    text: str | None, out: Path, tmp_path: Path
) -> None:
    """It follows from the specification; the rows are what they would have been."""
    path = out / "a/0/_meta/lifetime.json"
    good = path.read_text()
    path.unlink()
    if text is not None:
        path.write_text(good.replace('"seed": 0', '"seed": 1') if text == "edited" else text)
    code, _, err = cli("measure", str(out))
    assert code == 1 and str(path) in err, err
    code, _, err = cli(*arguments(out, **SMALL))
    assert code == 0, err
    assert text is None or str(path) in err, err
    assert path.read_text() == good
    done(run_here(tmp_path / "whole", **SMALL))
    same(out, snapshot(tmp_path / "whole"))


def test_a_changed_curriculum_file_is_refused(tmp_path: Path) -> None:
    """The words are the same, what they mean is not."""
    file, out = tmp_path / "mine.py", tmp_path / "run"
    text = f"import sys\nsys.path.insert(0, {str(LIVES.parent)!r})\nimport lives\n"
    file.write_text(text + "def life():\n    return lives.life(20)\n")
    args = arguments(out, f"{file}:life", ["q"], executor="processes")
    assert cli(*args)[0] == 0
    file.write_text(text + "def life():\n    return lives.life(30)\n")
    code, _, err = finish(args)
    assert code == 2 and "SpecError" in err and '"amount": 30' in err and '"amount": 20' in err
    assert statuses(out)["q/0"][0] == "done"


def test_more_agents_and_lifetimes_may_be_added(out: Path, tmp_path: Path) -> None:
    """What only adds is not a change: what was there stays as it was."""
    more = {**SMALL, "agents": ["a=q,lr=0.5", "random"], "lifetimes": 2}
    code, _, err = cli(*arguments(out, **more))
    assert code == 0, err
    done(run_here(tmp_path / "whole", **more))
    same(out, snapshot(tmp_path / "whole"))
