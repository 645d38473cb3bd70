"""What takes time to make of a scene, kept below the cache folder if the environment names one
(:mod:`perdure.cache`): its description, and compiled models.

A kept file's name is a digest of all that it was made from, the code of this package too, so that none
outlives a change of it. A model's has the times and sizes of the published files that it is made of: if
one was written since, the model is compiled anew, and the files are checked.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
import re
import struct
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from xml.sax.saxutils import unescape

import mujoco  # type: ignore[import-untyped]
import numpy as np
import pyarrow as pa

from perdure.cache import named_cache_folder
from perdure.suites._cached import read_checked, write_checked
from perdure.suites.libero import assets
from perdure.suites.libero.categories import category
from perdure.suites.libero.looks import look
from perdure.suites.libero.problem import Problem
from perdure.suites.libero.scene import Body, Scene, Zone, build
from perdure.suites.libero.workspaces import workspace

FILE = " file="
"""Of a mesh or a texture that is read, in a scene's XML."""
_FILES = re.compile(r'<(?:mesh|texture)\b[^>]* file="([^"]*)"')
_SIZE, _CODEC = struct.Struct("<Q"), "zstd"
"""Models are kept compressed, behind their size."""


@functools.lru_cache(maxsize=16)
def physics_model(xml: str) -> mujoco.MjModel:
    """A compiled model for physics, shared: copy it before changing it."""
    return kept_model("physics", xml, lambda: compiled(xml))


def compiled(xml: str) -> mujoco.MjModel:
    """A scene's model, of files that are the published ones."""
    if FILE in xml:
        for element in ET.fromstring(xml).iterfind("asset/*[@file]"):
            assets.check(Path(element.attrib["file"]))
    return mujoco.MjModel.from_xml_string(xml)


def kept_in() -> Path | None:
    """Where scenes are kept; None where they are not."""
    return named_cache_folder("libero")


def kept_scene(problem: Problem, look_name: str) -> Scene:
    """The scene of a task file."""
    made: list[Scene] = []

    def described() -> bytes:
        scene = build(problem, look_name)
        made.append(scene)
        bodies = [asdict(b) | {"category": b.category.name} for b in scene.bodies.values()]
        zones = [asdict(z) for z in scene.zones.values()]
        parts = {"xml": scene.xml, "visual_xml": scene.visual_xml, "bodies": bodies, "zones": zones}
        return json.dumps(parts).encode()

    found = json.loads(_kept("scene", f"{_code()} {look_name} {problem!r}", described))
    if made:
        return made[0]
    bodies = [
        Body(**{**b, "category": category(b["category"]), **_tuples(b, "joints", "geoms")})
        for b in found["bodies"]
    ]
    zones = [Zone(**{**z, **_tuples(z, "joints", "size")}) for z in found["zones"]]
    return Scene(
        problem,
        workspace(problem.name),
        found["xml"],
        found["visual_xml"],
        {b.name: b for b in bodies},
        {z.name: z for z in zones},
        look(look_name).lifts,
    )


def kept_model(kind: str, xml: str, made: Callable[[], mujoco.MjModel]) -> mujoco.MjModel:
    """The model that ``made`` makes of a scene. What reads no file is made in a moment, and not kept."""
    if FILE not in xml or kept_in() is None:
        return made()

    def packed() -> bytes:
        model = made()
        whole = np.empty(mujoco.mj_sizeModel(model), np.uint8)
        mujoco.mj_saveModel(model, None, whole)
        small: bytes = pa.compress(whole, _CODEC, asbytes=True)
        return _SIZE.pack(len(whole)) + small

    about = f"{mujoco.__version__} {platform.machine()} {_code()} {_stamps(xml)}\n{xml}"
    found = _kept(kind, about, packed)
    (size,) = _SIZE.unpack_from(found)
    whole = pa.decompress(found[_SIZE.size :], size, _CODEC, asbytes=True)
    return mujoco.MjModel.from_binary_path("model.mjb", {"model.mjb": whole})


def _kept(kind: str, about: str, made: Callable[[], bytes]) -> bytes:
    folder = kept_in()
    if folder is None:
        return made()
    path = folder / f"{kind}-{hashlib.sha256(about.encode()).hexdigest()[:32]}"
    found = read_checked(path)
    if found is None:
        found = made()
        write_checked(path, found)
    return found


def _stamps(xml: str) -> list[tuple[int, int]]:
    """When the files of a scene were written, and how large they are."""
    found = []
    for name in _FILES.findall(xml):
        with contextlib.suppress(OSError):  # Who compiles it says that a file is missing.
            about = os.stat(unescape(name))
            found.append((about.st_mtime_ns, about.st_size))
    return found


def _tuples(found: dict[str, list[object]], *names: str) -> dict[str, tuple[object, ...]]:
    return {name: tuple(found[name]) for name in names}


@functools.cache
def _code() -> str:
    """All that scenes depend on but their task: this package, and where the published files are."""
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted((*here.glob("*.py"), *here.glob("primitive/*"), assets.MANIFEST)):
        if path.is_file():
            digest.update(path.read_bytes())
    places = [str(assets.root(kind)) for kind in assets.ROOTS] if assets.installed() else []
    return f"{digest.hexdigest()} {places}"
