"""A state: a flat mapping of names to arrays, checked, and as an ``.npz`` file. No pickle, ever."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from perdure.arrays import Array, ChunkedArray, raw_bytes
from perdure.errors import AgentFault, Corrupt

KINDS = "biufcSU"
"""What arrays in a state may hold: numbers, booleans, text."""
Saved = Mapping[str, Array | ChunkedArray]


def checked(owner: str, state: Mapping[str, object]) -> dict[str, Array | ChunkedArray]:
    """The state as arrays; an AgentFault names whatever is not one."""
    if not isinstance(state, Mapping):
        raise AgentFault(f"{owner} must give a mapping of names to arrays, got {state!r}")
    out: dict[str, Array | ChunkedArray] = {}
    for name, value in state.items():
        array = value if isinstance(value, ChunkedArray) else np.asarray(value)
        if not isinstance(name, str) or array.dtype.kind not in KINDS:
            raise AgentFault(
                f"{owner}[{name!r}] must be an array of numbers, booleans or text, got "
                f"{type(value).__name__} of dtype {array.dtype}"
            )
        out[name] = array
    return out


def encode(state: Mapping[str, Array]) -> bytes:
    """The bytes of an ``.npz`` file, the same for the same state."""
    buffer = io.BytesIO()
    write(buffer, state)
    return buffer.getvalue()


def write(file: IO[bytes], state: Mapping[str, Array | ChunkedArray]) -> None:
    """Write an ``.npz`` file, the same for the same state."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name in sorted(state):
            info = zipfile.ZipInfo(f"{name}.npy")
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(state[name]), allow_pickle=False)


def decode(data: bytes, source: str) -> dict[str, Array]:
    """The mapping in an ``.npz`` file; Corrupt if it is damaged or holds pickled objects."""
    return read(io.BytesIO(data), source)


def read(file: Any, source: str) -> dict[str, Array]:
    """The same of a file that is open."""
    out: dict[str, Array] = {}
    try:
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                with archive.open(name) as member:
                    array = np.lib.format.read_array(member, allow_pickle=False)
                out[name.removesuffix(".npy")] = array
    except (
        ValueError,
        EOFError,
        OSError,
        KeyError,
        RuntimeError,
        MemoryError,
        zipfile.BadZipFile,
        zlib.error,
    ) as e:
        why = "it holds a pickle payload, refused" if "allow_pickle" in str(e) else str(e)
        raise Corrupt(f"checkpoint {source} cannot be loaded: {why}") from e
    return out


def digest(state: Mapping[str, Array]) -> dict[str, int]:
    """A CRC of each array, to see which ones changed."""
    return {
        name: zlib.crc32(raw_bytes(a), zlib.crc32(str(a.dtype).encode()))
        for name, a in state.items()
    }
