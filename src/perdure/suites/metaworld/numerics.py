"""What Meta-World's code spends most of its time in, the same to the bit at a small part of the cost.

Each function here stands in for one of scipy's, numpy's or Meta-World's own. It does the same
floating-point operations in the same order and gives the same types, so that whatever is computed
from its result stays the same too. Arguments that a short form does not cover go to the original.
"""

from __future__ import annotations

import functools
import math
import types
from typing import Any

import numpy as np
from metaworld.utils import reward_utils

from perdure.types import Array

_float64 = np.float64
_sqrt = math.sqrt


def norm(x: Any, *args: Any, **options: Any) -> Any:
    """``np.linalg.norm``; the short form is that of a vector."""
    if args or options or type(x) is not np.ndarray or x.ndim != 1 or x.dtype != _float64:
        return np.linalg.norm(x, *args, **options)
    flat = x.ravel("K")
    return _float64(_sqrt(flat.dot(flat)))


def clip(x: Any, low: Any, high: Any, *args: Any, **options: Any) -> Any:
    """``np.clip``; the short form is that of one number between numbers."""
    kind = type(x)
    if args or options or not (kind is _float64 or kind is float) or x != x or x == 0.0:
        return np.clip(x, low, high, *args, **options)
    return _float64(low if x < low else high if x > high else x)


def tolerance(
    x: Any,
    bounds: tuple[float, float] = (0.0, 0.0),
    margin: Any = 0.0,
    sigmoid: Any = "gaussian",
    value_at_margin: float = 0.1,
) -> Any:
    """``reward_utils.tolerance``; the short form is one number with a long tail."""
    lower, upper = bounds
    kind = type(x)
    if (
        sigmoid != "long_tail"
        or not (kind is _float64 or kind is float)
        or not (lower <= upper and margin > 0)
    ):
        return reward_utils.tolerance(x, bounds, margin, sigmoid, value_at_margin)
    if lower <= x <= upper:
        return 1.0
    distance = _float64(lower - x if x < lower else x - upper) / margin
    return float(1 / ((distance * _scale(value_at_margin)) ** 2 + 1))


@functools.cache
def _scale(value_at_margin: float) -> Any:
    return np.sqrt(1 / value_at_margin - 1)


def quaternion(matrix: Array) -> Array:
    """The unit quaternion x, y, z, w of a rotation matrix, by its largest component."""
    (a, b, c), (d, e, f), (g, h, i) = matrix.tolist()
    trace = a + e + i
    largest = max(a, e, i, trace)
    if a == largest:
        x, y, z, w = 1 - trace + 2 * a, d + b, g + c, h - f
    elif e == largest:
        x, y, z, w = d + b, 1 - trace + 2 * e, h + f, c - g
    elif i == largest:
        x, y, z, w = g + c, h + f, 1 - trace + 2 * i, d - b
    else:
        x, y, z, w = h - f, c - g, d - b, 1 + trace
    length = _sqrt(x * x + y * y + z * z + w * w)
    return np.array((x / length, y / length, z / length, w / length))


class Rotation:
    """``scipy.spatial.transform.Rotation``, of which Meta-World uses one way in and one out."""

    __slots__ = ("matrix",)

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix

    @classmethod
    def from_matrix(cls, matrix: Array) -> Rotation:
        """A rotation from MuJoCo, whose matrices are orthogonal."""
        return cls(matrix)

    def as_quat(self) -> Array:
        """Its quaternion, the real part last."""
        return quaternion(self.matrix)


def _module(original: types.ModuleType, **replaced: Any) -> types.ModuleType:
    made = types.ModuleType(original.__name__)
    made.__dict__.update({**original.__dict__, **replaced})
    return made


STAND_INS: dict[str, Any] = {
    "np": _module(np, linalg=_module(np.linalg, norm=norm), clip=clip),
    "reward_utils": _module(reward_utils, tolerance=tolerance),
    "Rotation": Rotation,
}
"""Module-level names in Meta-World's files, and what they mean in a fast environment."""
