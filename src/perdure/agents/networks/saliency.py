"""What a sequence policy looks at: pixels and words that its answer depends on, and what its tokens read.

Saliency by perturbation (Greydanus et al., 2018) works for every architecture: a patch of a picture is
painted over in the picture's mean colour, and what counts is how far the answer moves. Attention is what
the transformers themselves say they read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from perdure.agents.networks.sequence_policies.base import Seen, SequencePolicy
from perdure.agents.networks.transformer import Attention, Transformer


def answer(policy: SequencePolicy, seen: Seen, language: Tensor) -> Tensor:
    """The mean action of the mixture at the last step, (rows, actions)."""
    mean, _, log_weight = policy.head.split(policy(seen, language)[:, -1])
    return (log_weight.exp().unsqueeze(-1) * mean).sum(-2)


def picture_saliency(
    policy: SequencePolicy, seen: Seen, language: Tensor, name: str, patch: int = 8
) -> Tensor:
    """How far the answer moves if a patch of the last picture of this name is painted over: (rows,
    height / patch, width / patch), in units of actions."""
    picture = seen[name][:, -1]
    rows, _, height, width = picture.shape
    found = torch.zeros(rows, height // patch, width // patch, device=picture.device)
    mean = picture.mean((2, 3), keepdim=True)
    with torch.inference_mode():
        whole = answer(policy, seen, language)
        for y in range(height // patch):
            for x in range(width // patch):
                painted = seen[name].clone()
                there = (slice(y * patch, (y + 1) * patch), slice(x * patch, (x + 1) * patch))
                painted[:, -1][:, :, there[0], there[1]] = mean
                moved = answer(policy, {**seen, name: painted}, language)
                found[:, y, x] = (moved - whole).norm(dim=-1)
    return found


def word_saliency(
    policy: SequencePolicy, seen: Seen, whole: Tensor, without: Sequence[Tensor]
) -> Tensor:
    """How far the answer moves if the instruction, (rows, length), is told without one of its words:
    (rows, words). ``without`` are the instruction's vectors with each word left out."""
    with torch.inference_mode():
        base = answer(policy, seen, whole)
        moved = [(answer(policy, seen, other) - base).norm(dim=-1) for other in without]
    return torch.stack(moved, 1)


@contextmanager
def watched(transformer: Transformer) -> Iterator[list[Attention]]:
    """The attentions of a transformer, which keep what they look at meanwhile."""
    layers = [m for m in transformer.modules() if isinstance(m, Attention)]
    for layer in layers:
        layer.watch = True
    try:
        yield layers
    finally:
        for layer in layers:
            layer.watch, layer.looked_at = False, None


def attention(policy: SequencePolicy, seen: Seen, language: Tensor) -> Mapping[str, Tensor]:
    """What the tokens read that a policy's answer is read from, averaged over heads and layers.

    ``time``: of the sentence's token of the last step, (rows, steps, tokens). ``patches``, of a policy
    with a vision transformer: of the step's token at the last step, (rows, patches and words).
    """
    found: dict[str, Tensor] = {}
    parts = {
        "time": getattr(policy, "transformer", None),
        "patches": getattr(policy, "spatial", None),
    }
    steps = next(iter(seen.values())).shape[1]
    with torch.inference_mode():
        for name, transformer in parts.items():
            if not isinstance(transformer, Transformer):
                continue
            with watched(transformer) as layers:
                policy(seen, language)
                kept = [layer.looked_at for layer in layers if layer.looked_at is not None]
                looked = torch.stack(kept).mean((0, 2))
            if name == "time":
                tokens = looked.shape[1] // steps
                found[name] = looked[:, -tokens].reshape(-1, steps, tokens)
            else:
                found[name] = looked[steps - 1 :: steps, 0, 1:]
    return found
