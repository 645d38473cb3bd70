"""A model to look at, made cheaper to draw: fewer faces, smaller textures, no mirrors.

Software graphics spend their time on vertices: the published meshes have up to a million of them in
a scene, for pictures of 128 pixels. Corners that lie in one cell of a grid are moved together, and
faces that lose their extent by it are left out; those that stay keep their normals and their place
in the texture.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from perdure.types import Array

FACES = 1200
"""A mesh has at most so many, unless the coarsest grid leaves more."""
GRIDS = (64, 48, 36, 28, 22, 17, 13, 10)
"""Cells along a mesh's longest side, from fine to coarse."""
TEXTURE = 256
"""Pixels along a texture's side."""


def lighten(model: Any) -> None:
    """Change a compiled model in place. Its physics is of no use afterwards."""
    for number in range(model.nmesh):
        if model.mesh_facenum[number] > FACES:
            _thin(model, number)
    for number in range(model.ntex):
        _shrink(model, number)
    model.mat_reflectance[:] = 0
    draw_plainly(model)


def draw_plainly(model: Any) -> None:
    """No smoothed edges, and round things with few corners."""
    quality = model.vis.quality
    quality.offsamples, quality.numslices, quality.numstacks, quality.numquads = 0, 16, 4, 2


def _thin(model: Any, number: int) -> None:
    start, count = int(model.mesh_faceadr[number]), int(model.mesh_facenum[number])
    first, corners = int(model.mesh_vertadr[number]), int(model.mesh_vertnum[number])
    faces = model.mesh_face[start : start + count].copy()
    points = model.mesh_vert[first : first + corners]
    for cells in GRIDS:
        moved, leaders = gathered(points, cells)
        kept = _standing(leaders[faces])
        if len(kept) <= FACES:
            break
    points[:] = moved
    end = start + len(kept)
    _smooth(model, number, leaders[faces])
    # A face keeps its normals and its place in the texture, which have numbers of their own.
    model.mesh_face[start:end] = leaders[faces[kept]]
    for name in ("mesh_facenormal", "mesh_facetexcoord"):
        rows = getattr(model, name)
        rows[start:end] = rows[start : start + count][kept]
    model.mesh_facenum[number] = len(kept)


def _smooth(model: Any, number: int, faces: Array) -> None:
    """Give corners of one cell that face alike their mean normal: single ones of a scan are noise."""
    start, first = int(model.mesh_faceadr[number]), int(model.mesh_normaladr[number])
    used = model.mesh_facenormal[start : start + len(faces)].ravel() + first
    normals = model.mesh_normal[used]
    alike = faces.ravel().astype(np.int64) * 8 + (normals > 0) @ (1, 2, 4)
    _, members = np.unique(alike, return_inverse=True)
    sums = np.stack([np.bincount(members, normals[:, k]) for k in range(3)], axis=1)
    lengths = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)
    model.mesh_normal[used] = (sums / lengths)[members]


def gathered(points: Array, cells: int) -> tuple[Array, Array]:
    """Points, those of one cell at their mean, and for each the number of its cell's first."""
    low = points.min(axis=0)
    side = max(float(np.ptp(points, axis=0).max()) / cells, 1e-9)
    x, y, z = np.floor((points - low) / side).astype(np.int64).T
    _, firsts, members = np.unique(
        (x * 4096 + y) * 4096 + z, return_index=True, return_inverse=True
    )
    counts = np.bincount(members)
    means = np.stack([np.bincount(members, points[:, k]) / counts for k in range(3)], axis=1)
    return means[members], firsts[members]


def _standing(faces: Array) -> Array:
    """Which faces have three different corners, one of each; those seen from behind are others."""
    a, b, c = faces.T
    whole = np.flatnonzero((a != b) & (b != c) & (c != a))
    turned = faces[whole]
    least = turned.argmin(axis=1)
    rows = np.arange(len(whole))
    same = np.stack([turned[rows, (least + k) % 3] for k in range(3)], axis=1)
    _, firsts = np.unique(same, axis=0, return_index=True)
    return whole[np.sort(firsts)]


def _shrink(model: Any, number: int) -> None:
    wide, high = int(model.tex_width[number]), int(model.tex_height[number])
    channels, start = int(model.tex_nchannel[number]), int(model.tex_adr[number])
    # A cube has its six sides one below the other, unless all come from one.
    sides = 6 if high == 6 * wide else 1
    tall = high // sides
    # One size for all: software graphics compile their way to shrink a texture anew for each kind of size.
    small_wide, small_tall = min(wide, TEXTURE), min(tall, TEXTURE)
    if (small_wide, small_tall) == (wide, tall):
        return
    whole = model.tex_data[start : start + wide * high * channels]
    side = whole.reshape(sides, tall, wide, channels).astype(np.uint32)
    rows, columns = (np.arange(n) * m // n for n, m in ((small_tall, tall), (small_wide, wide)))
    sums = np.add.reduceat(np.add.reduceat(side, rows, axis=1), columns, axis=2)
    counts = np.outer(np.diff(rows, append=tall), np.diff(columns, append=wide))[..., None]
    small = (sums / counts).round().astype(np.uint8)
    model.tex_data[start : start + small.size] = small.ravel()
    model.tex_width[number], model.tex_height[number] = small_wide, small_tall * sides
