"""``perdure`` as a whole: every verb, and the console script."""

from __future__ import annotations

import sys
import threading
from io import TextIOWrapper
from typing import Any

from perdure.cli.commands import data, find, look, measure, policies, run, share
from perdure.cli.group import PURPOSES, main
from perdure.errors import Interrupted
from perdure.pythonpath import import_from_here

__all__ = ["PURPOSES", "entry", "main"]
VERBS = (run, policies, data, look, measure, share, find)
"""Each adds its verbs to the command when it is imported."""


def entry() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # A terminal without − or × gets a question mark.
    if not sys.flags.safe_path:
        import_from_here()
    code: Any = 0
    try:
        main()
    except Interrupted as e:
        code = 128 + e.signum
    except SystemExit as e:
        code = e.code
    if threading.active_count() > 1 and isinstance(code, int):
        from perdure.run.signals import leave

        leave(code)
    sys.exit(code)
