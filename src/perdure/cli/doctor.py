"""What is installed on this machine and what it is for, and what to do about what is not."""

from __future__ import annotations

import ctypes.util
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from rich.console import Console

import perdure
from perdure.errors import PerdureError, install_command
from perdure.registry import EXTRAS, entries, suite
from perdure.show.sheet import Sheet

CORE = ("numpy", "scipy", "gymnasium", "pyarrow", "matplotlib", "jinja2", "click", "rich")
PURPOSES = {
    "core": "running, measuring, reports",
    "torch": "learners and strategies",
    "minigrid": "suite minigrid",
    "sb3": "agent sb3",
    "metaworld": "suite metaworld",
    "libero": "suite libero",
    "libero-official": "the published look and states of suite libero",
    "openloris": "suite openloris",
    "vision": "digits of suite vision",
    "video": "perdure run --video",
    "data": "datasets of others: Minari in HDF5, LeRobot with videos, RLDS",
    "tensorboard": "perdure export --format tensorboard",
    "safetensors": "perdure export --format safetensors",
    "sweep": "perdure sweep",
    "objectstore": "runs at s3://, gs://, az://",
    "ray": "perdure run --executor ray",
    "language": "instructions as vectors, agent sequence_bc",
    "policies": "perdure eval with policy servers, perdure serve",
}
RENDERING = {"EGL": "libegl1", "OSMesa": "libosmesa6"}
NEEDS_RENDERING = tuple(name for name, modules in EXTRAS.items() if "mujoco" in modules)


def missing(modules: tuple[str, ...]) -> list[str]:
    """Those of some modules that are not there. None is imported, which for torch takes seconds."""
    return [m for m in modules if importlib.util.find_spec(m) is None]


def probe(modules: tuple[str, ...]) -> str:
    """Import modules in a process of their own; the last line of what went wrong, or ''."""
    code = "; ".join(f"import {m}" for m in modules)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    if done.returncode == 0:
        return ""
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def diagnose(console: Console, thorough: bool = False) -> int:
    """Print the findings; 1 if something that is installed does not work, which only ``thorough``
    finds out: it imports everything."""
    console.print(
        f"perdure {perdure.__version__}, Python {platform.python_version()} on "
        f"{platform.platform()}, {len(os.sched_getaffinity(0))} cores, "
        f"{shutil.disk_usage(Path.cwd()).free / 2**30:.0f} GiB free here",
        highlight=False,
    )
    broken = False
    head = ("part", "for", "state", "to mend it")
    table = Sheet("", head, words=head)
    for name, modules in {"core": CORE, **EXTRAS}.items():
        state, fix = _state(name, modules, thorough)
        broken |= state == "broken" or (name == "core" and "not installed" in state)
        table.rows.append((name, PURPOSES[name], state, fix))
    libraries = {lib: ctypes.util.find_library(lib) for lib in RENDERING}
    images = f"images from {', '.join(NEEDS_RENDERING)}"
    if any(libraries.values()):
        there = ", ".join(lib for lib, found in libraries.items() if found)
        table.rows.append(("rendering", images, there, ""))
    else:
        fix = f"apt-get install {' '.join(RENDERING.values())}"
        table.rows.append(("rendering", images, "no EGL or OSMesa", fix))
    for name in entries("suites"):
        row = _data(name)
        if row is not None:
            table.rows.append((f"{name} data", f"suite {name}", *row))
    table.show()
    if not thorough:
        console.print("perdure doctor --thorough imports everything (half a minute)", style="dim")
    return 1 if broken else 0


def _state(name: str, modules: tuple[str, ...], thorough: bool) -> tuple[str, str]:
    """What is known of a part, and what to do."""
    gone = missing(modules)
    if gone:
        return f"not installed ({', '.join(gone)})", install_command(name)
    error = probe(modules) if thorough else ""
    if error:
        return "broken", error
    word = "works" if thorough else "installed"
    return f"{word} {_version(modules[0]) if name != 'core' else ''}".rstrip(), ""


def _version(module: str) -> str:
    """The version of what brings a module; '' where that is not known."""
    try:
        return importlib.metadata.version(module)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _data(name: str) -> tuple[str, str] | None:
    """Where a suite's data are, or how they can be had; None if it needs none or is broken itself."""
    try:
        found = suite(name)
    except PerdureError:
        return None
    try:
        folder = found.data_folder()
    except (PerdureError, ImportError) as e:
        return "not here", str(e)
    return (str(folder), "") if folder is not None else None
