"""Installs a plugin into a folder, as pip would."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def distribution(
    folder: Path, name: str, groups: Mapping[str, Mapping[str, str]], module: str = ""
) -> None:
    """A distribution with entry points of ``perdure.GROUP``, and the module they point at."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = []
    for group, points in groups.items():
        lines += [f"[perdure.{group}]", *(f"{k} = {v}" for k, v in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    (folder / f"{name}.py").write_text(module)


def installed(folder: Path) -> dict[str, str]:
    """The environment of a process that also sees the distributions in a folder."""
    paths = (str(folder), os.environ.get("PYTHONPATH", ""))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
