"""Things that are worn or carried."""

from __future__ import annotations

import numpy as np

from perdure.suites.openloris.kitchen import arc, moved
from perdure.suites.openloris.paint import (
    BLACK,
    GOLD,
    STEEL,
    WHITE,
    WOOD,
    Colour,
    Part,
    shade,
    shift,
    turn,
)
from perdure.suites.openloris.shapes import (
    Mesh,
    box,
    circle,
    extrude,
    join,
    lathe,
    rounded,
    sheet,
    superquadric,
    tube,
)
from perdure.types import Array


def glasses(k: int, c: Colour, d: Colour) -> list[Part]:
    """Round, square, sun and half-moon glasses, standing with their sides open."""
    shape = [
        circle(0.2, 36),
        rounded(0.42, 0.3, 0.45),
        rounded(0.46, 0.34, 0.6),
        rounded(0.4, 0.24, 0.6),
    ][k]
    frame = [STEEL, BLACK, c, d][k]
    thick = [0.014, 0.026, 0.026, 0.018][k]
    dark = k == 2
    parts = []
    for side in (-1, 1):
        rim = tube([(0, side * 0.26 + x, y + 0.2) for x, y in shape], thick, 10, closed=True)
        lens = (
            extrude([(x * 0.98, y * 0.98) for x, y in shape], 0.01)
            .turned("x", 90)
            .turned("z", 90)
            .at(0, side * 0.26, 0.2)
        )
        leg = [
            (0, side * 0.48, 0.26),
            (-0.1, side * 0.49, 0.26),
            (-0.5, side * 0.48, 0.24),
            (-0.62, side * 0.47, 0.17),
            (-0.68, side * 0.46, 0.08),
        ]
        parts += [Part(rim, frame, gloss=0.8), Part(tube(leg, thick * 1.1, 8), frame, gloss=0.8)]
        parts.append(
            Part(
                lens,
                (0.08, 0.08, 0.1) if dark else (0.75, 0.88, 0.95),
                gloss=1.0,
                alpha=0.92 if dark else 0.35,
            )
        )
    bridge = tube([(0, -0.08, 0.24), (0.03, 0, 0.27), (0, 0.08, 0.24)], thick, 8)
    return turn([*parts, Part(bridge, frame, gloss=0.8)], "y", 0)


def mask(k: int, c: Colour, d: Colour) -> list[Part]:
    """Face masks: pleated ones with ear loops, and folded cup-shaped ones."""
    body = [(0.55, 0.75, 0.9), WHITE, c, (0.3, 0.3, 0.33), d][k]
    cupped = k in (1, 3)

    def pleated(u: Array, v: Array) -> tuple[Array, Array, Array]:
        y, x = u - 0.5, (v - 0.5) * 0.62
        fold = 0.014 * np.abs(((v * 4) % 1) - 0.5)
        return x, y, 0.2 * (1 - (2 * y) ** 2) + fold * (v > 0.2) * (v < 0.9) - 0.12 * (2 * x) ** 2

    def folded(u: Array, v: Array) -> tuple[Array, Array, Array]:
        y, x = u - 0.5, (v - 0.5) * 0.72 * (1 - 0.7 * (2 * u - 1) ** 2)
        ridge = np.sqrt(np.abs(v - 0.5) * 2 + 1e-3)
        return x, y, 0.34 * (1 - ridge * 0.72) * (1 - (2 * y) ** 2) + 0.02

    shell = sheet(folded if cupped else pleated, 32, 33, 0.012)
    half = 0.12 if cupped else 0.25
    loops = [
        tube(
            [
                (half * np.cos(a), s * (0.48 + 0.2 * np.sin(a)), 0.02 + 0.05 * np.sin(a))
                for a in np.linspace(0.05, np.pi - 0.05, 18)
            ],
            0.012,
            8,
        )
        for s in (-1, 1)
    ]
    parts = [
        Part(shell, body, "" if cupped else "bands", shade(body, 0.9), 0.05),
        Part(join(loops), WHITE),
    ]
    if not cupped:
        hems = [
            tube(
                [
                    (x, y, 0.2 * (1 - (2 * y) ** 2) - 0.12 * (2 * x) ** 2 + 0.006)
                    for y in np.linspace(-0.5, 0.5, 15)
                ],
                0.012,
                6,
            )
            for x in (-0.305, 0.305)
        ]
        parts.append(Part(join(hems), WHITE))
    else:
        valve = (
            lathe([(0, 0), (0.07, 0), (0.06, 0.03), (0, 0.035)]).turned("x", -28).at(0.1, 0.1, 0.19)
        )
        parts.append(Part(valve, d if k == 3 else (0.8, 0.8, 0.8)))
    return turn(parts, "y", 18)


def plasticbag(k: int, c: Colour, d: Colour) -> list[Part]:
    """An open carrier bag with creased sides; an arched handle on the front and on the back."""
    tint = [(0.92, 0.92, 0.95), c, (0.85, 0.25, 0.22)][k]
    wide, deep, high = [(0.36, 0.17, 0.6), (0.28, 0.16, 0.66), (0.4, 0.2, 0.5)][k]
    phase = 1.7 * k

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
    base = extrude([(wide * 1.9 * x, deep * 1.8 * y) for x, y in rounded(1, 1, 0.4)], 0.02)

    ink = [d, WHITE, (0.95, 0.85, 0.3)][k]
    return [
        Part(sheet(side, 72, 40, 0.01), tint, "label", ink, 0.7),
        Part(join([*handles, base]), shade(tint, 0.85), gloss=0.7),
    ]


def bracelet(k: int, c: Colour, d: Colour) -> list[Part]:
    """A string of beads, a bangle, and a chain with a charm."""
    a = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    if k == 0:
        ring = [(0.42 * np.cos(x), 0.42 * np.sin(x), 0.075) for x in a[::2]]
        beads = [superquadric(0.057, 0.057, 0.057, n=12).at(*p) for p in ring]
        return [Part(join(beads[::2]), c, gloss=0.9), Part(join(beads[1::2]), d, gloss=0.9)]
    if k == 1:
        band = lathe(
            [
                (0.4, 0),
                (0.44, 0.02),
                (0.455, 0.09),
                (0.44, 0.16),
                (0.4, 0.18),
                (0.395, 0.09),
                (0.4, 0),
            ],
            60,
        )
        gems = [
            superquadric(0.025, 0.025, 0.025, n=10).at(0.455 * np.cos(x), 0.455 * np.sin(x), 0.09)
            for x in a[::6]
        ]
        return [Part(band, GOLD, gloss=1.0), Part(join(gems), c, gloss=1.0)]
    links = []
    for i, x in enumerate(a[::2]):
        link = (
            tube(arc(0.065, 0, 345, 16, "xz", 0.6), 0.014, 8)
            .turned("x", 90 * (i % 2))
            .turned("z", np.rad2deg(x) + 90)
        )
        links.append(link.at(0.42 * np.cos(x), 0.42 * np.sin(x), 0.06))
    heart = [
        (
            16 * np.sin(t) ** 3 / 130,
            (13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)) / 130,
        )
        for t in a
    ]
    charm = extrude(heart, 0.03).at(0.0, -0.56, 0.02)
    return [Part(join(links), STEEL, gloss=1.0), Part(charm, (0.85, 0.2, 0.3), gloss=0.9)]


def umbrella(k: int, c: Colour, d: Colour) -> list[Part]:
    """Open; rolled with a crook; short and folded with its strap."""
    crook = [
        (0, 0, 0.0),
        (0, 0, 0.1),
        *[(0.07 - 0.07 * np.cos(s), 0, 0.1 + 0.07 * np.sin(s)) for s in np.linspace(0.3, 3.4, 12)],
    ]
    if k == 0:
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
            Part(sheet(canopy, 65, 16, 0.008), c, "stripes", d, 0.3),
            Part(join(ribs), STEEL),
            Part(join(stick), BLACK),
        ]
        return turn(parts, "y", 62)
    if k == 1:
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
            Part(join(cloth), c, gloss=0.2),
            Part(tip, STEEL, gloss=1.0),
            Part(handle, WOOD, "grain", (0.4, 0.24, 0.12)),
            Part(strap, d),
        ]
        return turn(parts, "y", 90)

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
    loop = tube(moved(arc(0.07, -180, 0, 14, "xz", 1.4), 0, 0, -0.2), 0.009, 6)
    parts = [
        Part(sheet(cloth_, 129, 20, 0.004), c, gloss=0.2),
        Part(join([cap, handle, loop]), BLACK),
        Part(strap, d),
    ]
    return turn(parts, "y", 90)


def socks(k: int, c: Colour, d: Colour) -> list[Part]:
    """A pair lying side by side: leg, heel, toe and cuff."""
    high = [0.5, 0.34, 0.62][k]
    kind = ["", "dots", "checker"][k]
    pair = []
    for i in range(2):
        bend = np.linspace(0, np.pi / 2, 10)
        leg = [(0, high + 0.12 - s, 0.0) for s in np.linspace(0, high, 10)]
        heel = [(0.12 - 0.12 * np.cos(b), 0.12 - 0.12 * np.sin(b), 0.0) for b in bend[1:]]
        foot = [(0.12 + s, 0.0, 0.0) for s in np.linspace(0.04, 0.3, 8)]
        path = np.array([*leg, *heel, *foot])
        radius = np.concatenate(
            [np.full(10, 0.1), np.linspace(0.105, 0.12, 9), np.linspace(0.115, 0.1, 8)]
        )
        # The first normal of this path is across the plane in which the sock lies.
        body = tube(path, radius, 20)
        toe = tube(path[-3:], radius[-3:] * 1.03, 20)
        back = tube(moved(path[12:17], -0.012, -0.012, 0), 0.112, 16)
        flat = [Mesh(m.vertices * [1, 1, 0.42], m.faces, m.uv) for m in (body, toe, back)]
        # A straight edge with a dark opening: round, the leg would look like a second foot.
        cuff = box(0.23, 0.16, 0.1).at(0, high + 0.15, 0)
        opening = box(0.2, 0.01, 0.07).at(0, high + 0.228, 0)
        sock = [
            Part(flat[0], c, kind, d, 0.05, repeat=(1, 2)),
            Part(join(flat[1:]), d),
            Part(cuff, shade(d, 0.9), "stripes", d, 0.05),
            Part(opening, shade(d, 0.25)),
        ]
        pair += shift(turn(sock, "z", 7 * i), 0.27 * i, 0.24 * i, 0.05)
    return pair


def wallet(k: int, c: Colour, d: Colour) -> list[Part]:
    """A bifold standing ajar, a long one with a clasp, a purse with a button."""
    leather = [(0.36, 0.2, 0.11), BLACK, c][k]
    if k == 0:
        leaf = extrude(rounded(0.5, 0.4, 0.15), 0.03).turned("x", 90).at(0.25, 0.015, 0.2)
        inner = extrude(rounded(0.44, 0.3, 0.15), 0.036).turned("x", 90).at(0.25, 0.018, 0.17)
        leaves = [
            Part(m.turned("z", a), col, "weave", shade(leather, 0.8), 0.3)
            for m, col in ((leaf, leather), (inner, shade(leather, 1.25)))
            for a in (22, -22)
        ]
        note = box(0.44, 0.006, 0.36).at(0.24, 0.03, 0.25)
        card = box(0.36, 0.008, 0.2).turned("z", -22).at(0.24, -0.06, 0.28)
        return [*leaves, Part(note, (0.55, 0.7, 0.5), "label", (0.4, 0.55, 0.4)), Part(card, d)]
    long = 0.92 if k == 1 else 0.56
    lower, upper = (
        superquadric(long / 2, 0.24, 0.045, 0.3, 0.25).at(z=0.045),
        superquadric(long / 2, 0.24, 0.045, 0.3, 0.25).at(0, 0.01, 0.125),
    )
    seam = tube([(x, y, 0.165) for x, y in rounded(long * 0.92, 0.42, 0.25)], 0.006, 6, closed=True)
    parts = [
        Part(
            join([lower, upper]),
            leather,
            "marble" if k == 2 else "",
            shade(leather, 0.85),
            0.5,
        ),
        Part(seam, d),
    ]
    flap = box(0.13, 0.3, 0.02).at(0, -0.14, 0.175)
    button = lathe([(0, 0), (0.035, 0), (0.03, 0.02), (0, 0.025)]).at(0, -0.24, 0.185)
    return [*parts, Part(flap, leather), Part(button, GOLD, gloss=1.0)]


def headphone(k: int, c: Colour, d: Colour) -> list[Part]:
    """A headband over two padded ear cups."""
    wide, cup = [(0.36, 0.15), (0.34, 0.19), (0.36, 0.12)][k]
    shell = [BLACK, WHITE, c][k]
    band = moved(arc(wide, 0, 180, 30, "yz", 1.15), 0, 0, 0.32)
    parts = [Part(tube(band, 0.03 if k else 0.022, 10, flat=1.0), shell if k else STEEL, gloss=0.6)]
    pad = moved(arc(wide + 0.005, 40, 140, 16, "yz", 1.15), 0, 0, 0.305)
    parts.append(Part(tube(pad, 0.05, 12), d if k != 1 else (0.4, 0.4, 0.42), gloss=0.1))
    for side in (-1, 1):
        ear = (
            superquadric(cup, cup * 1.25, 0.06, 0.5, 1)
            .turned("x", 90)
            .at(0, side * (wide + 0.01), 0.28)
        )
        foam = tube(
            [(x, side * (wide - 0.07), y + 0.28) for x, y in circle(cup * 0.72, 26, squash=1.25)],
            0.05,
            10,
            closed=True,
        )
        badge = (
            lathe([(0, 0), (cup * 0.5, 0), (cup * 0.5, 0.02), (0, 0.02)])
            .turned("x", -90 * side)
            .at(0, side * (wide + 0.06), 0.28)
        )
        parts += [
            Part(ear, shell, gloss=0.7),
            Part(foam, (0.15, 0.15, 0.16)),
            Part(badge, d if k else c, gloss=0.8),
        ]
    return parts


def key(k: int, c: Colour, d: Colour) -> list[Part]:
    """A door key, a key with a coloured head, and an old key with a bit."""
    metal = [GOLD, STEEL, (0.55, 0.43, 0.25)][k]
    if k == 2:
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
        ).at(z=0.03)
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
    groove = box(0.46, 0.016, 0.042).at(0.16, 0.02, 0.0175)
    head = tube(
        [
            (x * 1.0 - 0.3, y, 0.018)
            for x, y in (circle(0.15, 30) if k == 0 else rounded(0.34, 0.3, 0.5))
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
        Part(head, metal if k == 0 else c, gloss=0.8),
        Part(ring, STEEL, gloss=1.0),
    ]


def hat(k: int, c: Colour, d: Colour) -> list[Part]:
    """A baseball cap and a wide-brimmed sun hat."""
    if k == 0:
        dome = lathe(
            [(0.3 * np.cos(a) ** 0.8, 0.3 * np.sin(a)) for a in np.linspace(0, np.pi / 2, 14)], 48
        )

        def bill(u: Array, v: Array) -> tuple[Array, Array, Array]:
            a = (u - 0.5) * 2.3
            x = 0.27 * np.cos(a) + v * 0.27 * np.cos(a * 0.9) ** 0.7
            return (
                x,
                0.3 * np.sin(a) * (1 - 0.08 * v),
                0.045 - 0.1 * (np.sin(a) ** 2) * v * 0.8 + 0.0 * u,
            )

        seams = [
            tube(
                [
                    (
                        0.302 * np.cos(a) ** 0.8 * np.cos(b),
                        0.302 * np.cos(a) ** 0.8 * np.sin(b),
                        0.302 * np.sin(a),
                    )
                    for a in np.linspace(0, 1.56, 12)
                ],
                0.005,
                6,
            )
            for b in np.arange(6) * np.pi / 3
        ]
        knob = superquadric(0.03, 0.03, 0.015, n=12).at(z=0.305)
        badge = superquadric(0.02, 0.09, 0.07, 0.6, 0.6).turned("y", -24).at(0.265, 0, 0.16)
        return shift(
            [
                Part(dome, c, "weave", shade(c, 0.9), 0.1),
                Part(sheet(bill, 24, 8, 0.018), d),
                Part(join([*seams, knob]), d),
                Part(badge, WHITE, "label", d),
            ],
            z=0.03,
        )
    crown = [(0.23, 0.02), (0.22, 0.12), (0.2, 0.22), (0.17, 0.26), (0.1, 0.275), (0, 0.265)]
    straw = (0.86, 0.74, 0.5)

    def brim(u: Array, v: Array) -> tuple[Array, Array, Array]:
        a = -u * 2 * np.pi
        r = 0.22 + 0.3 * v
        return r * np.cos(a), r * np.sin(a), 0.03 + 0.045 * v * np.cos(2 * a) - 0.02 * v

    ribbon = lathe([(0.236, 0.02), (0.228, 0.1)], 48)
    bow = [
        superquadric(0.06, 0.02, 0.035, n=14).turned("y", t).at(x, -0.24, 0.06)
        for x, t in ((-0.05, 20), (0.05, -20))
    ]
    return [
        Part(lathe(crown, 48), straw, "weave", (0.7, 0.57, 0.35), 0.05, repeat=(3, 2)),
        Part(sheet(brim, 64, 8, 0.014), straw, "weave", (0.7, 0.57, 0.35), 0.05, repeat=(3, 1)),
        Part(join([ribbon, *bow]), c),
    ]


def swimming_glasses(k: int, c: Colour, d: Colour) -> list[Part]:
    """Swimming goggles: two tinted cups in soft rims, a nose piece and a strap."""
    parts = []
    for side in (-1, 1):
        eye = rounded(0.36, 0.25, 0.65)
        gasket = tube([(-0.02, side * 0.23 + x, y + 0.2) for x, y in eye], 0.04, 12, closed=True)
        cup = superquadric(0.07, 0.17, 0.115, 0.6, 0.6).at(0.03, side * 0.23, 0.2)
        parts += [Part(gasket, BLACK), Part(cup, (0.12, 0.38, 0.65), gloss=1.0)]
    nose = tube([(0, -0.07, 0.2), (0.02, 0, 0.22), (0, 0.07, 0.2)], 0.025)
    s = np.linspace(0, np.pi, 30)
    strap = [
        tube(
            np.stack(
                [
                    -0.02 - 0.5 * np.sin(s) ** 0.8,
                    0.43 * np.cos(s),
                    h + 0 * s + 0.02 * np.sin(3 * s),
                ],
                1,
            ),
            0.03,
            10,
            flat=0.35,
        )
        for h in (0.17, 0.25)
    ]
    clips = [box(0.06, 0.05, 0.12).at(-0.03, side * 0.44, 0.2) for side in (-1, 1)]
    return [*parts, Part(join([nose, *clips]), BLACK), Part(join(strap), c)]
