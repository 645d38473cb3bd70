"""Arrays that are costly to make, held in memory as long as there is room."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from functools import cached_property

from perdure.errors import SpecError
from perdure.pools import data_room
from perdure.types import Array

ROOM = "PERDURE_DATA_MB"
"""Environment variable: megabytes that a process holds at most."""
EVERY = 64
"""Where there is no room, one in so many that are asked for takes the place of others: what is asked for changes
from task to task, but to make something whole costs more than the part that is needed."""


def room() -> int:
    """How many bytes a process may hold."""
    text = os.environ.get(ROOM)
    if text is None:
        return data_room()
    if not text.isdecimal():
        raise SpecError(f"{ROOM} must be a whole number of megabytes, got {text!r}")
    return int(text) * 1_000_000


class HeldArrays:
    """What was not asked for longest goes first, and is made again when it is needed. What is held must not be
    changed. Nothing but time depends on what is held."""

    def __init__(self, most_bytes: int | None = None) -> None:
        if most_bytes is not None:
            self.most_bytes = most_bytes
        self.bytes = self._turned_away = 0
        self._held: OrderedDict[Hashable, Mapping[str, Array]] = OrderedDict()
        self._lock = threading.Lock()

    @cached_property
    def most_bytes(self) -> int:
        """The room, :func:`room` if it was not given."""
        return room()

    def get(self, key: Hashable, make: Callable[[], dict[str, Array]]) -> Mapping[str, Array]:
        """The arrays of a key, made if they are not held."""
        with self._lock:
            found = self._found(key)
        return self._hold(key, make()) if found is None else found

    def get_if_room(
        self, key: Hashable, size: int, make: Callable[[], dict[str, Array]]
    ) -> Mapping[str, Array] | None:
        """The arrays of a key, of ``size`` bytes, if they are held or there is room for them. If there is none
        they are made one time in :data:`EVERY`, others are None: the caller makes the part that it needs."""
        with self._lock:
            found = self._found(key)
            if found is not None:
                return found
            if self.bytes + size > self.most_bytes:
                self._turned_away += 1
                if size > self.most_bytes or self._turned_away % EVERY:
                    return None
        return self._hold(key, make())

    def _found(self, key: Hashable) -> Mapping[str, Array] | None:
        if key in self._held:
            self._held.move_to_end(key)
        return self._held.get(key)

    def _hold(self, key: Hashable, made: Mapping[str, Array]) -> Mapping[str, Array]:
        with self._lock:
            if key not in self._held:
                self._held[key] = made
                self.bytes += _size(made)
            while self.bytes > self.most_bytes and len(self._held) > 1:
                self.bytes -= _size(self._held.popitem(last=False)[1])
        return made


def _size(arrays: Mapping[str, Array]) -> int:
    return sum(a.nbytes for a in arrays.values())
