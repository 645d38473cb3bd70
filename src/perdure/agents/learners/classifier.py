"""Classifier: softmax regression on a network, from labelled data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from gymnasium import spaces
from torch import Tensor, nn

from perdure.agents.networks.encoders import Dropout, encoder_for
from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.learner import (
    Minibatch,
    TorchLearner,
    head_of_linear,
    network,
    new_rows,
    pick_head,
)
from perdure.agents.networks.norms import check_norm, freeze_norms
from perdure.agents.networks.settings import Ranges, TorchSettings
from perdure.agents.networks.tasks import Tasks
from perdure.agents.networks.tensors import to_array, to_tensor
from perdure.agents.task_boundary import TaskBoundary
from perdure.errors import AgentFault
from perdure.spaces import ALL, DISCRETE
from perdure.specs import takes_fields
from perdure.types import Array, Batch, Context, Examples, Measures, Setup, State


@dataclass(frozen=True, kw_only=True)
class ClassifierSettings(TorchSettings):
    """See :class:`ClassifierAgent`."""

    agent = "classifier"
    ranges: ClassVar[Ranges] = {**TorchSettings.ranges, "dropout": (0, 0.99)}

    convolutions: str = "plain"
    norm: str = "batch"
    dropout: float = 0.0
    network: str = ""
    multihead: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_norm(self.norm)


class ClassifierAgent(TorchLearner):
    """Learns each minibatch once, down the cross-entropy. Labels are the action space.

    ``network=file.py:Net`` puts a network of one's own in the place of ``hidden``, ``convolutions``
    and ``dropout``: ``Net(shape)`` is a module that gives features, which a linear head reads. With
    ``multihead`` each task has a head of its own, so that identity must be shown.

    Images pass ``convolutions`` first: ``plain``, ``none``, ``small`` or ``vgg16``. Of the last two
    each has a ``norm``: ``batch``; ``frozen``, which is a batch norm whose statistics stay those of
    the first task; ``group``, which has no statistics (groups of four channels); or ``none``. The
    preset ``openloris`` is the network of OpenLORIS-Object's authors (34.1 million parameters at
    50 × 50 pixels) and their rate; ``openloris-small`` is one like it for two cores.
    """

    learns_from = ("data",)
    reads, acts_in = ALL, frozenset({DISCRETE})
    predicts = "logits"
    replayable = True
    net: nn.Sequential
    """An encoder and a linear head."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "openloris": {
            "lr": 1e-4, "convolutions": "vgg16", "hidden": (4096, 4096), "dropout": 0.5,
        },
        "openloris-small": {"convolutions": "small", "hidden": (256,)},
    }  # fmt: skip

    @takes_fields(ClassifierSettings)
    def __init__(self, setup: Setup, settings: ClassifierSettings) -> None:
        super().__init__(setup, **settings.shared)
        s = settings
        space = setup.action_space
        assert isinstance(space, spaces.Discrete)
        self.inputs = Inputs(setup.observation_space, self.device)
        self.start, self.classes = int(space.start), int(space.n)
        self.tasks = Tasks(setup)
        self.heads = len(self.tasks) if s.multihead else 1
        self.boundary = TaskBoundary() if s.norm == "frozen" else None
        """When the first task is over, where that matters."""

        def drop() -> Dropout:
            return Dropout(s.dropout, lambda: self.rng)

        def build() -> nn.Sequential:
            dropped = drop if s.dropout else None
            encoder, features = encoder_for(
                self.inputs, s.hidden, nn.ReLU, s.convolutions, dropped, s.network, s.norm
            )
            return nn.Sequential(encoder, nn.Linear(features, self.classes * self.heads))

        self.net = network(setup, self.device, build, s.layer_norm)
        self.optimizer, self.max_grad = s.make_optimizer(self.net.parameters()), s.max_grad

    def enter(self, ctx: Context) -> None:
        super().enter(ctx)
        if self.boundary is not None and self.boundary.enter(ctx) and self.boundary.count > 1:
            freeze_norms(self.net)

    def act(self, obs: Any, ctx: Context) -> Array:
        self.net.eval()
        with torch.inference_mode():
            batch = {"obs": self.inputs(obs), **self.task_column(ctx)}
            best = to_array(self.predict(batch).argmax(dim=1))
        self.net.train()
        return best + self.start

    def learn(self, batch: Batch, ctx: Context) -> Measures | None:
        if not isinstance(batch, Examples):
            raise AgentFault(
                f"classifier learns from labelled data, got {type(batch).__name__}: expose it to "
                "epochs or batches"
            )
        rows = {**self.minibatch(batch), **self.task_column(ctx)}
        self.collect(new_rows(rows, batch))
        self.optimizer.advance(ctx.progress)
        return self.descend(rows)

    def minibatch(self, examples: Examples) -> Minibatch:
        targets = to_tensor(examples.targets, self.device, torch.int64) - self.start
        return self.labelled(examples, targets)

    def loss(self, batch: Minibatch) -> tuple[Tensor, dict[str, Tensor]]:
        features = self.encode(batch)
        heads = self._heads(features)
        logits = pick_head(heads, batch)
        self.last_outputs = {"features": features, "predictions": logits, "heads": heads}
        loss = nn.functional.cross_entropy(logits, batch["targets"])
        right = (logits.argmax(dim=1) == batch["targets"]).float().mean()
        return loss, {"loss": loss.detach(), "accuracy": right}

    def predict(self, batch: Minibatch) -> Tensor:
        return pick_head(self.predict_heads(batch), batch)

    def predict_heads(self, batch: Minibatch) -> Tensor:
        return self._heads(self.encode(batch))

    def head_parameters(self) -> Mapping[str, int]:
        return head_of_linear(self.net, self.heads)

    def encode(self, batch: Minibatch) -> Tensor:
        """The features that the head reads."""
        features: Tensor = self.net[0](batch["obs"])
        return features

    def decide(self, features: Tensor) -> Tensor:
        """The logits of the one head."""
        return self._heads(features)[:, 0]

    def _heads(self, features: Tensor) -> Tensor:
        logits: Tensor = self.net[1](features)
        return logits.view(-1, self.heads, self.classes)

    def state(self) -> dict[str, Array]:
        mine = {} if self.boundary is None else self.boundary.state("boundary")
        return {**super().state(), **mine}

    def load(self, state: State) -> None:
        super().load(state)
        if self.boundary is not None:
            self.boundary.load("boundary", state)


agent = ClassifierAgent
