"""Arrays in MessagePack, as policy servers write them. Three dialects are read, and each is written.

==========  ===============================================================================
dialect     an array is a map of
==========  ===============================================================================
openpi      ``b"__ndarray__"``: true, ``b"data"``, ``b"dtype"``, ``b"shape"``; bytes as keys
vla-eval    the same in text keys
groot       ``b"nd"``: true, ``b"type"``, ``b"kind"``, ``b"shape"``, ``b"data"``: msgpack-numpy
==========  ===============================================================================

Nothing that could run code is ever read: arrays of objects and pickles are refused, and so is data
whose length is not that of its shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from perdure.arrays import Array
from perdure.errors import PolicyServerFault
from perdure.registry import extras_named

Dialect = Literal["openpi", "vla-eval", "groot"]
KINDS = "biuf"
"""Of numbers that may be sent: truth values, whole numbers, floats."""
MOST_BYTES = 1 << 28
"""Of a message."""


def pack(value: Any, dialect: Dialect = "openpi") -> bytes:
    """A message as bytes."""
    with extras_named("policies"):
        import msgpack
    packed: bytes = msgpack.packb(value, default=_WRITERS[dialect])
    return packed


def unpack(data: bytes, what: str = "the message") -> Any:
    """A message from bytes, of any dialect."""
    with extras_named("policies"):
        import msgpack
    if len(data) > MOST_BYTES:
        raise PolicyServerFault(f"{what} has {len(data):,} bytes, expected at most {MOST_BYTES:,}")
    try:
        return msgpack.unpackb(data, object_hook=_read)
    except PolicyServerFault as e:
        raise PolicyServerFault(f"{what}: {e}") from e
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as e:
        raise PolicyServerFault(
            f"{what}: expected MessagePack, got {len(data):,} bytes beginning with "
            f"{bytes(data[:16])!r} ({e})"
        ) from e


def _writer(keys: tuple[Any, Any, Any, Any]) -> Callable[[Any], Any]:
    mark, data, dtype, shape = keys

    def write(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return {
                mark: True,
                data: np.ascontiguousarray(_sent(value)).tobytes(),
                dtype: value.dtype.str,
                shape: list(value.shape),
            }
        return _scalar(value)

    return write


def _scalar(value: Any) -> Any:
    if isinstance(value, np.generic):
        return _sent(value).item()
    raise TypeError(f"{type(value).__name__} cannot be sent to a policy")


def _sent(value: Any) -> Any:
    if value.dtype.kind not in KINDS:
        raise TypeError(f"an array of {value.dtype} cannot be sent to a policy")
    return value


def _groot(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        data = np.ascontiguousarray(_sent(value)).tobytes()
        more = {b"kind": b"", b"shape": list(value.shape), b"data": data}
        return {b"nd": True, b"type": value.dtype.str, **more}
    return _scalar(value)


_WRITERS: Mapping[Dialect, Callable[[Any], Any]] = {
    "openpi": _writer((b"__ndarray__", b"data", b"dtype", b"shape")),
    "vla-eval": _writer(("__ndarray__", "data", "dtype", "shape")),
    "groot": _groot,
}


def _read(found: dict[Any, Any]) -> Any:
    """A map, or the array or number that it stands for."""
    for as_key in (str.encode, str):
        if found.get(as_key("__ndarray__")) is True:
            return array_of(*(found.get(as_key(k)) for k in ("data", "dtype", "shape")))
        if found.get(as_key("__npgeneric__")) is True:
            dtype = _dtype(found.get(as_key("dtype")))
            return dtype.type(found.get(as_key("data")))
        nd = found.get(as_key("nd"))
        if nd is not None and as_key("type") in found:
            if found.get(as_key("kind")) not in (b"", "", None):
                raise PolicyServerFault("an array of objects is never read")
            parts = (found.get(as_key(k)) for k in ("data", "type", "shape"))
            data, kind, shape = parts
            return array_of(data, kind, shape) if nd else array_of(data, kind, [])[()]
    return found


def array_of(data: Any, dtype: Any, shape: Any) -> Array:
    """An array from its bytes, refused if these are not of its type and shape."""
    kind = _dtype(dtype)
    if not isinstance(data, bytes) or not isinstance(shape, (list, tuple)):
        raise PolicyServerFault("an array must have its data as bytes and its shape as a list")
    if not all(type(n) is int and n >= 0 for n in shape):
        raise PolicyServerFault(f"an array's shape must be whole numbers, got {shape!r:.80}")
    wanted = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    if len(data) != wanted:
        raise PolicyServerFault(
            f"an array of shape {tuple(shape)} and dtype {kind} has {wanted} bytes, got {len(data)}"
        )
    read: Array = np.frombuffer(data, kind).reshape(shape)
    return read


def _dtype(text: Any) -> np.dtype[Any]:
    try:
        dtype = np.dtype(text.decode() if isinstance(text, bytes) else str(text))
    except (TypeError, ValueError) as e:
        raise PolicyServerFault(f"{text!r:.40} is no type of numbers") from e
    if dtype.kind not in KINDS:
        raise PolicyServerFault(f"arrays of {dtype} are never read: expected numbers")
    return dtype
