"""A policy whose weights are given from outside, others for each task; and whole trials as its batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from perdure.agents.networks.encoders import encoder_for, with_linear_head
from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.policies import Gaussian, Policy
from perdure.agents.networks.rollout_buffer import features, gae, ridge
from perdure.agents.networks.tensors import CPU, to_array, to_tensor
from perdure.types import Array

Weights = list[Tensor]
"""The parameters of the policy; with a copy for each task, tasks are the first axis."""
Trial = Mapping[str, Array]
"""The steps of a trial, by column."""


class AdaptablePolicy(nn.Module):
    """A policy whose weights can be given from outside, others for each task."""

    def __init__(self, inputs: Inputs, policy: Policy, hidden: Sequence[int]) -> None:
        super().__init__()
        self.policy = policy
        self.actor = with_linear_head(*encoder_for(inputs, hidden), policy.outputs, 0.01)
        self.spread = isinstance(policy, Gaussian)

    def terms(self, x: Tensor, weights: Weights) -> Tensor:
        """(tasks, rows, inputs) to what fixes the distribution of each row, (tasks × rows, numbers)."""
        layers = weights[1:] if self.spread else weights
        k = 0
        while k < len(layers):
            x = torch.baddbmm(layers[k + 1].unsqueeze(1), x, layers[k].transpose(1, 2))
            k += 2
            if k < len(layers) and layers[k].dim() == 2:  # A layer norm has no matrix.
                scale, shift = (p.unsqueeze(1) for p in layers[k : k + 2])
                x = nn.functional.layer_norm(x, x.shape[-1:]) * scale + shift
                k += 2
            if k < len(layers):
                x = torch.tanh(x)
        if self.spread:
            x = torch.cat([x, weights[0].unsqueeze(1).expand_as(x)], 2)
            return x.flatten(0, 1)
        return self.policy.terms(x.flatten(0, 1))


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
    """Rows as columns; none if there are none."""
    return {name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else ())}


def rows_at(trial: Trial, stage: int) -> Trial:
    """A trial's steps after so many adaptations."""
    mine = trial["stage"] == stage
    return {name: column[mine] for name, column in trial.items()}


def trial_batch(
    trials: Sequence[Trial], gamma: float, lam: float, device: torch.device
) -> dict[str, Tensor]:
    """The steps of several tasks as (tasks, steps, …), padded at their ends. ``share`` is the part of
    each step in its task's mean, and ``advantages`` are multiplied by it: both are 0 in the padding."""
    length = _padded(trials)
    found: dict[str, list[Array]] = {}
    for trial in trials:
        count = len(trial["rewards"])
        part = np.full(count, 1 / max(count, 1), np.float32)
        columns = {n: trial[n] for n in ("obs", "sampled", "log_prob")}
        columns |= {"advantages": normalised_advantages(trial, gamma, lam) * part, "share": part}
        for name, column in columns.items():
            room = np.zeros((length, *column.shape[1:]), column.dtype)
            room[:count] = column
            found.setdefault(name, []).append(room)
    return {name: to_tensor(np.stack(v), device) for name, v in found.items()}


def _padded(trials: Sequence[Trial]) -> int:
    """How many steps the longest trial has; where episodes are of different lengths a little more, so that there are
    eight lengths between each and its double: what multiplies matrices of a shape is made once for it, and kept."""
    length = max(len(t["rewards"]) for t in trials)
    lengths = {int(n) for t in trials for n in np.diff(np.flatnonzero(t["ended"]), prepend=-1)}
    step = 1 << max(length.bit_length() - 4, 0)
    return -(-length // step) * step if len(lengths) > 1 else length


def normalised_advantages(trial: Trial, gamma: float, lam: float) -> Array:
    """How much better each step was than a linear fit to the returns of these steps expected, with
    mean 0 and spread 1. Episodes are whole."""
    ended = np.array(trial["ended"], bool)
    first = np.flatnonzero(np.append(True, ended[:-1]))
    time = np.arange(len(ended)) - np.repeat(first, np.diff(np.append(first, len(ended))))
    none = np.zeros(len(ended))
    returns = gae(trial["rewards"], none, none, ended, gamma, 1.0)
    basis = features(to_tensor(trial["obs"], CPU), time)
    values = to_array(basis @ ridge(basis, to_tensor(returns, CPU, torch.float64)))
    after = np.append(values[1:], 0.0) * ~ended
    found = gae(trial["rewards"], values, after, ended, gamma, lam)
    centred: Array = found - found.mean()
    return (centred / max(float(centred.std()), 1e-8)).astype(np.float32)
