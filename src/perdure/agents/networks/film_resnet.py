"""A residual network whose feature maps a sentence scales and shifts (FiLM), read out as keypoints."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class ResidualBlock(nn.Module):
    """Two 3 × 3 convolutions beside a shortcut (He et al., 2016)."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        """(rows, inputs, height, width) to (rows, outputs, …)."""
        h = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(h)) + self.shortcut(x))


class FiLM(nn.Module):
    """(1 + γ) h + β, where β and γ come from a sentence (Perez et al., 2018)."""

    def __init__(self, language: int, channels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(language, 2 * channels)

    def forward(self, h: Tensor, language: Tensor) -> Tensor:
        """Feature maps (rows, channels, height, width), sentences (rows, language)."""
        beta, gamma = self.linear(language)[:, :, None, None].chunk(2, 1)
        modulated: Tensor = (1 + gamma) * h + beta
        return modulated


class SpatialSoftmax(nn.Module):
    """Where each of some learned features is in the picture, from −1 to 1: x of all, then y of all."""

    def __init__(self, channels: int, keypoints: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, keypoints, 1)

    def forward(self, h: Tensor) -> Tensor:
        """(rows, channels, height, width) to (rows, 2 · keypoints)."""
        maps = self.conv(h)
        height, width = maps.shape[2:]
        there = maps.flatten(2).softmax(-1).view_as(maps)
        x = torch.linspace(-1, 1, width, device=h.device)
        y = torch.linspace(-1, 1, height, device=h.device)
        return torch.cat([(there.sum(2) * x).sum(-1), (there.sum(3) * y).sum(-1)], 1)


class FilmResNet(nn.Module):
    """The first half of ResNet-18 (stem and two stages of two blocks), a FiLM after each block, and
    keypoints projected to ``outputs`` numbers."""

    def __init__(
        self, channels: int, language: int, outputs: int, widths: Sequence[int] = (64, 128)
    ) -> None:
        super().__init__()
        first, second = widths
        self.stem = nn.Sequential(
            nn.Conv2d(channels, first, 7, 2, 3, bias=False),
            nn.BatchNorm2d(first),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )
        self.blocks = nn.ModuleList(
            [
                ResidualBlock(first, first),
                ResidualBlock(first, first),
                ResidualBlock(first, second, 2),
                ResidualBlock(second, second),
            ]
        )
        self.films = nn.ModuleList(FiLM(language, c) for c in (first, first, second, second))
        self.keypoints = SpatialSoftmax(second, outputs // 2)
        self.project = nn.Linear(outputs // 2 * 2, outputs)

    def forward(self, pictures: Tensor, language: Tensor) -> Tensor:
        """Pictures (rows, channels, height, width) and sentences to (rows, outputs)."""
        h = self.stem(pictures)
        for block, film in zip(self.blocks, self.films, strict=True):
            h = film(block(h), language)
        found: Tensor = self.project(self.keypoints(h))
        return found
