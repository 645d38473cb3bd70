"""What sequence policies share: observations to tokens, tokens through time, time to a mixture.

A policy reads each step on its own first (``tokens``), then all steps up to each (``through_time``). What
it carries while it acts follows from the second part: the tokens of the last steps, or a recurrent state.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import torch
from torch import Tensor, nn

from perdure.agents.networks.encoders import RngSource
from perdure.agents.networks.gaussian_mixture import GaussianMixtureHead
from perdure.agents.networks.scaling import LEAST_STATE_STD, Standardise
from perdure.agents.networks.transformer import (
    Transformer,
    TransformerSizes,
    causal_mask,
    time_code,
)
from perdure.errors import SpecError, UnknownName

Seen: TypeAlias = Mapping[str, Tensor]
"""Observations by name: pictures (rows, time, channels, height, width), numbers (rows, time, …)."""
Carried: TypeAlias = dict[str, Tensor]
"""What is carried from step to step, a row for each environment; ``steps`` counts them."""


@dataclass(frozen=True)
class Reads:
    """What a policy is made for."""

    pictures: Mapping[str, tuple[int, ...]]
    """Shapes (channels, height, width) of the pictures, by name."""
    numbers: Mapping[str, int]
    """How many numbers each other part of an observation has."""
    language: int
    """Length of a sentence's embedding."""
    actions: int
    steps: int
    """How many steps it looks back at the most, the present one included."""
    rng: RngSource
    """Where dropout's noise comes from."""


class SequencePolicy(nn.Module):
    """Observations and a sentence to a mixture of Gaussians over the action of each step."""

    sizes: ClassVar[Mapping[str, Any]]
    """Records of sizes: ``paper`` and ``small``."""
    head: GaussianMixtureHead
    needs_pictures: ClassVar[bool] = False
    standard: Standardise | None
    """Brings the numbers of an observation to one scale, by the first minibatch; None leaves them."""

    def read_numbers(self, reads: Reads, standardise: bool) -> int:
        """Get ready for the numbers of observations, and say how many there are."""
        self.names, count = tuple(reads.numbers), sum(reads.numbers.values())
        self.standard = Standardise((count,), LEAST_STATE_STD) if standardise and count else None
        return count

    def fit(self, seen: Seen) -> None:
        """Look at the first minibatch before it is learned."""
        if self.standard is not None:
            self.standard.fit(all_numbers(seen, self.names).flatten(0, 1))

    def numbers_of(self, seen: Seen) -> Tensor:
        """All numbers side by side, (rows, time, numbers)."""
        numbers = all_numbers(seen, self.names)
        return numbers if self.standard is None else self.standard(numbers)

    def tokens(self, seen: Seen, language: Tensor) -> Tensor:
        """Each step on its own: (rows, time, …)."""
        raise NotImplementedError

    def through_time(self, tokens: Tensor) -> Tensor:
        """Each step with all before it: (rows, time, features)."""
        raise NotImplementedError

    def forward(self, seen: Seen, language: Tensor) -> Tensor:
        """The mixture's numbers for each step; ``language`` is (rows, length)."""
        found: Tensor = self.head(self.through_time(self.tokens(seen, language)))
        return found

    def carried_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of what is carried for one environment, by name."""
        return {}

    def next_features(self, tokens: Tensor, carried: Carried) -> Tensor:
        """The features of the newest step, (rows, features), from its tokens (rows, 1, …) and what is
        carried, which is changed in place; ``steps`` counts the steps before it."""
        return self.through_time(tokens)[:, 0]


class TransformerPolicy(SequencePolicy):
    """Tokens (rows, time, tokens, width) through a causal transformer; the first token of each step is
    the sentence's, and what it has become is the step's feature. It carries the tokens of the last
    ``look_back`` steps, as they were before they entered the transformer."""

    width: int
    look_back: int
    token_count: int
    transformer: Transformer

    def make_transformer(
        self, reads: Reads, width: int, token_count: int, sizes: TransformerSizes
    ) -> None:
        """The part that all such policies share."""
        self.width, self.look_back, self.token_count = width, reads.steps, token_count
        self.transformer = Transformer(width, sizes, reads.rng)

    def through_time(self, tokens: Tensor) -> Tensor:
        rows, steps, count, width = tokens.shape
        timed = tokens + time_code(steps, width, tokens.device)[:, None]
        mask = causal_mask(steps, count, tokens.device)
        out = self.transformer(timed.flatten(1, 2), mask)
        first: Tensor = out.view(rows, steps, count, width)[:, :, 0]
        return first

    def carried_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"tokens": (self.look_back, self.token_count, self.width)}

    def next_features(self, tokens: Tensor, carried: Carried) -> Tensor:
        kept, steps = carried["tokens"], carried["steps"]
        full = steps >= self.look_back
        kept[full] = kept[full].roll(-1, 1)
        place = steps.clamp(max=self.look_back - 1)
        rows = torch.arange(len(kept), device=kept.device)
        kept[rows, place] = tokens[:, 0]
        # Places that were not filled yet come later than all that is read.
        return self.through_time(kept)[rows, place]


class NumberTokens(nn.Module):
    """A token for each part of an observation that is no picture: a linear map of its numbers."""

    def __init__(self, numbers: Mapping[str, int], width: int) -> None:
        super().__init__()
        self.widths = list(numbers.values())
        self.maps = nn.ModuleList(nn.Linear(n, width) for n in self.widths)

    def forward(self, numbers: Tensor) -> list[Tensor]:
        """The numbers of all parts side by side to tokens, each (rows, time, width)."""
        parts = torch.split(numbers, self.widths, -1)
        return [m(part) for part, m in zip(parts, self.maps, strict=True)]


def over_time(tensor: Tensor, steps: int) -> Tensor:
    """(rows, width) for each of some steps: (rows, steps, width)."""
    return tensor.unsqueeze(1).expand(-1, steps, -1)


def each_step(pictures: Tensor, language: Tensor) -> tuple[Tensor, Tensor]:
    """Pictures (rows, time, …) and sentences (rows, length), both with rows · time rows."""
    steps = pictures.shape[1]
    flat = pictures.flatten(0, 1).contiguous(memory_format=torch.channels_last)
    return flat, over_time(language, steps).flatten(0, 1)


def encoded(encoder: nn.Module, pictures: Tensor, language: Tensor) -> Tensor:
    """What an encoder of single pictures and a sentence gives, (rows, time, features)."""
    found: Tensor = encoder(*each_step(pictures, language))
    return found.reshape(*pictures.shape[:2], -1)


def all_numbers(seen: Seen, names: Sequence[str]) -> Tensor:
    """The numbers of some parts side by side, (rows, time, numbers)."""
    if not names:
        first = next(iter(seen.values()))
        return first.new_empty(*first.shape[:2], 0)
    return torch.cat([seen[name] for name in names], -1)


def sizes_of(policy: type[SequencePolicy], size: str | Mapping[str, Any]) -> Any:
    """A policy's record of sizes: one of its own by name, or the paper's with some values changed
    (``size={width=32, temporal={layers=2}}``)."""
    if isinstance(size, str):
        if size not in policy.sizes:
            raise UnknownName("size", size, policy.sizes, f"({', '.join(policy.sizes)})")
        return policy.sizes[size]
    return _changed(policy.sizes["paper"], size)


def _changed(record: Any, values: Mapping[str, Any]) -> Any:
    known = {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}
    new: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            raise UnknownName("size", str(name), known, f"({', '.join(known)})")
        inner = dataclasses.is_dataclass(known[name])
        if inner != isinstance(value, Mapping):
            raise SpecError(f"size: {name} must be as {known[name]!r}, got {value!r}")
        new[name] = _changed(known[name], value) if inner else value
    return dataclasses.replace(record, **new)
