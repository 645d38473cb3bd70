"""How numbers are written: the same in the terminal, in the report and on the leaderboard."""

from __future__ import annotations

from math import isfinite

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


def typed(value: float) -> str:
    """As ``number``, in signs that a terminal and a parser of tables know."""
    return number(value).replace("−", "-").replace(",", "")


def seconds(value: float | None) -> str:
    """A duration people can read."""
    if value is None:
        return "–"
    s = int(value)
    if s < 60:
        return f"{s} s"
    return f"{s // 60}:{s % 60:02d} min" if s < 3600 else f"{s // 3600}:{s % 3600 // 60:02d} h"
