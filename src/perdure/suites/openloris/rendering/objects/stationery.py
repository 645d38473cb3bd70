"""Objects of the desk."""

from __future__ import annotations

import numpy as np

from perdure.suites.openloris.rendering.materials import (
    BLACK,
    CARDBOARD,
    GOLD,
    PINK,
    STEEL,
    WHITE,
    WOOD,
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
    join,
    lathe,
    rounded_rectangle,
    superquadric,
    tube,
)


def paper_cutter(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A snap-off cutter: a flat body, a slider, and a slanted blade with its score lines."""
    long, wide = [(0.72, 0.15), (0.76, 0.12), (0.66, 0.18), (0.7, 0.13)][instance]
    body = extrude(rounded_rectangle(long, wide, 0.25), 0.07)
    tip = extrude([(0, -0.036), (0.2, -0.036), (0.14, 0.036), (0, 0.036)], 0.012).translate(
        long / 2 - 0.02, 0, 0.03
    )
    scores = join(
        [
            box(0.006, 0.085, 0.004).rotate("z", 30).translate(long / 2 + x, 0, 0.044)
            for x in (0.04, 0.08)
        ]
    )
    guide = extrude(
        [(0, -wide * 0.42), (0.1, -wide * 0.3), (0.1, wide * 0.3), (0, wide * 0.42)], 0.05
    ).translate(long / 2 - 0.04, 0, 0.01)
    slot = box(long * 0.62, 0.035, 0.01).translate(0.04, 0, 0.07)
    ridges = join(
        [box(0.014, 0.07, 0.035).translate(x, 0, 0.08) for x in np.linspace(0.02, 0.12, 5)]
    )
    parts = [
        Part(body, primary),
        Part(tip, STEEL, gloss=1.0),
        Part(scores, BLACK),
        Part(guide, STEEL, gloss=0.9),
    ]
    parts += [Part(slot, BLACK), Part(ridges, accent)]
    if instance in (1, 3):
        parts.append(
            Part(
                extrude(rounded_rectangle(0.16, wide * 1.06, 0.3), 0.075).translate(
                    -long / 2 + 0.07
                ),
                accent,
            )
        )
    return parts


def pencil(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A sharpened pencil, six-sided or round, with or without an eraser."""
    sides, r = (24 if instance in (2, 4) else 6), 0.042
    rod = lathe([(0, 0), (r, 0), (r, 0.66)], sides, sharp=True)
    if instance == 3:
        rod = lathe([(0, 0), (r * 1.2, 0), (r * 1.2, 0.66)], 3, sharp=True)
    wood = lathe([(r * 0.98, 0.655), (0.012, 0.79)], 24)
    lead = lathe([(0.0125, 0.789), (0.0, 0.83)], 12)
    kind = ["", "stripes", "gradient", "", "bands"][instance]
    parts = [
        Part(rod, primary, kind, accent, 0.5),
        Part(wood, (0.86, 0.7, 0.5), "grain", WOOD),
        Part(lead, BLACK if instance != 4 else primary),
    ]
    if instance in (0, 1, 3):
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
        parts += [Part(ferrule, GOLD if instance == 0 else STEEL, gloss=1.0), Part(rubber, PINK)]
    return rotate(parts, "y", 90)


def pencilcase(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A long soft case with a zip, and an open one with pencils in it."""
    if instance == 0:
        body = superquadric(0.5, 0.15, 0.14, 0.35, 0.5).translate(z=0.14)
        zip_ = box(0.86, 0.03, 0.012).translate(0, 0, 0.28)
        teeth = join(
            [box(0.008, 0.045, 0.016).translate(x, 0, 0.281) for x in np.linspace(-0.42, 0.42, 43)]
        )
        pull = tube([(0.3, 0, 0.29), (0.33, -0.05, 0.295), (0.35, -0.1, 0.27)], 0.014, flat=0.5)
        return [
            Part(body, primary, "weave", accent, 0.1),
            Part(zip_, BLACK),
            Part(teeth, GOLD, gloss=1.0),
            Part(pull, GOLD, gloss=1.0),
        ]
    shell = [box(0.9, 0.02, 0.14).translate(0, y, 0.07) for y in (-0.15, 0.15)] + [
        box(0.02, 0.32, 0.14).translate(x, 0, 0.07) for x in (-0.45, 0.45)
    ]
    lid = box(0.9, 0.32, 0.03).translate(0, 0.16, 0).rotate("x", 70).translate(0, 0.16, 0.15)
    inks = [(0.8, 0.2, 0.2), (0.95, 0.75, 0.2), (0.25, 0.5, 0.8), (0.3, 0.65, 0.35)]
    inside = []
    for i, ink in enumerate(inks):
        inside += translate(
            [Part(p.mesh, ink if j == 0 else p.colour) for j, p in enumerate(pencil(2, ink, ink))],
            -0.35,
            -0.1 + 0.065 * i,
            0.12,
        )
    return [
        Part(join([*shell, box(0.9, 0.3, 0.02).translate(z=0.01)]), primary),
        Part(lid, primary, "dots", accent),
        *inside,
    ]


def scissors(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """Two blades crossed at a screw, and a ring for each hand."""
    spread, long = [(16, 0.52), (24, 0.42), (11, 0.6)][instance]
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
            Part(shank, primary),
            Part(loop, primary if instance != 1 else (primary, accent)[side > 0]),
        ]
        if side < 0:
            half = [Part(p.mesh.rotate("x", 180), p.colour, gloss=p.gloss) for p in half]
        parts += translate(rotate(half, "z", side * spread / 2), z=0.012 * side)
    return [
        *parts,
        Part(lathe([(0, -0.03), (0.024, -0.03), (0.024, 0.04), (0, 0.045)], 18), STEEL, gloss=1.0),
    ]


def stapler(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A base with an anvil, and an arm that rises from the hinge."""
    wide = [0.17, 0.2, 0.15][instance]
    base = extrude(
        [(-0.45, 0), (0.48, 0), (0.48, 0.035), (0.3, 0.05), (-0.4, 0.07), (-0.45, 0.05)], wide
    )
    arm = extrude(
        [
            (-0.46, 0.07),
            (0.44, 0.1),
            (0.47, 0.15),
            (0.42, 0.2),
            (0.1, 0.23 + 0.03 * instance),
            (-0.3, 0.2),
            (-0.45, 0.14),
        ],
        wide * 0.86,
    )
    rail = extrude([(-0.4, 0.055), (0.43, 0.07), (0.43, 0.11), (-0.4, 0.09)], wide * 0.6)
    stand = [
        Part(mesh.rotate("x", 90).translate(y=w / 2), colour, gloss=gloss)
        for mesh, w, colour, gloss in (
            (base, wide, BLACK if instance != 1 else accent, 0.4),
            (arm.rotate("z", 7), wide * 0.86, primary, 0.6),
            (rail.rotate("z", 6), wide * 0.6, STEEL, 1.0),
        )
    ]
    anvil = box(0.12, wide * 0.7, 0.012).translate(0.4, 0, 0.042)
    hinge = tube([(-0.4, -wide * 0.52, 0.1), (-0.4, wide * 0.52, 0.1)], 0.03)
    cushion = (
        superquadric(0.16, wide * 0.36, 0.03, 0.5, 0.4)
        .rotate("y", -10)
        .translate(0.22, 0, 0.25 + 0.02 * instance)
    )
    return [
        *stand,
        Part(anvil, STEEL, gloss=1.0),
        Part(hinge, STEEL, gloss=0.9),
        Part(cushion, accent if instance != 1 else BLACK),
    ]


def tape(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A roll of brown tape on its cardboard core, standing, its end hanging free."""
    roll = lathe([(0.3, -0.12), (0.46, -0.12), (0.46, 0.12), (0.3, 0.12)], 48, sharp=True)
    core = lathe([(0.27, 0.125), (0.27, -0.125)], 48)
    rims = [lathe([(0.27, z), (0.3, z)], 48, sharp=True) for z in (-0.122,)]
    rims += [lathe([(0.3, 0.122), (0.27, 0.122)], 48, sharp=True)]
    end = box(0.3, 0.24, 0.012).translate(0.15, 0, 0)
    parts = rotate(
        [
            Part(roll, (0.76, 0.58, 0.3), "bands", (0.7, 0.52, 0.26), 0.9),
            Part(join([core, *rims]), CARDBOARD),
        ],
        "x",
        90,
    )
    return [*translate(parts, z=0.46), Part(end, (0.8, 0.64, 0.38), gloss=0.9)]


def notebook(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """Spiral-bound; hard cover with a band; lying open with ruled pages."""
    if instance == 2:
        leaves = []
        for side in (-1, 1):
            page = [(0, 0.0), (0.1, 0.05), (0.3, 0.045), (0.52, 0.03), (0.52, 0.01), (0, 0.0)]
            block = (
                extrude([(side * x, z) for x, z in page], 0.66)
                .rotate("x", 90)
                .translate(0, 0.33, 0.012)
            )
            face = box(0.4, 0.6, 0.004).rotate("y", side * 2.2).translate(side * 0.3, 0, 0.056)
            leaves += [Part(block, WHITE), Part(face, WHITE, "lines", (0.3, 0.4, 0.7))]
        return [*leaves, Part(box(1.1, 0.72, 0.015).translate(z=0.005), primary)]
    wide, high = 0.56, 0.78
    covers = join([box(wide, high, 0.016).translate(z=z) for z in (0.0, 0.1)])
    pages = box(wide * 0.97, high * 0.97, 0.09).translate(z=0.05)
    parts = [
        Part(covers, primary, "weave" if instance else "", accent, 0.3),
        Part(pages, WHITE, "bands", (0.85, 0.85, 0.83)),
    ]
    if instance == 0:
        rings = [
            tube(arc(0.075, 0, 330, 14, "xz") + np.array([-wide / 2 + 0.015, y, 0.05]), 0.012, 8)
            for y in np.linspace(-0.35, 0.35, 19)
        ]
        title = box(0.32, 0.16, 0.006).translate(0.02, 0.16, 0.11)
        return [*parts, Part(join(rings), STEEL, gloss=1.0), Part(title, WHITE, "lines", accent)]
    band = join([box(0.03, high * 1.01, 0.13).translate(wide * 0.36, 0, 0.05)])
    spine = box(0.02, high, 0.115).translate(-wide / 2, 0, 0.05)
    ribbon = box(0.03, 0.2, 0.008).translate(0.0, -high / 2 - 0.08, 0.02)
    return [*parts, Part(band, BLACK), Part(spine, primary), Part(ribbon, accent)]


def clamp(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A clothes peg and a binder clip."""
    if instance == 0:
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
        upper = extrude(leg, 0.18).rotate("x", 90).translate(y=0.09)
        lower = upper.rotate("x", 180)
        coil = [
            tube(arc(0.07, 0, 360, 24, "xz") + np.array([0, y, 0]), 0.016, 8)
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
        return translate(rotate(parts, "x", 62), z=0.1)
    wedge = (
        extrude(
            [(-0.24, 0), (0.24, 0), (0.24, 0.02), (0.035, 0.4), (-0.035, 0.4), (-0.24, 0.02)], 0.62
        )
        .rotate("x", 90)
        .translate(y=0.31)
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
        wires.append(tube(wire, 0.018, 8).rotate("y", side * 38).translate(side * 0.04, 0, 0.38))
    lips = join([tube([(s * 0.04, -0.31, 0.4), (s * 0.04, 0.31, 0.4)], 0.03) for s in (-1, 1)])
    return [
        Part(wedge, BLACK, gloss=0.6),
        Part(lips, BLACK, gloss=0.6),
        Part(join(wires), STEEL, gloss=1.0),
    ]
