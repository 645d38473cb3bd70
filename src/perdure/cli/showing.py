"""The bodies of report, animate, leaderboard and view."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

from perdure.cli.terminal import lacking, remark, say
from perdure.registry import metrics_named
from perdure.store.layout import REPORT
from perdure.store.urls import output_beside


def report(
    paths: Sequence[Path],
    out: Path | None,
    figures: Path | None,
    title: str | None,
    ste: Sequence[str],
    anyway: bool,
    partial: bool = False,
) -> int:
    """One HTML file, and the figures."""
    from perdure.show.pictures import videos_and_pictures
    from perdure.show.report import load, write_page

    study = load(paths, metrics_named(()), ste=ste, anyway=anyway)
    target = out or output_beside(paths[0], REPORT)
    say(f"report: {write_page(study, target, title=title, sections=videos_and_pictures(study))}")
    if figures is not None:
        from perdure.show.figures import write_figures

        written = write_figures(study, figures)
        say(f"{len(written)} files: {figures}")
    return lacking(study.lacking, partial)


def animate(folder: Path, agents: Sequence[str], task: str | None, out: Path) -> int:
    """A looping picture of the same episode over the life of agents."""
    from perdure.show.animation import animation
    from perdure.show.report import load
    from perdure.store.files import write_output

    data = animation(load([folder], metrics_named(())), agents, task)
    write_output(out, data)
    say(f"animation: {out} ({len(data) / 1e6:.1f} MB)")
    return 0


def leaderboard(
    folder: Path,
    names: Sequence[str],
    curriculum: str | None,
    html: Path | None,
    partial: bool = False,
) -> int:
    """Rankings in the terminal, and as a page."""
    from perdure.show import leaderboard_page as pages
    from perdure.show.leaderboard import leaderboard as rank
    from perdure.store.files import write_output

    board = rank(
        folder,
        metrics_named(names) if names else (),
        known=metrics_named(()),
        curriculum=curriculum,
    )
    for ranking in board.rankings:
        pages.table(ranking).show()
        for line in pages.remarks(ranking):
            remark(line)
    if html is not None:
        write_output(html, pages.html(board, where=html.parent).encode())
        say(f"page: {html}")
    without = {name: why for r in board.rankings for name, why in r.failed.items()}
    code = lacking(board.left_out, partial)
    return lacking(without, partial, said=True) or code


def view(paths: Sequence[Path], port: int, anyway: bool) -> int:
    """Serve the report of a running experiment on loopback."""
    from perdure.show.pictures import videos_and_pictures
    from perdure.show.report import load, render
    from perdure.show.view import view as serve

    # A shell that starts it in the background has it ignore Ctrl-C, and then nothing would end it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    metrics = metrics_named(())

    def build() -> bytes:
        study = load(paths, metrics, anyway=anyway)
        return render(study, sections=videos_and_pictures(study)).encode()

    serve(paths, build, port, ready=lambda url: print(f"{url}   (Ctrl-C ends)", flush=True))
    return 0
