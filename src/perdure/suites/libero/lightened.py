"""Scenes made light to draw, packed as a model of a few megabytes that is read in a moment.

The published scenes take seconds and a gigabyte to read before anything can be left out. What is
left is kept below the cache folder, if the environment names one (:mod:`perdure.cache`).
"""

from __future__ import annotations

import hashlib
import io
import struct
import xml.etree.ElementTree as ET
import zipfile
import zlib
from pathlib import Path
from typing import Any

import mujoco  # type: ignore[import-untyped]
import numpy as np

from perdure.cache import named_cache_folder
from perdure.suites._cached import read_checked, write_checked
from perdure.suites.libero import lighten
from perdure.suites.libero.rotations import matrix_of
from perdure.types import Array

VERSION = 1
"""Of what is stored."""


def light_model(xml: str) -> Any:
    """The model of a scene, lightened; from the cache folder if it was made before."""
    if " file=" not in xml:  # Nothing to read, and nothing to be gained.
        model = mujoco.MjModel.from_xml_string(xml)
        lighten.lighten(model)
        return model
    sizes = f"{VERSION} {mujoco.__version__} {lighten.FACES} {lighten.GRIDS} {lighten.TEXTURE}"
    name = hashlib.sha256(f"{sizes}\n{xml}".encode()).hexdigest()[:32]
    folder = kept_in()
    stored = read_checked(folder / f"{name}.zip") if folder is not None else None
    if stored is None:
        model = mujoco.MjModel.from_xml_string(xml)
        lighten.lighten(model)
        stored = packed(xml, model)
        if folder is not None:
            write_checked(folder / f"{name}.zip", stored)
    return unpacked(stored)


def kept_in() -> Path | None:
    """Where light scenes are kept; None where they are not."""
    return named_cache_folder("libero")


def packed(xml: str, model: Any) -> bytes:
    """A scene whose meshes and textures are those of a compiled model, and no longer its files'."""
    root, out = ET.fromstring(xml), io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
        for k, element in enumerate(root.iterfind("asset/*[@file]")):
            number = mujoco.mj_name2id(model, _kind(element.tag), element.attrib["name"])
            ending, data = (
                _texture(model, number) if element.tag == "texture" else _mesh(model, number)
            )
            element.set("file", f"{k}.{ending}")
            if element.tag == "mesh":
                element.attrib.pop("scale", None)
                element.set("inertia", "shell")
            archive.writestr(f"{k}.{ending}", data)
        for material in root.iterfind("asset/material"):
            material.set("reflectance", "0")
        archive.writestr("scene.xml", ET.tostring(root))
    return out.getvalue()


def unpacked(stored: bytes) -> Any:
    """The model of what :func:`packed` gave."""
    with zipfile.ZipFile(io.BytesIO(stored)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    model = mujoco.MjModel.from_xml_string(files.pop("scene.xml").decode(), files)
    lighten.draw_plainly(model)
    return model


def _kind(tag: str) -> Any:
    return mujoco.mjtObj.mjOBJ_MESH if tag == "mesh" else mujoco.mjtObj.mjOBJ_TEXTURE


def _mesh(model: Any, number: int) -> tuple[str, bytes]:
    """A mesh in MuJoCo's own format, in the coordinates of the file it came from."""
    start, count = int(model.mesh_faceadr[number]), int(model.mesh_facenum[number])
    textured = int(model.mesh_texcoordadr[number]) >= 0

    def used(name: str, first: str) -> Array:
        rows: Array = getattr(model, name)[start : start + count].ravel().astype(np.int64)
        rows += int(getattr(model, first)[number])
        return rows

    corners = [used("mesh_face", "mesh_vertadr"), used("mesh_facenormal", "mesh_normaladr")]
    if textured:
        corners.append(used("mesh_facetexcoord", "mesh_texcoordadr"))
    rows, faces = np.unique(np.stack(corners, axis=1), axis=0, return_inverse=True)
    turn = matrix_of(model.mesh_quat[number]).T
    parts = [
        model.mesh_vert[rows[:, 0]] @ turn + model.mesh_pos[number],
        model.mesh_normal[rows[:, 1]] @ turn,
        *([model.mesh_texcoord[rows[:, 2]]] if textured else []),
    ]
    n = len(rows)
    head = struct.pack("<4i", n, n, n if textured else 0, count)
    body = b"".join(np.ascontiguousarray(part, "<f4").tobytes() for part in parts)
    return "msh", head + body + faces.reshape(-1, 3).astype("<i4").tobytes()


def _texture(model: Any, number: int) -> tuple[str, bytes]:
    """A texture as a PNG; of a cube the first side, as all come from one file."""
    wide, high = int(model.tex_width[number]), int(model.tex_height[number])
    channels, start = int(model.tex_nchannel[number]), int(model.tex_adr[number])
    if model.tex_type[number] != mujoco.mjtTexture.mjTEXTURE_2D:
        high = wide
    pixels = model.tex_data[start : start + wide * high * channels].reshape(high, wide, channels)
    return "png", png(pixels)


def png(pixels: Array) -> bytes:
    """A PNG file of bytes in rows, columns and one to four channels."""
    high, wide, channels = pixels.shape
    head = struct.pack(">2I5B", wide, high, 8, {1: 0, 2: 4, 3: 2, 4: 6}[channels], 0, 0, 0)
    # Each row begins with the filter that it went through: none.
    rows = np.pad(pixels.reshape(high, wide * channels), ((0, 0), (1, 0)))
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes(), 3)), (b"IEND", b""))
    parts = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
