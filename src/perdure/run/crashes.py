"""Where a crash in compiled code happened: the fault handler's words, in the lifetime's folder."""

from __future__ import annotations

import faulthandler
import re
from collections.abc import Iterator
from contextlib import contextmanager

from perdure.store.layout import LifetimeFolder

_CALL = re.compile(r'File "(.*)", line (\d+) in (.*)')
SHOWN = 3
"""Calls of a crash that an error names."""


@contextmanager
def traced(folder: LifetimeFolder) -> Iterator[None]:
    """A crash inside this block leaves word in the lifetime's folder. If the fault handler is on
    already, it stays as it is."""
    file = None if faulthandler.is_enabled() else folder.open_crash()
    if file is None:
        yield
        return
    with file:
        faulthandler.enable(file)
        try:
            yield
        finally:
            faulthandler.disable()
            folder.clear_crash()


def crash_summary(crash: str) -> str:
    """A crash in a sentence: what happened, and the last calls before it."""
    what = crash.partition("\n")[0].removeprefix("Fatal Python error: ").strip()
    own = crash.partition("Current thread")[2].partition("\n\n")[0]
    calls = [f"{file}:{line} in {name}" for file, line, name in _CALL.findall(own)[:SHOWN]]
    return f"{what} at {', called from '.join(calls)}" if calls else what
