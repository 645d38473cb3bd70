"""Bad arguments to every verb: a sentence and an exit code, never a traceback.

Nothing here names a path outside the test's own folder to write to: devices are reached by links,
which are all that a mistake could replace.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from perdure.api import experiment
from perdure.cli.main import main

DEEP = 20_000
NAMES = (
    "", " ", "../x", "nowhere", "x" * 300, "x" * 5000, "a\udcffb", "\x1b[31m", "\n", "=", ",", "a=",
    "a=b=c", "x,=", "x,y", "q,lr=[[[[", "q,lr=" + "[" * 5000, "q,lr=" + "[{a=" * 3000, "q,lr='",
    "toy", "toy/", "toy/nothing", "toy/check,steps=-1", "toy/check,nothing=1",
    "toy/check,steps=[1]", "file.py:", ":x", ".py:x", "bad.py:f", "exit.py:f", "raises.py:f",
    "null.py:x", "latin.py:x", "good.py:x", "good.py:f", "good.py:C", "good.py:deep", "good.py:",
    "+", "q+q", "ewc+", "a\0b", "q,lr=x", "9" * 5000,
)  # fmt: skip
NUMBERS = ("-1", "nan", "x", "9" * 400, "1.5", "", "99999999999999999999", "9" * 5000)
EXECUTORS = (
    "", "nothing", "serial,deadline=x", "serial,retries=[1]", "processes,workers=two",
    "processes,deadline=inf", "processes,deadline=nan", "processes,nothing=1", "good.py:C",
    "good.py:x", "serial,deadline={a=1}", "processes,workers=1.5", "serial,", "serial,deadline=true",
)  # fmt: skip
OUTS = (
    "full", "file", "folder", "file/x", "x" * 300, "o\udcff", "", "loop", "a\0b", "good/random",
    "/proc/nothing/x",
)  # fmt: skip
FORMATS = ("csv", "json", "parquet", "l2logger", "tensorboard", "compact", "safetensors")
RUN = ("run", "toy/check", "-q", "-a", "random", "-o", "new", "--executor", "serial")
EVAL = ("eval", "metaworld/reach", "-p", "random", "-n", "1", "--set", "horizon=2", "-q", "-o", "new", "--executor", "serial")  # fmt: skip
SWEEP = ("sweep", "toy/check", "-a", "random", "--search", "x=int(1,2)", "-o", "tuned", "-t", "1")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run, its logs, and many files that are not what they should be."""
    here = tmp_path_factory.mktemp("fuzz")
    experiment("toy/check", ["random"], executor="serial", out=str(here / "good"))
    export = ["export", str(here / "good"), "-f", "l2logger", "-o", str(here / "logs")]
    assert CliRunner().invoke(main, export).exit_code == 0
    (here / "folder").mkdir()
    (here / "folder.toml").mkdir()
    (here / "loop").symlink_to("loop")
    (here / "loop.toml").symlink_to("loop.toml")
    (here / "full").symlink_to("/dev/full")
    (here / "null").symlink_to("/dev/null")
    spec = 'curriculum = "toy/check"\n'
    for name, data in {
        "file": "x", "bad.py": "def f(:\n", "exit.py": "import sys; sys.exit(3)\n",
        "raises.py": "raise RuntimeError\n", "null.py": "x = 1\0\n", "latin.py": b"x = '\xff'\n",
        "good.py": "x = 3\ndef f(): return 3\nclass C: pass\ndef deep(): return deep()\n",
        "empty.toml": "", "latin.toml": b'curriculum = "caf\xe9"\n', "binary.toml": bytes(range(256)),
        "utf16.toml": spec.encode("utf-16"), "deep.toml": "seed = " + "[" * DEEP + "]" * DEEP,
        "tables.toml": "agents = " + "{a=" * 5000 + "1" + "}" * 5000,
        "types.toml": "curriculum = 3\nagents = {a=1}\n", "numbers.toml": f"{spec}agents = [1, 2]\n",
        "date.toml": "curriculum = 2020-01-01\n", "list.toml": f'{spec}executor = ["serial"]\n',
        "long.toml": f'{spec}agents = ["{"x" * 100_000}"]', "seed.toml": f"{spec}seed = {'9' * 5000}",
        "deep.json": "[" * DEEP + "]" * DEEP, "objects.json": '{"a":' * DEEP + "1" + "}" * DEEP,
        "latin.json": b'{"a": "\xff"}', "half.json": '{"a": ', "list.json": "[1, 2]",
        "nan.json": '{"goal": {"min": NaN, "max": Infinity}, "task": "x"}',
        "digits.json": f'{{"a": {"9" * 5000}}}',
        "types.json": '{"goal": [1], "perf_measure": {"x": 1}, "window_length": "no"}',
    }.items():  # fmt: skip
        (here / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return here


def cases(here: Path) -> list[tuple[str, ...]]:
    """Every argument of every verb, bad in every way."""
    files = (*OUTS, "good", "logs", "nowhere", "deep.json", "good/_meta", "good.py")
    out: list[tuple[str, ...]] = [("ls", n) for n in NAMES]
    for name in NAMES:
        out += [("run", name, *RUN[2:]), (*RUN[:4], name, *RUN[5:]), ("check", name)]
        out += [("play", "good", flag, name, "--no-video") for flag in ("-a", "-t", "--expert")]
        out += [("check", "q", "--on", name)]
        for agent in ("from_run,run", "from_run,run=good,agent", "policy,fn", "sb3,load"):
            out += [(*RUN[:4], f"{agent}={name}", *RUN[5:])]
        out += [("sweep", name, *SWEEP[2:]), (*SWEEP[:3], name, *SWEEP[4:])]
        out += [(*SWEEP[:5], f"x={name}", *SWEEP[6:])]
        out += [("generate", name, "new"), ("generate", "libero", "new", "--kind", name)]
        out += [("gallery", name), ("leaderboard", "good", "--curriculum", name)]
        out += [("demos", name, "new"), ("animate", "good", "--task", name, "-o", "a.gif")]
        out += [(v, "good", "--metric", name) for v in ("measure", "leaderboard", "compare")]
        out += [("compare", "good", "--baseline", name), ("measure", "good", "-p", name)]
        out += [("eval", name, *EVAL[2:]), (*EVAL[:3], name, *EVAL[4:])]
        out += [(*EVAL, flag, name) for flag in ("--protocol", "--set")]
        out += [("protocols", name), ("protocols", "libero", name), ("selftest", name)]
        out += [
            ("record", name, "-o", "new"),
            ("convert", name, "new"),
            ("record", "metaworld/reach", "-p", name, "-o", "file"),
        ]
        out += [("serve", name), ("serve", "random", "--for", name, "--host", "nowhere")]
        out += [(v, "logs", "--ste", name) for v in ("measure", "compare", "report")]
    out += [("run", p.name, "-o", "new", "-q") for p in here.glob("*.toml")]
    out += [("run", f"{'x' * 300}.toml"), ("run", "nowhere.toml"), ("run",), ("measure",)]
    for number in NUMBERS:
        out += [(*RUN, flag, number) for flag in ("-n", "-s", "--envs", "--checkpoint")]
        out += [("play", "good", flag, number) for flag in ("-n", "-s", "--commit")]
        out += [(*EVAL, flag, number) for flag in ("-s", "--envs", "--timeout", "--lifetimes")]
        out += [("measure", "good", "-w", number), ("view", "nowhere", "--port", number)]
        out += [("generate", "libero", "new", f, number, "--kind", "x") for f in ("-n", "-s")]
    out += [(*RUN[:-1], executor) for executor in EXECUTORS]
    out += [("check", executor) for executor in EXECUTORS[1:]]
    for file in files:
        out += [(v, file) for v in ("measure", "compare", "leaderboard", "watch", "check", "play")]
        out += [("report", file, "-o", "p.html"), ("measure", "logs", "--ste", f"x={file}")]
        out += [("export", file, "-f", kind, "-o", "exported") for kind in FORMATS]
        out += [("view", file) for file in ("", "nowhere", "a\0b", "x" * 300, "file")]
    for name in OUTS:
        out += [(*RUN[:6], name, *RUN[7:]), ("gallery", "toy", "-o", name)]
        out += [("generate", "toy", name)]
        out += [("export", "good", "-f", kind, "-o", name) for kind in FORMATS]
        out += [("play", "good", "-t", "toy/goal-ne", "-o", name)]
        out += [("report", "good", "-o", name), ("leaderboard", "good", "--html", name)]
        out += [(v, "good", "--json", name) for v in ("measure", "compare")]
    for file in (*(p.name for p in here.glob("*.json")), *OUTS):
        for flag in ("-d", "-c"):
            out += [("measure", "logs", flag, file, "--preset", p) for p in ("paper", "reference")]
            out += [("compare", "logs", "good", "--anyway", flag, file)]
    return out


def test_every_verb_is_in_it(place: Path) -> None:
    assert isinstance(main, click.Group)
    assert {c[0] for c in cases(place)} == set(main.commands) - {"doctor"}


@pytest.mark.parametrize("part", range(4))
def test_bad_arguments(part: int, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of them."""
    monkeypatch.chdir(place)
    every = sorted(set(cases(place)))
    for case in every[part::4]:
        for folder in ("new", "exported"):
            shutil.rmtree(place / folder, ignore_errors=True)
        result = CliRunner().invoke(main, case)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise AssertionError(f"perdure {case!r:.300}") from result.exception
        assert "Traceback" not in result.output, case
        assert len(result.output) < 100_000, case


@pytest.mark.parametrize("verb", ["measure", "compare", "report", "leaderboard"])
def test_devices_are_written_to_and_not_replaced(verb: str, place: Path) -> None:
    """``--json /dev/null`` is no wish to have a file there instead."""
    flag = {"report": "-o", "leaderboard": "--html"}.get(verb, "--json")
    for name, code in (("null", 0), ("full", 2)):
        result = CliRunner().invoke(main, [verb, str(place / "good"), flag, str(place / name)])
        assert result.exit_code == code, result.output
        assert (place / name).is_symlink() and (place / name).is_char_device()
    assert "no space left" in result.stderr
