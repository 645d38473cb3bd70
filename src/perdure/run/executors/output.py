"""What a worker writes to its terminal: of much, the beginning and the end."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable

from perdure.run.lifetime import FAILED, NOTE

END = 64 << 10
"""Bytes kept of the beginning, and of the end."""
PATIENCE = 5.0
"""Seconds to wait for the last words of a worker that has ended; they are in the pipe already."""


class WorkerOutput:
    """A pipe that a worker writes to. A thread reads it, so that the worker never waits for us."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._reader, self.fd = os.pipe()
        self._tell = tell
        """What is done with a line for the user, as soon as it is written."""
        self._line = b""
        self._head, self._tail = b"", b""
        self._lock = threading.Lock()
        threading.Thread(target=self._read, name="worker output", daemon=True).start()

    def _read(self) -> None:
        with os.fdopen(self._reader, "rb", buffering=0) as source:
            while True:
                # Read and kept under one lock: an empty pipe then means that all of it is kept.
                select.select([source], [], [])
                with self._lock:
                    data = source.read(END)
                    if not data:
                        return
                    room = END - len(self._head)
                    self._head += data[:room]
                    self._tail = (self._tail + data[room:])[-END:]
                    self._pass_on(data)

    def _pass_on(self, data: bytes) -> None:
        """Tell the lines for the user that are whole now."""
        *lines, rest = (self._line + data).split(b"\n")
        self._line = rest[:END]
        for line in lines:
            if line.startswith(NOTE.encode()):
                self._tell(line.decode(errors="replace"))

    def close(self) -> None:
        """Write no more; the thread ends when there is no writer left."""
        os.close(self.fd)

    def _wait(self) -> None:
        """Until everything that was written is kept."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with self._lock:
                if not select.select([self._reader], [], [], 0)[0]:
                    return
            time.sleep(0.001)

    def text(self) -> str:
        """What was written."""
        self._wait()
        with self._lock:
            much = "\n… much left out …\n".encode() if len(self._tail) == END else b""
            data = self._head + much + self._tail
        return data.decode(errors="replace").strip()

    def said(self) -> tuple[str, str]:
        """A worker's last lines, and why it failed if it says so."""
        text = self.text()
        _, failed, failure = f"\n{text}".rpartition(f"\n{FAILED}")
        return "\n".join(text.splitlines()[-5:]), failure if failed else ""
