"""Which parts work on this machine, and what to do about those that do not."""

from __future__ import annotations

import ctypes.util
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

import perdure
from perdure.errors import PerdureError
from perdure.registry import EXTRAS, entries, suite

CORE = ("numpy", "scipy", "gymnasium", "pyarrow", "matplotlib", "jinja2", "click", "rich")
RENDERING = {"EGL": "libegl1", "OSMesa": "libosmesa6"}
NEEDS_RENDERING = tuple(name for name, modules in EXTRAS.items() if "mujoco" in modules)


def probe(modules: tuple[str, ...]) -> str:
    """Import modules in a process of their own; the last line of what went wrong, or ''."""
    code = "; ".join(f"import {m}" for m in modules)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    if done.returncode == 0:
        return ""
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def diagnose(console: Console) -> int:
    """Print the findings; 1 if something that is installed does not work."""
    console.print(
        f"perdure {perdure.__version__}, Python {platform.python_version()} on "
        f"{platform.platform()}, {len(os.sched_getaffinity(0))} cores, "
        f"{shutil.disk_usage(Path.cwd()).free / 2**30:.0f} GiB free here",
        highlight=False,
    )
    broken = False
    table = Table(box=None, pad_edge=False)
    for column in ("part", "state", "to mend it"):
        table.add_column(column)
    for name, modules in {"core": CORE, **EXTRAS}.items():
        error = probe(modules)
        if not error:
            table.add_row(name, "[green]works[/green]", "")
        elif "ModuleNotFoundError" in error and any(f"'{m}'" in error for m in modules):
            fix = "pip install perdure" if name == "core" else f"pip install 'perdure\\[{name}]'"
            broken |= name == "core"
            table.add_row(name, "[yellow]not installed[/yellow]", fix)
        else:
            broken = True
            table.add_row(name, "[red]broken[/red]", error)
    libraries = {lib: ctypes.util.find_library(lib) for lib in RENDERING}
    if any(libraries.values()):
        table.add_row("rendering", "[green]works[/green]", "")
    else:
        packages = " ".join(RENDERING.values())
        table.add_row(
            "rendering",
            "[yellow]no EGL or OSMesa[/yellow]",
            f"apt-get install {packages} (for images from {', '.join(NEEDS_RENDERING)})",
        )
    for name in entries("suites"):
        row = _data(name)
        if row is not None:
            table.add_row(f"{name} data", *row)
    console.print(table)
    return 1 if broken else 0


def _data(name: str) -> tuple[str, str] | None:
    """Where a suite's data are, or how they can be had; None if it needs none or is broken itself."""
    try:
        found = suite(name)
    except PerdureError:
        return None
    try:
        folder = found.data_folder()
    except (PerdureError, ImportError) as e:
        return "[yellow]not here[/yellow]", escape(str(e))
    return (f"[green]{escape(str(folder))}[/green]", "") if folder is not None else None
