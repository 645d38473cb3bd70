"""Pictures changed a little while they are learned from: colours, and where they lie in their frame.

One draw holds for a whole sequence and all its cameras, so that what is seen stays one world. All noise
is the agent's own, so that a resumed lifetime draws the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from perdure.agents.networks.tensors import to_tensor

JITTER, PROBABILITY, PADDING = 0.3, 0.9, 4
"""How far brightness, contrast, saturation and hue (in turns) go; how often; pixels of a shift."""
LUMA = (0.2989, 0.587, 0.114)
"""How bright red, green and blue are."""


def augment(views: Sequence[Tensor], rng: np.random.Generator) -> list[Tensor]:
    """Views of the same moments, each (rows, time, 3, height, width) from 0 to 1, changed row by row."""
    rows, device = len(views[0]), views[0].device
    factors = rng.uniform(1 - JITTER, 1 + JITTER, (3, rows)).astype(np.float32)
    turn = rng.uniform(-JITTER, JITTER, rows).astype(np.float32)
    kept = rng.random(rows) >= PROBABILITY
    factors[:, kept], turn[kept] = 1.0, 0.0
    shifts = rng.integers(0, 2 * PADDING + 1, (rows, 2))
    brightness, contrast, saturation = (to_tensor(f, device).view(-1, 1, 1, 1, 1) for f in factors)
    coloured = jitter(views, brightness, contrast, saturation, to_tensor(turn, device))
    return [shift(view, to_tensor(shifts, device)) for view in coloured]


def jitter(
    views: Sequence[Tensor], brightness: Tensor, contrast: Tensor, saturation: Tensor, turn: Tensor
) -> list[Tensor]:
    """Other brightness, contrast (around the mean grey of each row's pictures), saturation and hue, in
    this order; each result stays within 0 and 1."""
    bright = [(v * brightness).clamp(0, 1) for v in views]
    total: Tensor = sum(grey(v).flatten(1).sum(1) for v in bright)  # type: ignore[assignment]
    count = sum(v[0, :, 0].numel() for v in views)
    mean = (total / count).view(-1, 1, 1, 1, 1)
    out = []
    for v in bright:
        v = (mean + contrast * (v - mean)).clamp(0, 1)
        pale = grey(v)
        v = (pale + saturation * (v - pale)).clamp(0, 1)
        out.append(turn_hue(v, turn.view(-1, 1, 1, 1)))
    return out


def grey(view: Tensor) -> Tensor:
    """(…, 3, height, width) to (…, 1, height, width)."""
    weights = to_tensor(LUMA, view.device, torch.float32).view(3, 1, 1)
    return (view * weights).sum(-3, keepdim=True)


def turn_hue(view: Tensor, turn: Tensor) -> Tensor:
    """Turn the hue of (rows, time, 3, height, width) by a part of the circle of colours (rows, 1, 1, 1);
    saturation and value of each pixel stay."""
    red, green, blue = view.unbind(2)
    value, least = view.amax(2), view.amin(2)
    chroma = value - least
    safe = chroma.clamp(min=1e-8)
    sixth = torch.where(
        value == red,
        ((green - blue) / safe) % 6,
        torch.where(value == green, (blue - red) / safe + 2, (red - green) / safe + 4),
    )
    sixth = (sixth + 6 * turn) % 6

    def channel(n: int) -> Tensor:
        k = (n + sixth) % 6
        return value - chroma * torch.minimum(k, 4 - k).clamp(0, 1)

    return torch.stack([channel(5), channel(3), channel(1)], 2)


def shift(view: Tensor, shifts: Tensor) -> Tensor:
    """Each row moved within its frame by whole pixels, (rows, 2) from 0 to 2 · PADDING, where PADDING is
    in place; edges are repeated."""
    rows, time, channels, height, width = view.shape
    flat = view.reshape(rows, time * channels, height, width)
    padded = nn.functional.pad(flat, (PADDING,) * 4, mode="replicate")
    down = shifts[:, :1] + torch.arange(height, device=view.device)
    right = shifts[:, 1:] + torch.arange(width, device=view.device)
    row = torch.arange(rows, device=view.device)
    moved = padded.permute(0, 2, 3, 1)[row[:, None, None], down[:, :, None], right[:, None, :]]
    return moved.permute(0, 3, 1, 2).reshape(view.shape)
