"""What all figures share: sizes, letters, colours, and files without dates."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perdure.show.colours import Style
from perdure.show.names import task_labels
from perdure.show.report.numbers import Record
from perdure.show.report.page import clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN, PAGE = 3.3, 6.8
"""Inches: one column of a paper, and two."""
SMALL, NORMAL = 7.0, 8.0
"""Points."""
DPI = 300
TALLEST = 9.0
"""Inches that fit a page."""
GREY, SHADE, INK = "#6b7280", "#eceef2", "#1f2430"
MARKS = {
    "circle": "o", "square": "s", "triangle": "^", "diamond": "D", "cross": "X", "star": "*",
}  # fmt: skip

RC: Mapping[str, Any] = {
    "font.size": NORMAL,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "axes.titlesize": NORMAL,
    # One weight: every font a PDF embeds costs more time than the drawing.
    "axes.titleweight": "normal",
    "axes.titlelocation": "left",
    "axes.labelsize": NORMAL,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.formatter.use_mathtext": False,
    "axes.unicode_minus": True,
    "text.color": INK,
    # Names come from users: a dollar sign is a dollar sign.
    "text.parse_math": False,
    "text.usetex": False,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "legend.columnspacing": 1.2,
    "legend.borderpad": 0.0,
    "lines.linewidth": 1.0,
    "lines.markersize": 3.2,
    "lines.markeredgewidth": 0.0,
    "grid.color": "#e4e7ec",
    "grid.linewidth": 0.5,
    "figure.dpi": 100,
    "savefig.dpi": DPI,
    "savefig.bbox": None,
    "savefig.facecolor": "white",
    # Letters as TrueType, which publishers ask for; ids that do not change from run to run.
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "perdure",
}


@dataclass(frozen=True)
class FigureAndTables:
    """A figure and the tables it shows, by what they hold; without a figure, a table alone."""

    name: str
    figure: Figure | None
    tables: Mapping[str, Sequence[Record]]


@contextmanager
def drawing() -> Iterator[None]:
    """Matplotlib with these settings, and as it was before afterwards."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        settings: Any = RC
        matplotlib.rcParams.update(settings)
        yield


def new(width: float, height: float) -> Figure:
    """An empty figure; nothing global knows of it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, min(height, TALLEST)), layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.03, h_pad=0.03, wspace=0.03, hspace=0.03)  # type: ignore[union-attr, call-arg]
    return figure


NO_DATES: Mapping[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


def files_of(figure: Figure, kinds: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """The figure as files of these kinds, without dates."""
    # Where things stand is worked out once for all kinds: it is much of the work.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for kind in kinds:
        out = io.BytesIO()
        figure.savefig(out, format=kind, metadata=NO_DATES[kind])
        yield kind, out.getvalue()


def mark(style: Style) -> str:
    """The style's mark, as matplotlib calls it."""
    return MARKS.get(style.mark, "o")


def dash(style: Style) -> Any:
    """The style's dash, as matplotlib wants it."""
    lengths = tuple(float(v) for v in style.dash.split())
    return (0, lengths) if lengths else "-"


def short_names(tasks: Sequence[str], most: int = 28) -> dict[str, str]:
    """Tasks as they are written: without what all have in common, and not too long."""
    return {t: short(label, most) for t, label in task_labels(tasks).items()}


def short(text: str, most: int = 28) -> str:
    """At most so many characters, the middle left out; nothing that moves others about."""
    name = str(clean(text))
    return name if len(name) <= most else f"{name[: most // 2]}…{name[-(most // 2) + 1 :]}"


def slugged(text: str) -> str:
    """A name as part of a file's."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._+-") else "-" for c in text)[:60]


def errors(records: Sequence[Record], value: str = "value") -> Any:
    """Distances from each value to its limits; none where it has none."""
    pairs = [(r[value] - r["low"], r["high"] - r[value]) for r in records]
    return np.nan_to_num(np.array(pairs, float).T.reshape(2, -1), nan=0.0).clip(0.0)


def thousands(value: float) -> str:
    """A number of steps in few letters."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def limits(axes: Axes, bounds: tuple[float, float] | None) -> None:
    """The measure's own range on the vertical axis, with a little room for marks."""
    if bounds is not None:
        low, high = bounds
        room = 0.05 * (high - low)
        axes.set_ylim(low - room, high + room)


def several(names: Sequence[Any]) -> str:
    """How many lifetimes, where it is the same for all: for a title."""
    found = sorted({int(n) for n in names})
    return f"n = {found[0]}" if len(found) == 1 else f"n = {found[0]}–{found[-1]}"
