"""Compiled MuJoCo models: one for each task, kept on disk in MuJoCo's binary form.

Compiling a task's XML and meshes costs 130 ms and 21 MB; most of it is what only a camera sees.
For physics the visual parts are left out (MuJoCo's ``discardvisual``: the dynamics are the same to
the bit), except those that the task's code asks for by name. What is left are 3 MB, and loading
them costs 4 ms.
"""

from __future__ import annotations

import functools
import importlib.metadata
import types
from typing import Any

import mujoco  # type: ignore[import-untyped]
import numpy as np

from perdure.suites.metaworld.cache import folder, read_checked, write_checked


@functools.cache
def versions() -> str:
    """What decides a model and everything that is computed with it."""
    return "-".join(f"{p}{importlib.metadata.version(p)}" for p in ("metaworld", "mujoco"))


def load(cls: type[Any], visual: bool = False) -> mujoco.MjModel:
    """A model of a task class, the caller's own: for physics, or with all that a camera sees."""
    name = f"{cls.__name__}-{'visual' if visual else 'dynamics'}-{versions()}.mjb"
    path = folder("models") / name
    stored = read_checked(path)
    if stored is not None:
        return mujoco.MjModel.from_binary_path(name, {name: stored})
    model = build(cls, visual)
    buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    write_checked(path, buffer.tobytes())
    return model


def build(cls: type[Any], visual: bool = False) -> mujoco.MjModel:
    """Compile a task's XML."""
    file = cls.model_name.fget(None)
    whole = mujoco.MjModel.from_xml_path(file)
    if visual:
        return whole
    fast_env = _discarded(file, [])
    lost = _geoms(whole) - _geoms(fast_env)
    needed = sorted(lost & words(cls) - {""})
    return _discarded(file, needed) if needed else fast_env


def _discarded(file: str, kept: list[str]) -> mujoco.MjModel:
    """A model without what is only seen, but with these geoms."""
    spec = mujoco.MjSpec.from_file(file)
    spec.compiler.discardvisual = True
    if kept:
        # MuJoCo discards nothing that another element names, and a tuple does nothing but name.
        kinds = [mujoco.mjtObj.mjOBJ_GEOM] * len(kept)
        spec.add_tuple(name="kept", objname=kept, objtype=kinds, objprm=[0.0] * len(kept))
    return spec.compile()


def _geoms(model: mujoco.MjModel) -> set[str]:
    return {model.geom(i).name for i in range(model.ngeom)}


def words(cls: type[Any]) -> set[str]:
    """The strings that a class's own functions hold: among them the names they ask MuJoCo for."""
    found: set[str] = set()
    waiting: list[Any] = list(vars(cls).values())
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            found.add(item)
        elif isinstance(item, property):
            waiting.append(item.fget)
        elif isinstance(item, types.FunctionType):
            waiting.append(item.__code__)
            waiting += [cell.cell_contents for cell in item.__closure__ or ()]
        elif isinstance(item, types.CodeType):
            waiting += item.co_consts
        elif isinstance(item, tuple):
            waiting += item
    return found
