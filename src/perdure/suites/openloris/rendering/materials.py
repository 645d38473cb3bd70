"""Materials of rendered objects: meshes with colours, and procedural textures."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from perdure.suites.openloris.rendering.meshes import Mesh, rotation_matrix
from perdure.types import Array

Colour = tuple[float, float, float]

STEEL: Colour = (0.74, 0.75, 0.78)
BLACK: Colour = (0.10, 0.10, 0.11)
WHITE: Colour = (0.93, 0.93, 0.91)
WOOD: Colour = (0.72, 0.53, 0.33)
PINK: Colour = (0.90, 0.55, 0.58)
GOLD: Colour = (0.83, 0.66, 0.26)
CARDBOARD: Colour = (0.66, 0.52, 0.36)
COTTON: Colour = (0.97, 0.97, 0.96)
RED: Colour = (0.82, 0.18, 0.18)
TEXTURE_SIZE = 128
"""Pixels of a texture's side."""


@dataclass(frozen=True, eq=False)
class Part:
    """A mesh with its material: one colour, or a texture of two colours (see ``texture``)."""

    mesh: Mesh
    colour: Colour
    texture: str = ""
    second_colour: Colour = WHITE
    gloss: float = 0.3
    alpha: float = 1.0
    repeat: tuple[float, float] = (1.0, 1.0)


def rotate(parts: Sequence[Part], axis: str, degrees: float) -> list[Part]:
    """All parts rotated together about an axis through the origin."""
    return [replace(p, mesh=p.mesh.rotate(axis, degrees)) for p in parts]


def translate(parts: Sequence[Part], x: float = 0, y: float = 0, z: float = 0) -> list[Part]:
    """All parts moved together."""
    return [replace(p, mesh=p.mesh.translate(x, y, z)) for p in parts]


def scale(parts: Sequence[Part], factor: float) -> list[Part]:
    """All parts scaled together about the origin."""
    return [replace(p, mesh=p.mesh.scale(factor, factor, factor)) for p in parts]


def normalise(parts: Sequence[Part], yaw: float = 0.0) -> list[Part]:
    """The parts rotated by ``yaw`` degrees, standing on z = 0 at the origin, longest extent 1."""
    spin = rotation_matrix("z", yaw)
    points = np.concatenate([p.mesh.vertices for p in parts]) @ spin.T
    low, high = points.min(0), points.max(0)
    factor = 1 / (high - low).max()
    base = np.array([*(low + high)[:2] / 2, low[2]])
    return [
        replace(p, mesh=replace(p.mesh, vertices=(p.mesh.vertices @ spin.T - base) * factor))
        for p in parts
    ]


def shade(colour: Colour, factor: float) -> Colour:
    """A colour made darker (``factor`` < 1) or lighter."""
    r, g, b = (min(x * factor, 1.0) for x in colour)
    return (r, g, b)


def hsv(hue: float, saturation: float = 0.6, value: float = 0.75) -> Colour:
    """A colour from hue, saturation and value; the hue goes round once from 0 to 1."""
    return colorsys.hsv_to_rgb(hue % 1, saturation, value)


def texture(kind: str, first: Colour, second: Colour, rng: np.random.Generator) -> Array:
    """A square RGB texture in two colours; unknown kinds give smooth noise."""
    y, x = np.mgrid[0:TEXTURE_SIZE, 0:TEXTURE_SIZE] / TEXTURE_SIZE
    match kind:
        case "stripes":
            mix = (np.floor(x * 12) % 2).astype(float)
        case "bands":
            mix = (np.floor(y * 10) % 2).astype(float)
        case "checker":
            mix = ((np.floor(x * 8) + np.floor(y * 8)) % 2).astype(float)
        case "dots":
            mix = (((x * 7) % 1 - 0.5) ** 2 + ((y * 7) % 1 - 0.5) ** 2 < 0.07).astype(float)
        case "label":
            mix = _label(x, y, rng)
        case "lines":
            mix = 0.5 * ((y * 14) % 1 < 0.08) + 0.6 * (np.abs(x - 0.12) < 0.006)
        case "weave":
            mix = 0.5 + 0.25 * np.sin(x * 2 * np.pi * 24) + 0.25 * np.sin(y * 2 * np.pi * 24)
        case "grain":
            wave = y * 22 + 1.6 * _noise(rng, 4) + 0.5 * np.sin(x * 7)
            mix = 0.45 + 0.3 * np.sin(2 * np.pi * wave * 0.5) + 0.25 * (_noise(rng, 32) - 0.5)
        case "planks":
            board = np.floor(y * 4)
            tone = np.array([0.1, 0.45, 0.25, 0.6])[board.astype(int)]
            streak = _noise(rng, 64)[:, (np.arange(TEXTURE_SIZE) // 12)]
            seam = ((y * 4) % 1 < 0.05) | (((x + 0.37 * board) % 1) < 0.012)
            mix = np.where(seam, 1.6, tone + 0.35 * (streak - 0.5))
        case "marble":
            mix = np.abs(np.sin(6 * (x + y) + 5 * _noise(rng, 5))) ** 3
        case "speckle":
            mix = (_noise(rng, TEXTURE_SIZE) ** 3) * 0.9
        case "ticks":
            mix = ((x * 30) % 1 < 0.25) * (y % 1 < np.where((np.floor(x * 30) % 5) == 0, 0.8, 0.5))
        case "gradient":
            mix = y
        case _:
            mix = 0.6 * _noise(rng, 64) + 0.4 * _noise(rng, 16)
    mixed = np.clip(mix, 0, 1.6)[..., None]
    out = (1 - mixed) * np.array(first) + mixed * np.array(second)
    out = out * (0.97 + 0.06 * rng.random((TEXTURE_SIZE, TEXTURE_SIZE, 1)))
    bytes_: Array = (np.clip(out, 0, 1) * 255).astype(np.uint8)
    return bytes_


def _label(x: Array, y: Array, rng: np.random.Generator) -> Array:
    """How much of the second colour a printed label has: a band, a disc, and lines like text."""
    out = ((y > 0.25) & (y < 0.8)).astype(float)
    for k in range(4):
        row = (np.abs(y - 0.34 - 0.05 * k) < 0.014) & ((x * 2) % 1 > 0.3) & ((x * 2) % 1 < 0.85)
        out = np.where(row & (rng.random() < 0.9), 0.15, out)
    disc = ((x * 2) % 1 - 0.5) ** 2 + ((y - 0.66) * 2) ** 2 < 0.035
    return np.where(disc, 0.25, out)


def _noise(rng: np.random.Generator, cells: int) -> Array:
    """Value noise in [0, 1], smooth and tileable."""
    coarse = rng.random((cells, cells))
    t = np.arange(TEXTURE_SIZE) * cells / TEXTURE_SIZE
    i, f = np.floor(t).astype(int), t % 1
    f = f * f * (3 - 2 * f)
    j = (i + 1) % cells
    rows = coarse[i] * (1 - f)[:, None] + coarse[j] * f[:, None]
    out: Array = rows[:, i] * (1 - f) + rows[:, j] * f
    return out
