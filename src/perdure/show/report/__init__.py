"""The report: runs as one HTML file that opens anywhere, offline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from perdure.measure.l2m.paper import PaperOptions
from perdure.measure.metric import Metric
from perdure.show.report.page import PageSection, render
from perdure.show.report.study import Study, load
from perdure.store.files import make_folder, write_output

__all__ = ["PageSection", "load", "render", "write_page", "write_report"]


def write_report(
    paths: Sequence[Path],
    out: Path,
    metrics: Sequence[Metric],
    *,
    title: str | None = None,
    anyway: bool = False,
    options: PaperOptions | None = None,
    ste: Sequence[str] = (),
    more: Callable[[Study], Sequence[PageSection]] | None = None,
) -> Path:
    """Write the report of runs (or of folders of runs or logs) to ``out``, and say where it is.

    Runs of different curricula are refused with their difference, unless ``anyway``. ``more`` gives
    further sections, such as videos.
    """
    study = load(paths, metrics, options=options, ste=ste, anyway=anyway)
    return write_page(study, out, title=title, sections=more(study) if more else ())


def write_page(
    study: Study, out: Path, *, title: str | None = None, sections: Sequence[PageSection] = ()
) -> Path:
    """Write the page of what was read and measured."""
    page = render(study, title=title, sections=sections)
    make_folder(out.parent)
    write_output(out, page.encode("utf-8"))
    return out
