"""What every side of the training benchmark has in common: networks, data, settings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

TASKS, CLASSES, BATCH, LR = 4, 40, 32, 1e-3
STRENGTH, DAMPING, TEMPERATURE = 100.0, 0.2, 2.0
STRATEGIES = ("naive", "LwF", "EWC", "online EWC", "SI")


@dataclass(frozen=True)
class Track:
    """A kind of data: the shape of a row, and rows for each task."""

    shape: tuple[int, ...]
    rows: int


TRACKS = {"pixels": Track((32, 32, 3), 640), "features": Track((1280,), 2560)}
"""Pixels are bytes, channels last, as images come from a file."""


def data(track):
    """For each task its inputs and labels."""
    rng = np.random.default_rng(0)
    t = TRACKS[track]
    for _ in range(TASKS):
        if track == "pixels":
            x = rng.integers(256, size=(t.rows, *t.shape), dtype=np.uint8)
        else:
            x = rng.standard_normal((t.rows, *t.shape), dtype=np.float32)
        yield x, rng.integers(CLASSES, size=t.rows)


def floats(x):
    """Inputs as tensors that a network reads: channels first, bytes as fractions."""
    if x.dtype == np.uint8:
        return torch.tensor(x).permute(0, 3, 1, 2).float().div_(255).contiguous()
    return torch.tensor(x)


def encoder(track):
    """All but the head, and how many features it gives: 0.06 M parameters for pixels."""
    if track == "features":
        return nn.Sequential(nn.Linear(1280, 256), nn.ReLU()), 256
    layers, width = [], 3
    for k, wider in enumerate((16, 32, 64, 64)):
        layers += [nn.Conv2d(width, wider, 3, padding=1), nn.BatchNorm2d(wider), nn.ReLU()]
        layers += [nn.MaxPool2d(2)] if k < 3 else [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        width = wider
    return nn.Sequential(*layers), width


def network(track):
    """An encoder and a linear head."""
    body, features = encoder(track)
    return nn.Sequential(body, nn.Linear(features, CLASSES))
