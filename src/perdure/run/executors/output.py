"""What a worker writes to its terminal: of much, the beginning and the end."""

from __future__ import annotations

import fcntl
import os
import tempfile

from perdure.run.lifetime import FAILED, NOTE

END = 64 << 10
"""Bytes kept of the beginning, and of the end."""
MOST = 64 * END
"""Bytes that its file may have before it is cut down to those."""


class WorkerOutput:
    """A file that a worker writes to, and that is kept small."""

    def __init__(self) -> None:
        self.fd, path = tempfile.mkstemp(prefix="perdure-")
        os.unlink(path)
        # Whoever appends goes on at the new end after the file was cut.
        fcntl.fcntl(self.fd, fcntl.F_SETFL, os.O_APPEND)
        self._head = self._tail = b""

    def shrink(self) -> None:
        """Cut the file down if it has grown large."""
        size = os.fstat(self.fd).st_size
        if size <= MOST:
            return
        self._head = self._head or self._read(0)
        self._tail = self._read(size - END)
        os.ftruncate(self.fd, 0)

    def close(self) -> None:
        """Forget it all."""
        os.close(self.fd)

    def _read(self, start: int) -> bytes:
        return os.pread(self.fd, END, start)

    def text(self) -> str:
        """What was written."""
        size = os.fstat(self.fd).st_size
        if not self._head and size <= 2 * END:
            data = os.pread(self.fd, size, 0)
        else:
            tail = (self._tail + self._read(max(size - END, 0)))[-END:]
            data = (self._head or self._read(0)) + "\n… much left out …\n".encode() + tail
        return data.decode(errors="replace").strip()

    def said(self) -> tuple[list[str], str, str]:
        """A worker's notes, its last lines, and why it failed if it says so."""
        text = self.text()
        lines = text.splitlines()
        _, failed, failure = f"\n{text}".rpartition(f"\n{FAILED}")
        notes = [line for line in lines if line.startswith(NOTE)]
        return notes, "\n".join(lines[-5:]), failure if failed else ""
