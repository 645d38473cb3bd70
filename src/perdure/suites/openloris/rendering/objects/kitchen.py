"""Objects of the kitchen and the table."""

from __future__ import annotations

import numpy as np

from perdure.suites.openloris.rendering.materials import (
    BLACK,
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
    extrude,
    grid,
    join,
    lathe,
    superquadric,
    tube,
    vessel,
)
from perdure.types import Array


def bottle(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """Water, wine, sports and sauce bottles."""
    r, body, neck, high = [
        (0.15, 0.55, 0.055, 0.78),
        (0.13, 0.5, 0.045, 0.9),
        (0.16, 0.6, 0.1, 0.78),
        (0.2, 0.42, 0.07, 0.66),
    ][instance]
    shoulder = [
        (r * np.cos(a) + neck * (1 - np.cos(a)), body + 0.12 * np.sin(a))
        for a in np.linspace(0, np.pi / 2, 8)
    ]
    profile = [(0.0, 0.0), (r * 0.9, 0.0), (r, 0.03), *shoulder, (neck, high), (0.0, high)]
    cap = lathe([(0, 0), (neck * 1.25, 0), (neck * 1.25, 0.09), (0, 0.09)], sharp=True).translate(
        z=high - 0.03
    )
    band = lathe([(r * 1.015, body * 0.25), (r * 1.015, body * 0.8)])
    parts = [
        Part(lathe(profile), primary, gloss=0.9),
        Part(cap, accent),
        Part(band, WHITE, "label", accent),
    ]
    if instance == 2:
        parts.append(Part(tube([(0, 0, high), (0, 0, high + 0.1)], 0.035), BLACK))
    return parts


def bowl(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """Bowls: deep, shallow, flared, straight, with a foot."""
    deep, flare = [(0.45, 1.0), (0.3, 1.0), (0.38, 1.35), (0.42, 0.8), (0.5, 1.15)][instance]
    t = np.linspace(0.0, 1, 12)
    outer = [
        (0.2 + 0.3 * np.sin(x * np.pi / 2) ** (1 / flare), 0.05 + deep * 0.7 * x**1.6) for x in t
    ]
    kind = ["bands", "", "stripes", "dots", "speckle"][instance]
    foot = lathe([(0.2, 0), (0.2, 0.07), (0.16, 0.07), (0.16, 0)], sharp=True)
    return [Part(vessel(outer, 0.025), primary, kind, accent, 0.8), Part(foot, primary)]


def corkscrew(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A wooden T-handle, a steel shaft and a spiral."""
    t = np.linspace(0, 1, 90)
    taper = 0.055 * np.minimum(1, (1 - t) * 6 + 0.1)
    worm = np.stack(
        [taper * np.cos(t * 10 * np.pi), taper * np.sin(t * 10 * np.pi), -0.32 - 0.42 * t], 1
    )
    grip = tube(
        [(x, 0, 0) for x in np.linspace(-0.27, 0.27, 15)],
        0.06 + 0.025 * np.cos(np.linspace(-2.6, 2.6, 15)) ** 2,
        18,
    )
    parts = [
        Part(grip, WOOD, "grain", (0.45, 0.28, 0.15)),
        Part(tube([(0, 0, -0.03), (0, 0, -0.33)], 0.024), STEEL, gloss=0.9),
        Part(
            lathe([(0, 0), (0.05, 0), (0.04, 0.05), (0, 0.05)]).translate(z=-0.1), STEEL, gloss=0.9
        ),
        Part(tube(worm, 0.017, 8), STEEL, gloss=0.9),
    ]
    return rotate(parts, "y", 82)


def cup(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """Mugs, a teacup on a saucer, a paper cup, a tumbler, an espresso cup."""
    low, top, high = [
        (0.2, 0.2, 0.46),
        (0.19, 0.23, 0.42),
        (0.14, 0.26, 0.3),
        (0.14, 0.21, 0.52),
        (0.22, 0.22, 0.38),
        (0.16, 0.19, 0.6),
        (0.2, 0.18, 0.48),
        (0.15, 0.24, 0.36),
        (0.19, 0.2, 0.5),
    ][instance]
    kind = ["", "bands", "dots", "label", "checker", "gradient", "stripes", "", "marble"][instance]
    t = np.linspace(0, 1, 10)
    outer = [(low + (top - low) * x**0.6 + 0.01 * np.sin(3 * x), high * x) for x in t]
    outer = [(low * 0.85, 0.0), *[(r, z + 0.01) for r, z in outer]]
    parts = [Part(vessel(outer, 0.02), primary, kind, accent, 0.7)]
    if instance not in (3, 5):
        handle = arc(0.13, -100, 100, 18, squash=high * 0.33 / 0.13)
        parts.append(
            Part(
                tube(
                    handle + np.array([low + 0.35 * (top - low) + 0.025, 0, high * 0.52]), 0.028, 12
                ),
                accent if instance in (1, 4) else primary,
            )
        )
    if instance in (2, 7):
        saucer = vessel([(0.15, 0.0), (0.26, 0.02), (0.36, 0.07)], 0.018)
        parts = [*translate(parts, z=0.03), Part(saucer, primary, gloss=0.7)]
    if instance == 3:
        lid = lathe(
            [(0, 0), (0.225, 0), (0.225, 0.04), (0.19, 0.07), (0, 0.07)], sharp=True
        ).translate(z=0.52)
        parts.append(Part(lid, WHITE))
    if instance == 5:
        parts.append(Part(tube([(0.03, 0.02, 0.05), (0.1, 0.08, 0.82)], 0.014), accent))
    return parts


def knife(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A chef's knife."""
    t = np.linspace(0, 1, 14)
    edge = [(0.62 * x, -0.1 * (1 - x**3) - 0.01) for x in t]
    back = [(0.62, 0.0), (0.45, 0.025), (0.0, 0.035)]
    handle = superquadric(0.2, 0.042, 0.028, 0.5, 0.6).translate(-0.2, 0.0, 0)
    rivets = join(
        [
            lathe([(0, -0.031), (0.011, -0.031), (0.011, 0.031), (0, 0.031)], 12).translate(x, 0, 0)
            for x in (-0.3, -0.2, -0.1)
        ]
    )
    return [
        Part(extrude([*edge, *back], 0.012).translate(z=-0.006), STEEL, gloss=1.0),
        Part(handle, BLACK),
        Part(box(0.03, 0.085, 0.045).translate(0.0, -0.01), STEEL, gloss=0.9),
        Part(rivets, STEEL, gloss=0.9),
    ]


def ladle(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A deep open bowl, and a long handle that rises from its rim and ends in a hook."""
    metal = instance in (0, 2)
    a = np.linspace(0.0, np.pi / 2, 10)
    r, deep = [(0.25, 0.18), (0.24, 0.19), (0.23, 0.18), (0.26, 0.17)][instance]
    outer = [(max(r * np.sin(x), 0.03), deep - deep * np.cos(x)) for x in a]
    up = [(r - 0.008, 0, deep - 0.01), (r + 0.05, 0, deep + 0.07), (r + 0.12, 0, deep + 0.17)]
    up += [(r + 0.12 + 0.36 * s, 0, deep + 0.17 + 0.36 * s) for s in np.linspace(0.1, 1, 10)]
    end = up[-1]
    hook = [
        (end[0] + 0.03 * np.sin(s) + 0.02 * s, 0, end[2] + 0.06 * (1 - np.cos(s)) * (1 - s / 5))
        for s in np.linspace(0.4, 3.6, 9)
    ]
    bowl_colour, rod = (STEEL, STEEL) if metal else (primary, primary)
    width = np.concatenate([np.full(3, 0.022), np.linspace(0.02, 0.034, 10)])
    # The hollow is darker than the outside: it is what tells a ladle from a ball on a stick.
    inner = [(max(q - 0.018, 0.0), max(z, 0.014) + 0.004) for q, z in outer][::-1]
    hollow: Colour = (
        (0.3, 0.31, 0.34) if metal else (0.45 * primary[0], 0.45 * primary[1], 0.45 * primary[2])
    )
    parts = [
        Part(vessel(outer, 0.014, 44), bowl_colour, gloss=0.9 if metal else 0.4),
        Part(lathe([*inner, (0.0, 0.018)], 44), hollow, gloss=0.6),
        Part(tube(up, width, 12, flat=0.45), rod, gloss=0.8),
        Part(tube(hook, 0.014, 10), rod, gloss=0.8),
    ]
    if instance in (2, 3):
        parts.append(Part(tube(up[-7:], 0.04, 12, flat=0.6), accent if instance == 2 else WOOD))
    return parts


def pot(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A cooking pot with two handles and a lid with a knob."""
    body = vessel([(0.34, 0), (0.36, 0.02), (0.36, 0.4)], 0.02)
    lid = lathe([(0.375, 0.4), (0.375, 0.42), (0.3, 0.46), (0.15, 0.49), (0, 0.5)])
    knob = lathe([(0, 0.5), (0.03, 0.5), (0.03, 0.54), (0.06, 0.56), (0.05, 0.59), (0, 0.6)])
    grips = [
        tube(
            arc(0.1, -95, 95, 16, "xy", 1.1) * [0.9, 1, 1] + np.array([0.35, 0, 0.3]), 0.026
        ).rotate("z", a)
        for a in (0, 180)
    ]
    return [
        Part(body, primary, gloss=0.8),
        Part(lid, STEEL, gloss=1.0),
        Part(knob, BLACK),
        Part(join(grips), BLACK),
        Part(lathe([(0.363, 0.37), (0.363, 0.4)]), STEEL, gloss=1.0),
    ]


def chopsticks(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A pair on a rest: tapered, square at the thick end, without a point."""
    t = np.linspace(0, 1, 12)
    parts = []
    body = [(0.45, 0.12, 0.08), (0.78, 0.6, 0.4), BLACK][instance]
    for side in (-1, 1):
        path = np.stack([t - 0.5, side * (0.022 + 0.035 * t), 0.055 + 0.0 * t], 1)
        radius = 0.01 + 0.013 * t
        stick, tip = (
            tube(path, radius, 4 if instance < 2 else 10),
            tube(path[:5], radius[:5] * 1.04, 10),
        )
        grip = tube(path[8:11], radius[8:11] * 1.12, 10)
        parts += [
            Part(stick, body, gloss=0.8),
            Part(tip, [body, WOOD, STEEL][instance]),
            Part(grip, accent, gloss=0.9),
        ]
    rest = superquadric(0.05, 0.14, 0.032, 0.6, 0.4).translate(-0.22, 0, 0.01)
    return [*parts, Part(rest, WHITE, "bands", primary, 0.8)]


def spoon(instance: int, primary: Colour, accent: Colour) -> list[Part]:
    """A shallow oval bowl in line with a handle that widens to its end."""
    soup = [(0.13, 0.1), (0.12, 0.075), (0.14, 0.12)][instance]
    u = np.linspace(0, 1, 12)
    angle = np.linspace(0, 2 * np.pi, 33)
    deep = 0.055

    def shell(drop: float) -> Array:
        r = u[:, None]
        x = soup[0] * r * np.cos(angle) * (1 + 0.12 * np.cos(angle))
        y = soup[1] * r * np.sin(angle)
        return np.stack([x, y, -deep * (1 - r**2) - drop + 0 * x], -1)

    inside, outside = shell(0.0), shell(0.014)
    shape = join([grid(inside[::-1]), grid(outside), grid(np.stack([outside[-1], inside[-1]]))])
    s = np.linspace(0, 1, 12)
    path = np.stack([soup[0] * 1.05 + 0.58 * s, 0 * s, 0.005 + 0.05 * np.sin(s * np.pi * 0.8)], 1)
    width = 0.017 + 0.025 * s**2
    handle = tube(path, width, 12, flat=0.3)
    made = [Part(shape, STEEL if instance < 2 else WOOD, gloss=1.0 if instance < 2 else 0.2)]
    made.append(Part(handle, [STEEL, primary, WOOD][instance], gloss=0.8))
    # The tube is squeezed along its first normal, which lies across the path: turn it flat.
    return rotate(made, "y", -4)
