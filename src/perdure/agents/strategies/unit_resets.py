"""What ReDo and continual backpropagation share: seeing hidden units at work, and reinitialising them."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from perdure.agents.networks.learner import Minibatch, TorchLearner
from perdure.agents.networks.units import HiddenLayer, hidden_layers, watch_units
from perdure.agents.strategies.initial_weights import InitialWeights
from perdure.errors import AgentFault, SpecError


class UnitResets:
    """Of every hidden layer whose weights are known (:func:`hidden_layers`)."""

    def __init__(self, name: str, learner: TorchLearner) -> None:
        self.learner, self.initial = learner, InitialWeights(learner)
        self.layers = hidden_layers(learner.net)
        if not self.layers:
            raise SpecError(
                f"{name} reinitialises hidden units, and knows those between linear layers or "
                f"convolutions of an nn.Sequential; the network of {type(learner).__name__} has none"
            )

    @property
    def every_layer(self) -> list[HiddenLayer]:
        """The layers, in the order of the network's parts."""
        return [layer for layers in self.layers.values() for layer in layers]

    def watch(self, batch: Minibatch) -> list[tuple[HiddenLayer, Tensor]]:
        """What the units of each layer give for a minibatch, (samples, units)."""
        learner = self.learner

        def run() -> None:
            learner.predict(batch)
            learner.predict_values(batch)

        seen = watch_units(self.layers, run, len(batch["obs"]))
        if not seen:
            raise AgentFault(f"{type(learner).__name__}.predict does not use its hidden layers")
        return seen

    @torch.no_grad()
    def reset(self, chosen: Iterable[tuple[HiddenLayer, Tensor]]) -> None:
        """Reinitialise the units that the masks name: newly drawn incoming weights, and outgoing weights of 0,
        so that the network gives the same without them; and the optimiser keeps nothing of either."""
        optimizer = self.learner.optimizer
        new = self.initial.drawn(self.learner.rng)
        for layer, mask in chosen:
            for c in (*layer.incoming, layer.outgoing):
                where = c.spread(mask)
                value = 0.0 if c is layer.outgoing else optimizer.part_of(new, c.parameter)[where]
                c.parameter.data[where] = value
                for buffer in optimizer.buffers.values():
                    optimizer.part_of(buffer, c.parameter)[where] = 0.0
