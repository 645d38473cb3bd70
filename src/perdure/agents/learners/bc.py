"""Behaviour cloning: a network that answers what a demonstrator did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from gymnasium import spaces
from torch import Tensor, nn

from perdure.agents.networks.encoders import encoder_for
from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.learner import (
    LEAST_STD,
    Minibatch,
    TorchLearner,
    head_of_linear,
    network,
    new_rows,
    pick_head,
)
from perdure.agents.networks.optimizers import OptimizerSettings, OptimizerSpec
from perdure.agents.networks.policies import choices_for
from perdure.agents.networks.scaling import RealActions, Standardise
from perdure.agents.networks.settings import TorchSettings
from perdure.agents.networks.tasks import Tasks
from perdure.agents.networks.tensors import to_array, to_tensor
from perdure.errors import AgentFault
from perdure.spaces import ALL, POLICIES
from perdure.specs import takes_fields
from perdure.types import Array, Batch, Context, Examples, Measures, Setup

OPTIMIZER = OptimizerSettings(schedule="inverse")


@dataclass(frozen=True, kw_only=True)
class BCSettings(TorchSettings):
    """See :class:`BCAgent`."""

    agent = "bc"

    hidden: Sequence[int] = (256, 256, 256)
    standardise: bool = True
    network: str = ""
    multihead: bool = False
    optimizer: OptimizerSpec = OPTIMIZER


class BCAgent(TorchLearner):
    """Learns each minibatch of demonstrations once: down the squared error where actions are real
    numbers, down the cross-entropy where they are choices (Discrete, MultiDiscrete, MultiBinary).

    ``hidden`` are the widths of the layers; ``network=file.py:Net`` puts a network of one's own in
    their place, as in the classifier; with ``multihead`` each task has a last layer of its own. Inputs are standardised by the first minibatch unless
    ``standardise`` is false. The network works on bounded actions scaled to −1…1; what it says beyond
    the bounds is cut off when it acts.

    By default the schedule is ``inverse``: steps become smaller within a block, lr / (1 + n / 1000)
    at the n-th. Tasks side by side take turns, a minibatch each, and with steps of one size the last
    ones to be shown would be known better than the others.
    """

    learns_from = ("data",)
    reads, acts_in = ALL, POLICIES
    replayable = True

    @takes_fields(BCSettings)
    def __init__(self, setup: Setup, settings: BCSettings) -> None:
        super().__init__(setup, **settings.shared)
        s = settings
        self.inputs = Inputs(setup.observation_space, self.device)
        self.tasks = Tasks(setup)
        self.heads = len(self.tasks) if s.multihead else 1
        space = setup.action_space
        self.choices = choices_for(space)
        if self.choices is None:
            assert isinstance(space, spaces.Box)
            self.numbers = RealActions(space)
            outputs = self.numbers.middle.size
        else:
            self.choices.to(self.device)
            self.predicts, outputs = self.choices.predicts, self.choices.outputs

        self.standard = Standardise(self.inputs.shape) if s.standardise else None

        def build() -> nn.Module:
            encoder, features = encoder_for(self.inputs, s.hidden, nn.ReLU, network=s.network)
            first = [] if self.standard is None else [self.standard]
            return nn.Sequential(*first, encoder, nn.Linear(features, outputs * self.heads))

        self.net = network(setup, self.device, build, s.layer_norm)
        self.optimizer, self.max_grad = s.make_optimizer(self.net.parameters()), s.max_grad

    def act(self, obs: Any, ctx: Context) -> Array:
        with torch.inference_mode():
            batch = {"obs": self.inputs(obs), **self.task_column(ctx)}
            answers = self.predict(batch)
        if self.choices is None:
            return self.numbers.to_space(to_array(answers))
        return self.choices.to_space(self.choices.sample(answers, None))

    def learn(self, batch: Batch, ctx: Context) -> Measures | None:
        if not isinstance(batch, Examples):
            raise AgentFault(
                f"bc learns from demonstrations, got {type(batch).__name__}: expose it to epochs or "
                "batches"
            )
        rows = {**self.minibatch(batch), **self.task_column(ctx)}
        if self.standard is not None:
            self.standard.fit(rows["obs"])
        self.collect(new_rows(rows, batch))
        self.optimizer.advance(ctx.progress)
        return self.descend(rows)

    def minibatch(self, examples: Examples) -> Minibatch:
        told = self.numbers if self.choices is None else self.choices
        return self.labelled(examples, to_tensor(told.from_space(examples.targets), self.device))

    def loss(self, batch: Minibatch) -> tuple[Tensor, dict[str, Tensor]]:
        heads = self.predict_heads(batch)
        answers = pick_head(heads, batch)
        self.last_outputs = {"predictions": answers, "heads": heads}
        if self.choices is None:
            loss = nn.functional.mse_loss(answers, batch["targets"])
        else:
            loss = -self.choices.log_prob(answers, batch["targets"])[0].mean()
        return loss, {"loss": loss.detach()}

    def predict(self, batch: Minibatch) -> Tensor:
        return pick_head(self.predict_heads(batch), batch)

    def predict_heads(self, batch: Minibatch) -> Tensor:
        answers: Tensor = self.net(batch["obs"])
        return answers.view(len(answers), self.heads, -1)

    def head_parameters(self) -> Mapping[str, int]:
        return head_of_linear(self.net, self.heads)

    def output_fisher(self, batch: Minibatch, outputs: Tensor) -> Tensor:
        """Real actions scatter around the answers by what is left of the error."""
        if self.choices is not None:
            return self.choices.fisher(outputs)
        left = (batch["targets"] - outputs).square().mean(dim=0).clamp(min=LEAST_STD**2)
        return left.reciprocal().expand_as(outputs)


agent = BCAgent
