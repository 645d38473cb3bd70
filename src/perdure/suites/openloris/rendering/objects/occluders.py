"""What may stand between the camera and the object. None of them is one of the categories."""

from __future__ import annotations

import numpy as np

from perdure.suites.openloris.rendering.materials import WHITE, Colour, Part, hsv, scale
from perdure.suites.openloris.rendering.meshes import (
    box,
    circle,
    extrude,
    lathe,
    rounded_rectangle,
)

OCCLUDERS = 3
"""Kinds of occluders."""


def build_occluder(kind: int, rng: np.random.Generator) -> list[Part]:
    """A carton (0), a vase (1) or a pile of books (2), tall enough to hide a part of any object."""
    primary = hsv(rng.random(), rng.uniform(0.2, 0.6), rng.uniform(0.45, 0.85))
    accent = hsv(rng.random(), 0.4, 0.85)
    if kind == 0:
        return _carton(primary, accent)
    if kind == 1:
        return _vase(primary, accent, rng)
    return _books(rng)


def _carton(primary: Colour, accent: Colour) -> list[Part]:
    carton = [
        Part(extrude(rounded_rectangle(0.62, 0.24, 0.12), 1.0), primary, "label", accent),
        Part(extrude(circle(0.05), 0.02).translate(z=1.0), WHITE),
    ]
    return scale(carton, 1.3)


def _vase(primary: Colour, accent: Colour, rng: np.random.Generator) -> list[Part]:
    t = np.linspace(0, 1, 16)
    outside = [(0.2 + 0.1 * np.sin(2.6 * x + 0.3), 1.3 * x) for x in t]
    glaze = "bands" if rng.random() < 0.5 else "marble"
    return [Part(lathe([(0.0, 0.0), *outside, (0.0, 1.27)]), primary, glaze, accent, 0.8)]


def _books(rng: np.random.Generator) -> list[Part]:
    parts: list[Part] = []
    z = 0.0
    while z < 1.2:
        thickness = rng.uniform(0.12, 0.22)
        book = box(rng.uniform(0.58, 0.7), rng.uniform(0.4, 0.5), thickness)
        book = book.rotate("z", rng.uniform(-9, 9)).translate(0, 0, z + thickness / 2)
        cover, print_ = hsv(rng.random(), 0.5, 0.6), hsv(rng.random(), 0.2, 0.9)
        parts.append(Part(book, cover, "label", print_))
        z += thickness
    return parts
