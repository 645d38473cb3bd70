"""Transformer blocks that policies share: attention, feed-forward layers, time as sines."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from perdure.agents.networks.encoders import Dropout, RngSource

BASE = 10.0
"""The slowest sine of time turns this much more slowly than the quickest."""


@dataclass(frozen=True)
class TransformerSizes:
    """Of a stack of blocks: how many, heads and their width, width of the feed-forward layer."""

    layers: int
    heads: int
    head_width: int
    feed_forward: int
    dropout: float = 0.1


TEMPORAL = TransformerSizes(4, 6, 64, 256)
"""LIBERO's transformer through time."""


class Attention(nn.Module):
    """Each token reads all that its mask lets it, by several heads."""

    def __init__(self, width: int, sizes: TransformerSizes, rng: RngSource) -> None:
        super().__init__()
        self.heads, self.scale = sizes.heads, sizes.head_width**-0.5
        inner = sizes.heads * sizes.head_width
        self.qkv = nn.Linear(width, 3 * inner, bias=False)
        self.out = nn.Linear(inner, width)
        self.drop = Dropout(sizes.dropout, rng)
        self.watch = False
        """Whether the next passes keep what was looked at."""
        self.looked_at: Tensor | None = None
        """(rows, heads, tokens, tokens): how much each token read of each."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(rows, tokens, width); the mask says which token (row) may read which (column)."""
        rows, tokens, _ = x.shape
        q, k, v = self.qkv(x).view(rows, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-2, -1)) * self.scale
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(-1)
        if self.watch:
            self.looked_at = weights.detach()
        read = (weights @ v).transpose(1, 2).reshape(rows, tokens, -1)
        dropped: Tensor = self.drop(self.out(read))
        return dropped


class TransformerBlock(nn.Module):
    """Attention and a feed-forward layer, each after a norm and added to what came in. Now and then
    a row skips the feed-forward layer (stochastic depth), as in the published code."""

    def __init__(self, width: int, sizes: TransformerSizes, rng: RngSource) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, sizes, rng)
        self.norm2 = nn.LayerNorm(width)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, sizes.feed_forward),
            nn.GELU(),
            Dropout(sizes.dropout, rng),
            nn.Linear(sizes.feed_forward, width),
            Dropout(sizes.dropout, rng),
        )
        self.skip = Dropout(sizes.dropout, rng, whole_rows=True)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(rows, tokens, width)."""
        x = x + self.attention(self.norm1(x), mask)
        added: Tensor = x + self.skip(self.feed_forward(self.norm2(x)))
        return added


class Transformer(nn.Module):
    """A stack of blocks."""

    def __init__(self, width: int, sizes: TransformerSizes, rng: RngSource) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            TransformerBlock(width, sizes, rng) for _ in range(sizes.layers)
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(rows, tokens, width)."""
        for block in self.blocks:
            x = block(x, mask)
        return x


def causal_mask(steps: int, tokens: int, device: torch.device) -> Tensor:
    """Which of steps × tokens may read which: those of their own step and of earlier ones."""
    step = torch.arange(steps, device=device).repeat_interleave(tokens)
    return step[:, None] >= step[None, :]


def time_code(steps: int, width: int, device: torch.device) -> Tensor:
    """(steps, width): sines, then cosines, of t / BASE^(2i / width)."""
    turns = BASE ** (-torch.arange(0, width, 2, device=device, dtype=torch.float32) / width)
    angles = torch.arange(steps, device=device, dtype=torch.float32)[:, None] * turns
    return torch.cat([angles.sin(), angles.cos()], -1)[:, :width]
