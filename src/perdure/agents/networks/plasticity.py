"""How well a network can still learn: measures of plasticity on fixed inputs.

The first ``rows`` rows that a learner ever learned from are kept, and looked at again at every
evaluation. Names carry their definition, because the field uses one name for several:

``dormant_redo``
    part of units whose mean absolute activation is at most 0.025 of their layer's mean; the mean over
    layers (Sokar et al., 2023)
``dormant_dohare``
    part of all units that are not zero on less than 1 % of inputs (Dohare et al., 2024)
``effective_rank``
    of the features, which is what the last hidden layer gives: the exponential of the entropy of
    their normalised singular values (Roy and Vetterli, 2007)
``stable_rank``
    of the features: ‖A‖²_F / ‖A‖²_2
``srank``
    of the features: how many singular values make 99 % of their sum (Kumar et al., 2021)
``weight_norm``, ``weight_distance``
    length of all weights; root mean square of how far each is from where it started
``gradient_norm``
    length of the gradient of the loss on these rows
``trainability``
    random answers for these inputs are learned in ``trainability`` steps of the learner's own optimiser (of
    Adam, where it takes others), from the initial weights and from the present ones: the loss that is left of
    the first over that of the second. 1 is to learn as well as ever, less is worse (after Lyle et al., 2023)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from perdure.agents.networks.tensors import CPU, to_array, to_float, to_tensor
from perdure.agents.networks.units import Activations, by_unit
from perdure.types import Array, State

if TYPE_CHECKING:
    from perdure.agents.networks.learner import NewRows, TorchAgent
    from perdure.agents.networks.optimizers import Optimizer

REDO_THRESHOLD = 0.025
DOHARE_SHARE = 0.01
SRANK_SHARE = 0.99
ADAM_LR = 1e-3
"""Of the steps that tell trainability where a learner takes no such steps itself."""


def dormant_redo(layers: Sequence[Tensor], threshold: float = REDO_THRESHOLD) -> float:
    """Mean over layers, each (samples, units), of the part of units that are dormant."""
    return float(np.mean([to_float(is_dormant(h, threshold).float().mean()) for h in layers]))


def is_dormant(layer: Tensor, threshold: float) -> Tensor:
    """Which units of (samples, units) give at most so much of what all give on average."""
    each = layer.abs().mean(0)
    return each <= threshold * each.mean()


def dormant_dohare(layers: Sequence[Tensor]) -> float:
    """Part of the units of all layers that hardly any input makes active."""
    rare = [to_float(((h != 0).float().mean(0) < DOHARE_SHARE).sum()) for h in layers]
    return sum(rare) / sum(h.shape[1] for h in layers)


def effective_rank(singular: Array) -> float:
    """exp(−Σ p log p) of the normalised singular values."""
    total = float(singular.sum())
    if total == 0:
        return 0.0
    p = singular[singular > 0] / total
    return float(np.exp(-(p * np.log(p)).sum()))


def stable_rank(singular: Array) -> float:
    """‖A‖²_F / ‖A‖²_2."""
    most = float(singular.max())
    return float(((singular / most) ** 2).sum()) if most else 0.0


def srank(singular: Array, share: float = SRANK_SHARE) -> float:
    """How many of the largest singular values make up this share of their sum."""
    total = float(singular.sum())
    if total == 0:
        return 0.0
    parts = np.cumsum(np.sort(singular)[::-1]) / total
    return float(min(int(np.searchsorted(parts, share)) + 1, len(singular)))


class PlasticityProbe:
    """Measures a learner on the rows it learned first."""

    def __init__(self, learner: TorchAgent, rows: int, trainability: int) -> None:
        self.learner, self.capacity, self.steps = learner, rows, trainability
        self.rows: dict[str, Tensor] = {}
        # No part of the state: whoever makes the agent again begins with the same weights.
        self.initial = learner.flat_weights.clone()
        self.buffers = {n: b.clone() for n, b in learner.net.named_buffers()}

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.rows.values()))) if self.rows else 0

    def collect(self, rows: NewRows) -> None:
        """Keep what comes first."""
        missing = min(self.capacity - self.count, rows.count)
        if missing <= 0:
            return
        new = rows.at(np.arange(missing))
        if not self.rows:
            self.rows = {name: v.clone() for name, v in new.items()}
        else:
            self.rows = {name: torch.cat([v, new[name]]) for name, v in self.rows.items()}

    def measure(self) -> dict[str, float]:
        """The measures of the learner as it is; none before it has learned anything. It is left as it
        was."""
        if not self.rows:
            return {}
        learner = self.learner
        training = learner.net.training
        learner.net.eval()
        with torch.no_grad(), Activations() as policy:
            learner.predict(self.rows)
        with torch.no_grad(), Activations() as critics:
            learner.predict_values(self.rows)
        out: dict[str, float] = {}
        own = self.learner.by_gradient
        # Sequences have three axes without being copies.
        given = 0 if own is not None and own.sequences else len(self.rows["obs"])
        layers = [by_unit(h, given) for h in (*policy.outputs, *critics.outputs)]
        if layers:
            out["dormant_redo"] = dormant_redo(layers)
            out["dormant_dohare"] = dormant_dohare(layers)
        if policy.outputs:
            features = by_unit(policy.outputs[-1], given)
            # On the CPU: not every device has double precision.
            double = to_tensor(to_array(features), CPU, torch.float64)
            singular = to_array(torch.linalg.svdvals(double))
            out["effective_rank"] = effective_rank(singular)
            out["stable_rank"] = stable_rank(singular)
            out["srank"] = srank(singular)
        weights = learner.flat_weights
        out["weight_norm"] = to_float(torch.linalg.vector_norm(weights))
        moved = torch.linalg.vector_norm(weights - self.initial)
        out["weight_distance"] = to_float(moved) / math.sqrt(weights.numel())
        if own is not None and own.replayable:
            optimizer = own.optimizer
            before = optimizer.grads.clone()
            optimizer.zero_grad()
            own.loss(self.rows)[0].backward()  # type: ignore[no-untyped-call]
            out["gradient_norm"] = to_float(torch.linalg.vector_norm(optimizer.grads))
            optimizer.grads.copy_(before)
        learner.net.train(training)
        if self.steps:
            out["trainability"] = self._trainability()
        return {f"plasticity.{name}": value for name, value in out.items()}

    def _trainability(self) -> float:
        """The loss that is left of random answers from the initial weights, over that from the present ones."""
        learner, own = self.learner, self.learner.by_gradient
        weights = learner.flat_weights.clone()
        buffers = {n: b.clone() for n, b in learner.net.named_buffers()}
        saved = None if own is None else (own.optimizer.state("saved"), own.optimizer.grads.clone())
        outputs = learner.predict(self.rows).detach()
        classes = own is not None and own.predicts == "logits"
        if classes:
            drawn = learner.rng.integers(outputs.shape[-1], size=len(outputs))
        else:
            drawn = learner.rng.standard_normal(tuple(outputs.shape)).astype(np.float32)
        answers = to_tensor(drawn, learner.device)
        difference = nn.functional.cross_entropy if classes else nn.functional.mse_loss

        def loss() -> Tensor:
            return difference(learner.predict(self.rows), answers)

        now = self._fit(loss)
        self._set(self.initial, self.buffers)
        then = self._fit(loss)
        self._set(weights, buffers)
        if own is not None and saved is not None:
            own.optimizer.load("saved", saved[0])
            own.optimizer.grads.copy_(saved[1])
        return then / now

    def _fit(self, loss: Callable[[], Tensor]) -> float:
        """The loss that the steps leave, from the present weights."""
        own = self.learner.by_gradient
        optimizer: Optimizer | torch.optim.Adam
        if own is None:
            optimizer = torch.optim.Adam(self.learner.net.parameters(), ADAM_LR)
        else:
            optimizer = own.optimizer
            optimizer.forget()
            optimizer.current_lr = optimizer.lr
        for _ in range(self.steps):
            optimizer.zero_grad()
            loss().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        if own is None:
            optimizer.zero_grad()
        with torch.no_grad():
            return to_float(loss())

    @torch.no_grad()
    def _set(self, weights: Tensor, buffers: Mapping[str, Tensor]) -> None:
        own, net = self.learner.by_gradient, self.learner.net
        if own is not None:
            own.optimizer.weights.copy_(weights)
        else:
            parts = torch.split(weights, [p.numel() for p in net.parameters()])
            for p, part in zip(net.parameters(), parts, strict=True):
                p.copy_(part.view_as(p))
        for name, buffer in net.named_buffers():
            buffer.copy_(buffers[name])

    def state(self) -> dict[str, Array]:
        """The rows."""
        return {f"plasticity.{name}": to_array(v).copy() for name, v in self.rows.items()}

    def load(self, state: State) -> None:
        """Take over what :meth:`state` gave."""
        mine = {
            k.removeprefix("plasticity."): v
            for k, v in state.items()
            if k.startswith("plasticity.")
        }
        self.rows = {name: to_tensor(v, self.learner.device) for name, v in mine.items()}
