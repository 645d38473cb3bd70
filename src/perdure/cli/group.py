"""The command ``perdure``: what all its verbs share."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

import perdure
from perdure.errors import PerdureError
from perdure.store.urls import is_url, place


@dataclass(frozen=True)
class ExecutionFlags:
    """Flags of run and eval that are no part of what is run: how, and what is shown of it."""

    video: bool = False
    videos: int | None = None
    """Lifetimes of each agent that are recorded; None: all, if ``video``."""
    mix_code: bool = False
    debug: bool = False
    eval_workers: int = 1
    shard: str | None = None
    """The share of the lifetimes to run; None: all."""
    quiet: bool = False

    @classmethod
    def taken_from(cls, flags: dict[str, Any]) -> ExecutionFlags:
        """Those among a command's flags, which are removed there."""
        names = [field.name for field in fields(cls) if field.name in flags]
        return cls(**{name: flags.pop(name) for name in names})

    @property
    def any_video(self) -> bool:
        """Whether anything is recorded."""
        return self.video or bool(self.videos)


PURPOSES = {
    "Run": ("run", "sweep", "check"),
    "Evaluate policies": ("eval", "protocols", "selftest", "serve"),
    "Make tasks and data": ("generate", "demos", "record", "convert"),
    "Look": ("watch", "view", "play", "gallery"),
    "Measure": ("measure", "compare", "leaderboard"),
    "Share": ("report", "animate", "export"),
    "Find out": ("ls", "doctor"),
}
"""The commands by what one does with them, as ``--help`` lists them; others come under *More*."""


class AnyPath(click.Path):
    """A path that some file system could hold, whether there is anything or not."""

    def __init__(self, **keys: Any) -> None:
        super().__init__(**keys, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not os.fspath(value):
            self.fail("the name is empty", param, ctx)
        if is_url(os.fspath(value)):
            return place(os.fspath(value))
        try:
            os.stat(value)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            pass  # Who reads or writes it has better words.
        except (OSError, ValueError) as e:
            self.fail(str(e), param, ctx)
        return super().convert(value, param, ctx)


class CommandGroup(click.Group):
    """Lists commands by purpose, and prints Perdure's own errors as one sentence, without a traceback."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands under what one does with them."""
        names = self.list_commands(ctx)
        named = {name for group in PURPOSES.values() for name in group}
        groups = {**PURPOSES, "More": tuple(n for n in names if n not in named)}
        limit = formatter.width - 6 - max(map(len, names))
        for title, group in groups.items():
            rows = [
                (name, command.get_short_help_str(limit))
                for name in group
                if (command := self.get_command(ctx, name)) is not None and not command.hidden
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows, col_max=12)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PerdureError as e:
            from perdure.cli.terminal import tell
            from perdure.store.plain import clipped

            if ctx.params.get("debug"):
                import traceback

                tell("".join(traceback.format_exception(e)))
            tell(clipped(f"perdure: {type(e).__name__}: {e}", 20_000))
            sys.exit(2)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(perdure.__version__, prog_name="perdure")
@click.option("--debug", is_flag=True, help="Print errors with their traceback.")
def main(debug: bool) -> None:
    """Does what your agent learned perdure?"""


def one_thread() -> None:
    """Measuring multiplies no large matrices: a pool of threads for that costs more than it gives,
    and is made when numpy is imported."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


partial_option = click.option(
    "--partial",
    is_flag=True,
    help="Go on without lifetimes that are missing, unfinished or damaged: exit 0.",
)
"""Everywhere the same: without it, what a run lacks makes the exit code 1, or export refuse."""


eval_workers = click.option(
    "--eval-workers",
    type=click.IntRange(1, 1000),
    default=1,
    metavar="N",
    help="Share each lifetime's evaluations over N processes (1); the rows are the same.",
)
