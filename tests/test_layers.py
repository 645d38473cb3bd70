"""Imports go downward only, and re-measuring needs no agents, simulators or torch."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import perdure

ROOT = Path(perdure.__file__).parent
RANK = {
    "errors": 0, "arrays": 0, "names": 1, "cache": 1, "types": 2, "seeds": 2, "specs": 2, "agent": 3,
    "registry": 3, "curricula": 4, "suites": 5, "agents": 5, "store": 6, "run": 7, "measure": 8,
    "show": 9, "testing": 10, "cli": 11,
}  # fmt: skip
BASE = {"errors", "arrays", "names", "types"}
ONLY = {"measure": {"store", *BASE}, "show": {"store", "measure", *BASE}}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            if node.module == "perdure":
                yield from (f"perdure.{a.name}" for a in node.names)


def test_imports_go_downward():
    wrong = []
    for path in ROOT.rglob("*.py"):
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if room in ("__init__", "__main__"):
            continue
        assert room in RANK, f"{path}: give the new room {room} a rank"
        for name in imports(path):
            parts = name.split(".")
            if parts[0] != "perdure" or len(parts) < 2 or parts[1] == room:
                continue
            allowed = parts[1] in ONLY.get(room, RANK) and RANK[parts[1]] < RANK[room]
            if not allowed:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not wrong, "\n".join(wrong)


NAMES = re.compile(
    r"(?<!\w)_(meta|ckpt|parts|video|journal)\b|journal\.json|sessions\.json"
    r"|(spec|jobs|lifetime|progress|error|index)\.json"
)
"""What is called so below a run is the business of perdure.store alone."""


def test_names_below_a_run_are_known_to_the_store_alone():
    """Others ask a RunFolder or a LifetimeFolder; prose may speak of them."""
    found = []
    for path in ROOT.rglob("*.py"):
        if path.relative_to(ROOT).parts[0] == "store":
            continue
        tree = ast.parse(path.read_text())
        prose = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if id(node) not in prose and NAMES.search(node.value):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.value!r}")
    assert not found, "\n".join(found)


def modules_after(code):
    code += "; import sys; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_measure_and_show_are_light():
    code = "import perdure.measure.matrix, perdure.show.summary, perdure.show.live"
    heavy = {"torch", "gymnasium", "minigrid", "stable_baselines3", "mujoco", "perdure.run.loop"}
    assert not modules_after(code) & heavy


def test_help_imports_nothing_heavy():
    code = (
        "import contextlib, io, perdure.cli.main as m\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "    m.main(['--help'])\n"
        "0"
    )
    heavy = {"torch", "scipy", "matplotlib", "pyarrow", "gymnasium", "pandas"}
    assert not modules_after(code) & heavy


def test_nothing_refused_in_the_source():
    """No pickle loading, no eval() or exec(), no bare except, no seeding of global generators
    outside the one file that puts them back."""
    found = []
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ExceptHandler) and node.type is None:
                found.append(f"{path}:{node.lineno} bare except")
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                if node.func.id in ("eval", "exec"):
                    found.append(f"{path}:{node.lineno} {node.func.id}()")
            if isinstance(node, ast.Import) and any(a.name == "pickle" for a in node.names):
                found.append(f"{path}:{node.lineno} pickle")
    assert not found, "\n".join(found)
