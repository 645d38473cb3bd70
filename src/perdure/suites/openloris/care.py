"""Things for body and home, and toys."""

from __future__ import annotations

import numpy as np

from perdure.suites.openloris.kitchen import arc, moved
from perdure.suites.openloris.paint import BLACK, GOLD, STEEL, WHITE, Colour, Part, shift, turn
from perdure.suites.openloris.shapes import (
    box,
    circle,
    extrude,
    grid,
    join,
    lathe,
    rounded,
    sheet,
    superquadric,
    tube,
    vessel,
)
from perdure.types import Array

COTTON: Colour = (0.97, 0.97, 0.96)
RED: Colour = (0.82, 0.18, 0.18)


def cottonswab(k: int, c: Colour, d: Colour) -> list[Part]:
    """A few swabs fanned out, and a tub full of them."""
    stick = tube([(-0.4, 0, 0), (0.4, 0, 0)], 0.013, 8)
    tips = join([superquadric(0.075, 0.04, 0.04, n=14).at(x) for x in (-0.42, 0.42)])
    swab = [Part(stick, c if k == 0 else (0.55, 0.75, 0.9)), Part(tips, COTTON, gloss=0.0)]
    if k == 0:
        fan = []
        for i, a in enumerate(np.linspace(-32, 32, 5)):
            fan += shift(turn(swab, "z", a), 0.02 * i, 0.05 * (i - 2), 0.04 + 0.03 * (i % 2))
        return fan
    tub = vessel([(0.24, 0), (0.25, 0.02), (0.25, 0.36)], 0.015)
    parts = [
        Part(tub, (0.7, 0.85, 0.95), gloss=0.9, alpha=0.45),
        Part(lathe([(0.253, 0.08), (0.253, 0.24)]), WHITE, "label", d),
    ]
    for ring, count in ((0.0, 1), (0.09, 6), (0.175, 12)):
        for a in np.linspace(0, 2 * np.pi, count, endpoint=False):
            up = turn(turn(swab, "y", 90), "y", 4 * np.cos(a))
            parts += shift(up, ring * np.cos(a), ring * np.sin(a), 0.47 + 0.02 * np.sin(5 * a))
    return parts


def cushion(k: int, c: Colour, d: Colour) -> list[Part]:
    """Square cushions and a round one with a button, leaning a little."""
    u = np.linspace(-1, 1, 33)
    x, y = np.meshgrid(u, u)
    if k == 2:
        body = lathe(
            [
                (
                    0.46 * np.cos(a) ** 0.6,
                    0.15 * np.sin(a)
                    - 0.07
                    * np.exp(-(((0.46 * np.cos(a) ** 0.6) / 0.09) ** 2))
                    * np.sign(np.sin(a)),
                )
                for a in np.linspace(-np.pi / 2, np.pi / 2, 40)
            ],
            48,
        )
        piping = tube([(p, q, 0) for p, q in circle(0.462, 48)], 0.018, 8, closed=True)
        button = superquadric(0.045, 0.045, 0.025, n=14).at(z=0.1)
        parts = [Part(body, c, "stripes", d, 0.05), Part(join([piping, button]), d)]
    else:
        puff = 0.17 * ((1 - x**2) * (1 - y**2)) ** 0.45
        pinch = 1 - 0.09 * (1 - x**2 * y**2) * (x**2 + y**2) / 2
        top = np.stack([0.48 * x * (pinch if k == 0 else 1), 0.48 * y * pinch, puff], -1)
        faces = join([grid(top), grid((top * [1, 1, -1])[::-1])])
        rim = [*top[0], *top[:, -1][1:], *top[-1][::-1][1:], *top[::-1, 0][1:-1]]
        parts = [
            Part(faces, c, ["checker", "dots"][k], d, 0.05),
            Part(tube(np.array(rim), 0.014, 8, closed=True), d),
        ]
    return turn(parts, "y", 16)


def thermometer(k: int, c: Colour, d: Colour) -> list[Part]:
    """A digital fever thermometer, a glass one on its scale, and a forehead gun."""
    if k == 0:
        body = extrude(
            [
                (-0.48, -0.05),
                (-0.4, -0.085),
                (0.0, -0.08),
                (0.22, -0.035),
                (0.42, -0.022),
                (0.42, 0.022),
                (0.22, 0.035),
                (0.0, 0.08),
                (-0.4, 0.085),
                (-0.48, 0.05),
            ],
            0.07,
        )
        tip = tube([(0.4, 0, 0.035), (0.52, 0, 0.035)], 0.026)
        screen = box(0.2, 0.08, 0.006).at(-0.12, 0, 0.072)
        digits = join(
            [box(0.012, 0.05, 0.004).at(x, 0, 0.077) for x in (-0.18, -0.15, -0.1, -0.07)]
        )
        button = lathe([(0, 0), (0.035, 0), (0.03, 0.014), (0, 0.014)]).at(-0.33, 0, 0.07)
        return [
            Part(body, WHITE, gloss=0.5),
            Part(tip, STEEL, gloss=1.0),
            Part(screen, (0.62, 0.7, 0.6)),
            Part(digits, BLACK),
            Part(button, c),
        ]
    if k == 1:
        board = extrude(rounded(1.0, 0.2, 0.3), 0.03)
        scale = box(0.7, 0.15, 0.004).at(0.08, 0, 0.032)
        glass = tube([(-0.4, 0, 0.045), (0.42, 0, 0.045)], 0.014)
        bulb, column = (
            superquadric(0.05, 0.045, 0.03, n=16).at(-0.41, 0, 0.045),
            tube([(-0.4, 0, 0.05), (0.12, 0, 0.05)], 0.016),
        )
        return [
            Part(board, c),
            Part(scale, WHITE, "ticks", BLACK),
            Part(glass, (0.85, 0.92, 0.95), gloss=1.0),
            Part(join([bulb, column]), RED, gloss=0.9),
        ]
    barrel = extrude(
        [
            (-0.3, 0.42),
            (0.28, 0.46),
            (0.34, 0.5),
            (0.34, 0.66),
            (0.26, 0.7),
            (-0.26, 0.7),
            (-0.34, 0.62),
        ],
        0.2,
    )
    grip = extrude(
        [(-0.3, 0.45), (-0.4, 0.04), (-0.36, 0.0), (-0.18, 0.0), (-0.14, 0.05), (-0.06, 0.44)], 0.16
    )
    trigger = extrude([(-0.06, 0.44), (-0.1, 0.3), (-0.04, 0.3), (0.02, 0.44)], 0.08)
    upright = [
        Part(m.turned("x", 90).at(y=w / 2), col)
        for m, w, col in ((barrel, 0.2, WHITE), (grip, 0.16, WHITE), (trigger, 0.08, c))
    ]
    nose = (
        lathe([(0, 0), (0.09, 0), (0.1, 0.06), (0.06, 0.06), (0.05, 0.02), (0, 0.02)], 24)
        .turned("y", 90)
        .at(0.33, 0, 0.58)
    )
    screen = box(0.02, 0.15, 0.13).turned("y", -24).at(-0.305, 0, 0.58)
    stripe = box(0.4, 0.21, 0.05).at(0.0, 0, 0.6)
    return [
        *upright,
        Part(nose, BLACK),
        Part(screen, (0.45, 0.75, 0.6), gloss=0.9),
        Part(stripe, c),
    ]


def nail_clippers(k: int, c: Colour, d: Colour) -> list[Part]:
    """Two spring leaves that end in jaws, a pin, and a lever."""
    metal = STEEL if k != 2 else GOLD
    wide = [0.15, 0.17, 0.13][k]
    leaf = [
        (-0.48, 0.0),
        (0.2, 0.03),
        (0.42, 0.09),
        (0.47, 0.13),
        (0.45, 0.14),
        (0.4, 0.11),
        (0.2, 0.055),
        (-0.48, 0.025),
    ]
    lower = extrude(leaf, wide).turned("x", 90).at(y=wide / 2, z=-0.1)
    upper = extrude([(x, -z) for x, z in leaf], wide).turned("x", 90).at(y=wide / 2, z=0.15)
    lever = extrude(
        [
            (0.33, 0.0),
            (0.3, 0.05),
            (0.18, 0.07),
            (-0.5, 0.02),
            (-0.52, -0.005),
            (-0.4, -0.01),
            (0.15, 0.03),
            (0.28, 0.0),
        ],
        wide * 0.8,
    )
    lever = lever.turned("x", 90).at(y=wide * 0.4).turned("y", 13).at(0.05, 0, 0.19)
    pin = tube([(0.3, 0, -0.08), (0.3, 0, 0.24)], 0.03)
    grips = join(
        [
            box(0.02, wide * 0.82, 0.014).turned("y", 13).at(x, 0, 0.225 - 0.23 * x)
            for x in np.linspace(-0.42, -0.22, 5)
        ]
    )
    parts = [
        Part(join([lower, upper]), metal, gloss=1.0),
        Part(lever, metal if k == 0 else c, gloss=0.9),
        Part(pin, STEEL, gloss=1.0),
        Part(grips, BLACK),
    ]
    if k == 1:
        parts.append(Part(tube(moved(arc(0.07, 0, 350, 20, "xy"), -0.54, 0, 0.02), 0.012), STEEL))
    return shift(parts, z=0.12)


def comb(k: int, c: Colour, d: Colour) -> list[Part]:
    """A pocket comb, a comb with a handle, and a wide-toothed one."""
    count, deep = [(36, 0.17), (26, 0.18), (13, 0.2)][k]
    start = -0.48 if k == 0 else -0.12 if k == 1 else -0.45
    spine = extrude(
        [
            (start - 0.02, 0.0),
            (0.5, 0.0),
            (0.5, 0.05),
            (0.4, 0.085),
            (start + 0.06, 0.085),
            (start - 0.02, 0.05),
        ],
        0.045,
    )
    pitch = (0.47 - start) / count
    teeth = [
        extrude(
            [(-pitch * 0.3, 0), (-pitch * 0.1, -deep), (pitch * 0.1, -deep), (pitch * 0.3, 0)],
            0.035,
        ).at(start + (i + 0.5) * pitch, 0.005, 0.005)
        for i in range(count)
    ]
    ends = [box(0.03, deep, 0.045).at(x, -deep / 2, 0.0225) for x in (start - 0.005, 0.485)]
    parts = [Part(join([spine, *teeth, *ends]), [BLACK, c, (0.55, 0.33, 0.16)][k], gloss=0.7)]
    if k == 1:
        parts.append(Part(extrude(rounded(0.42, 0.1, 0.5), 0.05).at(-0.32, 0.03), d))
    return parts


def toothpaste(k: int, c: Colour, d: Colour) -> list[Part]:
    """A tube that is round at the cap and flat at its crimped end."""
    round_ = [0.1, 0.12, 0.09][k]

    def body(u: Array, v: Array) -> tuple[Array, Array, Array]:
        a = -2 * np.pi * u
        return (
            0.66 * v - 0.4,
            (round_ * (1 - v) + 0.15 * v) * np.cos(a),
            (round_ * (1 - v) ** 0.7 + 0.008) * np.sin(a),
        )

    crimp = box(0.04, 0.3, 0.02).at(0.275, 0, 0)
    neck = (
        lathe([(round_, 0), (round_ * 0.5, 0.05), (round_ * 0.5, 0.08)]).turned("y", -90).at(-0.4)
    )
    cap = lathe(
        [(0, 0), (round_ * 0.62, 0), (round_ * 0.8, 0.13), (0, 0.13)]
        if k != 1
        else [(0, 0), (round_, 0), (round_, 0.12), (0, 0.12)],
        sharp=True,
    )
    parts = [
        Part(sheet(body, 40, 16, 0.004), WHITE, "label", c, 0.7),
        Part(crimp, c),
        Part(neck, WHITE),
        Part(cap.turned("y", -90).at(-0.44), d if k else c),
    ]
    return parts


def tissue(k: int, c: Colour, d: Colour) -> list[Part]:
    """A long box, a cube and a soft pack, each with a tissue standing out."""
    x, y, z = [(0.8, 0.42, 0.28), (0.46, 0.46, 0.46), (0.7, 0.36, 0.2)][k]
    body = (
        box(x, y, z).at(z=z / 2)
        if k < 2
        else superquadric(x / 2, y / 2, z / 2, 0.3, 0.25).at(z=z / 2)
    )
    slot = extrude([(a * 0.55 * x / 2, b * 0.32 * y / 2) for a, b in circle(1, 30)], 0.006).at(z=z)

    def paper(u: Array, v: Array) -> tuple[Array, Array, Array]:
        s = u - 0.5
        wave = 0.05 * np.sin(7 * s * 2 + 3 * v) * v + 0.03 * np.sin(17 * s)
        return (
            0.5 * x * s * (0.5 + 0.9 * v),
            wave + 0.1 * v * v,
            z + 0.26 * v - 0.12 * v * (2 * s) ** 2,
        )

    def fold(u: Array, v: Array) -> tuple[Array, Array, Array]:
        a, b, h = paper(u, v)
        return a * 0.85, -b + 0.02, z + (h - z) * 0.8

    return [
        Part(body, c, ["dots", "bands", "label"][k], d, 0.3),
        Part(slot, BLACK),
        Part(join([sheet(paper, 24, 12, 0.008), sheet(fold, 24, 12, 0.008)]), COTTON, gloss=0.0),
    ]


def toy(k: int, c: Colour, d: Colour) -> list[Part]:
    """A bear, a car, a duck, a robot and stacking rings."""
    return (_bear, _car, _duck, _robot, _rings)[k](c, d)


def _eyes(x: float, y: float, z: float, r: float = 0.025) -> Part:
    return Part(
        join([superquadric(r, r, r, n=10).at(x, s * y, z) for s in (-1, 1)]), BLACK, gloss=1.0
    )


def _bear(c: Colour, d: Colour) -> list[Part]:
    fur, pale = (0.6, 0.4, 0.22), (0.85, 0.7, 0.5)
    body = [
        superquadric(0.2, 0.22, 0.24).at(0, 0, 0.24),
        superquadric(0.18, 0.19, 0.17).at(0.03, 0, 0.58),
    ]
    for s in (-1, 1):
        body += [
            superquadric(0.07, 0.03, 0.07, n=16).turned("z", 90).at(0, s * 0.15, 0.73),
            superquadric(0.16, 0.08, 0.08, n=16).turned("z", s * 22).at(0.2, s * 0.16, 0.08),
            superquadric(0.07, 0.07, 0.15, n=16).turned("x", s * 35).at(0.08, s * 0.23, 0.32),
        ]
    light = [
        superquadric(0.09, 0.09, 0.07, n=16).at(0.18, 0, 0.54),
        superquadric(0.06, 0.15, 0.16, n=16).at(0.16, 0, 0.25),
    ]
    light += [
        superquadric(0.03, 0.06, 0.06, n=14).turned("z", s * 22).at(0.345, s * 0.22, 0.09)
        for s in (-1, 1)
    ]
    nose = superquadric(0.03, 0.035, 0.025, n=10).at(0.265, 0, 0.57)
    return [
        Part(join(body), fur, "speckle", (0.45, 0.28, 0.14), 0.0),
        Part(join(light), pale, gloss=0.0),
        Part(nose, BLACK),
        _eyes(0.195, 0.07, 0.63),
        Part(
            join([superquadric(0.03, 0.06, 0.04, n=12).at(0.2, s * 0.055, 0.43) for s in (-1, 1)]),
            RED,
        ),
    ]


def _car(c: Colour, d: Colour) -> list[Part]:
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
    body = extrude(side, 0.4).turned("x", 90).at(y=0.2)
    pane = (
        extrude([(0.21, 0.29), (0.11, 0.42), (-0.22, 0.42), (-0.32, 0.29)], 0.41)
        .turned("x", 90)
        .at(y=0.205)
    )
    front = box(0.19, 0.34, 0.012).turned("y", 52).at(0.19, 0, 0.37)
    wheel = lathe(
        [(0, -0.05), (0.11, -0.05), (0.12, -0.03), (0.12, 0.03), (0.11, 0.05), (0, 0.05)], 26
    ).turned("x", 90)
    hub = lathe([(0, -0.056), (0.055, -0.056), (0.055, 0.056), (0, 0.056)], 18, sharp=True).turned(
        "x", 90
    )
    spots = [(x, y, 0.12) for x in (-0.28, 0.28) for y in (-0.19, 0.19)]
    lights = join(
        [superquadric(0.02, 0.045, 0.035, n=10).at(0.495, s * 0.13, 0.2) for s in (-1, 1)]
    )
    return [
        Part(body, RED, gloss=0.9),
        Part(join([pane, front]), (0.55, 0.75, 0.85), gloss=1.0),
        Part(join([wheel.at(*s) for s in spots]), BLACK),
        Part(join([hub.at(*s) for s in spots]), STEEL),
        Part(lights, (1.0, 0.95, 0.6)),
    ]


def _duck(c: Colour, d: Colour) -> list[Part]:
    yellow = (0.96, 0.8, 0.15)
    body, head = (
        superquadric(0.34, 0.23, 0.19).at(0, 0, 0.18),
        superquadric(0.17, 0.16, 0.16).at(0.2, 0, 0.48),
    )
    tail = tube([(-0.24, 0, 0.22), (-0.34, 0, 0.3), (-0.4, 0, 0.38)], [0.12, 0.07, 0.02], flat=1.0)
    wings = [
        superquadric(0.16, 0.05, 0.1, n=18).turned("y", 12).at(-0.06, s * 0.21, 0.24)
        for s in (-1, 1)
    ]
    beak = superquadric(0.09, 0.09, 0.03, n=16).at(0.38, 0, 0.46)
    return [
        Part(join([body, head, tail, *wings]), yellow, gloss=0.8),
        Part(beak, (0.95, 0.45, 0.1), gloss=0.7),
        _eyes(0.315, 0.085, 0.53),
    ]


def _robot(c: Colour, d: Colour) -> list[Part]:
    trunk, head = box(0.26, 0.36, 0.34).at(0, 0, 0.4), box(0.22, 0.26, 0.2).at(0, 0, 0.7)
    legs = join(
        [box(0.14, 0.12, 0.2).at(0, s * 0.1, 0.14) for s in (-1, 1)]
        + [box(0.24, 0.15, 0.07).at(0.04, s * 0.1, 0.035) for s in (-1, 1)]
    )
    arms = join(
        [
            tube([(0, s * 0.23, 0.52), (0.04, s * 0.27, 0.4), (0.13, s * 0.26, 0.3)], 0.045)
            for s in (-1, 1)
        ]
    )
    antenna = [
        tube([(0, 0, 0.8), (0, 0, 0.92)], 0.012),
        superquadric(0.035, 0.035, 0.035, n=12).at(z=0.94),
    ]
    dials = join(
        [
            lathe([(0, 0), (0.035, 0), (0.035, 0.02), (0, 0.02)], 16)
            .turned("y", 90)
            .at(0.125, y, 0.36)
            for y in (-0.1, 0, 0.1)
        ]
    )
    panel, mouth = (
        box(0.012, 0.26, 0.12).at(0.13, 0, 0.48),
        box(0.012, 0.14, 0.03).at(0.11, 0, 0.645),
    )
    return [
        Part(join([trunk, head]), c, gloss=0.6),
        Part(join([legs, arms]), STEEL, gloss=0.8),
        Part(join(antenna), RED),
        Part(dials, GOLD),
        Part(join([panel, mouth]), WHITE),
        _eyes(0.11, 0.06, 0.73, 0.032),
    ]


def _rings(c: Colour, d: Colour) -> list[Part]:
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
    return [*parts, Part(superquadric(0.075, 0.075, 0.075, n=16).at(z=0.82), RED, gloss=0.8)]
