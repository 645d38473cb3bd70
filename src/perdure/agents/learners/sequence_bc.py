"""Behaviour cloning of sequences: LIBERO's policies on pictures or states, told what to do in words."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, prod
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from perdure.agents.networks.augmentation import augment
from perdure.agents.networks.inputs import Inputs
from perdure.agents.networks.language import Instructions
from perdure.agents.networks.learner import Minibatch, TorchLearner, network, new_rows
from perdure.agents.networks.optimizers import OptimizerSettings, OptimizerSpec
from perdure.agents.networks.scaling import RealActions
from perdure.agents.networks.sequence_policies.base import Reads, SequencePolicy, sizes_of
from perdure.agents.networks.settings import Ranges, TorchSettings
from perdure.agents.networks.tasks import Tasks
from perdure.agents.networks.tensors import to_array, to_tensor
from perdure.arrays import leaves, map_leaves
from perdure.errors import AgentFault, SpecError, UnknownName
from perdure.spaces import ALL, BOUNDED
from perdure.specs import takes_fields
from perdure.types import Array, Batch, Context, Examples, Measures, Setup, State

POLICIES = ("auto", "resnet_rnn", "resnet_t", "vit_t", "state_mlp", "state_transformer")
OPTIMIZER = OptimizerSettings("adamw", eps=1e-8, weight_decay=1e-4, schedule="cosine", final=0.1)


@dataclass(frozen=True, kw_only=True)
class SequenceBCSettings(TorchSettings):
    """See :class:`SequenceBCAgent`."""

    agent = "sequence_bc"
    ranges: ClassVar[Ranges] = {**TorchSettings.ranges, "look_back": (1, inf)}

    policy: str = "auto"
    size: str | Mapping[str, Any] = "paper"
    language: str = "auto"
    weights: str = ""
    look_back: int = 10
    augment: bool = True
    low_eval_noise: bool = False
    new_optimizer: bool = True
    lr: float = 1e-4
    max_grad: float = 100.0
    optimizer: OptimizerSpec = OPTIMIZER
    # The layers of its policies are given by size.
    hidden: Sequence[int] = field(default=TorchSettings.hidden, init=False)
    layer_norm: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.policy not in POLICIES:
            raise UnknownName("policy", self.policy, POLICIES, f"({', '.join(POLICIES)})")


class SequenceBCAgent(TorchLearner):
    """Raises the likelihood of what a demonstrator did under a mixture of Gaussians, for all steps of
    sequences (``sequence=10`` of the task), each by what was seen up to it and by the task's instruction.

    ``policy`` is ``resnet_rnn``, ``resnet_t`` or ``vit_t`` on pictures and the robot's numbers, or
    ``state_mlp`` or ``state_transformer`` on numbers alone; ``auto`` is ``resnet_t`` where there are
    pictures and else ``state_transformer``. ``size=paper`` is the published one, ``small``
    for two cores; a table changes single values of the paper's. ``language`` embeds instructions
    (:mod:`perdure.agents.networks.language`; ``weights`` is the folder of a model).

    While it acts it carries the last ``look_back`` steps, or the state of its LSTM, and draws from the
    mixture; with ``low_eval_noise`` all but the choice of the mode is nearly sure. Pictures are changed
    at random while they are learned from (:mod:`perdure.agents.networks.augmentation`), unless
    ``augment`` is false. The rate falls over all learn blocks of a task, to a tenth, and each task
    begins with an optimiser that knows nothing of the last (``new_optimizer``).

    The preset ``libero`` is all of the paper's; ``libero-small`` is for states on two cores.
    """

    learns_from = ("data",)
    reads, acts_in = ALL, BOUNDED
    replayable = True
    sequences = True
    net: SequencePolicy
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "libero": {},
        "libero-small": {"policy": "state_mlp", "size": "small", "lr": 1e-3},
    }

    @takes_fields(SequenceBCSettings)
    def __init__(self, setup: Setup, settings: SequenceBCSettings) -> None:
        super().__init__(setup, **settings.shared)
        s = self.settings = settings
        assert isinstance(setup.action_space, spaces.Box)
        self.inputs = Inputs(setup.observation_space, self.device)
        self.tasks = Tasks(setup)
        self.numbers = RealActions(setup.action_space)
        self.instructions = Instructions(setup, s.language, s.weights)
        self.vectors = to_tensor(self.instructions.vectors, self.device)
        pictures = {n: p.shape for n, p in self.inputs.parts.items() if p.is_image}
        by_default = "resnet_t" if pictures else "state_transformer"
        kind = policy_of(by_default if s.policy == "auto" else s.policy)
        self._refuse(kind, pictures)
        self.pictures = tuple(pictures)
        self.widths = [prod(p.shape) for p in self.inputs.parts.values()]
        """How many numbers each part of an observation has."""
        reads = Reads(
            pictures,
            {n: prod(p.shape) for n, p in self.inputs.parts.items() if not p.is_image},
            self.instructions.width,
            self.numbers.middle.size,
            s.look_back,
            lambda: self.rng,
        )
        # mypy: each policy takes the record of its own sizes.
        make: Any = kind
        sizes = sizes_of(kind, s.size)
        self.net = network(setup, self.device, lambda: make(reads, sizes))
        self.optimizer, self.max_grad = s.make_optimizer(self.net.parameters()), s.max_grad
        shapes = self.net.carried_shapes() if s.look_back > 1 else {}
        self.carried: dict[str, Array] = {
            name: np.zeros((setup.slots, *shape), np.float32) for name, shape in shapes.items()
        }
        self.steps = np.zeros(setup.slots, np.int64)
        """How many steps of its episode each slot has acted in."""
        self.least_sequence = 2 if self.remembers else 1

    @property
    def remembers(self) -> bool:
        """Whether anything is carried from step to step."""
        return bool(self.carried)

    def _refuse(self, kind: type[SequencePolicy], pictures: Mapping[str, Any]) -> None:
        if kind.needs_pictures and not pictures:
            raise SpecError(
                f"sequence_bc: policy={self.settings.policy} reads pictures, and the observations have "
                "none: give the task cameras, or choose state_mlp or state_transformer"
            )
        if not kind.needs_pictures and pictures:
            raise SpecError(
                f"sequence_bc: policy={self.settings.policy} reads no pictures, and the observations "
                f"have {', '.join(pictures)}: set cameras=[], or choose resnet_t, resnet_rnn or vit_t"
            )

    # Acting.

    def act(self, obs: Any, ctx: Context) -> Array:
        self.net.eval()
        with torch.inference_mode():
            seen = self.read(obs)
            language = self.vectors[self._told(ctx, len(seen))]
            if self._has_time(obs):
                outputs = self.net(self.seen(seen), language)
            else:
                outputs = self._next(self.net.tokens(self.seen(seen), language), ctx.slots)
            drawn = self.net.head.sample(outputs, self.rng, self.settings.low_eval_noise)
        self.net.train()
        lead = drawn.shape[:-1]
        actions = self.numbers.to_space(drawn.reshape(-1, drawn.shape[-1]))
        return actions.reshape(*lead, *self.numbers.space.shape)

    def _told(self, ctx: Context, count: int) -> Tensor:
        """Which sentence each row was told."""
        return to_tensor(self.instructions.of(ctx, count), self.device)

    def _next(self, tokens: Tensor, slots: Array) -> Tensor:
        """The mixtures of the newest step of these slots."""
        if not self.remembers:
            return self.net.head(self.net.through_time(tokens))[:, 0]  # type: ignore[no-any-return]
        carried = {n: to_tensor(a[slots], self.device) for n, a in self.carried.items()}
        carried["steps"] = to_tensor(self.steps[slots], self.device)
        outputs: Tensor = self.net.head(self.net.next_features(tokens, carried))
        for name, array in self.carried.items():
            array[slots] = to_array(carried[name])
        self.steps[slots] += 1
        return outputs

    def reset_memory(self, slots: Array) -> None:
        self.steps[slots] = 0
        for array in self.carried.values():
            array[slots] = 0.0

    def memory(self) -> State:
        if not self.remembers:
            return {}
        return {"steps": self.steps.copy(), **{n: a.copy() for n, a in self.carried.items()}}

    def load_memory(self, memory: State) -> None:
        if memory:
            self.steps = np.array(memory["steps"])
            self.carried = {name: np.array(memory[name]) for name in self.carried}

    # Learning.

    def enter(self, ctx: Context) -> None:
        super().enter(ctx)
        if self.tasks.enter(ctx) and self.settings.new_optimizer:
            self.optimizer.forget()

    def learn(self, batch: Batch, ctx: Context) -> Measures | None:
        if not isinstance(batch, Examples):
            raise AgentFault(
                f"sequence_bc learns from demonstrations, got {type(batch).__name__}: expose it to "
                "epochs or batches"
            )
        if self.remembers and not self._has_time(batch.inputs):
            raise AgentFault(
                f"sequence_bc: policy={self.settings.policy} learns from sequences, got single steps: "
                f"give the task sequence={self.settings.look_back}, or the agent look_back=1"
            )
        rows = {**self.minibatch(batch), "instruction": self._told(ctx, len(batch))}
        if self.net.standard is not None and not self.net.standard.is_fitted:
            self.net.fit(self.seen(rows["obs"]))
        self.collect(new_rows(rows, batch))
        self.optimizer.advance(ctx.stage_progress)
        return self.descend(rows)

    def minibatch(self, examples: Examples) -> Minibatch:
        targets = np.asarray(examples.targets)
        lead = targets.shape[: 2 if self._has_time(examples.inputs) else 1]
        flat = self.numbers.from_space(targets.reshape(-1, *self.numbers.space.shape))
        steps = lead[1] if len(lead) > 1 else 1
        return self.labelled(examples, to_tensor(flat.reshape(lead[0], steps, -1), self.device))

    def loss(self, batch: Minibatch) -> tuple[Tensor, dict[str, Tensor]]:
        loss = -self.net.head.log_prob(self.predict(batch), batch["targets"]).mean()
        return loss, {"loss": loss.detach()}

    def predict(self, batch: Minibatch) -> Tensor:
        """The mixtures' numbers for each step, (rows, time, numbers)."""
        seen = self.seen(batch["obs"])
        if self.net.training and self.settings.augment and self.pictures:
            views = augment([seen[name] for name in self.pictures], self.rng)
            seen = {**seen, **dict(zip(self.pictures, views, strict=True))}
        found: Tensor = self.net(seen, self.vectors[batch["instruction"]])
        return found

    # Observations of sequences.

    def _has_time(self, inputs: Any) -> bool:
        path, part = next(iter(self.inputs.parts.items()))
        return bool(np.ndim(leaves(inputs)[path]) == len(part.row) + 2)

    def read(self, inputs: Any) -> Tensor:
        """(rows, time, numbers), or (rows, time, *shape) of a space that is not nested."""
        if not self._has_time(inputs):
            return self.inputs(inputs).unsqueeze(1)
        rows, steps = np.shape(next(iter(leaves(inputs).values())))[:2]
        flat = map_leaves(lambda v: np.asarray(v).reshape(-1, *np.shape(v)[2:]), inputs)
        read = self.inputs(flat)
        return read.view(rows, steps, *read.shape[1:])

    def seen(self, obs: Tensor) -> dict[str, Tensor]:
        """What :meth:`read` gave, in its parts."""
        parts = self.inputs.parts
        if not self.inputs.nested:
            return {name: obs for name in parts}
        found = torch.split(obs, self.widths, -1)
        rows, steps = obs.shape[:2]
        return {
            name: p.to_image(flat.reshape(rows * steps, -1)).reshape(rows, steps, *p.shape)
            if p.is_image
            else flat
            for (name, p), flat in zip(parts.items(), found, strict=True)
        }

    def state(self) -> dict[str, Array]:
        return {**super().state(), **self.tasks.state()}

    def load(self, state: State) -> None:
        super().load(state)
        self.tasks.load(state)


def policy_of(name: str) -> type[SequencePolicy]:
    """The architecture of this name: a file of ``networks/sequence_policies``."""
    module = importlib.import_module(f"perdure.agents.networks.sequence_policies.{name}")
    kind: type[SequencePolicy] = module.policy
    return kind


agent = SequenceBCAgent
