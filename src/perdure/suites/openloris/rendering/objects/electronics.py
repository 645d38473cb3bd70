"""Electrical objects."""

from __future__ import annotations

import numpy as np

from perdure.suites.openloris.rendering.materials import BLACK, GOLD, STEEL, WHITE, Colour, Part
from perdure.suites.openloris.rendering.meshes import (
    arc,
    box,
    circle,
    extrude,
    join,
    lathe,
    rounded_rectangle,
    superquadric,
    tube,
)


def headphone(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A headband over two padded ear cups."""
    wide, cup = [(0.36, 0.15), (0.34, 0.19), (0.36, 0.12)][instance]
    shell = [BLACK, WHITE, primary][instance]
    band = arc(wide, 0, 180, 30, "yz", 1.15) + np.array([0, 0, 0.32])
    parts = [
        Part(
            tube(band, 0.03 if instance else 0.022, 10, flat=1.0),
            shell if instance else STEEL,
            gloss=0.6,
        )
    ]
    pad = arc(wide + 0.005, 40, 140, 16, "yz", 1.15) + np.array([0, 0, 0.305])
    parts.append(
        Part(tube(pad, 0.05, 12), accent if instance != 1 else (0.4, 0.4, 0.42), gloss=0.1)
    )
    for side in (-1, 1):
        ear = (
            superquadric(cup, cup * 1.25, 0.06, 0.5, 1)
            .rotate("x", 90)
            .translate(0, side * (wide + 0.01), 0.28)
        )
        foam = tube(
            [(x, side * (wide - 0.07), y + 0.28) for x, y in circle(cup * 0.72, 26, squash=1.25)],
            0.05,
            10,
            closed=True,
        )
        badge = (
            lathe([(0, 0), (cup * 0.5, 0), (cup * 0.5, 0.02), (0, 0.02)])
            .rotate("x", -90 * side)
            .translate(0, side * (wide + 0.06), 0.28)
        )
        parts += [
            Part(ear, shell, gloss=0.7),
            Part(foam, (0.15, 0.15, 0.16)),
            Part(badge, accent if instance else primary, gloss=0.8),
        ]
    return parts


def plug(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A mains plug with its pins and a length of cable."""
    shell = primary if instance == 3 else (WHITE, BLACK, (0.85, 0.85, 0.82))[instance]
    if instance == 0:
        body = superquadric(0.2, 0.15, 0.1, 0.5, 0.4).translate(z=0.1)
        pins = [tube([(0.15, y, 0.1), (0.4, y, 0.1)], 0.026) for y in (-0.075, 0.075)]
    elif instance == 1:
        body = superquadric(0.18, 0.14, 0.1, 0.4, 0.5).translate(z=0.1)
        pins = [box(0.3, 0.02, 0.075).translate(0.26, y, 0.1) for y in (-0.06, 0.06)]
    elif instance == 2:
        body = extrude(rounded_rectangle(0.3, 0.34, 0.4), 0.16).translate(z=0.02)
        pins = [box(0.24, 0.05, 0.03).translate(0.25, y, 0.07) for y in (-0.09, 0.09)]
        pins.append(box(0.28, 0.035, 0.06).translate(0.25, 0, 0.14))
    else:
        body = superquadric(0.24, 0.2, 0.16, 0.25, 0.3).translate(z=0.16)
        pins = [box(0.3, 0.075, 0.02).translate(0.32, y, 0.17) for y in (-0.08, 0.08)]
    s = np.linspace(0, 1, 26)
    cable = np.stack(
        [-0.3 - 0.3 * np.sin(s * 3.4), 0.5 * s**1.5 * np.sin(s * 4), 0.1 * (1 - s) ** 2 + 0.03], 1
    )
    relief = join([tube([(-0.16, 0, 0.1), (-0.3, 0, 0.1)], [0.06, 0.035])])
    return [
        Part(body, shell, gloss=0.5),
        Part(join(pins), GOLD if instance == 0 else STEEL, gloss=1.0),
        Part(relief, shell),
        Part(tube(cable, 0.028), shell),
    ]


def mouse(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A computer mouse with two buttons, a wheel and a cable."""
    body = superquadric(0.34, 0.2, 0.2, 0.8, 0.75)
    body = type(body)(
        body.vertices * [1, 1, 1]
        + np.where(body.vertices[:, 2:] < 0, [0, 0, 1], 0) * -body.vertices[:, 2:] * 0.95,
        body.faces,
        body.uv,
    )
    s = np.linspace(0, 1, 24)
    cable = np.stack([0.33 + 0.55 * s, 0.16 * np.sin(s * 5), 0.06 * (1 - s) + 0.02], 1)
    split = tube(
        [(x, 0, 0.203 * (1 - (abs(x) / 0.34) ** 2.5) ** 0.4) for x in np.linspace(0.06, 0.325, 10)],
        0.006,
    )
    across = tube(
        [
            (0.06, y, 0.2 * (1 - (abs(y) / 0.2) ** 2.6) ** 0.42)
            for y in np.linspace(-0.185, 0.185, 15)
        ],
        0.006,
    )
    wheel = tube([(0.2, -0.022, 0.165), (0.2, 0.022, 0.165)], 0.05, 20)
    return [
        Part(body, (0.25, 0.26, 0.28), gloss=0.7),
        Part(join([split, across]), BLACK),
        Part(wheel, primary),
        Part(tube(cable, 0.016), BLACK),
    ]


def u_disk(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A USB stick: a body and a steel connector with two square holes; one has a swivel cover."""
    body = superquadric(0.33, 0.15, 0.07, 0.25, 0.35).translate(-0.12, 0, 0.07)
    metal = box(0.28, 0.2, 0.085).translate(0.3, 0, 0.07)
    holes = join([box(0.055, 0.045, 0.004).translate(0.34, y, 0.114) for y in (-0.05, 0.05)])
    mouth = box(0.01, 0.17, 0.055).translate(0.438, 0, 0.07)
    parts = [
        Part(body, primary, gloss=0.6),
        Part(metal, STEEL, gloss=1.0),
        Part(join([holes, mouth]), BLACK),
    ]
    if instance == 0:
        parts += [
            Part(box(0.3, 0.16, 0.006).translate(-0.12, 0, 0.139), WHITE, "label", accent),
            Part(tube(arc(0.045, 0, 360, 20, "xy") + np.array([-0.47, 0, 0.07]), 0.014), STEEL),
        ]
        return parts
    swivel = [
        box(0.5, 0.29, 0.02).rotate("z", 55).translate(-0.36, -0.12, z) for z in (-0.01, 0.15)
    ]
    return [
        *parts,
        Part(join(swivel), STEEL, gloss=1.0),
        Part(lathe([(0, 0.15), (0.04, 0.15), (0.04, 0.175), (0, 0.175)]).translate(-0.28), BLACK),
    ]


def battery(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A round cell with its nub, and a nine-volt block with two terminals."""
    if instance == 0:
        wrap = lathe([(0, 0), (0.14, 0), (0.14, 0.6)], sharp=True)
        top = lathe([(0.141, 0.6), (0.141, 0.88), (0.12, 0.9), (0, 0.9)], sharp=True)
        nub = lathe([(0, 0.9), (0.05, 0.9), (0.05, 0.95), (0, 0.95)], sharp=True)
        marks = join([box(0.012, 0.03, 0.1), box(0.012, 0.1, 0.03)]).translate(0.137, 0, 0.5)
        foot = lathe([(0, -0.012), (0.11, -0.012), (0.11, 0)], sharp=True)
        return [
            Part(wrap, BLACK, gloss=0.7),
            Part(top, (0.78, 0.47, 0.22), gloss=1.0),
            Part(join([nub, foot]), STEEL, gloss=1.0),
            Part(marks, WHITE),
        ]
    body = extrude(rounded_rectangle(0.5, 0.3, 0.2), 0.7)
    collar = extrude(rounded_rectangle(0.505, 0.305, 0.2), 0.16).translate(z=0.545)
    small = lathe([(0, 0), (0.07, 0), (0.07, 0.07), (0, 0.07)], 24, sharp=True).translate(
        -0.12, 0, 0.7
    )
    large = lathe(
        [(0, 0), (0.085, 0), (0.1, 0.07), (0.06, 0.07), (0.06, 0.03), (0, 0.03)], 6, sharp=True
    ).translate(0.12, 0, 0.7)
    return [
        Part(body, BLACK, "label", accent),
        Part(collar, GOLD, gloss=0.9),
        Part(join([small, large]), STEEL, gloss=1.0),
    ]
