"""Triangle meshes from formulas, with texture coordinates: surfaces of revolution, superquadrics,
tubes, extrusions and sheets. Faces wind counter-clockwise seen from outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perdure.types import Array

Point = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Mesh:
    """Vertices (n, 3), triangles (m, 3) and texture coordinates (n, 2)."""

    vertices: Array
    faces: Array
    uv: Array

    def translate(self, x: float = 0, y: float = 0, z: float = 0) -> Mesh:
        """A copy, moved."""
        return replace(self, vertices=self.vertices + np.array([x, y, z]))

    def rotate(self, axis: str, degrees: float) -> Mesh:
        """A copy, rotated about a coordinate axis through the origin."""
        return replace(self, vertices=self.vertices @ rotation_matrix(axis, degrees).T)

    def scale(self, x: float, y: float, z: float) -> Mesh:
        """A copy, stretched along the axes; all factors positive."""
        return replace(self, vertices=self.vertices * np.array([x, y, z]))


def rotation_matrix(axis: str, degrees: float) -> Array:
    """The 3 × 3 matrix of a rotation about a coordinate axis."""
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    i = "xyz".index(axis)
    out = np.eye(3)
    j, k = (i + 1) % 3, (i + 2) % 3
    out[j, j], out[j, k], out[k, j], out[k, k] = c, -s, s, c
    return out


def join(meshes: Sequence[Mesh]) -> Mesh:
    """Several meshes as one; their vertices stay separate."""
    starts = np.cumsum([0] + [len(m.vertices) for m in meshes[:-1]])
    return Mesh(
        np.concatenate([m.vertices for m in meshes]),
        np.concatenate([m.faces + s for m, s in zip(meshes, starts, strict=True)]),
        np.concatenate([m.uv for m in meshes]),
    )


def grid(points: Array, uv: Array | None = None) -> Mesh:
    """A surface through points (rows, columns, 3); rows × columns must be right-handed outward."""
    rows, columns = points.shape[:2]
    if uv is None:
        u, v = np.meshgrid(np.linspace(0, 1, columns), np.linspace(0, 1, rows))
        uv = np.stack([u, v], axis=-1)
    index = np.arange(rows * columns).reshape(rows, columns)
    a, b = index[:-1, :-1].ravel(), index[:-1, 1:].ravel()
    c, d = index[1:, 1:].ravel(), index[1:, :-1].ravel()
    faces = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
    return Mesh(points.reshape(-1, 3), faces, uv.reshape(-1, 2))


def lathe(profile: Sequence[Point], n: int = 36, sharp: bool = False) -> Mesh:
    """A surface of revolution: a profile of (radius, height) rotated about z.

    The profile goes up on the outside, then down inside. ``sharp`` gives the edges between its
    points normals of their own; otherwise they are shaded smooth.
    """
    p = np.array(profile, float)
    if sharp:
        p = p[np.repeat(np.arange(len(p)), 2)][1:-1]
    angle = np.linspace(0, 2 * np.pi, n + 1)
    points = np.stack(
        [
            p[:, :1] * np.cos(angle),
            p[:, :1] * np.sin(angle),
            np.broadcast_to(p[:, 1:], (len(p), n + 1)),
        ],
        axis=-1,
    )
    length = np.concatenate([[0], np.cumsum(np.hypot(*np.diff(p, axis=0).T))])
    u, v = np.meshgrid(angle / (2 * np.pi), length / max(length[-1], 1e-9))
    made = grid(points, np.stack([u, v], -1))
    if not sharp:
        return made
    # Every second strip joins a doubled point to itself.
    strip = made.faces.min(axis=1) // (n + 1)
    return replace(made, faces=made.faces[strip % 2 == 0])


def vessel(outer: Sequence[Point], wall: float = 0.02, n: int = 40) -> Mesh:
    """A hollow surface of revolution, closed at the bottom and open at the top.

    ``outer`` is the profile of its outside, going up; ``wall`` is the thickness.
    """
    o = np.array(outer, float)
    inner = o[::-1].copy()
    inner[:, 0] = np.maximum(inner[:, 0] - wall, 0)
    inner[:, 1] = np.maximum(inner[:, 1], o[0, 1] + wall)
    path = [(0.0, float(o[0, 1])), *map(tuple, o), *map(tuple, inner), (0.0, float(o[0, 1] + wall))]
    return lathe(path, n)


def superquadric(
    a: float, b: float, c: float, e1: float = 1.0, e2: float = 1.0, n: int = 28
) -> Mesh:
    """Half axes a, b, c; exponents e1, e2: 1 gives an ellipsoid, smaller ones a rounded box."""

    def power(x: Array, e: float) -> Array:
        return np.sign(x) * np.abs(x) ** e

    v, u = np.meshgrid(
        np.linspace(-np.pi / 2, np.pi / 2, n), np.linspace(-np.pi, np.pi, n + 1), indexing="ij"
    )
    points = np.stack(
        [
            a * power(np.cos(v), e1) * power(np.cos(u), e2),
            b * power(np.cos(v), e1) * power(np.sin(u), e2),
            c * power(np.sin(v), e1),
        ],
        axis=-1,
    )
    return grid(points)


def box(x: float, y: float, z: float) -> Mesh:
    """A box of these side lengths, centred at the origin."""
    corners = [(-x / 2, -y / 2), (x / 2, -y / 2), (x / 2, y / 2), (-x / 2, y / 2)]
    return extrude(corners, z).translate(z=-z / 2)


def tube(
    path: Sequence[Sequence[float]] | Array,
    radius: float | Sequence[float] | Array,
    n: int = 12,
    closed: bool = False,
    flat: float = 1.0,
) -> Mesh:
    """A tube along a path with rounded ends; ``flat`` < 1 squeezes it along its normal."""
    p = np.array(path, float)
    r = np.broadcast_to(np.asarray(radius, float), (len(p),)).copy()
    if closed:
        p, r = np.concatenate([p, p[:1]]), np.concatenate([r, r[:1]])
        tangent = np.roll(p[:-1], -1, 0) - np.roll(p[:-1], 1, 0)
        tangent = np.concatenate([tangent, tangent[:1]])
    else:
        tangent = np.gradient(p, axis=0)
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    normal = np.empty_like(p)
    # Carrying the first normal along the path keeps the tube from twisting or pinching.
    helper = np.eye(3)[np.argmin(np.abs(tangent[0]))]
    normal[0] = np.cross(tangent[0], helper) / np.linalg.norm(np.cross(tangent[0], helper))
    for i in range(1, len(p)):
        s = normal[i - 1] - tangent[i] * (normal[i - 1] @ tangent[i])
        normal[i] = s / np.linalg.norm(s)
    if closed:
        # The normal has turned on its way round: it is turned back evenly along the path.
        back = np.cross(tangent[0], normal[0])
        off = np.arctan2(normal[-1] @ back, normal[-1] @ normal[0])
        turn = -off * np.linspace(0, 1, len(p))[:, None]
        normal = normal * np.cos(turn) + np.cross(tangent, normal) * np.sin(turn)
    else:
        p, r, tangent, normal = _rounded_ends(p, r, tangent, normal)
    binormal = np.cross(tangent, normal)
    angle = np.linspace(0, 2 * np.pi, n + 1)
    ring = (
        np.cos(angle)[None, :, None] * normal[:, None] * flat
        + np.sin(angle)[None, :, None] * binormal[:, None]
    )
    return grid(p[:, None] + r[:, None, None] * ring)


def _rounded_ends(p: Array, r: Array, tangent: Array, normal: Array) -> tuple[Array, ...]:
    steps = np.deg2rad([0.1, 30, 60])
    first = [p[0] - tangent[0] * r[0] * np.cos(s) for s in steps]
    last = [p[-1] + tangent[-1] * r[-1] * np.cos(s) for s in steps[::-1]]
    return (
        np.concatenate([first, p, last]),
        np.concatenate([r[0] * np.sin(steps), r, r[-1] * np.sin(steps[::-1])]),
        np.concatenate([tangent[:1]] * 3 + [tangent] + [tangent[-1:]] * 3),
        np.concatenate([normal[:1]] * 3 + [normal] + [normal[-1:]] * 3),
    )


def extrude(polygon: Sequence[Point], depth: float) -> Mesh:
    """A simple polygon, convex or not, extruded from z = 0 to ``depth``."""
    p = np.array(polygon, float)
    if _signed_area(p) < 0:
        p = p[::-1]
    n = len(p)
    low, size = p.min(0), max(np.ptp(p, axis=0).max(), 1e-9)
    uv = (p - low) / size
    cap = np.array(_triangulate(p))
    bottom = np.column_stack([p, np.zeros(n)])
    top = np.column_stack([p, np.full(n, depth)])
    caps = Mesh(
        np.concatenate([bottom, top]),
        np.concatenate([cap[:, ::-1], cap + n]),
        np.concatenate([uv, uv]),
    )
    i = np.arange(n)
    j = (i + 1) % n
    walls = np.stack([bottom[i], bottom[j], top[j], top[i]], 1).reshape(-1, 3)
    quad = 4 * i[:, None]
    faces = np.concatenate([quad + np.array([0, 1, 2]), quad + np.array([0, 2, 3])])
    side_uv = np.stack([uv[i], uv[j], uv[j] + [0, 0.05], uv[i] + [0, 0.05]], 1).reshape(-1, 2)
    return join([caps, Mesh(walls, faces, side_uv)])


def sheet(
    f: Callable[[Array, Array], tuple[Array, Array, Array]], nu: int, nv: int, thick: float
) -> Mesh:
    """A sheet of some thickness about the surface (x, y, z) = f(u, v) for u, v in [0, 1]."""
    v, u = np.meshgrid(np.linspace(0, 1, nv), np.linspace(0, 1, nu), indexing="ij")
    points = np.stack(np.broadcast_arrays(*f(u, v)), axis=-1).astype(float)
    normal = np.cross(np.gradient(points, axis=1), np.gradient(points, axis=0))
    normal /= np.maximum(np.linalg.norm(normal, axis=-1, keepdims=True), 1e-9)
    front, back = grid(points + normal * thick / 2), grid(points - normal * thick / 2)
    back = replace(back, faces=back.faces[:, ::-1])
    edge = [(points[0], normal[0]), (points[:, -1], normal[:, -1])]
    edge += [(points[-1, ::-1], normal[-1, ::-1]), (points[::-1, 0], normal[::-1, 0])]
    p, q = (np.concatenate([e[k] for e in edge]) for k in (0, 1))
    rim = grid(np.stack([p - q * thick / 2, p + q * thick / 2]))
    return join([front, back, rim])


def circle(
    radius: float = 1, n: int = 32, x: float = 0, y: float = 0, squash: float = 1
) -> list[Point]:
    """Points on a circle or, with ``squash``, an ellipse."""
    a = np.linspace(0, 2 * np.pi, n, endpoint=False)
    return list(zip(x + radius * np.cos(a), y + radius * squash * np.sin(a), strict=True))


def arc(
    radius: float, start: float, stop: float, n: int = 20, plane: str = "xz", squash: float = 1
) -> Array:
    """Points (n, 3) on an arc about the origin in a coordinate plane; angles in degrees."""
    a = np.deg2rad(np.linspace(start, stop, n))
    out = np.zeros((n, 3))
    out[:, "xyz".index(plane[0])] = radius * np.cos(a)
    out[:, "xyz".index(plane[1])] = radius * squash * np.sin(a)
    return out


def rounded_rectangle(w: float, h: float, e: float = 0.3, n: int = 40) -> list[Point]:
    """Points on a rectangle of sides w, h with rounded corners; e = 1 gives an ellipse."""
    a = np.linspace(0, 2 * np.pi, n, endpoint=False)
    c, s = np.cos(a), np.sin(a)
    x, y = np.sign(c) * np.abs(c) ** e * w / 2, np.sign(s) * np.abs(s) ** e * h / 2
    return list(zip(x, y, strict=True))


def _signed_area(p: Array) -> float:
    q = np.roll(p, -1, 0)
    return float((p[:, 0] * q[:, 1] - q[:, 0] * p[:, 1]).sum() / 2)


def _triangulate(p: Array) -> list[tuple[int, int, int]]:
    """Triangles of a counter-clockwise simple polygon: a fan if convex, else by ear clipping."""
    n = len(p)
    if (_corner_areas(p) > 0).all():
        return [(0, i, i + 1) for i in range(1, n - 1)]
    left = list(range(n))
    out: list[tuple[int, int, int]] = []
    while len(left) > 3:
        q = p[left]
        areas = _corner_areas(q)
        ears = (i for i in range(len(left)) if areas[i] > 1e-12 and _is_ear(q, i))
        # Without an ear what is left is nearly a line: its flattest corner is cut.
        k = next(ears, int(np.argmin(np.abs(areas))))
        out.append((left[k - 1], left[k], left[(k + 1) % len(left)]))
        left.pop(k)
    out.append((left[0], left[1], left[2]))
    return out


def _corner_areas(p: Array) -> Array:
    """Twice the signed area of the triangle at each corner."""
    u, v = p - np.roll(p, 1, 0), np.roll(p, -1, 0) - p
    out: Array = u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]
    return out


def _is_ear(p: Array, k: int) -> bool:
    """Whether no other corner lies in the triangle at corner k."""
    corners = p[[k - 1, k, (k + 1) % len(p)]]
    others = np.delete(p, [(k - 1) % len(p), k, (k + 1) % len(p)], axis=0)
    inside = np.ones(len(others), bool)
    for a, b in zip(corners, np.roll(corners, -1, 0), strict=True):
        u, v = b - a, others - a
        inside &= u[0] * v[:, 1] - u[1] * v[:, 0] >= 0
    return not inside.any()
