"""Imports go downward only, and re-measuring needs no agents, simulators or torch."""

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import perdure

ROOT = Path(perdure.__file__).parent
RANK = {
    "errors": 0, "arrays": 0, "relayed": 0.5, "pythonpath": 0, "spaces": 0.5, "parameters": 0, "pools": 1, "padding": 1, "names": 1, "protocol": 1, "cache": 1, "types": 2,
    "seeds": 2, "specs": 2, "agent": 3, "own_files": 3, "suite": 3.5, "wrappers": 4, "registry": 5, "curricula": 5.5,
    "shared_spaces": 6, "policies": 6, "datasets": 6.5, "suites": 7, "agents": 7, "store": 8, "run": 9, "measure": 10, "show": 11,
    "testing": 12, "tuning": 12, "cli": 13, "api": 14,
}  # fmt: skip
BASE = {"errors", "arrays", "names", "protocol", "types"}
ONLY = {"measure": {"store", *BASE}, "show": {"store", "measure", *BASE}}


INNER = {
    "agents": (
        {"task_boundary", "wrapped", "_chunks"},
        {"networks"},
        {"random", "learners", "strategies"},
        {"adapters", "compose", "policy", "expert", "remote", "infer", "finetuned"},
    ),
    "run": (
        {"pace"},
        {"spec", "guards", "progress", "results", "signals", "runner", "guardian", "crashes", "sources", "conventions", "demos"},
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
    "store": (
        {"code", "places", "plain", "rows", "sealed", "state", "urls"},
        {"files"},
        {"lock", "objects"},
        {"bucket", "checkpoints", "descriptions", "disk", "metadata"},
        {"journal", "location"},
        {"membership"},
        {"lifetime_folder"},
        {"layout"},
        {"log", "repeats", "completeness"},
        {"run"},
        {"compact", "history", "saved", "tensorboard"},
        {"export", "l2logger", "safetensors"},
    ),
    "policies": (
        {"pictures", "wire"},
        {"interface"},
        {"client"},
        {"sockets"},
        {"groot", "openvla", "openpi", "vla_eval"},
        {"connect", "server"},
    ),
    "datasets": ({"episodes", "files", "tfrecord"}, {"hdf5", "lerobot", "minari", "rlds"}, {"convert"}),
    "testing": (
        {"faulty", "report", "shortened"},
        {"agents", "metrics", "suites"},
        {"executors", "strategies"},
    ),
    "measure": (
        {"matrix", "stats", "outlines"},
        {"metric", "compare", "sources", "paired"},
        {"benchmark", "l2m", "gem", "cw", "meta", "online", "plasticity"},
        {"summary"},
        {"openloris", "libero", "kept"},
        {"metaworld", "results"},
        {"settings", "agent_comparison"},
        {"runs"},
    ),
    "show": (
        {"colours", "names", "screen", "thin", "outline", "eta", "rounding"},
        {"sheet"},
        {"summary", "measured", "live", "leaderboard", "listing", "evaluation"},
        {"report"},
        {"still_page", "animation"},
        {"figures", "videos", "leaderboard_page", "view", "gallery"},
        {"pictures"},
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
"""Rooms within rooms, lowest first: a part imports from those before it alone. Suites know nothing of
each other, and the parts of a package deeper down are only held to import in no circle."""


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
    r"(?<!\w)_(meta|ckpt|parts|video|journal|figures|eval|pictures)\b|journal\.json|sessions\.json"
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


def ends_in(node, name):
    """Whether this is a name, an attribute, or ``str()`` of one, that is called so."""
    if isinstance(node, ast.Call) and len(node.args) == 1:
        node = node.args[0]
    return name in (getattr(node, "id", None), getattr(node, "attr", None))


def joins_a_lifetime(node):
    """Whether this makes a lifetime's path or id of its parts: ``folder / job.id``,
    ``folder / agent / str(seed)``, ``f"{agent}/{seed}"``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        right = node.right
        job = (
            isinstance(right, ast.Attribute) and right.attr == "id" and ends_in(right.value, "job")
        )
        seed = isinstance(node.left, ast.BinOp) and ends_in(right, "seed")
        return job or seed or ends_in(right, "job") or ends_in(right, "job_id")
    if isinstance(node, ast.JoinedStr):
        for before, part in pairwise(node.values):
            slash = isinstance(before, ast.Constant) and before.value.endswith("/")
            if slash and isinstance(part, ast.FormattedValue) and ends_in(part.value, "seed"):
                return True
    return False


def test_paths_of_lifetimes_are_made_by_the_store_alone():
    found = []
    for path in ROOT.rglob("*.py"):
        if path.relative_to(ROOT).parts[0] != "store":
            for node in ast.walk(ast.parse(path.read_text())):
                if joins_a_lifetime(node):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}")
    assert not found, "\n".join(found)


class Imports(ast.NodeVisitor):
    """The modules of Perdure that a file imports, also within functions: types alone are nobody's
    order."""

    def __init__(self, path, modules):
        self.modules, self.found = modules, set()
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
            while name and name not in self.modules:
                name = name.rpartition(".")[0]
            self.found.add(name)


@cache
def imported():
    """What every module imports of the others."""
    modules = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {name: Imports(path, modules).found for name, path in modules.items()}


def parts_of(package):
    """What each part of a package imports of the others; a name that its __init__ gives is no part."""
    parts, head = {}, package + "."
    for name, found in imported().items():
        if name.startswith(head):
            part = name[len(head) :].split(".")[0]
            others = {o[len(head) :].split(".")[0] for o in found if o.startswith(head)}
            parts.setdefault(part, set()).update(others - {part})
    return parts


def test_imports_within_a_package_go_one_way():
    """At every depth, from the rooms to the modules of a package within a room's package."""
    wrong = []
    for package in {name.rpartition(".")[0] for name in imported()} - {""}:
        try:
            TopologicalSorter(parts_of(package)).prepare()
        except CycleError as e:
            wrong.append(f"{package}: a circle of {' → '.join(e.args[1])}")
    assert not wrong, "\n".join(wrong)


def test_imports_within_a_room_go_downward():
    wrong = []
    for room, levels in INNER.items():
        parts = parts_of(f"perdure.{room}")
        order = {part: k for k, level in enumerate(levels) for part in level}
        assert order.keys() == parts.keys(), f"{room}: {order.keys() ^ parts.keys()}"
        wrong += [
            f"{room}/{part} imports {room}/{other}"
            for part, found in parts.items()
            for other in found
            if order[other] >= order[part]
        ]
    assert not wrong, "\n".join(wrong)


def test_no_suite_imports_another():
    """What suites share is in modules whose names begin with an underscore."""
    parts = parts_of("perdure.suites")
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


MOST_PARAMETERS = 8
USERS_PARAMETERS = {
    "suites/libero/lifelong.py lifelong",
    "suites/metaworld/protocols.py mt", "suites/metaworld/protocols.py ml1",
    "suites/metaworld/protocols.py online", "suites/metaworld/protocols.py protocol",
    "suites/openloris/protocols.py single_factor", "suites/openloris/protocols.py sequential",
    "suites/openloris/rendering/dataset.py render_dataset", "suites/toy/protocols.py online_navigation",
    "suites/vision/labelled.py __init__", "suites/vision/own.py from_arrays",
    "suites/vision/own.py from_dataset", "suites/vision/own.py from_folder", "tuning/search.py sweep",
    "suites/metaworld/fast_env.py _gripper_caging_reward",
}  # fmt: skip
"""Functions with more parameters than that: users choose them by name, or the signature is upstream's."""


def is_users(path, function):
    """Whether a function's parameters are a command's flags or an agent's settings."""
    command = any(ast.unparse(d).startswith("main.command(") for d in function.decorator_list)
    return command or (path.parts[0] == "agents" and function.name == "__init__")


def test_functions_have_few_parameters():
    """What belongs together is a record; lists that are passed from function to function are put in the
    wrong order sooner or later."""
    found = set()
    for file in ROOT.rglob("*.py"):
        path = file.relative_to(ROOT)
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = node.args
                names = {a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
                if len(names - {"self", "cls"}) > MOST_PARAMETERS and not is_users(path, node):
                    found.add(f"{path.as_posix()} {node.name}")
    assert not found - USERS_PARAMETERS
