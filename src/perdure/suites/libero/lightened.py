"""Scenes made light to draw: models of a few megabytes that are read in a moment.

The published scenes take seconds and a gigabyte to read before anything can be left out.
"""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ET
import zlib
from typing import Any

import mujoco  # type: ignore[import-untyped]
import numpy as np

from perdure.suites.libero import lighten
from perdure.suites.libero.kept import FILE, compiled, kept_model
from perdure.suites.libero.rotations import matrix_of
from perdure.types import Array


def light_model(xml: str) -> Any:
    """The model of a scene, lightened; from the cache folder if it was made before."""
    if FILE not in xml:  # Nothing to read, and nothing to be gained.
        model = compiled(xml)
        lighten.lighten(model)
        return model
    return kept_model("light", xml, lambda: _shrunk(xml))


def _shrunk(xml: str) -> Any:
    """The lightened model, without what lightening left unused in its arrays."""
    model = compiled(xml)
    lighten.lighten(model)
    root, files = ET.fromstring(xml), {}
    for k, element in enumerate(root.iterfind("asset/*[@file]")):
        number = mujoco.mj_name2id(model, _kind(element.tag), element.attrib["name"])
        ending, data = _texture(model, number) if element.tag == "texture" else _mesh(model, number)
        element.set("file", f"{k}.{ending}")
        if element.tag == "mesh":
            element.attrib.pop("scale", None)
            element.set("inertia", "shell")
        files[f"{k}.{ending}"] = data
    for texture in root.iterfind("asset/texture[@builtin]"):
        for side in ("width", "height"):
            texture.set(side, str(min(int(texture.attrib[side]), lighten.TEXTURE)))
    for material in root.iterfind("asset/material"):
        material.set("reflectance", "0")
    small = mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"), files)
    lighten.draw_plainly(small)
    return small


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
