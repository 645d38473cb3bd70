"""Toys."""

from __future__ import annotations

from perdure.suites.openloris.rendering.materials import (
    BLACK,
    GOLD,
    RED,
    STEEL,
    WHITE,
    Colour,
    Part,
)
from perdure.suites.openloris.rendering.meshes import (
    box,
    circle,
    extrude,
    join,
    lathe,
    superquadric,
    tube,
)


def toy(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A bear, a car, a duck, a robot and stacking rings."""
    return (_bear, _car, _duck, _robot, _rings)[instance](primary, accent)


def _eyes(x: float, y: float, z: float, r: float = 0.025) -> Part:
    return Part(
        join([superquadric(r, r, r, n=10).translate(x, s * y, z) for s in (-1, 1)]),
        BLACK,
        gloss=1.0,
    )


def _bear(primary: Colour, accent: Colour) -> list[Part]:
    fur, pale = (0.6, 0.4, 0.22), (0.85, 0.7, 0.5)
    body = [
        superquadric(0.2, 0.22, 0.24).translate(0, 0, 0.24),
        superquadric(0.18, 0.19, 0.17).translate(0.03, 0, 0.58),
    ]
    for s in (-1, 1):
        body += [
            superquadric(0.07, 0.03, 0.07, n=16).rotate("z", 90).translate(0, s * 0.15, 0.73),
            superquadric(0.16, 0.08, 0.08, n=16).rotate("z", s * 22).translate(0.2, s * 0.16, 0.08),
            superquadric(0.07, 0.07, 0.15, n=16)
            .rotate("x", s * 35)
            .translate(0.08, s * 0.23, 0.32),
        ]
    light = [
        superquadric(0.09, 0.09, 0.07, n=16).translate(0.18, 0, 0.54),
        superquadric(0.06, 0.15, 0.16, n=16).translate(0.16, 0, 0.25),
    ]
    light += [
        superquadric(0.03, 0.06, 0.06, n=14).rotate("z", s * 22).translate(0.345, s * 0.22, 0.09)
        for s in (-1, 1)
    ]
    nose = superquadric(0.03, 0.035, 0.025, n=10).translate(0.265, 0, 0.57)
    return [
        Part(join(body), fur, "speckle", (0.45, 0.28, 0.14), 0.0),
        Part(join(light), pale, gloss=0.0),
        Part(nose, BLACK),
        _eyes(0.195, 0.07, 0.63),
        Part(
            join(
                [
                    superquadric(0.03, 0.06, 0.04, n=12).translate(0.2, s * 0.055, 0.43)
                    for s in (-1, 1)
                ]
            ),
            RED,
        ),
    ]


def _car(primary: Colour, accent: Colour) -> list[Part]:
    side = [
        (-0.48, 0.1),
        (0.48, 0.1),
        (0.5, 0.2),
        (0.44, 0.26),
        (0.24, 0.29),
        (0.12, 0.44),
        (-0.24, 0.44),
        (-0.36, 0.29),
        (-0.48, 0.27),
    ]
    body = extrude(side, 0.4).rotate("x", 90).translate(y=0.2)
    pane = (
        extrude([(0.21, 0.29), (0.11, 0.42), (-0.22, 0.42), (-0.32, 0.29)], 0.41)
        .rotate("x", 90)
        .translate(y=0.205)
    )
    front = box(0.19, 0.34, 0.012).rotate("y", 52).translate(0.19, 0, 0.37)
    wheel = lathe(
        [(0, -0.05), (0.11, -0.05), (0.12, -0.03), (0.12, 0.03), (0.11, 0.05), (0, 0.05)], 26
    ).rotate("x", 90)
    hub = lathe([(0, -0.056), (0.055, -0.056), (0.055, 0.056), (0, 0.056)], 18, sharp=True).rotate(
        "x", 90
    )
    spots = [(x, y, 0.12) for x in (-0.28, 0.28) for y in (-0.19, 0.19)]
    lights = join(
        [superquadric(0.02, 0.045, 0.035, n=10).translate(0.495, s * 0.13, 0.2) for s in (-1, 1)]
    )
    return [
        Part(body, RED, gloss=0.9),
        Part(join([pane, front]), (0.55, 0.75, 0.85), gloss=1.0),
        Part(join([wheel.translate(*s) for s in spots]), BLACK),
        Part(join([hub.translate(*s) for s in spots]), STEEL),
        Part(lights, (1.0, 0.95, 0.6)),
    ]


def _duck(primary: Colour, accent: Colour) -> list[Part]:
    yellow = (0.96, 0.8, 0.15)
    body, head = (
        superquadric(0.34, 0.23, 0.19).translate(0, 0, 0.18),
        superquadric(0.17, 0.16, 0.16).translate(0.2, 0, 0.48),
    )
    tail = tube([(-0.24, 0, 0.22), (-0.34, 0, 0.3), (-0.4, 0, 0.38)], [0.12, 0.07, 0.02], flat=1.0)
    wings = [
        superquadric(0.16, 0.05, 0.1, n=18).rotate("y", 12).translate(-0.06, s * 0.21, 0.24)
        for s in (-1, 1)
    ]
    beak = superquadric(0.09, 0.09, 0.03, n=16).translate(0.38, 0, 0.46)
    return [
        Part(join([body, head, tail, *wings]), yellow, gloss=0.8),
        Part(beak, (0.95, 0.45, 0.1), gloss=0.7),
        _eyes(0.315, 0.085, 0.53),
    ]


def _robot(primary: Colour, accent: Colour) -> list[Part]:
    trunk, head = (
        box(0.26, 0.36, 0.34).translate(0, 0, 0.4),
        box(0.22, 0.26, 0.2).translate(0, 0, 0.7),
    )
    legs = join(
        [box(0.14, 0.12, 0.2).translate(0, s * 0.1, 0.14) for s in (-1, 1)]
        + [box(0.24, 0.15, 0.07).translate(0.04, s * 0.1, 0.035) for s in (-1, 1)]
    )
    arms = join(
        [
            tube([(0, s * 0.23, 0.52), (0.04, s * 0.27, 0.4), (0.13, s * 0.26, 0.3)], 0.045)
            for s in (-1, 1)
        ]
    )
    antenna = [
        tube([(0, 0, 0.8), (0, 0, 0.92)], 0.012),
        superquadric(0.035, 0.035, 0.035, n=12).translate(z=0.94),
    ]
    dials = join(
        [
            lathe([(0, 0), (0.035, 0), (0.035, 0.02), (0, 0.02)], 16)
            .rotate("y", 90)
            .translate(0.125, y, 0.36)
            for y in (-0.1, 0, 0.1)
        ]
    )
    panel, mouth = (
        box(0.012, 0.26, 0.12).translate(0.13, 0, 0.48),
        box(0.012, 0.14, 0.03).translate(0.11, 0, 0.645),
    )
    return [
        Part(join([trunk, head]), primary, gloss=0.6),
        Part(join([legs, arms]), STEEL, gloss=0.8),
        Part(join(antenna), RED),
        Part(dials, GOLD),
        Part(join([panel, mouth]), WHITE),
        _eyes(0.11, 0.06, 0.73, 0.032),
    ]


def _rings(primary: Colour, accent: Colour) -> list[Part]:
    inks = [RED, (0.95, 0.55, 0.15), (0.95, 0.85, 0.2), (0.3, 0.7, 0.35), (0.25, 0.45, 0.85)]
    parts = [
        Part(lathe([(0, 0), (0.32, 0), (0.32, 0.05), (0, 0.05)], sharp=True), WHITE),
        Part(tube([(0, 0, 0.05), (0, 0, 0.78)], 0.04), WHITE),
    ]
    for i, ink in enumerate(inks):
        r = 0.24 - 0.03 * i
        parts.append(
            Part(
                tube([(x, y, 0.12 + 0.13 * i) for x, y in circle(r, 36)], 0.072, 14, closed=True),
                ink,
                gloss=0.8,
            )
        )
    return [*parts, Part(superquadric(0.075, 0.075, 0.075, n=16).translate(z=0.82), RED, gloss=0.8)]
