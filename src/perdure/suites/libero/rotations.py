"""Turns as quaternions and matrices, in the precision that robosuite computes them in."""

from __future__ import annotations

import math

import numpy as np

from perdure.types import Array


def matrix_of(quaternion: Array) -> Array:
    """The matrix of a quaternion with its real part first, through single floats as upstream."""
    q = quaternion.astype(np.float32)
    q = (q.astype(np.float64) * math.sqrt(2.0 / float(np.dot(q, q)))).astype(np.float32)
    p = np.outer(q, q)
    d = p.astype(np.float64)
    return np.array(
        [
            [1.0 - d[2, 2] - d[3, 3], p[1, 2] - p[3, 0], p[1, 3] + p[2, 0]],
            [p[1, 2] + p[3, 0], 1.0 - d[1, 1] - d[3, 3], p[2, 3] - p[1, 0]],
            [p[1, 3] - p[2, 0], p[2, 3] + p[1, 0], 1.0 - d[1, 1] - d[2, 2]],
        ]
    )


def turn_of(axis_angle: Array) -> Array:
    """The matrix of a rotation given by its axis times its angle."""
    angle = float(np.linalg.norm(axis_angle))
    q = np.array([1.0, 0.0, 0.0, 0.0])
    if not math.isclose(angle, 0.0):
        q[0] = math.cos(angle / 2.0)
        q[1:] = axis_angle / angle * math.sin(angle / 2.0)
    return matrix_of(q)


def product(a: Array, b: Array) -> Array:
    """Of two quaternions with the real part last."""
    x0, y0, z0, w0 = b
    x1, y1, z1, w1 = a
    return np.array(
        [
            x1 * w0 + y1 * z0 - z1 * y0 + w1 * x0,
            -x1 * z0 + y1 * w0 + z1 * x0 + w1 * y0,
            x1 * y0 - y1 * x0 + z1 * w0 + w1 * z0,
            -x1 * x0 - y1 * y0 - z1 * z0 + w1 * w0,
        ]
    )
