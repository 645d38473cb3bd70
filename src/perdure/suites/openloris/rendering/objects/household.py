"""Objects for personal care and the home."""

from __future__ import annotations

import numpy as np

from perdure.suites.openloris.rendering.materials import (
    BLACK,
    COTTON,
    GOLD,
    RED,
    STEEL,
    WHITE,
    Colour,
    Part,
    rotate,
    translate,
)
from perdure.suites.openloris.rendering.meshes import (
    arc,
    box,
    circle,
    extrude,
    grid,
    join,
    lathe,
    rounded_rectangle,
    sheet,
    superquadric,
    tube,
    vessel,
)
from perdure.types import Array


def cottonswab(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A few swabs fanned out, and a tub full of them."""
    stick = tube([(-0.4, 0, 0), (0.4, 0, 0)], 0.013, 8)
    tips = join([superquadric(0.075, 0.04, 0.04, n=14).translate(x) for x in (-0.42, 0.42)])
    swab = [
        Part(stick, primary if instance == 0 else (0.55, 0.75, 0.9)),
        Part(tips, COTTON, gloss=0.0),
    ]
    if instance == 0:
        fan = []
        for i, a in enumerate(np.linspace(-32, 32, 5)):
            fan += translate(rotate(swab, "z", a), 0.02 * i, 0.05 * (i - 2), 0.04 + 0.03 * (i % 2))
        return fan
    tub = vessel([(0.24, 0), (0.25, 0.02), (0.25, 0.36)], 0.015)
    parts = [
        Part(tub, (0.7, 0.85, 0.95), gloss=0.9, alpha=0.45),
        Part(lathe([(0.253, 0.08), (0.253, 0.24)]), WHITE, "label", accent),
    ]
    for ring, count in ((0.0, 1), (0.09, 6), (0.175, 12)):
        for a in np.linspace(0, 2 * np.pi, count, endpoint=False):
            up = rotate(rotate(swab, "y", 90), "y", 4 * np.cos(a))
            parts += translate(up, ring * np.cos(a), ring * np.sin(a), 0.47 + 0.02 * np.sin(5 * a))
    return parts


def comb(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A pocket comb, a comb with a handle, and a wide-toothed one."""
    count, deep = [(36, 0.17), (26, 0.18), (13, 0.2)][instance]
    start = -0.48 if instance == 0 else -0.12 if instance == 1 else -0.45
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
        ).translate(start + (i + 0.5) * pitch, 0.005, 0.005)
        for i in range(count)
    ]
    ends = [box(0.03, deep, 0.045).translate(x, -deep / 2, 0.0225) for x in (start - 0.005, 0.485)]
    parts = [
        Part(
            join([spine, *teeth, *ends]), [BLACK, primary, (0.55, 0.33, 0.16)][instance], gloss=0.7
        )
    ]
    if instance == 1:
        parts.append(
            Part(extrude(rounded_rectangle(0.42, 0.1, 0.5), 0.05).translate(-0.32, 0.03), accent)
        )
    return parts


def nail_clippers(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """Two spring leaves that end in jaws, a pin, and a lever."""
    metal = STEEL if instance != 2 else GOLD
    wide = [0.15, 0.17, 0.13][instance]
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
    lower = extrude(leaf, wide).rotate("x", 90).translate(y=wide / 2, z=-0.1)
    upper = extrude([(x, -z) for x, z in leaf], wide).rotate("x", 90).translate(y=wide / 2, z=0.15)
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
    lever = lever.rotate("x", 90).translate(y=wide * 0.4).rotate("y", 13).translate(0.05, 0, 0.19)
    pin = tube([(0.3, 0, -0.08), (0.3, 0, 0.24)], 0.03)
    grips = join(
        [
            box(0.02, wide * 0.82, 0.014).rotate("y", 13).translate(x, 0, 0.225 - 0.23 * x)
            for x in np.linspace(-0.42, -0.22, 5)
        ]
    )
    parts = [
        Part(join([lower, upper]), metal, gloss=1.0),
        Part(lever, metal if instance == 0 else primary, gloss=0.9),
        Part(pin, STEEL, gloss=1.0),
        Part(grips, BLACK),
    ]
    if instance == 1:
        parts.append(
            Part(tube(arc(0.07, 0, 350, 20, "xy") + np.array([-0.54, 0, 0.02]), 0.012), STEEL)
        )
    return translate(parts, z=0.12)


def toothpaste(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A tube that is round at the cap and flat at its crimped end."""
    round_ = [0.1, 0.12, 0.09][instance]

    def body(u: Array, v: Array) -> tuple[Array, Array, Array]:
        a = -2 * np.pi * u
        return (
            0.66 * v - 0.4,
            (round_ * (1 - v) + 0.15 * v) * np.cos(a),
            (round_ * (1 - v) ** 0.7 + 0.008) * np.sin(a),
        )

    crimp = box(0.04, 0.3, 0.02).translate(0.275, 0, 0)
    neck = (
        lathe([(round_, 0), (round_ * 0.5, 0.05), (round_ * 0.5, 0.08)])
        .rotate("y", -90)
        .translate(-0.4)
    )
    cap = lathe(
        [(0, 0), (round_ * 0.62, 0), (round_ * 0.8, 0.13), (0, 0.13)]
        if instance != 1
        else [(0, 0), (round_, 0), (round_, 0.12), (0, 0.12)],
        sharp=True,
    )
    parts = [
        Part(sheet(body, 40, 16, 0.004), WHITE, "label", primary, 0.7),
        Part(crimp, primary),
        Part(neck, WHITE),
        Part(cap.rotate("y", -90).translate(-0.44), accent if instance else primary),
    ]
    return parts


def tissue(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A long box, a cube and a soft pack, each with a tissue standing out."""
    x, y, z = [(0.8, 0.42, 0.28), (0.46, 0.46, 0.46), (0.7, 0.36, 0.2)][instance]
    body = (
        box(x, y, z).translate(z=z / 2)
        if instance < 2
        else superquadric(x / 2, y / 2, z / 2, 0.3, 0.25).translate(z=z / 2)
    )
    slot = extrude(
        [(a * 0.55 * x / 2, b * 0.32 * y / 2) for a, b in circle(1, 30)], 0.006
    ).translate(z=z)

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
        Part(body, primary, ["dots", "bands", "label"][instance], accent, 0.3),
        Part(slot, BLACK),
        Part(join([sheet(paper, 24, 12, 0.008), sheet(fold, 24, 12, 0.008)]), COTTON, gloss=0.0),
    ]


def thermometer(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A digital fever thermometer, a glass one on its scale, and a forehead gun."""
    if instance == 0:
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
        screen = box(0.2, 0.08, 0.006).translate(-0.12, 0, 0.072)
        digits = join(
            [box(0.012, 0.05, 0.004).translate(x, 0, 0.077) for x in (-0.18, -0.15, -0.1, -0.07)]
        )
        button = lathe([(0, 0), (0.035, 0), (0.03, 0.014), (0, 0.014)]).translate(-0.33, 0, 0.07)
        return [
            Part(body, WHITE, gloss=0.5),
            Part(tip, STEEL, gloss=1.0),
            Part(screen, (0.62, 0.7, 0.6)),
            Part(digits, BLACK),
            Part(button, primary),
        ]
    if instance == 1:
        board = extrude(rounded_rectangle(1.0, 0.2, 0.3), 0.03)
        scale = box(0.7, 0.15, 0.004).translate(0.08, 0, 0.032)
        glass = tube([(-0.4, 0, 0.045), (0.42, 0, 0.045)], 0.014)
        bulb, column = (
            superquadric(0.05, 0.045, 0.03, n=16).translate(-0.41, 0, 0.045),
            tube([(-0.4, 0, 0.05), (0.12, 0, 0.05)], 0.016),
        )
        return [
            Part(board, primary),
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
        Part(m.rotate("x", 90).translate(y=w / 2), col)
        for m, w, col in ((barrel, 0.2, WHITE), (grip, 0.16, WHITE), (trigger, 0.08, primary))
    ]
    nose = (
        lathe([(0, 0), (0.09, 0), (0.1, 0.06), (0.06, 0.06), (0.05, 0.02), (0, 0.02)], 24)
        .rotate("y", 90)
        .translate(0.33, 0, 0.58)
    )
    screen = box(0.02, 0.15, 0.13).rotate("y", -24).translate(-0.305, 0, 0.58)
    stripe = box(0.4, 0.21, 0.05).translate(0.0, 0, 0.6)
    return [
        *upright,
        Part(nose, BLACK),
        Part(screen, (0.45, 0.75, 0.6), gloss=0.9),
        Part(stripe, primary),
    ]


def cushion(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """Square cushions and a round one with a button, leaning a little."""
    u = np.linspace(-1, 1, 33)
    x, y = np.meshgrid(u, u)
    if instance == 2:
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
        button = superquadric(0.045, 0.045, 0.025, n=14).translate(z=0.1)
        parts = [Part(body, primary, "stripes", accent, 0.05), Part(join([piping, button]), accent)]
    else:
        puff = 0.17 * ((1 - x**2) * (1 - y**2)) ** 0.45
        pinch = 1 - 0.09 * (1 - x**2 * y**2) * (x**2 + y**2) / 2
        top = np.stack([0.48 * x * (pinch if instance == 0 else 1), 0.48 * y * pinch, puff], -1)
        faces = join([grid(top), grid((top * [1, 1, -1])[::-1])])
        rim = [*top[0], *top[:, -1][1:], *top[-1][::-1][1:], *top[::-1, 0][1:-1]]
        parts = [
            Part(faces, primary, ["checker", "dots"][instance], accent, 0.05),
            Part(tube(np.array(rim), 0.014, 8, closed=True), accent),
        ]
    return rotate(parts, "y", 16)
