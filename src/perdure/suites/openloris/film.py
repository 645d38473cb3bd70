"""Videos of one object: four factors at three levels, every frame measured and tested.

=============  ==========================  =========================  =========================
factor         level 1                     level 2                    level 3
=============  ==========================  =========================  =========================
illumination   mean luminance ≥ 114        90 to 114                  50 to 90
occlusion      ≤ 2 % hidden                20 to 30 %                 45 to 55 %
pixel          longer side > 200 of 1280   30 of 424 to 200 of 1280   < 30 of 320
clutter        no other object             3, all seen                8, at least 6 seen
=============  ==========================  =========================  =========================

While one factor varies the others are at level 1. A frame that fails is taken again from a slightly
other place.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from perdure.errors import EnvironmentFault
from perdure.seeds import rng_for
from perdure.suites.openloris.camera import Camera, Light, Pose, Sensor, aim, dim, luminance
from perdure.suites.openloris.labels import NAMES, category
from perdure.suites.openloris.layouts import FACTORS
from perdure.suites.openloris.occlude import across
from perdure.suites.openloris.room import OCCLUDERS, SCENES, TARGET, Room, furnish
from perdure.suites.openloris.side import HIDDEN, VISIBLE, Measured
from perdure.types import Array

LIGHTS = (
    Light(1.0, (124, 146), 1.5),
    Light(0.8, (98, 110), 2.5, (1.01, 1.0, 0.97)),
    Light(0.6, (72, 86), 4.5, (1.03, 1.0, 0.93)),
)
"""Chosen so that naive and cumulative learning score as published: docs/openloris.md has both."""
LUMINANCE = ((114.0, 256.0), (90.0, 114.0), (50.0, 90.0))
HIDES = ((0.0, 0.02), (0.20, 0.30), (0.45, 0.55))
SIZES = ((200 / 1280, 1.0), (30 / 424, 200 / 1280), (0.0, 30 / 320))
AIMS = ((0.28, 0.4), (0.105, 0.145), (0.058, 0.08))
"""Sizes to film at, inside the bands with room for a pixel's error."""
CLUTTER = (0, 3, 8)
FEWEST = (0, 3, 6)
"""Other objects of which something must be seen."""
RATIOS = (1280 / 424, 1.0, 320 / 424)
"""Frame sizes of the pixel factor's levels against the standard one, as in the dataset."""
ARC = 36.0
"""Degrees that the camera goes round the object in a segment."""
TRIES = 12
"""Places of the camera tried for a frame."""
PLACES = 4
"""Places of the occluder tried for a place of the camera."""
ARRANGEMENTS = 24
"""Ways to stand the others tried for a clip."""
FINEST = 384
"""Columns of points that the pixel factor is drawn with at least: thin things are thinner than a
pixel there, and would fall between pixels."""
COVERED = 1 / 8
"""Part of a pixel that must show the object for the pixel to count as its own."""
NEAR = 0.034
"""How far the hidden part may be from the wanted one."""
TOUCH = 1e-6
"""Raw depths nearer than this are the same surface."""


@dataclass(frozen=True, eq=False)
class Frame:
    """A picture with all that was measured on it."""

    rgb: Array
    depth: Array
    """Metres."""
    mask: Array
    measured: Measured


@dataclass(frozen=True, slots=True)
class Levels:
    """The level of every factor, 1 to 3."""

    illumination: int = 1
    occlusion: int = 1
    pixel: int = 1
    clutter: int = 1


class Studio:
    """One object with its room. Every clip depends on the seed and its own name alone."""

    def __init__(self, name: str, seed: int = 0, width: int = 424) -> None:
        rng = rng_for(seed, "studio", name)
        strangers = [n for n in NAMES if category(n) != category(name)]
        others = [strangers[i] for i in rng.permutation(len(strangers))[: max(CLUTTER)]]
        self.scenes = dict(zip(FACTORS, rng.permutation(SCENES)[:4].tolist(), strict=True))
        self.name, self.seed, self.width = name, seed, width
        self.room: Room = furnish(name, others, list(self.scenes.values()), seed)
        self.sensor = _sensor(seed)
        self._camera: Camera | None = None

    def close(self) -> None:
        """Free the renderer."""
        if self._camera is not None:
            self._camera.close()
        self._camera = None

    def camera(self, ratio: float = 1.0, finest: int = 0) -> Camera:
        """The camera, set to frames this much larger than the standard.

        It draws several points for each pixel if the frame has fewer columns than ``finest``.
        """
        width = 2 * round(self.width * ratio / 2)
        height = 2 * round(width * 9 / 32)
        if self._camera is None:
            self._camera = Camera(self.room, width, height)
        self._camera.resize(width, height, max(1, -(-finest // width)))
        return self._camera

    def clip(self, factor: str, segment: int, frames: int) -> list[Frame]:
        """The frames of one segment (1 to 9), in order."""
        level = (segment - 1) // 3 + 1
        levels = Levels(**{factor: level})
        camera = self.camera(RATIOS[level - 1], FINEST) if factor == "pixel" else self.camera()
        self.room.dress(self.scenes[factor])
        dim(self.room, LIGHTS[levels.illumination - 1].lamp)
        why = ""
        for arrangement in range(ARRANGEMENTS):
            shots = _Shots(self, camera, factor, segment, levels, arrangement)
            # Frames are kept until the clip is whole: another arrangement starts it anew.
            made: list[Frame] = []
            for i in range(frames):
                frame, why = shots.take(i, frames)
                if frame is None:
                    break
                made.append(frame)
            if len(made) == frames:
                return made
        raise EnvironmentFault(
            f"{self.name}, {factor}, segment {segment}: no acceptable frame {len(made)} in {TRIES} "
            f"tries of {ARRANGEMENTS} arrangements; the last: {why}"
        )


@functools.lru_cache(maxsize=1)
def _sensor(seed: int) -> Sensor:
    return Sensor(rng_for(seed, "sensor"))


class _Shots:
    """One arrangement of a clip: the camera's path, and what stands where."""

    def __init__(
        self, studio: Studio, camera: Camera, factor: str, segment: int, levels: Levels, number: int
    ) -> None:
        self.studio, self.camera, self.levels = studio, camera, levels
        self.place: tuple[str | int, ...] = ("clip", studio.name, factor, segment, number)
        video = rng_for(studio.seed, "video", studio.name, factor, (segment - 1) // 3)
        rng = rng_for(studio.seed, *self.place)
        # Three segments of a level are one walk round the object.
        self.start = video.uniform(0, 360) + ARC * ((segment - 1) % 3)
        self.elevation = video.uniform(28, 46 if levels.occlusion == 1 else 36)
        self.phases = rng.uniform(0, 2 * np.pi, 4)
        # What stands before the object needs room: the camera steps back.
        low, high = AIMS[levels.pixel - 1] if levels.occlusion == 1 else (0.2, 0.27)
        self.sizes = rng.uniform(low, high, 2)
        low, high = LIGHTS[levels.illumination - 1].exposure
        self.exposures = rng.uniform(low, high, 2)
        low, high = HIDES[levels.occlusion - 1]
        middle, reach = (low + high) / 2, (high - low) / 2 - NEAR - 0.001
        self.hidden = (
            rng.uniform(middle - reach, middle + reach, 2) if levels.occlusion > 1 else None
        )
        self.occluder = f"occluder{rng.integers(OCCLUDERS)}"
        self.side = 1 if rng.random() < 0.5 else -1
        # What the occluder hid too little in the frames so far.
        self.lean = 0.0
        self.others = [
            f"other{i}" for i in rng.permutation(max(CLUTTER))[: CLUTTER[levels.clutter - 1]]
        ]
        studio.room.show([*self.others, *([self.occluder] if self.hidden is not None else [])])
        self._scatter(rng, 0.9 ** (number // 4))

    def _scatter(self, rng: np.random.Generator, reach: float) -> None:
        """Stand the others beside and behind the target, never between it and the camera.

        ``reach`` < 1 draws them nearer, where earlier arrangements left too many out of sight.
        """
        away = 180 - ARC / 2 - 62
        spots: list[Array] = []
        for role in self.others:
            for _ in range(200):
                angle = np.deg2rad(self.start + ARC / 2 + 180 + rng.uniform(-away, away))
                radius = rng.uniform(0.95, 1.0 + 0.17 * len(self.others) * reach)
                spot = radius * np.array([np.cos(angle), np.sin(angle)])
                if all(np.linalg.norm(spot - s) > 0.62 for s in spots):
                    break
            spots.append(spot)
            self.camera.place(role, *spot)

    def take(self, i: int, frames: int) -> tuple[Frame | None, str]:
        """Frame ``i`` of ``frames``, or None and why not."""
        why = ""
        t = (i + 0.5) / frames
        for attempt in range(TRIES):
            rng = rng_for(self.studio.seed, *self.place, i, attempt)
            pose = self._pose(t, attempt, rng)
            frame = self._shoot(f"{i:04d}.jpg", pose, t, rng)
            why = cut(frame.mask) or fault(frame.measured, self.levels)
            if not why:
                return frame, ""
        return None, why

    def _pose(self, t: float, attempt: int, rng: np.random.Generator) -> Pose:
        """A hand-held walk: an arc, with a slow sway of height, distance and direction."""
        sway = np.sin(2 * np.pi * t + self.phases)
        shake = rng.normal(0, 0.3 + 2.0 * attempt)
        azimuth = self.start + ARC * t + shake
        elevation = self.elevation + 3 * sway[0] + 0.5 * shake
        size = self._between(self.sizes, t)
        offset = np.array([0.07 * sway[1], 0.03 * sway[2]]) / (1 + attempt)
        c = self.camera
        return aim(c.room.target, azimuth, elevation, size, offset, c.width, c.height)

    @staticmethod
    def _between(ends: Array, t: float) -> float:
        return float(ends[0] + (ends[1] - ends[0]) * t)

    def _shoot(self, file: str, pose: Pose, t: float, rng: np.random.Generator) -> Frame:
        c = self.camera
        c.settle()
        target = c.depth(pose, TARGET)
        whole = target > 0
        raw, depth, seen = self._look(pose, target, whole, t)
        count, share = 0, 0.0
        if self.others:
            count, share = self._clutter(pose)
        if c.samples > 1:
            raw, depth, whole, seen = coarser(raw, depth, whole, seen, c.samples)
        light = LIGHTS[self.levels.illumination - 1]
        rgb = self.studio.sensor(raw, light, self._between(self.exposures, t), rng)
        rows, columns = np.flatnonzero(whole.any(1)), np.flatnonzero(whole.any(0))
        box = (0, 0, 0, 0)
        if len(rows):
            x, y = int(columns[0]), int(rows[0])
            box = (x, y, int(columns[-1]) - x + 1, int(rows[-1]) - y + 1)
        total = int(np.count_nonzero(whole))
        measured = Measured(
            file,
            *box,
            luminance=luminance(rgb),
            occluded=1 - np.count_nonzero(seen) / max(total, 1),
            size=max(box[2:]) / whole.shape[1],
            clutter=count,
            share=share,
        )
        mask = whole * np.uint8(HIDDEN) + seen * np.uint8(VISIBLE - HIDDEN)
        return Frame(rgb, c.metres(depth), mask, measured)

    def _look(
        self, pose: Pose, target: Array, whole: Array, t: float
    ) -> tuple[Array, Array, Array]:
        """Colours, raw depth and where the target is seen, with the wanted part of it hidden."""
        c = self.camera
        if self.hidden is None:
            raw, depth = c.picture(pose)
            return raw, depth, whole & (depth <= target + TOUCH)
        wanted, total = self._between(self.hidden, t), max(int(np.count_nonzero(whole)), 1)
        for _ in range(PLACES):
            self._hide(pose, whole, wanted + self.lean)
            raw, depth = c.picture(pose)
            seen = whole & (depth <= target + TOUCH)
            off = wanted - 1 + np.count_nonzero(seen) / total
            if abs(off) < NEAR:
                break
            # Outlines are not straight: what was missed is added, also for the next frames.
            self.lean += off
        return raw, depth, seen

    def _hide(self, pose: Pose, whole: Array, wanted: float) -> None:
        c = self.camera
        near = pose.place[:2] * max(0.4, 0.75 / float(np.linalg.norm(pose.place[:2])))
        move = across(c.room.occluders[self.occluder], near, pose, whole, wanted, self.side)
        c.place(self.occluder, *(near + move * pose.axes[0][:2]))
        c.settle()

    def _clutter(self, pose: Pose) -> tuple[int, float]:
        c = self.camera
        counts = c.census(pose)
        seen = [int(counts[c.room.geoms[role]].sum()) for role in self.others]
        return sum(n > 0 for n in seen), sum(seen) / (c.width * c.height)


def coarser(
    rgb: Array, depth: Array, whole: Array, seen: Array, samples: int
) -> tuple[Array, Array, Array, Array]:
    """Points made pixels: colours are means, and a pixel is the target's if enough of it is.

    The depth of the target's pixels is that of its nearest point, of others that of the middle one.
    """

    def parts(points: Array) -> list[Array]:
        # One point of every pixel at a time: sums over strides are faster than over axes.
        return [points[i::samples, j::samples] for i in range(samples) for j in range(samples)]

    def sums(points: Array) -> Array:
        return functools.reduce(lambda a, b: np.add(a, b, dtype=np.uint16), parts(points))

    all_, shown = sums(whole), sums(seen)
    mine = all_ >= COVERED * samples**2
    open_ = mine & (2 * shown >= all_)
    colours = np.rint(sums(rgb).astype(np.float32) / np.float32(samples**2)).astype(np.uint8)
    nearest = functools.reduce(np.maximum, parts(np.where(seen, depth, 0)))
    middle = depth[samples // 2 :: samples, samples // 2 :: samples]
    return colours, np.where(open_, nearest, middle), mine, open_


def cut(mask: Array) -> str:
    """Why the object is not whole in the frame; empty if it is. Cut off, its size would say less."""
    edge = mask[0].any() or mask[-1].any() or mask[:, 0].any() or mask[:, -1].any()
    return "the object touches the frame's edge" if edge else ""


def fault(m: Measured, levels: Levels) -> str:
    """Why a frame is not of these levels, in words; empty if it is."""
    low, high = LUMINANCE[levels.illumination - 1]
    if not low <= m.luminance < high:
        return f"luminance {m.luminance:.0f} is not in [{low:g}, {high:g})"
    low, high = HIDES[levels.occlusion - 1]
    if not low <= m.occluded <= high:
        return f"{m.occluded:.1%} of the object is hidden, not {low:.0%} to {high:.0%}"
    low, high = SIZES[levels.pixel - 1]
    if not low < m.size < high:
        return f"its longer side is {m.size:.3f} of the width, not between {low:.3f} and {high:.3f}"
    if not FEWEST[levels.clutter - 1] <= m.clutter <= CLUTTER[levels.clutter - 1]:
        return f"{m.clutter} other objects are seen, not at least {FEWEST[levels.clutter - 1]}"
    return ""
