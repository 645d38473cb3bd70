"""BRC: soft actor-critic with larger, normalised, categorical critics that read an embedding of the task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from perdure.agents.learners.sac import SACAgent, SACSettings
from perdure.agents.networks.checks import transitions_of
from perdure.agents.networks.encoders import image_encoder
from perdure.agents.networks.learner import Minibatch
from perdure.agents.networks.optimizers import OptimizerSettings, OptimizerSpec
from perdure.agents.networks.sac_networks import (
    ParameterStack,
    SeenFeatures,
    SoftLosses,
    SoftNetworks,
    linear,
)
from perdure.agents.networks.settings import Ranges
from perdure.agents.networks.tensors import CPU, to_tensor
from perdure.errors import SpecError
from perdure.specs import takes_fields
from perdure.types import Array, Batch, Context, Measures, Setup, State

LEAST_SCALE = 1e-4
DECAYING = OptimizerSettings("adamw", eps=1e-8, weight_decay=1e-4)


@dataclass(frozen=True, kw_only=True)
class BRCSettings(SACSettings):
    """See :class:`BRCAgent`."""

    agent = "brc"
    ranges: ClassVar[Ranges] = {
        **SACSettings.ranges,
        "width": (1, inf),
        "blocks": (1, inf),
        "embedding": (1, inf),
        "atoms": (2, inf),
        "bound": (1e-6, inf),
    }

    batch: int = 256
    hidden: Sequence[int] = (256,)
    width: int = 512
    blocks: int = 2
    embedding: int = 32
    atoms: int = 101
    bound: float = 10.0
    optimizer: OptimizerSpec = DECAYING

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.hidden) != 1:
            raise SpecError(
                f"brc: hidden is the one width of the policy's blocks, got {self.hidden!r}; their "
                "number is blocks="
            )
        if self.multihead:
            raise SpecError("brc: a task is an embedding, not a head: leave multihead= out")
        if self.layer_norm:
            raise SpecError("brc: its networks have layer norms: leave layer_norm= out")


class ResidualBlocks(ParameterStack):
    """Copies of BRO's network (Nauman et al., 2024): a layer, then ``blocks`` of two layers with a way around
    them, each layer normed. Beside the input it reads an embedding of the task, of length 1."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        tasks: int,
        copies: int,
        width: int,
        blocks: int,
        embedding: int,
    ) -> None:
        super().__init__(copies)
        self.blocks = blocks
        self.add(torch.randn(copies, tasks, embedding, device=CPU))
        sizes = [inputs + embedding, *(width for _ in range(2 * blocks + 1))]
        for a, b in pairwise(sizes):
            self.add_linear(a, b)
            self.add(torch.ones(copies, 1, b, device=CPU))
            self.add(torch.zeros(copies, 1, b, device=CPU))
        self.add_linear(width, outputs)

    def forward(
        self, x: Tensor, task: Tensor, parameters: Sequence[Tensor] | None = None
    ) -> Tensor:
        """(rows, inputs) of these tasks to (copies, rows, outputs)."""
        read = self.reader(parameters)
        told = nn.functional.normalize(next(read), dim=2)[:, task]
        x = torch.cat([x.unsqueeze(0).expand(self.copies, -1, -1), told], 2)
        h = torch.relu(normed(x, read))
        for _ in range(self.blocks):
            h = h + normed(torch.relu(normed(h, read)), read)
        return linear(h, read)


def normed(x: Tensor, read: Iterator[Tensor]) -> Tensor:
    """A linear layer and a layer norm by the next parameters."""
    h = linear(x, read)
    scale, shift = next(read), next(read)
    return nn.functional.layer_norm(h, h.shape[2:]) * scale + shift


class CategoricalNetworks(SoftNetworks):
    """Critics that give a distribution over ``atoms`` values from −bound to bound."""

    atoms: Tensor

    def __init__(self, actor: nn.Module, encoder: nn.Module | None, critics: nn.Module, tasks: int,
                 alpha: float, atoms: Tensor) -> None:  # fmt: skip
        super().__init__(actor, encoder, critics, tasks, alpha)
        self.register_buffer("atoms", atoms)

    def logits(
        self, obs: Tensor, actions: Tensor, task: Tensor, parameters: Sequence[Tensor] | None = None
    ) -> Tensor:
        """Of both critics' distributions, (2, rows, atoms)."""
        out: Tensor = self.critics(torch.cat([obs, actions], 1), task, parameters)
        return out

    def values(
        self, obs: Tensor, actions: Tensor, task: Tensor, parameters: Sequence[Tensor] | None = None
    ) -> Tensor:
        return self.logits(obs, actions, task, parameters).softmax(2) @ self.atoms


def project(values: Tensor, chances: Tensor, atoms: Tensor) -> Tensor:
    """A distribution over ``values``, (rows, any), as one over evenly spaced atoms: each value's chance is
    shared by its two neighbours, the nearer one having more (Bellemare et al., 2017)."""
    step = atoms[1] - atoms[0]
    place = ((values - atoms[0]) / step).clamp(0, len(atoms) - 1)
    below = place.floor().clamp(max=len(atoms) - 2)
    above = place - below
    where = below.long()
    out = torch.zeros(len(values), len(atoms), device=values.device, dtype=chances.dtype)
    out.scatter_add_(1, where, chances * (1 - above))
    out.scatter_add_(1, where + 1, chances * above)
    return out


class ReturnScales:
    """By how much the rewards of each task are divided: by the standard deviation of the discounted
    returns that were under way, or as much as takes the largest of them to ``bound``, whichever is more
    (Lee et al., 2025)."""

    def __init__(self, slots: int, tasks: int, gamma: float, bound: float) -> None:
        self.gamma, self.bound = gamma, bound
        self.running: Array = np.zeros(slots)
        """Each slot's return so far, discounted towards its beginning."""
        self.count, self.mean, self.spread, self.most = (np.zeros(tasks) for _ in range(4))

    def add(self, slots: Array, task: Array, rewards: Array, ended: Array) -> None:
        """One step of some slots."""
        found = self.running[slots] = self.gamma * self.running[slots] + rewards
        self.running[slots[ended]] = 0.0
        for k in np.unique(task):
            mine = found[task == k]
            before, n = self.count[k], len(mine)
            away = mine.mean() - self.mean[k]
            self.count[k] += n
            self.mean[k] += away * n / self.count[k]
            self.spread[k] += mine.var() * n + away**2 * before * n / self.count[k]
            self.most[k] = max(self.most[k], np.abs(mine).max())

    def scales(self) -> Array:
        """Of each task; 1 where nothing was seen."""
        deviation = np.sqrt(self.spread / np.maximum(self.count, 1))
        found = np.maximum(np.maximum(deviation, self.most / self.bound), LEAST_SCALE)
        return np.where(self.count > 0, found, 1.0)

    NAMES = ("running", "count", "mean", "spread", "most")

    def state(self) -> dict[str, Array]:
        """What was seen, as arrays."""
        return {f"returns.{name}": getattr(self, name).copy() for name in self.NAMES}

    def load(self, state: State) -> None:
        """Take over what :meth:`state` gave."""
        for name in self.NAMES:
            setattr(self, name, state[f"returns.{name}"].copy())


class BRCAgent(SACAgent):
    """Multi-task soft actor-critic after BRC, "bigger, regularized, categorical" (Nauman et al., 2025).

    The critics are residual networks of ``blocks`` blocks of ``width`` units with layer norms and weight decay; the policy
    has as many of ``hidden`` units. All read an ``embedding`` of the task, learned, one in each network. A critic gives a
    distribution over ``atoms`` values between ±``bound`` and is learned by cross-entropy; the mean of both
    is what the policy climbs and what targets are made of. So that values fit, each task's rewards are divided by
    a scale of its returns, as SimbaV2 does (Lee et al., 2025); the replay holds them as they came.
    All else is as in :class:`~perdure.agents.learners.sac.SACAgent`.

    The critics' width is BRO's. Presets: ``bigger`` has the 4096 of BRC; ``quick`` the pace of SAC's and smaller networks.
    """

    plain_layers = False
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "bigger": {"width": 4096, "batch": 1024},
        "quick": {
            **SACAgent.presets["quick"],
            "hidden": (128,),
            "width": 256,
            "blocks": 1,
            "optimizer": {"name": "adamw", "weight_decay": 1e-4},
        },
    }
    net: CategoricalNetworks
    settings: BRCSettings

    @takes_fields(BRCSettings)
    def __init__(self, setup: Setup, settings: BRCSettings) -> None:
        self.begin(setup, settings)
        self.returns = ReturnScales(setup.slots, len(self.tasks), settings.gamma, settings.bound)

    def build(self, actions: int, heads: int, tasks: int) -> SoftNetworks:
        s = self.settings
        encoder, width = image_encoder(self.inputs)
        actor = ResidualBlocks(width, 2 * actions, tasks, 1, s.hidden[0], s.blocks, s.embedding)
        critics = ResidualBlocks(width + actions, s.atoms, tasks, 2, s.width, s.blocks, s.embedding)
        atoms = torch.linspace(-s.bound, s.bound, s.atoms, device=CPU)
        return CategoricalNetworks(actor, encoder, critics, tasks, s.alpha, atoms)

    def learn(self, batch: Batch, ctx: Context) -> Measures | None:
        moves, rewards = transitions_of("brc", batch)
        ended = moves.terminated | moves.truncated
        self.returns.add(np.asarray(ctx.slots), self.tasks.of(ctx), rewards, ended)
        return super().learn(batch, ctx)

    def soft_losses(
        self, batch: Minibatch, seen: SeenFeatures, noise: tuple[Tensor, Tensor], alpha: Tensor
    ) -> SoftLosses:
        net, task = self.net, seen.task
        scale = to_tensor(self.returns.scales(), self.device, torch.float32)[task]
        with torch.no_grad():
            after, log_after = net.policy(seen.following, task, noise[1])
            chances = net.logits(seen.judged, after, task, self.target_critics).softmax(2).mean(0)
            future = net.atoms - (alpha * log_after).unsqueeze(1)
            kept = (self.settings.gamma * batch["alive"]).unsqueeze(1)
            goal = project(
                (batch["rewards"] / scale).unsqueeze(1) + kept * future, chances, net.atoms
            )
        logits = net.logits(seen.obs, batch["actions"], task)
        critic = -(goal * logits.log_softmax(2)).sum(2).mean(1).sum()
        obs = seen.obs.detach()
        chosen, log_prob = net.policy(obs, task, noise[0])
        fixed = [p.detach() for p in net.critics.parameters()]
        worth = net.values(obs, chosen, task, fixed).mean(0)
        values = logits.detach().softmax(2) @ net.atoms
        return SoftLosses(critic, (alpha * log_prob - worth).mean(), values, log_prob)

    def state(self) -> dict[str, Array]:
        return {**super().state(), **self.returns.state()}

    def load(self, state: State) -> None:
        super().load(state)
        self.returns.load(state)


agent = BRCAgent
