"""The camera's sensor: automatic exposure, tint and noise, by the level of illumination."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perdure.types import Array

BYTE_VALUES = np.arange(256)


@dataclass(frozen=True, slots=True)
class Lighting:
    """A level of illumination: the lamp, and how the sensor responds to it."""

    key_light: float
    """Strength of the key light; 1 is full."""
    exposure: tuple[float, float]
    """Mean luminance that automatic exposure reaches at this light: lowest and highest."""
    noise: float
    """Standard deviation of the noise, of 255."""
    tint: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """Factors on red, green and blue."""


class Sensor:
    """Turns rendered frames into recorded ones: exposure, tint and noise."""

    # Drawing noise for every frame is slow: one large tile is drawn, and shifted for every frame.
    NOISE_TILE = (800, 1400)

    def __init__(self, rng: np.random.Generator) -> None:
        self.tile = rng.standard_normal((*self.NOISE_TILE, 3), np.float32)
        self._scaled: dict[float, Array] = {}

    def __call__(
        self, rgb: Array, lighting: Lighting, target: float, rng: np.random.Generator
    ) -> Array:
        """The frame as recorded, with its mean luminance near ``target``."""
        height, width = rgb.shape[:2]
        rgb = np.ascontiguousarray(rgb)
        exposed = _expose(rgb, lighting.tint, luminance(rgb), target)
        y = rng.integers(0, self.NOISE_TILE[0] - height)
        x = rng.integers(0, self.NOISE_TILE[1] - width)
        noise = self._noise(lighting.noise)[y : y + height, x : x + width]
        out: Array = np.add(exposed, noise, dtype=np.int16)
        return np.clip(out, 0, 255).astype(np.uint8)

    def _noise(self, deviation: float) -> Array:
        if deviation not in self._scaled:
            noise = np.rint(self.tile * np.float32(deviation))
            self._scaled[deviation] = np.clip(noise, -127, 127).astype(np.int8)
        return self._scaled[deviation]


def luminance(rgb: Array) -> float:
    """Mean of 0.299 R + 0.587 G + 0.114 B."""
    flat = rgb.reshape(-1, 3).astype(np.float32)
    # A product with ones sums columns several times faster than a reduction does.
    sums = np.ones(len(flat), np.float32) @ flat
    return float(sums @ np.array([0.299, 0.587, 0.114]) / len(flat))


def _expose(rgb: Array, tint: tuple[float, float, float], mean: float, target: float) -> Array:
    """The frame tinted, and its luminance changed from ``mean`` to about ``target``."""
    # Tables on bytes are several times faster than arithmetic, or numpy's own look-up.
    tables = {t: _tone_curve(t * BYTE_VALUES * target / max(mean, 1.0)) for t in set(tint)}
    if len(tables) == 1:
        return np.frombuffer(rgb.tobytes().translate(tables[tint[0]]), np.uint8).reshape(rgb.shape)
    out = np.empty_like(rgb)
    for k, t in enumerate(tint):
        plane = rgb[..., k].tobytes().translate(tables[t])
        out[..., k] = np.frombuffer(plane, np.uint8).reshape(rgb.shape[:2])
    return out


def _tone_curve(values: Array) -> bytes:
    """Values as bytes, with a soft shoulder above 200 instead of a hard clip at 255."""
    soft = np.where(values < 200, values, 200 + 55 * np.tanh((values - 200) / 55))
    return np.rint(soft).astype(np.uint8).tobytes()
