"""EWC (Kirkpatrick et al., 2017): parameters that mattered to a task are held by springs.

After task k with parameters θ^k and Fisher information F^k, every later task learns::

    L = ℓ + (strength / 2) Σ_k Σ_i F^k_i (θ_i − θ^k_i)²
"""

from __future__ import annotations

import torch

from perdure.agents.networks.learner import Minibatch, TorchLearner
from perdure.agents.strategies.base import Strategy
from perdure.agents.strategies.fisher import LABELS, Labels, fisher
from perdure.agents.strategies.memory import Reservoir
from perdure.errors import SpecError
from perdure.types import Array, State


class EWC(Strategy):
    """One spring a task and parameter.

    The Fisher information is the mean over ``samples`` rows of the task, drawn uniformly, each with
    a gradient of its own; ``labels`` says which class a sample stands for.
    """

    def __init__(
        self,
        learner: TorchLearner,
        strength: float = 100.0,
        samples: int = 256,
        labels: Labels = "predicted",
    ) -> None:
        super().__init__(learner)
        if labels not in LABELS:
            raise SpecError(f"ewc: labels must be one of {', '.join(LABELS)}, got {labels!r}")
        self.strength, self.labels = strength, labels
        self.seen = Reservoir(samples)
        self.springs: list[tuple[torch.Tensor, torch.Tensor]] = []
        """For each past task: the Fisher information and the parameters it holds to."""

    def begin(self) -> None:
        self.seen.clear()

    def extend(self, batch: Minibatch) -> Minibatch:
        self.seen.offer(batch, self.rng)
        return batch

    def end(self) -> None:
        if len(self.seen):
            found = fisher(self.learner, self.seen.all(), self.labels, self.rng)
            self.springs.append((found, self.learner.optimizer.weights.clone()))

    def project(self) -> None:
        # The springs' own gradient, without building a graph of it.
        optimizer = self.learner.optimizer
        for weight, anchor in self.springs:
            optimizer.grads.addcmul_(weight, optimizer.weights - anchor, value=self.strength)

    def state(self) -> dict[str, Array]:
        out = self.seen.state("seen")
        for k, (weight, anchor) in enumerate(self.springs):
            out[f"fisher{k}"], out[f"anchor{k}"] = weight.numpy(), anchor.numpy()
        return out

    def load(self, state: State) -> None:
        self.seen.load("seen", state)
        count = sum(key.startswith("fisher") for key in state)
        self.springs = [
            (torch.tensor(state[f"fisher{k}"]), torch.tensor(state[f"anchor{k}"]))
            for k in range(count)
        ]


strategy = EWC
