"""Messages between a lifetime's process and those that evaluate for it: JSON, and arrays. No pickle."""

from __future__ import annotations

import io
import json
import os
import socket
import struct
import tempfile
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from perdure.arrays import Array, ChunkedArray
from perdure.errors import Corrupt
from perdure.store import state

_SIZES = struct.Struct("!QQ")
"""Bytes of JSON, and of arrays."""


def send(sock: socket.socket, told: Mapping[str, Any], arrays: Mapping[str, Array] = {}) -> None:
    """Send plain values, and arrays by name."""
    head = json.dumps(told, default=_plain).encode()
    body = state.encode(arrays) if arrays else b""
    sock.sendall(_SIZES.pack(len(head), len(body)) + head + body)


def receive(sock: socket.socket) -> tuple[dict[str, Any], dict[str, Array]] | None:
    """The next message; None if the other process has ended."""
    try:
        sizes = _exactly(sock, _SIZES.size)
        if sizes is None:
            return None
        head, body = (_exactly(sock, size) for size in _SIZES.unpack(sizes))
    except ConnectionError:
        return None
    if head is None or body is None:
        return None
    found: dict[str, Any] = json.loads(head)
    return found, state.decode(body, "of an evaluation") if body else {}


def _exactly(sock: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        more = sock.recv(min(size - len(parts), 1 << 20))
        if not more:
            return None
        parts += more
    return bytes(parts)


def shared_file(arrays: Mapping[str, Array | ChunkedArray]) -> IO[bytes]:
    """Arrays in a file without a name, which is gone with the processes that hold it."""
    file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
    state.write(file, arrays)
    file.flush()
    return file


def send_file(sock: socket.socket, file: IO[bytes]) -> None:
    """Let another process read a file."""
    socket.send_fds(sock, [b"f"], [file.fileno()])


def receive_arrays(sock: socket.socket) -> dict[str, Array]:
    """The arrays in a file that was sent."""
    _, fds, _, _ = socket.recv_fds(sock, 1, 1)
    if not fds:
        raise Corrupt("the agent's state did not arrive: the process that sent it has ended")
    try:
        return state.read(io.BufferedReader(_Apart(fds[0])), "of an evaluation")
    finally:
        os.close(fds[0])


class _Apart(io.RawIOBase):
    """Reads a file that other processes hold too, at a place of its own."""

    def __init__(self, fd: int) -> None:
        self.fd, self.at = fd, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.at, os.SEEK_END: os.fstat(self.fd).st_size}
        self.at = start[whence] + offset
        return self.at

    def readinto(self, buffer: Any) -> int:
        found = os.pread(self.fd, len(buffer), self.at)
        buffer[: len(found)] = found
        self.at += len(found)
        return len(found)


def _plain(value: Any) -> Any:
    """Numbers of numpy as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is neither text nor a number")
