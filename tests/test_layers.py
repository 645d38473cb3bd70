"""Imports go downward only, and re-measuring needs no agents, simulators or torch."""

import ast
import subprocess
import sys
from pathlib import Path

import perdure

ROOT = Path(perdure.__file__).parent
RANK = {
    "errors": 0, "arrays": 0, "names": 1, "types": 2, "seeds": 2, "specs": 2, "agent": 3,
    "registry": 3,
    "curricula": 4, "suites": 5, "agents": 5, "store": 6, "run": 7, "measure": 8, "show": 9,
    "testing": 10, "cli": 11,
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


SHARED = {"ActorCritic", "Part"}
"""Class names that two modules may have for things of their own that nobody else sees."""


def test_a_class_name_means_one_thing():
    """Outside suites, whose rooms are their own; none of them takes a name of the contract."""
    homes = {}
    for path in sorted(ROOT.rglob("*.py")):
        room = path.relative_to(ROOT).parts
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append("/".join(room))
    twice = {}
    for name, where in homes.items():
        outside = [w for w in where if not w.startswith("suites/")]
        contract = any("/" not in w for w in where)
        if len(outside) > 1 or (contract and len(where) > 1):
            twice[name] = where
    assert not {n: w for n, w in twice.items() if n not in SHARED}
