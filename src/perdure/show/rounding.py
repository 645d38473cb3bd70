"""How numbers are written: the same in the terminal, in the report and on the leaderboard."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor, isfinite, log10

NOTHING = 1e-12
"""What is smaller is what rounding leaves of nothing."""


def number(value: float | None, digits: int = 3, places: int | None = None) -> str:
    """Two decimals below ten and three digits above, or some decimal places; thousands apart, a true minus; 0 for what is
    rounding alone; an en dash where undefined."""
    if value is None or not isfinite(value):
        return "–"
    if abs(value) < NOTHING:
        return "0"
    if places is not None:
        text = f"{value:,.{places}f}"
        return text.replace("-", "−") if float(text.replace(",", "")) else text.lstrip("-")
    size = abs(value)
    if size >= 1e6 or size < 1e-4:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    elif size < 0.01:
        text = f"{value:.2g}"
    else:
        whole = len(str(int(size)))
        text = f"{value:,.{max(digits - whole, 0)}f}"
    return text.replace("-", "−")


def bounded_places(bounds: tuple[float, float] | None) -> int | None:
    """Decimal places of what lies between −1 and 1 by its nature; None where that is not so."""
    return 2 if bounds is not None and max(map(abs, bounds)) <= 1 else None


def column_places(
    bounds: tuple[float, float] | None, intervals: Iterable[tuple[float, float]]
) -> int | None:
    """Decimal places of a column: those of what is bounded, else two digits of its middle half width, of
    which more would be noise; None where there are no intervals."""
    if (known := bounded_places(bounds)) is not None:
        return known
    halves = [(high - low) / 2 for low, high in intervals]
    wide = sorted(h for h in halves if isfinite(h) and 1e-6 < h < 1e6)
    return min(max(1 - floor(log10(wide[len(wide) // 2])), 0), 7) if wide else None


def typed(value: float, places: int | None = None) -> str:
    """As ``number``, in signs that a terminal and a parser of tables know."""
    return number(value, places=places).replace("−", "-").replace(",", "")


def seconds(value: float | None) -> str:
    """A duration people can read."""
    if value is None:
        return "–"
    s = int(value)
    if s < 60:
        return f"{s} s"
    return f"{s // 60}:{s % 60:02d} min" if s < 3600 else f"{s // 3600}:{s % 3600 // 60:02d} h"
