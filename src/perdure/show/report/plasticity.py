"""The section on plasticity: what networks measured of themselves, over the lifetime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup, escape

from perdure.measure.metric import LifetimeData
from perdure.measure.plasticity import MEASURED, measured_over_time
from perdure.show.report.section import PageSection, clean
from perdure.show.report.study import Study
from perdure.show.rounding import number

WIDTH, HEIGHT = 300, 150
LEFT, RIGHT, TOP, BOTTOM = 44, 74, 8, 22
ABOUT = (
    "Can it still learn? Measured at each evaluation on the first rows that were learned from; the mean over "
    "lifetimes, with single lifetimes behind it. The definitions are in docs/plasticity.md."
)

Curves = dict[str, list[tuple[list[float], list[float]]]]
"""By agent: steps learned and values of each of its lifetimes."""


def plasticity(study: Study) -> Sequence[PageSection]:
    """The section, if any lifetime has such measures."""
    panels = []
    for name, (better, title, about, _) in MEASURED.items():
        curves = _curves(study, name)
        if curves:
            panels.append(_panel(study, title, f"{about} {better.capitalize()} is better.", curves))
    if not panels:
        return ()
    grid = Markup('<div class="grid">{}</div>').format(Markup("").join(panels))
    return (PageSection("plasticity", "Plasticity", ABOUT, grid),)


def _curves(study: Study, name: str) -> Curves:
    found: Curves = {}
    for history in study.histories.values():
        moments = measured_over_time(LifetimeData(history, history.measure), name)
        if moments:
            learned = np.where(history.learning & ~history.adapt, history.steps, 0).cumsum()
            steps = [float(learned[np.flatnonzero(history.block == m.block)[0]]) for m in moments]
            lifetimes = found.setdefault(history.agent, [])
            lifetimes.append((steps, [m.value for m in moments]))
    return found


def _panel(study: Study, title: str, about: str, curves: Curves) -> Markup:
    """A small chart: steps learned against the measure."""
    every = [v for lives in curves.values() for _, values in lives for v in values]
    low, high = min(0.0, *every), max(every)
    high = high if high > low else low + 1.0
    last = max(s for lives in curves.values() for steps, _ in lives for s in steps) or 1.0

    def at(steps: Sequence[float], values: Sequence[float]) -> str:
        x = [LEFT + (WIDTH - LEFT - RIGHT) * s / last for s in steps]
        y = [HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (v - low) / (high - low) for v in values]
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))

    parts, ends = [], []
    for agent, lives in curves.items():
        place, style = study.agents.index(agent), study.agent_styles[agent]
        look = f"fill:none;stroke:var(--a{place});stroke-dasharray:{style.dash or 'none'}"
        for steps, values in lives if len(lives) > 1 else ():
            parts.append(
                f'<polyline points="{at(steps, values)}" style="{look};stroke-opacity:.25"/>'
            )
        alike = min(len(values) for _, values in lives)
        mean = np.mean([values[:alike] for _, values in lives], axis=0).tolist()
        middle = at(lives[0][0][:alike], mean)
        parts.append(f'<polyline points="{middle}" style="{look};stroke-width:2"/>')
        ends.append((float(middle.rpartition(",")[2]), place, agent))
    parts += _names(ends)
    for value in (low, high):
        y = at([0], [value]).rpartition(",")[2]
        parts.append(
            f'<text x="{LEFT - 6}" y="{float(y) + 4:.1f}" text-anchor="end">{number(value)}</text>'
        )
    base = HEIGHT - BOTTOM
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{base}" y2="{base}"/>')
    parts.append(f'<text x="{LEFT}" y="{HEIGHT - 6}">0</text>')
    parts.append(
        f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 6}" text-anchor="end">{last:,.0f} steps</text>'
    )
    told = "; ".join(
        f"{a}: {number(float(np.mean([v[-1] for _, v in c])))}" for a, c in curves.items()
    )
    return Markup(
        '<figure class="panel" style="margin:0"><figcaption><strong>{}</strong><div class="muted small">{}</div></figcaption>'
        '<div class="plot"><svg viewBox="0 0 {} {}" role="img" aria-label="{} at the end: {}">{}</svg></div></figure>'
    ).format(title, about, WIDTH, HEIGHT, title, clean(told), Markup("".join(parts)))


def _names(ends: Sequence[tuple[float, int, str]]) -> list[str]:
    """The agents' names at the ends of their lines, below each other where they would collide."""
    out, free = [], 0.0
    for y, place, agent in sorted(ends):
        free = max(y + 4, free)
        out.append(
            f'<text x="{WIDTH - RIGHT + 5}" y="{free:.1f}" style="fill:var(--a{place})">'
            f"{escape(clean(agent)[:14])}</text>"
        )
        free += 12
    return out
