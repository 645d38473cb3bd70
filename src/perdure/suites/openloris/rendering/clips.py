"""Clips of one object at the levels of one factor: a camera goes round it as if hand-held.

Every frame is measured and tested. One that fails is rendered again from a slightly different pose;
a clip that cannot be finished is arranged differently.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from perdure.errors import EnvironmentFault
from perdure.seeds import rng_for
from perdure.suites.openloris.frame_annotations import OCCLUDED, VISIBLE, Annotation
from perdure.suites.openloris.labels import NAMES, category
from perdure.suites.openloris.layouts import FACTORS
from perdure.suites.openloris.rendering.camera import Pose, fit_pose
from perdure.suites.openloris.rendering.factors import (
    DISTRACTORS,
    FRAME_SCALES,
    LIGHTING,
    OCCLUDED_RANGES,
    RENDERED_SIZES,
    RENDERED_SIZES_OCCLUDED,
    Levels,
    check_levels,
    check_truncation,
)
from perdure.suites.openloris.rendering.objects.occluders import OCCLUDERS
from perdure.suites.openloris.rendering.occlusion import occluder_offset
from perdure.suites.openloris.rendering.renderer import Renderer
from perdure.suites.openloris.rendering.scene import BACKGROUNDS, TARGET, build_scene
from perdure.suites.openloris.rendering.sensor import Sensor, luminance
from perdure.types import Array

SEGMENT_ARC = 36.0
"""Degrees that the camera goes round the object in a segment."""
MAX_POSES = 12
"""Poses of the camera tried for a frame."""
MAX_OCCLUDER_MOVES = 4
"""Positions of the occluder tried for a pose of the camera."""
MAX_ARRANGEMENTS = 24
"""Arrangements of distractors and occluder tried for a clip."""
MIN_SAMPLE_COLUMNS = 384
"""Least columns of samples for the pixel factor: some objects are thinner than a pixel there, and would
fall between pixels."""
MASK_COVERAGE = 1 / 8
"""Part of a pixel's samples that must show the object for the pixel to belong to its mask."""
OCCLUSION_TOLERANCE = 0.034
"""How far the hidden fraction may be from the wanted one before the occluder is moved again."""
SAME_DEPTH = 1e-6
"""Raw depths nearer than this are the same surface."""


@dataclass(frozen=True, eq=False)
class Frame:
    """A rendered frame with its annotations."""

    rgb: Array
    depth: Array
    """Metres."""
    mask: Array
    """VISIBLE, OCCLUDED or 0."""
    annotation: Annotation


class ClipRenderer:
    """Renders clips of one object. Every clip depends on the seed and its own name alone."""

    def __init__(self, name: str, seed: int = 0, width: int = 424) -> None:
        # Addresses of random streams stay as they are: see the package's docstring.
        rng = rng_for(seed, "studio", name)
        candidates = [n for n in NAMES if category(n) != category(name)]
        chosen = rng.permutation(len(candidates))[: max(DISTRACTORS)]
        backgrounds = rng.permutation(BACKGROUNDS)[: len(FACTORS)].tolist()
        self.backgrounds = dict(zip(FACTORS, backgrounds, strict=True))
        self.name, self.seed, self.width = name, seed, width
        self.scene = build_scene(name, [candidates[i] for i in chosen], backgrounds, seed)
        self.sensor = _sensor(seed)
        self._renderer: Renderer | None = None

    def close(self) -> None:
        """Free the renderer."""
        if self._renderer is not None:
            self._renderer.close()
        self._renderer = None

    def renderer(self, frame_scale: float = 1.0, min_columns: int = 0) -> Renderer:
        """The renderer, set to frames this much larger than the standard.

        It takes several samples for each pixel if the frame has fewer columns than ``min_columns``.
        """
        width = 2 * round(self.width * frame_scale / 2)
        height = 2 * round(width * 9 / 32)
        if self._renderer is None:
            self._renderer = Renderer(self.scene, width, height)
        self._renderer.resize(width, height, max(1, -(-min_columns // width)))
        return self._renderer

    def clip(self, factor: str, segment: int, frames: int) -> list[Frame]:
        """The frames of one segment (1 to 9), in order."""
        level = (segment - 1) // 3 + 1
        levels = Levels(**{factor: level})
        if factor == "pixel":
            renderer = self.renderer(FRAME_SCALES[level - 1], MIN_SAMPLE_COLUMNS)
        else:
            renderer = self.renderer()
        self.scene.set_background(self.backgrounds[factor])
        self.scene.set_key_light(LIGHTING[levels.illumination - 1].key_light)
        reason = ""
        for number in range(MAX_ARRANGEMENTS):
            arrangement = Arrangement(self, renderer, factor, segment, levels, number)
            # Frames are kept until the clip is complete: another arrangement starts it again.
            accepted: list[Frame] = []
            for i in range(frames):
                frame, reason = arrangement.frame(i, frames)
                if frame is None:
                    break
                accepted.append(frame)
            if len(accepted) == frames:
                return accepted
        raise EnvironmentFault(
            f"{self.name}, {factor}, segment {segment}: no acceptable frame {len(accepted)} in "
            f"{MAX_POSES} poses of {MAX_ARRANGEMENTS} arrangements; the last: {reason}"
        )


@functools.lru_cache(maxsize=1)
def _sensor(seed: int) -> Sensor:
    return Sensor(rng_for(seed, "sensor"))


class Arrangement:
    """One attempt at a clip: the camera's path, and where distractors and occluder stand."""

    def __init__(
        self,
        clips: ClipRenderer,
        renderer: Renderer,
        factor: str,
        segment: int,
        levels: Levels,
        number: int,
    ) -> None:
        self.clips, self.renderer, self.levels = clips, renderer, levels
        self.address: tuple[str | int, ...] = ("clip", clips.name, factor, segment, number)
        # The three segments of a level are one continuous path round the object.
        path_rng = rng_for(clips.seed, "video", clips.name, factor, (segment - 1) // 3)
        rng = rng_for(clips.seed, *self.address)
        self.start_azimuth = path_rng.uniform(0, 360) + SEGMENT_ARC * ((segment - 1) % 3)
        self.elevation = path_rng.uniform(28, 46 if levels.occlusion == 1 else 36)
        self.phases = rng.uniform(0, 2 * np.pi, 4)
        # Size, exposure and hidden fraction go evenly from a first to a last value over the clip.
        occluded = levels.occlusion > 1
        sizes = RENDERED_SIZES_OCCLUDED if occluded else RENDERED_SIZES[levels.pixel - 1]
        self.sizes = rng.uniform(*sizes, 2)
        self.exposures = rng.uniform(*LIGHTING[levels.illumination - 1].exposure, 2)
        low, high = OCCLUDED_RANGES[levels.occlusion - 1]
        middle, reach = (low + high) / 2, (high - low) / 2 - OCCLUSION_TOLERANCE - 0.001
        self.hidden = rng.uniform(middle - reach, middle + reach, 2) if occluded else None
        self.occluder = f"occluder{rng.integers(OCCLUDERS)}"
        self.occluder_side = 1 if rng.random() < 0.5 else -1
        # By how much the occluder hid too little so far.
        self.hidden_correction = 0.0
        count = DISTRACTORS[levels.clutter - 1]
        self.distractors = [f"distractor{i}" for i in rng.permutation(max(DISTRACTORS))[:count]]
        clips.scene.set_visible([*self.distractors, *([self.occluder] if occluded else [])])
        self._place_distractors(rng, 0.9 ** (number // 4))

    def _place_distractors(self, rng: np.random.Generator, spread: float) -> None:
        """Stand the distractors beside and behind the target, never between it and the camera.

        ``spread`` < 1 draws them nearer, where earlier arrangements left too many out of sight.
        """
        widest = 180 - SEGMENT_ARC / 2 - 62
        positions: list[Array] = []
        for role in self.distractors:
            for _ in range(200):
                behind = self.start_azimuth + SEGMENT_ARC / 2 + 180
                angle = np.deg2rad(behind + rng.uniform(-widest, widest))
                radius = rng.uniform(0.95, 1.0 + 0.17 * len(self.distractors) * spread)
                position = radius * np.array([np.cos(angle), np.sin(angle)])
                if all(np.linalg.norm(position - p) > 0.62 for p in positions):
                    break
            positions.append(position)
            self.renderer.move(role, *position)

    def frame(self, i: int, frames: int) -> tuple[Frame | None, str]:
        """Frame ``i`` of ``frames``; or None, and why the last attempt was rejected."""
        reason = ""
        t = (i + 0.5) / frames
        for attempt in range(MAX_POSES):
            rng = rng_for(self.clips.seed, *self.address, i, attempt)
            pose = self.pose(t, attempt, rng)
            frame = self._render(f"{i:04d}.jpg", pose, t, rng)
            reason = check_truncation(frame.mask) or check_levels(frame.annotation, self.levels)
            if not reason:
                return frame, ""
        return None, reason

    def pose(self, t: float, attempt: int, rng: np.random.Generator) -> Pose:
        """The pose at time ``t`` in [0, 1]: an arc, with the slow sway and the jitter of a hand."""
        sway = np.sin(2 * np.pi * t + self.phases)
        jitter = rng.normal(0, 0.3 + 2.0 * attempt)
        azimuth = self.start_azimuth + SEGMENT_ARC * t + jitter
        elevation = self.elevation + 3 * sway[0] + 0.5 * jitter
        size = _interpolate(self.sizes, t)
        offset = np.array([0.07 * sway[1], 0.03 * sway[2]]) / (1 + attempt)
        r = self.renderer
        return fit_pose(r.scene.target, azimuth, elevation, size, offset, r.width, r.height)

    def _render(self, file: str, pose: Pose, t: float, rng: np.random.Generator) -> Frame:
        r = self.renderer
        r.update()
        target_depth = r.render_depth(pose, TARGET)
        whole = target_depth > 0
        rgb, depth, visible = self._render_occluded(pose, target_depth, whole, t)
        count, share = self._measure_clutter(pose) if self.distractors else (0, 0.0)
        if r.supersampling > 1:
            rgb, depth, whole, visible = downsample(rgb, depth, whole, visible, r.supersampling)
        lighting = LIGHTING[self.levels.illumination - 1]
        rgb = self.clips.sensor(rgb, lighting, _interpolate(self.exposures, t), rng)
        box = _bounding_box(whole)
        total = int(np.count_nonzero(whole))
        annotation = Annotation(
            file,
            *box,
            luminance=luminance(rgb),
            occluded=1 - np.count_nonzero(visible) / max(total, 1),
            size=max(box[2:]) / whole.shape[1],
            clutter=count,
            share=share,
        )
        mask = whole * np.uint8(OCCLUDED) + visible * np.uint8(VISIBLE - OCCLUDED)
        return Frame(rgb, r.depth_in_metres(depth), mask, annotation)

    def _render_occluded(
        self, pose: Pose, target_depth: Array, whole: Array, t: float
    ) -> tuple[Array, Array, Array]:
        """RGB, raw depth and where the target is visible, with the wanted fraction of it hidden."""
        r = self.renderer
        if self.hidden is None:
            rgb, depth = r.render(pose)
            return rgb, depth, whole & (depth <= target_depth + SAME_DEPTH)
        wanted, total = _interpolate(self.hidden, t), max(int(np.count_nonzero(whole)), 1)
        for _ in range(MAX_OCCLUDER_MOVES):
            self._place_occluder(pose, whole, wanted + self.hidden_correction)
            rgb, depth = r.render(pose)
            visible = whole & (depth <= target_depth + SAME_DEPTH)
            missing = wanted - 1 + np.count_nonzero(visible) / total
            if abs(missing) < OCCLUSION_TOLERANCE:
                break
            # Silhouettes are not straight: what was missed is added, also for the next frames.
            self.hidden_correction += missing
        return rgb, depth, visible

    def _place_occluder(self, pose: Pose, whole: Array, fraction: float) -> None:
        r = self.renderer
        ground = pose.position[:2]
        near = ground * max(0.4, 0.75 / float(np.linalg.norm(ground)))
        rings = r.scene.occluders[self.occluder]
        offset = occluder_offset(rings, near, pose, whole, fraction, self.occluder_side)
        r.move(self.occluder, *(near + offset * pose.axes[0][:2]))
        r.update()

    def _measure_clutter(self, pose: Pose) -> tuple[int, float]:
        """How many distractors are visible, and their share of the frame."""
        r = self.renderer
        counts = r.count_pixels(pose)
        visible = [int(counts[r.scene.geoms[role]].sum()) for role in self.distractors]
        return sum(n > 0 for n in visible), sum(visible) / (r.width * r.height)


def _interpolate(ends: Array, t: float) -> float:
    return float(ends[0] + (ends[1] - ends[0]) * t)


def _bounding_box(mask: Array) -> tuple[int, int, int, int]:
    """Column, row, width and height; zeros if the mask is empty."""
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    if not len(rows):
        return 0, 0, 0, 0
    x, y = int(columns[0]), int(rows[0])
    return x, y, int(columns[-1]) - x + 1, int(rows[-1]) - y + 1


def downsample(
    rgb: Array, depth: Array, whole: Array, visible: Array, factor: int
) -> tuple[Array, Array, Array, Array]:
    """Pixels from ``factor`` × ``factor`` samples each.

    Colours are means, and a pixel is in a mask if enough of its samples are. The depth of the target's
    pixels is that of its nearest sample, of others that of the middle one.
    """

    def samples(array: Array) -> list[Array]:
        # One sample of every pixel at a time: sums over strides are faster than over axes.
        return [array[i::factor, j::factor] for i in range(factor) for j in range(factor)]

    def sums(array: Array) -> Array:
        return functools.reduce(lambda a, b: np.add(a, b, dtype=np.uint16), samples(array))

    whole_count, visible_count = sums(whole), sums(visible)
    whole_mask = whole_count >= MASK_COVERAGE * factor**2
    visible_mask = whole_mask & (2 * visible_count >= whole_count)
    mean = np.rint(sums(rgb).astype(np.float32) / np.float32(factor**2)).astype(np.uint8)
    # Raw depth is larger for what is nearer.
    nearest = functools.reduce(np.maximum, samples(np.where(visible, depth, 0)))
    middle = depth[factor // 2 :: factor, factor // 2 :: factor]
    return mean, np.where(visible_mask, nearest, middle), whole_mask, visible_mask
