"""Objects of the desk and the drawer."""

from __future__ import annotations

import numpy as np

from perdure.suites.openloris.kitchen import arc, moved
from perdure.suites.openloris.paint import (
    BLACK,
    CARD,
    GOLD,
    PINK,
    STEEL,
    WHITE,
    WOOD,
    Colour,
    Part,
    shift,
    turn,
)
from perdure.suites.openloris.shapes import (
    box,
    circle,
    extrude,
    join,
    lathe,
    rounded,
    superquadric,
    tube,
)


def paper_cutter(k: int, c: Colour, d: Colour) -> list[Part]:
    """A snap-off cutter: a flat body, a slider, and a slanted blade with its score lines."""
    long, wide = [(0.72, 0.15), (0.76, 0.12), (0.66, 0.18), (0.7, 0.13)][k]
    body = extrude(rounded(long, wide, 0.25), 0.07)
    tip = extrude([(0, -0.036), (0.2, -0.036), (0.14, 0.036), (0, 0.036)], 0.012).at(
        long / 2 - 0.02, 0, 0.03
    )
    scores = join(
        [box(0.006, 0.085, 0.004).turned("z", 30).at(long / 2 + x, 0, 0.044) for x in (0.04, 0.08)]
    )
    guide = extrude(
        [(0, -wide * 0.42), (0.1, -wide * 0.3), (0.1, wide * 0.3), (0, wide * 0.42)], 0.05
    ).at(long / 2 - 0.04, 0, 0.01)
    slot = box(long * 0.62, 0.035, 0.01).at(0.04, 0, 0.07)
    ridges = join([box(0.014, 0.07, 0.035).at(x, 0, 0.08) for x in np.linspace(0.02, 0.12, 5)])
    parts = [
        Part(body, c),
        Part(tip, STEEL, gloss=1.0),
        Part(scores, BLACK),
        Part(guide, STEEL, gloss=0.9),
    ]
    parts += [Part(slot, BLACK), Part(ridges, d)]
    if k in (1, 3):
        parts.append(Part(extrude(rounded(0.16, wide * 1.06, 0.3), 0.075).at(-long / 2 + 0.07), d))
    return parts


def pencil(k: int, c: Colour, d: Colour) -> list[Part]:
    """A sharpened pencil, six-sided or round, with or without an eraser."""
    sides, r = (24 if k in (2, 4) else 6), 0.042
    rod = lathe([(0, 0), (r, 0), (r, 0.66)], sides, sharp=True)
    if k == 3:
        rod = lathe([(0, 0), (r * 1.2, 0), (r * 1.2, 0.66)], 3, sharp=True)
    wood = lathe([(r * 0.98, 0.655), (0.012, 0.79)], 24)
    lead = lathe([(0.0125, 0.789), (0.0, 0.83)], 12)
    kind = ["", "stripes", "gradient", "", "bands"][k]
    parts = [
        Part(rod, c, kind, d, 0.5),
        Part(wood, (0.86, 0.7, 0.5), "grain", WOOD),
        Part(lead, BLACK if k != 4 else c),
    ]
    if k in (0, 1, 3):
        ferrule = lathe(
            [
                (r * 1.06, -0.08),
                (r * 1.1, -0.06),
                (r * 1.06, -0.04),
                (r * 1.1, -0.02),
                (r * 1.06, 0.01),
            ],
            24,
        )
        rubber = lathe([(0, -0.15), (r * 0.8, -0.15), (r, -0.13), (r, -0.07), (0, -0.07)], 24)
        parts += [Part(ferrule, GOLD if k == 0 else STEEL, gloss=1.0), Part(rubber, PINK)]
    return turn(parts, "y", 90)


def plug(k: int, c: Colour, d: Colour) -> list[Part]:
    """A mains plug with its pins and a length of cable."""
    shell = c if k == 3 else (WHITE, BLACK, (0.85, 0.85, 0.82))[k]
    if k == 0:
        body = superquadric(0.2, 0.15, 0.1, 0.5, 0.4).at(z=0.1)
        pins = [tube([(0.15, y, 0.1), (0.4, y, 0.1)], 0.026) for y in (-0.075, 0.075)]
    elif k == 1:
        body = superquadric(0.18, 0.14, 0.1, 0.4, 0.5).at(z=0.1)
        pins = [box(0.3, 0.02, 0.075).at(0.26, y, 0.1) for y in (-0.06, 0.06)]
    elif k == 2:
        body = extrude(rounded(0.3, 0.34, 0.4), 0.16).at(z=0.02)
        pins = [box(0.24, 0.05, 0.03).at(0.25, y, 0.07) for y in (-0.09, 0.09)]
        pins.append(box(0.28, 0.035, 0.06).at(0.25, 0, 0.14))
    else:
        body = superquadric(0.24, 0.2, 0.16, 0.25, 0.3).at(z=0.16)
        pins = [box(0.3, 0.075, 0.02).at(0.32, y, 0.17) for y in (-0.08, 0.08)]
    s = np.linspace(0, 1, 26)
    cable = np.stack(
        [-0.3 - 0.3 * np.sin(s * 3.4), 0.5 * s**1.5 * np.sin(s * 4), 0.1 * (1 - s) ** 2 + 0.03], 1
    )
    relief = join([tube([(-0.16, 0, 0.1), (-0.3, 0, 0.1)], [0.06, 0.035])])
    return [
        Part(body, shell, gloss=0.5),
        Part(join(pins), GOLD if k == 0 else STEEL, gloss=1.0),
        Part(relief, shell),
        Part(tube(cable, 0.028), shell),
    ]


def scissors(k: int, c: Colour, d: Colour) -> list[Part]:
    """Two blades crossed at a screw, and a ring for each hand."""
    spread, long = [(16, 0.52), (24, 0.42), (11, 0.6)][k]
    parts = []
    for side in (-1, 1):
        blade = extrude(
            [
                (-0.06, -0.035),
                (0.1, -0.04),
                (long, 0.0),
                (long - 0.06, 0.02),
                (0.1, 0.04),
                (-0.06, 0.035),
            ],
            0.018,
        )
        shank = tube(
            [(-0.04, 0, 0.012), (-0.16, -0.02, 0.012), (-0.24, -0.05, 0.012)], 0.03, flat=0.7
        )
        ring = circle(0.115, 28, squash=0.74)
        loop = tube([(x - 0.34, y - 0.1, 0.012) for x, y in ring], 0.03, 12, closed=True)
        half = [
            Part(blade, STEEL, gloss=1.0),
            Part(shank, c),
            Part(loop, c if k != 1 else (c, d)[side > 0]),
        ]
        if side < 0:
            half = [
                Part(p.mesh.scaled(1, 1, 1).turned("x", 180), p.colour, gloss=p.gloss) for p in half
            ]
        parts += shift(turn(half, "z", side * spread / 2), z=0.012 * side)
    return [
        *parts,
        Part(lathe([(0, -0.03), (0.024, -0.03), (0.024, 0.04), (0, 0.045)], 18), STEEL, gloss=1.0),
    ]


def stapler(k: int, c: Colour, d: Colour) -> list[Part]:
    """A base with an anvil, and an arm that rises from the hinge."""
    wide = [0.17, 0.2, 0.15][k]
    base = extrude(
        [(-0.45, 0), (0.48, 0), (0.48, 0.035), (0.3, 0.05), (-0.4, 0.07), (-0.45, 0.05)], wide
    )
    arm = extrude(
        [
            (-0.46, 0.07),
            (0.44, 0.1),
            (0.47, 0.15),
            (0.42, 0.2),
            (0.1, 0.23 + 0.03 * k),
            (-0.3, 0.2),
            (-0.45, 0.14),
        ],
        wide * 0.86,
    )
    rail = extrude([(-0.4, 0.055), (0.43, 0.07), (0.43, 0.11), (-0.4, 0.09)], wide * 0.6)
    stand = [Part(m.turned("x", 90).at(y=w / 2), col, gloss=g) for m, w, col, g in (
        (base, wide, BLACK if k != 1 else d, 0.4), (arm.turned("z", 7), wide * 0.86, c, 0.6), (rail.turned("z", 6), wide * 0.6, STEEL, 1.0),
    )]  # fmt: skip
    anvil = box(0.12, wide * 0.7, 0.012).at(0.4, 0, 0.042)
    hinge = tube([(-0.4, -wide * 0.52, 0.1), (-0.4, wide * 0.52, 0.1)], 0.03)
    cushion = (
        superquadric(0.16, wide * 0.36, 0.03, 0.5, 0.4)
        .turned("y", -10)
        .at(0.22, 0, 0.25 + 0.02 * k)
    )
    return [
        *stand,
        Part(anvil, STEEL, gloss=1.0),
        Part(hinge, STEEL, gloss=0.9),
        Part(cushion, d if k != 1 else BLACK),
    ]


def mouse(k: int, c: Colour, d: Colour) -> list[Part]:
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
        Part(wheel, c),
        Part(tube(cable, 0.016), BLACK),
    ]


def pencilcase(k: int, c: Colour, d: Colour) -> list[Part]:
    """A long soft case with a zip, and an open one with pencils in it."""
    if k == 0:
        body = superquadric(0.5, 0.15, 0.14, 0.35, 0.5).at(z=0.14)
        zip_ = box(0.86, 0.03, 0.012).at(0, 0, 0.28)
        teeth = join(
            [box(0.008, 0.045, 0.016).at(x, 0, 0.281) for x in np.linspace(-0.42, 0.42, 43)]
        )
        pull = tube([(0.3, 0, 0.29), (0.33, -0.05, 0.295), (0.35, -0.1, 0.27)], 0.014, flat=0.5)
        return [
            Part(body, c, "weave", d, 0.1),
            Part(zip_, BLACK),
            Part(teeth, GOLD, gloss=1.0),
            Part(pull, GOLD, gloss=1.0),
        ]
    shell = [box(0.9, 0.02, 0.14).at(0, y, 0.07) for y in (-0.15, 0.15)] + [
        box(0.02, 0.32, 0.14).at(x, 0, 0.07) for x in (-0.45, 0.45)
    ]
    lid = box(0.9, 0.32, 0.03).at(0, 0.16, 0).turned("x", 70).at(0, 0.16, 0.15)
    inks = [(0.8, 0.2, 0.2), (0.95, 0.75, 0.2), (0.25, 0.5, 0.8), (0.3, 0.65, 0.35)]
    inside = []
    for i, ink in enumerate(inks):
        inside += shift(
            [Part(p.mesh, ink if j == 0 else p.colour) for j, p in enumerate(pencil(2, ink, ink))],
            -0.35,
            -0.1 + 0.065 * i,
            0.12,
        )
    return [
        Part(join([*shell, box(0.9, 0.3, 0.02).at(z=0.01)]), c),
        Part(lid, c, "dots", d),
        *inside,
    ]


def tape(k: int, c: Colour, d: Colour) -> list[Part]:
    """A roll of brown tape on its cardboard core, standing, its end hanging free."""
    roll = lathe([(0.3, -0.12), (0.46, -0.12), (0.46, 0.12), (0.3, 0.12)], 48, sharp=True)
    core = lathe([(0.27, 0.125), (0.27, -0.125)], 48)
    rims = [lathe([(0.27, z), (0.3, z)], 48, sharp=True) for z in (-0.122,)]
    rims += [lathe([(0.3, 0.122), (0.27, 0.122)], 48, sharp=True)]
    end = box(0.3, 0.24, 0.012).at(0.15, 0, 0)
    parts = turn(
        [
            Part(roll, (0.76, 0.58, 0.3), "bands", (0.7, 0.52, 0.26), 0.9),
            Part(join([core, *rims]), CARD),
        ],
        "x",
        90,
    )
    return [*shift(parts, z=0.46), Part(end, (0.8, 0.64, 0.38), gloss=0.9)]


def notebook(k: int, c: Colour, d: Colour) -> list[Part]:
    """Spiral-bound; hard cover with a band; lying open with ruled pages."""
    if k == 2:
        leaves = []
        for side in (-1, 1):
            page = [(0, 0.0), (0.1, 0.05), (0.3, 0.045), (0.52, 0.03), (0.52, 0.01), (0, 0.0)]
            block = (
                extrude([(side * x, z) for x, z in page], 0.66).turned("x", 90).at(0, 0.33, 0.012)
            )
            face = box(0.4, 0.6, 0.004).turned("y", side * 2.2).at(side * 0.3, 0, 0.056)
            leaves += [Part(block, WHITE), Part(face, WHITE, "lines", (0.3, 0.4, 0.7))]
        return [*leaves, Part(box(1.1, 0.72, 0.015).at(z=0.005), c)]
    wide, high = 0.56, 0.78
    covers = join([box(wide, high, 0.016).at(z=z) for z in (0.0, 0.1)])
    pages = box(wide * 0.97, high * 0.97, 0.09).at(z=0.05)
    parts = [
        Part(covers, c, "weave" if k else "", d, 0.3),
        Part(pages, WHITE, "bands", (0.85, 0.85, 0.83)),
    ]
    if k == 0:
        rings = [
            tube(moved(arc(0.075, 0, 330, 14, "xz"), -wide / 2 + 0.015, y, 0.05), 0.012, 8)
            for y in np.linspace(-0.35, 0.35, 19)
        ]
        title = box(0.32, 0.16, 0.006).at(0.02, 0.16, 0.11)
        return [*parts, Part(join(rings), STEEL, gloss=1.0), Part(title, WHITE, "lines", d)]
    band = join([box(0.03, high * 1.01, 0.13).at(wide * 0.36, 0, 0.05)])
    spine = box(0.02, high, 0.115).at(-wide / 2, 0, 0.05)
    ribbon = box(0.03, 0.2, 0.008).at(0.0, -high / 2 - 0.08, 0.02)
    return [*parts, Part(band, BLACK), Part(spine, c), Part(ribbon, d)]


def clamp(k: int, c: Colour, d: Colour) -> list[Part]:
    """A clothes peg and a binder clip."""
    if k == 0:
        leg = [
            (-0.5, 0.05),
            (-0.5, 0.13),
            (-0.05, 0.09),
            (0.05, 0.09),
            (0.42, 0.055),
            (0.46, 0.02),
            (0.4, 0.0),
            (0.3, 0.015),
            (0.2, 0.0),
            (0.1, 0.02),
            (-0.05, 0.0),
        ]
        upper = extrude(leg, 0.18).turned("x", 90).at(y=0.09)
        lower = upper.turned("x", 180)
        coil = [
            tube(moved(arc(0.07, 0, 360, 24, "xz"), 0, y, 0), 0.016, 8)
            for y in np.linspace(-0.1, 0.1, 7)
        ]
        arms = [
            tube([(0, y, 0), (0.13, y, s * 0.11), (0.13, 0, s * 0.115)], 0.016, 8)
            for y, s in ((-0.1, 1), (0.1, -1))
        ]
        parts = [
            Part(join([upper, lower]), WOOD, "grain", (0.85, 0.68, 0.45)),
            Part(join(coil + arms), STEEL, gloss=1.0),
        ]
        return shift(turn(parts, "x", 62), z=0.1)
    wedge = (
        extrude(
            [(-0.24, 0), (0.24, 0), (0.24, 0.02), (0.035, 0.4), (-0.035, 0.4), (-0.24, 0.02)], 0.62
        )
        .turned("x", 90)
        .at(y=0.31)
    )
    wires = []
    for side in (-1, 1):
        wire = [
            (0.0, -0.17, 0.0),
            (0, -0.17, 0.1),
            (0, -0.08, 0.3),
            (0, -0.09, 0.38),
            (0, 0.0, 0.44),
            (0, 0.09, 0.38),
            (0, 0.08, 0.3),
            (0, 0.17, 0.1),
            (0, 0.17, 0),
        ]
        wires.append(tube(wire, 0.018, 8).turned("y", side * 38).at(side * 0.04, 0, 0.38))
    lips = join([tube([(s * 0.04, -0.31, 0.4), (s * 0.04, 0.31, 0.4)], 0.03) for s in (-1, 1)])
    return [
        Part(wedge, BLACK, gloss=0.6),
        Part(lips, BLACK, gloss=0.6),
        Part(join(wires), STEEL, gloss=1.0),
    ]


def u_disk(k: int, c: Colour, d: Colour) -> list[Part]:
    """A USB stick: a body and a steel connector with two square holes; one has a swivel cover."""
    body = superquadric(0.33, 0.15, 0.07, 0.25, 0.35).at(-0.12, 0, 0.07)
    metal = box(0.28, 0.2, 0.085).at(0.3, 0, 0.07)
    holes = join([box(0.055, 0.045, 0.004).at(0.34, y, 0.114) for y in (-0.05, 0.05)])
    mouth = box(0.01, 0.17, 0.055).at(0.438, 0, 0.07)
    parts = [
        Part(body, c, gloss=0.6),
        Part(metal, STEEL, gloss=1.0),
        Part(join([holes, mouth]), BLACK),
    ]
    if k == 0:
        parts += [
            Part(box(0.3, 0.16, 0.006).at(-0.12, 0, 0.139), WHITE, "label", d),
            Part(tube(moved(arc(0.045, 0, 360, 20, "xy"), -0.47, 0, 0.07), 0.014), STEEL),
        ]
        return parts
    swivel = [box(0.5, 0.29, 0.02).turned("z", 55).at(-0.36, -0.12, z) for z in (-0.01, 0.15)]
    return [
        *parts,
        Part(join(swivel), STEEL, gloss=1.0),
        Part(lathe([(0, 0.15), (0.04, 0.15), (0.04, 0.175), (0, 0.175)]).at(-0.28), BLACK),
    ]


def battery(k: int, c: Colour, d: Colour) -> list[Part]:
    """A round cell with its nub, and a nine-volt block with two terminals."""
    if k == 0:
        wrap = lathe([(0, 0), (0.14, 0), (0.14, 0.6)], sharp=True)
        top = lathe([(0.141, 0.6), (0.141, 0.88), (0.12, 0.9), (0, 0.9)], sharp=True)
        nub = lathe([(0, 0.9), (0.05, 0.9), (0.05, 0.95), (0, 0.95)], sharp=True)
        marks = join([box(0.012, 0.03, 0.1), box(0.012, 0.1, 0.03)]).at(0.137, 0, 0.5)
        foot = lathe([(0, -0.012), (0.11, -0.012), (0.11, 0)], sharp=True)
        return [
            Part(wrap, BLACK, gloss=0.7),
            Part(top, (0.78, 0.47, 0.22), gloss=1.0),
            Part(join([nub, foot]), STEEL, gloss=1.0),
            Part(marks, WHITE),
        ]
    body = extrude(rounded(0.5, 0.3, 0.2), 0.7)
    collar = extrude(rounded(0.505, 0.305, 0.2), 0.16).at(z=0.545)
    small = lathe([(0, 0), (0.07, 0), (0.07, 0.07), (0, 0.07)], 24, sharp=True).at(-0.12, 0, 0.7)
    large = lathe(
        [(0, 0), (0.085, 0), (0.1, 0.07), (0.06, 0.07), (0.06, 0.03), (0, 0.03)], 6, sharp=True
    ).at(0.12, 0, 0.7)
    return [
        Part(body, BLACK, "label", d),
        Part(collar, GOLD, gloss=0.9),
        Part(join([small, large]), STEEL, gloss=1.0),
    ]
