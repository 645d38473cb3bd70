"""The report's plots as figures for papers, each with the tidy table it was drawn from.

::

    from perdure.show.report import load

    write_figures(load([Path("runs/demo")], metrics), Path("figures"))

Figures are one or two columns of a paper wide, in letters of 7 points and more. The same study gives
the same bytes: no file holds a date.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from math import isnan
from pathlib import Path
from typing import Any

from perdure.errors import StoreError
from perdure.show.figures import benchmarks, experts, heatmaps, kept, lifetimes, spread
from perdure.show.figures.style import FigureAndTables, drawing, files_of
from perdure.show.report.numbers import Record
from perdure.show.report.study import Study
from perdure.store.files import make_folder, write_file

FORMATS = ("pdf", "svg", "png")
PLOTS: tuple[Callable[[Study], Iterator[FigureAndTables]], ...] = (
    kept.kept,
    lifetimes.curriculum,
    lifetimes.over_life,
    experts.experts,
    heatmaps.matrices,
    heatmaps.transfer,
    spread.forgetting,
    spread.distributions,
    spread.profiles,
    spread.improvement,
    spread.aggregates,
    spread.orders,
    benchmarks.benchmarks,
)


def write_figures(study: Study, out: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write every figure that the study has data for into a folder, and say which files.

    ``NAME.pdf``, ``NAME.svg`` and ``NAME.png`` are the figure, ``NAME.csv`` is what it shows; a
    figure of two tables has ``NAME-WHAT.csv`` for each.
    """
    for wanted in formats:
        if wanted not in FORMATS:
            raise StoreError(
                f"figures: format {wanted!r} unknown, expected some of {', '.join(FORMATS)}"
            )
    written: list[Path] = []
    make_folder(out)
    for plot in PLOTS:
        with drawing():
            for drawn in plot(study):
                pictures = files_of(drawn.figure, formats) if drawn.figure is not None else ()
                for kind, content in pictures:
                    written.append(out / f"{drawn.name}.{kind}")
                    write_file(written[-1], content, durable=False)
                for what, records in drawn.tables.items():
                    written.append(out / f"{drawn.name}{f'-{what}' if what else ''}.csv")
                    write_file(written[-1], table_bytes(records), durable=False)
    return written


def table_bytes(records: Sequence[Record]) -> bytes:
    """A tidy table as CSV: full precision, empty where undefined, several words in one cell apart
    by semicolons."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = list(records[0]) if records else []
    writer.writerow(columns)
    writer.writerows([_word(r[c]) for c in columns] for r in records)
    return text.getvalue().encode("utf-8")


def _word(value: Any) -> str:
    if value is None or (isinstance(value, float) and isnan(value)):
        return ""
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, (list, tuple)):
        return ";".join(_word(v) for v in value)
    return str(value)
