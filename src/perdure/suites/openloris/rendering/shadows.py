"""Shadows as soft dark textures on the ground, drawn once for each body.

A shadow map costs as much as the frame itself, and speckles at a distance.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perdure.suites.openloris.rendering.materials import TEXTURE_SIZE
from perdure.suites.openloris.rendering.meshes import Mesh
from perdure.types import Array

BLUR = 0.16
"""Width of the soft edge, in units of length."""
OPACITY = 0.62
"""Of the darkest part."""


def cast_shadow(meshes: Sequence[Mesh], direction: Array, z: float) -> tuple[Mesh, Array]:
    """The shadow in light of this direction: a rectangle at height ``z``, and its RGBA texture."""
    from PIL import Image, ImageDraw, ImageFilter

    slant = direction[:2] / direction[2]
    projected = [m.vertices[:, :2] - slant * m.vertices[:, 2:] for m in meshes]
    everything = np.concatenate(projected)
    low, high = everything.min(0) - BLUR, everything.max(0) + BLUR
    mask = Image.new("L", (TEXTURE_SIZE, TEXTURE_SIZE))
    draw = ImageDraw.Draw(mask)
    for points, mesh in zip(projected, meshes, strict=True):
        corners = ((points - low) / (high - low) * TEXTURE_SIZE)[mesh.faces].reshape(-1, 6)
        for triangle in corners.tolist():
            draw.polygon(triangle, fill=255)
    radius = BLUR / 3 * TEXTURE_SIZE / float((high - low).max())
    rgba = np.zeros((TEXTURE_SIZE, TEXTURE_SIZE, 4), np.uint8)
    rgba[..., 3] = np.asarray(mask.filter(ImageFilter.GaussianBlur(radius))) * OPACITY
    (x0, y0), (x1, y1) = low, high
    # MuJoCo refuses flat meshes: a fifth point off the plane makes this one a solid.
    rectangle = [[x0, y0, z], [x1, y0, z], [x1, y1, z], [x0, y1, z], [x0, y0, z - 1e-3]]
    uv = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]], float)
    return Mesh(np.array(rectangle), np.array([[0, 1, 2], [0, 2, 3]]), uv), rgba
