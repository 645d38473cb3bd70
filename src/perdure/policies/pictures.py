"""Pictures as policies are given them, made with Pillow: the filters are those that models were trained with."""

from __future__ import annotations

import io

import numpy as np

from perdure.arrays import Array
from perdure.errors import PolicyServerFault
from perdure.registry import extras_named

JPEG_QUALITY = 95
"""TensorFlow's default, through which OpenVLA's training pictures went."""


def resized(picture: Array, size: int, how: str = "pad") -> Array:
    """A picture of ``size`` × ``size``. ``pad``: bilinear with its aspect kept, in the middle of black;
    one that has the size stays as it is. ``jpeg-lanczos``: through JPEG, then Lanczos."""
    with extras_named("policies"):
        from PIL import Image
    if how == "jpeg-lanczos":
        image = Image.open(io.BytesIO(encoded(picture, "JPEG")))
        return np.asarray(image.resize((size, size), Image.Resampling.LANCZOS))
    height, width = picture.shape[:2]
    if (height, width) == (size, size):
        return picture
    ratio = max(width, height) / size
    inner = (int(width / ratio), int(height / ratio))
    small = Image.fromarray(picture).resize(inner, Image.Resampling.BILINEAR)
    out = Image.new("RGB", (size, size), 0)
    out.paste(small, (max(0, (size - inner[0]) // 2), max(0, (size - inner[1]) // 2)))
    return np.asarray(out)


def encoded(picture: Array, kind: str = "PNG") -> bytes:
    """A picture as the bytes of a file."""
    with extras_named("policies"):
        from PIL import Image
    sink = io.BytesIO()
    more = {"quality": JPEG_QUALITY} if kind == "JPEG" else {"compress_level": 1}
    Image.fromarray(np.ascontiguousarray(picture)).save(sink, kind, **more)
    return sink.getvalue()


def decoded(data: bytes) -> Array:
    """The picture in the bytes of a PNG or JPEG file."""
    with extras_named("policies"):
        from PIL import Image
    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image:
            return np.asarray(image.convert("RGB"))
    except (OSError, ValueError) as e:
        raise PolicyServerFault(
            f"expected a PNG or JPEG picture, got {len(data)} bytes ({e})"
        ) from e
