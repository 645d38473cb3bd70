"""Imports go downward only, and re-measuring needs no agents, simulators or torch."""

import ast
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import perdure

ROOT = Path(perdure.__file__).parent
RANK = {
    "errors": 0, "arrays": 0, "spaces": 0, "parameters": 0, "pools": 0, "padding": 1, "names": 1, "protocol": 1, "cache": 1, "types": 2,
    "seeds": 2, "specs": 2, "agent": 3, "own_files": 3, "suite": 3.5, "curricula": 3, "wrappers": 4, "registry": 5,
    "shared_spaces": 6, "policies": 6, "datasets": 6.5, "suites": 7, "agents": 7, "store": 8, "run": 9, "measure": 10, "show": 11,
    "testing": 12, "tuning": 12, "cli": 13, "api": 14,
}  # fmt: skip
BASE = {"errors", "arrays", "names", "protocol", "types"}
ONLY = {"measure": {"store", *BASE}, "show": {"store", "measure", *BASE}}


INNER = {
    "agents": (
        {"networks"},
        {"random", "learners", "strategies", "_chunks"},
        {"adapters", "compose"},
    ),
    "run": (
        {"pace"},
        {"spec", "guards", "progress", "results", "signals", "runner", "guardian", "crashes", "sources", "conventions"},
        {"pruning", "persistence", "vector", "agent_state", "validate", "child_processes", "code", "memories", "budget", "generated", "boundaries"},
        {"repeat"},
        {"datasets", "env_runner", "video", "pictures"},
        {"config", "data_runner", "messages"},
        {"transcript"},
        {"eval_pool"},
        {"split"},
        {"plan", "loop"},
        {"mixing", "schedule"},
        {"lifetime", "from_run", "evaluation", "recording"},
        {"executors", "worker", "eval_worker", "play", "preflight", "selftest"},
        {"experiment"},
    ),
    "measure": (
        {"matrix", "stats", "outlines"},
        {"metric", "compare", "sources", "paired"},
        {"benchmark", "l2m", "gem", "cw", "meta", "online"},
        {"summary"},
        {"openloris", "metaworld", "libero", "results"},
        {"settings"},
    ),
    "show": (
        {"colours", "names", "screen", "thin", "outline", "eta"},
        {"sheet"},
        {"summary", "measured", "live", "leaderboard", "listing", "evaluation"},
        {"report"},
        {"still_page"},
        {"figures", "films", "leaderboard_page", "view", "gallery"},
    ),
    "cli": (
        {"terminal", "doctor"},
        {"group"},
        {"verbs", "describing", "checking", "measuring", "sweeping", "playing", "picturing", "demonstrating", "evaluating"},
        {"listing", "showing", "planning"},
        {"commands"},
        {"main"},
    ),
}  # fmt: skip
"""Rooms within rooms, lowest first: a part imports from those before it alone. Where a room or a
part has no place here, no circle is what is asked of it."""


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


class Inner(ast.NodeVisitor):
    """What a file imports from its own room when it runs: types alone are nobody's order."""

    def __init__(self, path):
        self.room, *rest = path.relative_to(ROOT).parts
        self.part = rest[0].removesuffix(".py")
        self.found = set()
        self.visit(ast.parse(path.read_text()))

    def visit_If(self, node):
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self.generic_visit(node)

    def visit_Import(self, node):
        self.add(a.name for a in node.names)

    def visit_ImportFrom(self, node):
        self.add(f"{node.module}.{a.name}" for a in node.names)

    def add(self, names):
        for name in names:
            parts = name.split(".")
            if parts[:2] == ["perdure", self.room] and len(parts) > 2 and parts[2] != self.part:
                self.found.add(parts[2])


def parts_of_rooms():
    """For each room: what each of its parts imports of the others."""
    rooms = {}
    for path in ROOT.rglob("*.py"):
        if path.parent == ROOT or (path.name == "__init__.py" and path.parent.parent == ROOT):
            continue
        inner = Inner(path)
        rooms.setdefault(inner.room, {}).setdefault(inner.part, set()).update(inner.found)
    # A name that a package's __init__ gives is no part.
    return {
        room: {part: found & parts.keys() for part, found in parts.items()}
        for room, parts in rooms.items()
    }


def test_imports_within_a_room_go_one_way():
    wrong = []
    for room, parts in parts_of_rooms().items():
        order = {part: k for k, level in enumerate(INNER.get(room, ())) for part in level}
        assert order.keys() <= parts.keys(), f"{room}: not there: {order.keys() - parts.keys()}"
        for part, found in parts.items():
            for other in found:
                if part in order and other in order and order[other] >= order[part]:
                    wrong.append(f"{room}/{part} imports {room}/{other}")
        try:
            TopologicalSorter(parts).prepare()
        except CycleError as e:
            wrong.append(f"{room}: a circle of {' → '.join(e.args[1])}")
    assert not wrong, "\n".join(wrong)


def test_no_suite_imports_another():
    """What suites share is in modules whose names begin with an underscore."""
    parts = parts_of_rooms()["suites"]
    wrong = {p: found for p, found in parts.items() if any(not f.startswith("_") for f in found)}
    assert not wrong


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


EACH_SUITE_HAS_ONE = {"Demonstrations", "ExpertAgent", "Pose", "Renderer", "Scene", "Settings"}
"""Class names for the same thing in several suites, which know nothing of each other."""


def test_a_class_name_means_one_thing():
    homes = {}
    for path in sorted(ROOT.rglob("*.py")):
        room = path.relative_to(ROOT).parts
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                if any(getattr(base, "attr", "") == node.name for base in node.bases):
                    continue  # The same thing, of which one can ask more.
                homes.setdefault(node.name, []).append("/".join(room))
    wrong = {name: where for name, where in homes.items() if len(where) > 1}
    for name in EACH_SUITE_HAS_ONE:
        suites = [where.split("/")[:2] for where in wrong.pop(name)]
        assert all(s[0] == "suites" for s in suites) and len({s[1] for s in suites}) == len(suites)
    assert not wrong
