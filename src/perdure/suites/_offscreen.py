"""OpenGL without a window, for suites that draw with MuJoCo."""

from __future__ import annotations

import importlib
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

from perdure.cache import named_cache_folder
from perdure.errors import EnvironmentFault


def offscreen(width: int, height: int) -> Any:
    """A place to draw: by EGL, or as MUJOCO_GL says."""
    kind = os.environ.get("MUJOCO_GL") or "egl"
    modules = {"egl": "mujoco.egl", "osmesa": "mujoco.osmesa", "glfw": "mujoco.glfw"}
    if kind not in modules:
        raise EnvironmentFault(f"MUJOCO_GL must be one of {', '.join(modules)}, got {kind!r}")
    for name, value in shader_settings().items():
        os.environ.setdefault(name, value)
    try:
        return importlib.import_module(modules[kind]).GLContext(width, height)
    except Exception as e:
        raise EnvironmentFault(
            f"no picture can be drawn with {kind}: {e}; install libegl1 (MUJOCO_GL=egl) or "
            "libosmesa6 (MUJOCO_GL=osmesa)"
        ) from e


def shader_settings() -> dict[str, str]:
    """Where Mesa, the graphics of machines without a GPU, keeps the shaders that it compiles: left to itself below the
    home folder, where nobody asked for files. Below the cache folder if the environment names one, or else in a
    temporary folder of this user's own; nowhere if that cannot be had. Half a second in each process is saved by it."""
    if any(name.startswith("MESA_SHADER_CACHE") for name in os.environ):
        return {}
    folder = named_cache_folder("mesa") or _own_temporary()
    if folder is None:
        return {"MESA_SHADER_CACHE_DISABLE": "true"}
    return {"MESA_SHADER_CACHE_DIR": str(folder)}


def _own_temporary() -> Path | None:
    """A folder for temporary files that only this user can write: what is read from it is executed."""
    if not hasattr(os, "getuid"):
        return None
    path = Path(tempfile.gettempdir()) / f"perdure-{os.getuid()}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError:
        return None
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return path if own and not found.st_mode & 0o077 else None
