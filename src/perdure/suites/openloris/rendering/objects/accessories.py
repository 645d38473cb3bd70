"""Objects that are carried: bags, umbrellas, wallets and keys."""

from __future__ import annotations

import numpy as np

from perdure.suites.openloris.rendering.materials import (
    BLACK,
    GOLD,
    STEEL,
    WHITE,
    WOOD,
    Colour,
    Part,
    rotate,
    shade,
)
from perdure.suites.openloris.rendering.meshes import (
    Mesh,
    arc,
    box,
    circle,
    extrude,
    join,
    lathe,
    rounded_rectangle,
    sheet,
    superquadric,
    tube,
)
from perdure.types import Array


def plasticbag(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """An open carrier bag with creased sides; an arched handle on the front and on the back."""
    tint = [(0.92, 0.92, 0.95), primary, (0.85, 0.25, 0.22)][instance]
    wide, deep, high = [(0.36, 0.17, 0.6), (0.28, 0.16, 0.66), (0.4, 0.2, 0.5)][instance]
    phase = 1.7 * instance

    def side(u: Array, v: Array) -> tuple[Array, Array, Array]:
        a = -2 * np.pi * u
        # Creases of unlike lengths and directions, sharp on one side, as thin film folds.
        crease = sum(
            h * np.abs(np.sin(m * a + n * v + phase + m))
            for h, m, n in ((0.04, 2, 5), (0.035, 3, -7), (0.02, 5, 9), (-0.04, 4, 3))
        )
        r = (1 + crease * np.sin(np.pi * np.clip(v, 0.08, 0.92))) * (1 - 0.1 * v)
        x, y = np.cos(a), np.sin(a)
        # A full bag bulges in the middle and gapes less at its mouth.
        belly = 1 + 0.35 * np.sin(np.pi * v) - 0.3 * v
        return (
            wide * r * np.sign(x) * np.abs(x) ** 0.35,
            deep * r * belly * np.sign(y) * np.abs(y) ** 0.5,
            high * v - 0.04 * v * np.cos(2 * a) + 0.012 * np.sin(9 * a + phase) * v**4,
        )

    handles = []
    for s in (-1, 1):
        t = np.linspace(0, np.pi, 24)
        arch = np.stack(
            [
                0.16 * np.cos(t),
                s * (deep * 0.62 + 0.05 * np.sin(t)),
                high - 0.06 + (0.06 + 0.24 * np.sin(t) ** 0.7),
            ],
            1,
        )
        handles.append(tube(arch, 0.025, 10, flat=0.3))
    base = extrude(
        [(wide * 1.9 * x, deep * 1.8 * y) for x, y in rounded_rectangle(1, 1, 0.4)], 0.02
    )

    ink = [accent, WHITE, (0.95, 0.85, 0.3)][instance]
    return [
        Part(sheet(side, 72, 40, 0.01), tint, "label", ink, 0.7),
        Part(join([*handles, base]), shade(tint, 0.85), gloss=0.7),
    ]


def umbrella(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """Open; rolled with a crook; short and folded with its strap."""
    crook = [
        (0, 0, 0.0),
        (0, 0, 0.1),
        *[(0.07 - 0.07 * np.cos(s), 0, 0.1 + 0.07 * np.sin(s)) for s in np.linspace(0.3, 3.4, 12)],
    ]
    if instance == 0:
        angle = np.linspace(0, 2 * np.pi, 65)

        def canopy(u: Array, v: Array) -> tuple[Array, Array, Array]:
            a = u * 2 * np.pi
            dip = np.abs(np.sin(4 * a))
            r = 0.5 * v * (1 - 0.06 * dip * v**2)
            return r * np.cos(-a), r * np.sin(-a), 0.24 * (1 - v**2) + 0.035 * dip * v**3

        ribs = [
            tube(
                [
                    (0.5 * s * np.cos(b), 0.5 * s * np.sin(b), 0.245 * (1 - s**2))
                    for s in np.linspace(0.02, 1, 10)
                ],
                0.008,
                6,
            )
            for b in angle[:-1:8]
        ]
        stick = [
            tube([(0, 0, 0.3), (0, 0, -0.45)], 0.014),
            tube(np.array(crook) * [1, 1, -1] + [0, 0, -0.45], 0.022),
        ]
        parts = [
            Part(sheet(canopy, 65, 16, 0.008), primary, "stripes", accent, 0.3),
            Part(join(ribs), STEEL),
            Part(join(stick), BLACK),
        ]
        return rotate(parts, "y", 62)
    if instance == 1:
        a = np.linspace(0, 1, 30)
        cloth = [
            tube(
                [(0.035 * np.cos(7 * s + b), 0.035 * np.sin(7 * s + b), -0.68 * s) for s in a],
                0.045 * (1 - 0.75 * a),
                10,
            )
            for b in np.linspace(0, 2 * np.pi, 5)[:-1]
        ]
        tip = tube([(0, 0, -0.6), (0, 0, -0.82)], 0.012)
        handle = tube(np.array(crook) * 1.1, 0.026)
        strap = lathe([(0.075, -0.1), (0.075, -0.06)], 20)
        parts = [
            Part(join(cloth), primary, gloss=0.2),
            Part(tip, STEEL, gloss=1.0),
            Part(handle, WOOD, "grain", (0.4, 0.24, 0.12)),
            Part(strap, accent),
        ]
        return rotate(parts, "y", 90)

    def cloth_(u: Array, v: Array) -> tuple[Array, Array, Array]:
        a = -2 * np.pi * u
        # Eight pleats wound round the stick, thinner towards the handle and pressed by the strap.
        pleat = ((4 * u * 2 + 1.3 * v) % 1) ** 2
        r = (0.085 + 0.035 * v) * (1 + 0.22 * pleat)
        r = r * (1 - 0.14 * np.exp(-(((v - 0.42) / 0.1) ** 2)))
        return r * np.cos(a), r * np.sin(a), 0.56 * v

    cap = lathe([(0, 0.55), (0.13, 0.55), (0.12, 0.58), (0, 0.62)])
    handle = lathe([(0, -0.2), (0.05, -0.2), (0.06, -0.16), (0.045, -0.02), (0.06, 0.0), (0, 0.0)])
    strap = lathe([(0.107, 0.2), (0.11, 0.27)], 30)
    loop = tube(arc(0.07, -180, 0, 14, "xz", 1.4) + np.array([0, 0, -0.2]), 0.009, 6)
    parts = [
        Part(sheet(cloth_, 129, 20, 0.004), primary, gloss=0.2),
        Part(join([cap, handle, loop]), BLACK),
        Part(strap, accent),
    ]
    return rotate(parts, "y", 90)


def wallet(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A bifold standing ajar, a long one with a clasp, a purse with a button."""
    leather = [(0.36, 0.2, 0.11), BLACK, primary][instance]
    if instance == 0:
        leaf = (
            extrude(rounded_rectangle(0.5, 0.4, 0.15), 0.03)
            .rotate("x", 90)
            .translate(0.25, 0.015, 0.2)
        )
        inner = (
            extrude(rounded_rectangle(0.44, 0.3, 0.15), 0.036)
            .rotate("x", 90)
            .translate(0.25, 0.018, 0.17)
        )
        leaves = [
            Part(m.rotate("z", a), col, "weave", shade(leather, 0.8), 0.3)
            for m, col in ((leaf, leather), (inner, shade(leather, 1.25)))
            for a in (22, -22)
        ]
        note = box(0.44, 0.006, 0.36).translate(0.24, 0.03, 0.25)
        card = box(0.36, 0.008, 0.2).rotate("z", -22).translate(0.24, -0.06, 0.28)
        return [
            *leaves,
            Part(note, (0.55, 0.7, 0.5), "label", (0.4, 0.55, 0.4)),
            Part(card, accent),
        ]
    long = 0.92 if instance == 1 else 0.56
    lower, upper = (
        superquadric(long / 2, 0.24, 0.045, 0.3, 0.25).translate(z=0.045),
        superquadric(long / 2, 0.24, 0.045, 0.3, 0.25).translate(0, 0.01, 0.125),
    )
    seam = tube(
        [(x, y, 0.165) for x, y in rounded_rectangle(long * 0.92, 0.42, 0.25)],
        0.006,
        6,
        closed=True,
    )
    parts = [
        Part(
            join([lower, upper]),
            leather,
            "marble" if instance == 2 else "",
            shade(leather, 0.85),
            0.5,
        ),
        Part(seam, accent),
    ]
    flap = box(0.13, 0.3, 0.02).translate(0, -0.14, 0.175)
    button = lathe([(0, 0), (0.035, 0), (0.03, 0.02), (0, 0.025)]).translate(0, -0.24, 0.185)
    return [*parts, Part(flap, leather), Part(button, GOLD, gloss=1.0)]


def key(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A door key, a key with a coloured head, and an old key with a bit."""
    metal = [GOLD, STEEL, (0.55, 0.43, 0.25)][instance]
    if instance == 2:
        loops = [
            tube([(x - 0.36 + a, y + b, 0.05) for x, y in circle(0.1, 24)], 0.03, 10, closed=True)
            for a, b in ((0, 0.1), (0, -0.1), (-0.14, 0))
        ]
        rod = tube([(-0.26, 0, 0.05), (0.5, 0, 0.05)], 0.035)
        collar = [tube([(x, 0, 0.05), (x + 0.02, 0, 0.05)], 0.055) for x in (-0.22, -0.12, 0.24)]
        bit = extrude(
            [
                (0.3, 0),
                (0.3, -0.22),
                (0.36, -0.22),
                (0.36, -0.12),
                (0.4, -0.12),
                (0.4, -0.22),
                (0.47, -0.22),
                (0.47, 0),
            ],
            0.04,
        ).translate(z=0.03)
        return [Part(join([*loops, rod, *collar, bit]), metal, gloss=1.0)]
    teeth = [(0.5, 0.03), (0.46, 0.06), (0.44, 0.06)]
    cuts = [0.0, 0.03, -0.015, 0.025, -0.01, 0.03, 0.01]
    low = [
        (x, -0.05 + e)
        for x, e in zip(np.linspace(0.42, -0.02, 14), np.repeat(cuts, 2), strict=True)
    ]
    blade = extrude(
        [(-0.12, 0.06), (-0.12, -0.06), (-0.03, -0.06), *low[::-1], (0.46, -0.03), *teeth], 0.035
    )
    groove = box(0.46, 0.016, 0.042).translate(0.16, 0.02, 0.0175)
    head = tube(
        [
            (x * 1.0 - 0.3, y, 0.018)
            for x, y in (circle(0.15, 30) if instance == 0 else rounded_rectangle(0.34, 0.3, 0.5))
        ],
        0.062,
        10,
        closed=True,
    )
    head = Mesh(head.vertices * [1, 1, 0.4] + [0, 0, 0.011], head.faces, head.uv)
    ring = tube([(x - 0.46, y, 0.03 + 0.1 * x) for x, y in circle(0.14, 30)], 0.014, 8, closed=True)
    return [
        Part(blade, metal, gloss=1.0),
        Part(groove, BLACK),
        Part(head, metal if instance == 0 else primary, gloss=0.8),
        Part(ring, STEEL, gloss=1.0),
    ]
