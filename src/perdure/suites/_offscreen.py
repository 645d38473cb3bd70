"""OpenGL without a window, for suites that draw with MuJoCo."""

from __future__ import annotations

import importlib
import os
from typing import Any

from perdure.errors import EnvironmentFault


def offscreen(width: int, height: int) -> Any:
    """A place to draw: by EGL, or as MUJOCO_GL says."""
    kind = os.environ.get("MUJOCO_GL") or "egl"
    modules = {"egl": "mujoco.egl", "osmesa": "mujoco.osmesa", "glfw": "mujoco.glfw"}
    if kind not in modules:
        raise EnvironmentFault(f"MUJOCO_GL must be one of {', '.join(modules)}, got {kind!r}")
    try:
        return importlib.import_module(modules[kind]).GLContext(width, height)
    except Exception as e:
        raise EnvironmentFault(
            f"no picture can be drawn with {kind}: {e}; install libegl1 (MUJOCO_GL=egl) or "
            "libosmesa6 (MUJOCO_GL=osmesa)"
        ) from e
