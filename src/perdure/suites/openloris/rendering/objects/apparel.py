"""Objects that are worn."""

from __future__ import annotations

import numpy as np

from perdure.suites.openloris.rendering.materials import (
    BLACK,
    GOLD,
    STEEL,
    WHITE,
    Colour,
    Part,
    rotate,
    shade,
    translate,
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


def glasses(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """Round, square, sun and half-moon glasses, standing with their sides open."""
    shape = [
        circle(0.2, 36),
        rounded_rectangle(0.42, 0.3, 0.45),
        rounded_rectangle(0.46, 0.34, 0.6),
        rounded_rectangle(0.4, 0.24, 0.6),
    ][instance]
    frame = [STEEL, BLACK, primary, accent][instance]
    thick = [0.014, 0.026, 0.026, 0.018][instance]
    dark = instance == 2
    parts = []
    for side in (-1, 1):
        rim = tube([(0, side * 0.26 + x, y + 0.2) for x, y in shape], thick, 10, closed=True)
        lens = (
            extrude([(x * 0.98, y * 0.98) for x, y in shape], 0.01)
            .rotate("x", 90)
            .rotate("z", 90)
            .translate(0, side * 0.26, 0.2)
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
    return [*parts, Part(bridge, frame, gloss=0.8)]


def swimming_glasses(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """Swimming goggles: two tinted cups in soft rims, a nose piece and a strap."""
    parts = []
    for side in (-1, 1):
        eye = rounded_rectangle(0.36, 0.25, 0.65)
        gasket = tube([(-0.02, side * 0.23 + x, y + 0.2) for x, y in eye], 0.04, 12, closed=True)
        cup = superquadric(0.07, 0.17, 0.115, 0.6, 0.6).translate(0.03, side * 0.23, 0.2)
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
    clips = [box(0.06, 0.05, 0.12).translate(-0.03, side * 0.44, 0.2) for side in (-1, 1)]
    return [*parts, Part(join([nose, *clips]), BLACK), Part(join(strap), primary)]


def mask(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """Face masks: pleated ones with ear loops, and folded cup-shaped ones."""
    body = [(0.55, 0.75, 0.9), WHITE, primary, (0.3, 0.3, 0.33), accent][instance]
    cupped = instance in (1, 3)

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
            lathe([(0, 0), (0.07, 0), (0.06, 0.03), (0, 0.035)])
            .rotate("x", -28)
            .translate(0.1, 0.1, 0.19)
        )
        parts.append(Part(valve, accent if instance == 3 else (0.8, 0.8, 0.8)))
    return rotate(parts, "y", 18)


def hat(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A baseball cap and a wide-brimmed sun hat."""
    if instance == 0:
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
        knob = superquadric(0.03, 0.03, 0.015, n=12).translate(z=0.305)
        badge = superquadric(0.02, 0.09, 0.07, 0.6, 0.6).rotate("y", -24).translate(0.265, 0, 0.16)
        return translate(
            [
                Part(dome, primary, "weave", shade(primary, 0.9), 0.1),
                Part(sheet(bill, 24, 8, 0.018), accent),
                Part(join([*seams, knob]), accent),
                Part(badge, WHITE, "label", accent),
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
        superquadric(0.06, 0.02, 0.035, n=14).rotate("y", t).translate(x, -0.24, 0.06)
        for x, t in ((-0.05, 20), (0.05, -20))
    ]
    return [
        Part(lathe(crown, 48), straw, "weave", (0.7, 0.57, 0.35), 0.05, repeat=(3, 2)),
        Part(sheet(brim, 64, 8, 0.014), straw, "weave", (0.7, 0.57, 0.35), 0.05, repeat=(3, 1)),
        Part(join([ribbon, *bow]), primary),
    ]


def socks(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A pair lying side by side: leg, heel, toe and cuff."""
    high = [0.5, 0.34, 0.62][instance]
    kind = ["", "dots", "checker"][instance]
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
        back = tube(path[12:17] + np.array([-0.012, -0.012, 0]), 0.112, 16)
        flat = [Mesh(m.vertices * [1, 1, 0.42], m.faces, m.uv) for m in (body, toe, back)]
        # A straight edge with a dark opening: round, the leg would look like a second foot.
        cuff = box(0.23, 0.16, 0.1).translate(0, high + 0.15, 0)
        opening = box(0.2, 0.01, 0.07).translate(0, high + 0.228, 0)
        sock = [
            Part(flat[0], primary, kind, accent, 0.05, repeat=(1, 2)),
            Part(join(flat[1:]), accent),
            Part(cuff, shade(accent, 0.9), "stripes", accent, 0.05),
            Part(opening, shade(accent, 0.25)),
        ]
        pair += translate(rotate(sock, "z", 7 * i), 0.27 * i, 0.24 * i, 0.05)
    return pair


def bracelet(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A string of beads, a bangle, and a chain with a charm."""
    a = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    if instance == 0:
        ring = [(0.42 * np.cos(x), 0.42 * np.sin(x), 0.075) for x in a[::2]]
        beads = [superquadric(0.057, 0.057, 0.057, n=12).translate(*p) for p in ring]
        return [
            Part(join(beads[::2]), primary, gloss=0.9),
            Part(join(beads[1::2]), accent, gloss=0.9),
        ]
    if instance == 1:
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
            superquadric(0.025, 0.025, 0.025, n=10).translate(
                0.455 * np.cos(x), 0.455 * np.sin(x), 0.09
            )
            for x in a[::6]
        ]
        return [Part(band, GOLD, gloss=1.0), Part(join(gems), primary, gloss=1.0)]
    links = []
    for i, x in enumerate(a[::2]):
        link = (
            tube(arc(0.065, 0, 345, 16, "xz", 0.6), 0.014, 8)
            .rotate("x", 90 * (i % 2))
            .rotate("z", np.rad2deg(x) + 90)
        )
        links.append(link.translate(0.42 * np.cos(x), 0.42 * np.sin(x), 0.06))
    heart = [
        (
            16 * np.sin(t) ** 3 / 130,
            (13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)) / 130,
        )
        for t in a
    ]
    charm = extrude(heart, 0.03).translate(0.0, -0.56, 0.02)
    return [Part(join(links), STEEL, gloss=1.0), Part(charm, (0.85, 0.2, 0.3), gloss=0.9)]
