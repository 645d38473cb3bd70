"""Exceptions of other processes, raised here as they would have been here."""

from __future__ import annotations

import traceback
from collections.abc import Mapping

from perdure import errors
from perdure.errors import PerdureError


class Relayed(Exception):
    """An exception of a class that may not be known here; a subclass has its name."""

    place = ""
    """Where it came from, as :func:`file_and_line` says it."""


def in_words(error: BaseException) -> dict[str, str]:
    """An exception in plain words, to be sent."""
    trace = "".join(traceback.format_exception(error))
    kind, place = type(error).__name__, file_and_line(error)
    return {"type": kind, "words": str(error), "place": place, "traceback": trace}


def retold(failure: Mapping[str, str], doing: str) -> Exception:
    """The exception that a process which was ``doing`` something has told of, with its traceback as a
    note: those of Perdure are themselves, all others :class:`Relayed` with the name they had."""
    own = getattr(errors, failure["type"], None)
    if isinstance(own, type) and issubclass(own, PerdureError):
        error: Exception = own.__new__(own)
    else:
        error = type(failure["type"], (Relayed,), {"place": failure["place"]})()
    Exception.__init__(error, failure["words"])
    error.add_note(f"In the process that {doing}:\n{failure['traceback']}")
    return error


def file_and_line(error: BaseException) -> str:
    """Where an exception came from: file and line."""
    if isinstance(error, Relayed):
        return error.place
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "an unknown place"
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
