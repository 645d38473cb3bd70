"""PackNet (Mallya and Lazebnik, 2018): every task owns some weights, which then never change.

At the end of a task, of the weights w of each layer that no task owns yet, those with the largest
|w| go to the task and a share ``prune`` of them is set free and to zero; the task is then learned
again for ``retrain`` steps with what it owns (``learned``: as many as it was learned in), the learning
rate's schedule from its beginning. Later tasks read the owned weights and move only free ones::

    θ_i ← θ_i − step_i   where owner_i = 0,   θ_i ← θ_i elsewhere
    f_k(x) = f(x; θ_i · [1 ≤ owner_i ≤ k])

Evaluation of task k, where identity is known, uses f_k; a task that is being learned, or was never
learned, uses all weights. So does one that an adapt block teaches, until the block ends: what it moves
are free weights, and it leaves the owned ones alone. A task ends when the next one begins, so that it is first evaluated before
pruning and from then on after it. A layer is any parameter of two or more dimensions, so recurrent
weights and tokens are covered. Biases, norm layers with their running statistics, and whatever else
is no layer belong to the first task. As in Continual World (Wołczyk et al., 2021), what only steers
learning, such as critics, is not pruned and stays free, and so is a head that only one task uses: it
is fixed when its task ends.

A learner whose loss means nothing on rows of the past, such as PPO, is retrained to answer them as
it did before it was pruned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from perdure import arrays
from perdure.agents.networks.checks import check_ranges
from perdure.agents.networks.learner import Minibatch, NewRows, TorchLearner
from perdure.agents.networks.tensors import to_array, to_float, to_tensor
from perdure.agents.strategies.base import Strategy
from perdure.agents.strategies.distillation import soft, squared_error
from perdure.agents.strategies.persample import evaluating
from perdure.agents.strategies.row_memory import Keep, Reservoir, RowFormat, rows_of
from perdure.names import without_variant
from perdure.types import Array, Context, State

NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm)
"""Layers whose weights scale features: frozen whole after the first task, never pruned."""


class PackNet(Strategy):
    """Retrains on ``memory`` rows of the task, drawn uniformly as it was learned; ``keep`` and
    ``megabytes`` of them are those of ``replay``.

    The preset ``libero`` is LIBERO's: as many steps again as the task was learned in; ``libero-small`` is
    for the small scale of its studies on states.

    A task that comes again is a task of its own: it gets more weights.
    """

    needs = ("rows or replay",)
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "libero": {"prune": 0.75, "retrain": "learned", "memory": 20_000},
        "libero-small": {"prune": 0.75, "retrain": 2000, "memory": 4000},
    }

    def __init__(
        self,
        learner: TorchLearner,
        prune: float = 0.75,
        retrain: int | Literal["learned"] = 200,
        memory: int = 1000,
        keep: Keep = "references",
        megabytes: float = 0.0,
    ) -> None:
        super().__init__(learner)
        check_ranges("packnet", prune=(prune, 0, 1))
        if retrain != "learned":
            check_ranges("packnet", retrain=(retrain, 0, inf))
        self.prune, self.retrain = prune, retrain
        self.seen = Reservoir(memory, RowFormat(learner, keep, megabytes))
        self.rows = self.steps = 0
        """How many rows a minibatch of this task has, and in how many steps it was learned."""
        self.retraining = False
        weights = learner.optimizer.weights
        self.owner = torch.zeros(len(weights), dtype=torch.int16, device=weights.device)
        """The task that owns a weight, from 1; 0 is free."""
        self.learned: list[str] = []
        """The task of each number."""
        self.fixed: Tensor = torch.zeros_like(weights, dtype=torch.bool)
        self.held = weights.clone()
        """Which weights may not move now, and their values."""
        self.layers, self.others, self.norms = _layers(learner)
        self.head_of = _heads(learner)
        self.non_policy = _non_policy(learner)

    def begin(self) -> None:
        self.seen.clear()
        self.rows = self.steps = 0

    def collect(self, rows: NewRows) -> None:
        self.seen.offer(rows, self.rng)

    def extend(self, batch: Minibatch) -> Minibatch:
        if not self.retraining:
            self.rows = max(self.rows, rows_of(batch))
            self.steps += 1
        if self.past:
            for norm in self.norms:
                norm.eval()
        return batch

    def project(self) -> None:
        if self.learned:
            self.learner.optimizer.grads.masked_fill_(self.fixed, 0.0)

    def stepped(self) -> None:
        # Zero gradients are not enough: momentum moves weights too.
        if self.learned:
            weights = self.learner.optimizer.weights
            weights.copy_(torch.where(self.fixed, self.held, weights))

    def objective(self, batch: Minibatch, loss: Tensor) -> Tensor:
        aim = batch.get("packnet aim")
        if aim is None:
            return loss
        answers = self.learner.predict(batch)
        if self.learner.predicts == "logits":
            return soft(answers, aim, 1.0)
        return squared_error(answers, aim)

    def _material(self) -> Callable[[Array], Minibatch]:
        """What gives the rows to learn again, with the answers to aim at where the learner's own loss
        will not do. Rows that are references are asked for as they are needed: all at once may be
        more than there is room for."""
        if self.learner.replayable or not len(self.seen):
            return self.seen.at
        rows = self.seen.all()
        with torch.no_grad(), evaluating(self.learner.net):
            rows = {**rows, "packnet aim": self.learner.predict(rows)}

        def at(indices: Array) -> Minibatch:
            where = to_tensor(indices, self.learner.device)
            return {name: v[where] for name, v in rows.items()}

        return at

    def end(self) -> None:
        self.learned.append(self.task)
        material = self._material()
        number, weights = len(self.learned), self.learner.optimizer.weights
        for where in self.layers:
            free = self.owner[where] == 0
            keep = round((1 - self.prune) * int(to_float(free.sum())))
            if keep:
                size = weights[where].abs().masked_fill(~free, -1.0)
                # A view of the whole: topk names each weight once, ties or not.
                self.owner[where][size.topk(keep).indices] = number
            weights[where].masked_fill_(self.owner[where] == 0, 0.0)
        for where in self.others if number == 1 else ():
            self.owner[where] = 1
        for head in self.present_heads():
            self.owner[self.head_of == head] = number
        self._fix(self.owner != number)
        self.retraining = True
        # The task's own schedule has ended, perhaps at a rate of zero: learning again begins one anew,
        # and leaves none of it to the task that comes.
        optimizer = self.learner.optimizer
        optimizer.restart_schedule()
        again = self.steps if self.retrain == "learned" else self.retrain
        for k in range(again if len(self.seen) else 0):
            optimizer.advance(k / again)
            self.learner.descend(material(self.rng.integers(len(self.seen), size=self.rows)))
        self.retraining = False
        optimizer.restart_schedule()
        self._fix(self.owner > 0)

    def _fix(self, fixed: Tensor) -> None:
        self.fixed = fixed & ~self.non_policy
        self.held.copy_(self.learner.optimizer.weights)

    def number(self, task: str) -> int:
        """The number under which a task was learned last; 0 if it was not, or is being learned or
        adapted to. A variant that was never learned counts as its task."""
        found = [k for k, ids in enumerate(self.learned, 1) if task in ids.split("\n")]
        whole = without_variant(task)
        if task in self.task.split("\n") or task in self.adapting.split("\n"):
            return 0
        if not found and whole != task:
            return self.number(whole)
        return found[-1] if found else 0

    def act(self, obs: Any, ctx: Context) -> Array | Sequence[Any]:
        if ctx.learning or not ctx.tasks:
            return self.learner.act(obs, ctx)
        by_task = {task: self.number(task) for task in set(ctx.tasks)}
        numbers = np.array([by_task[task] for task in ctx.tasks])
        if len(set(by_task.values())) == 1:
            return self._act_as(int(numbers[0]), obs, ctx)
        # Tasks side by side: each row by its own weights.
        actions: list[Any] = [None] * len(numbers)
        for number in np.unique(numbers):
            rows = np.flatnonzero(numbers == number)
            tasks = tuple(ctx.tasks[i] for i in rows)
            part = replace(ctx, tasks=tasks, slots=ctx.slots[rows])
            seen = arrays.rows_of(obs, rows)
            for i, action in zip(rows, self._act_as(int(number), seen, part), strict=True):
                actions[i] = action
        return np.stack(actions)

    def _act_as(self, number: int, obs: Any, ctx: Context) -> Array | Sequence[Any]:
        if not number:
            return self.learner.act(obs, ctx)
        weights = self.learner.optimizer.weights
        whole = weights.clone()
        for where in self.layers:
            owner = self.owner[where]
            weights[where].masked_fill_((owner == 0) | (owner > number), 0.0)
        try:
            return self.learner.act(obs, ctx)
        finally:
            weights.copy_(whole)

    def state(self) -> dict[str, Array]:
        learned = "\0".join(self.learned).encode()
        return {
            **self.seen.state("seen"),
            "rows": np.array([self.rows, self.steps]),
            "owner": to_array(self.owner).copy(),
            "learned": np.frombuffer(learned, np.uint8).copy(),
        }

    def load(self, state: State) -> None:
        self.seen.load("seen", state)
        self.rows, self.steps = (int(n) for n in state["rows"])
        self.owner = to_tensor(state["owner"], self.learner.device)
        learned = np.asarray(state["learned"], np.uint8).tobytes().decode()
        self.learned = learned.split("\0") if learned else []
        self._fix(self.owner > 0)


def _layers(learner: TorchLearner) -> tuple[list[slice], list[slice], list[nn.Module]]:
    """Where in the flat vector the weights of each layer lie; where those of the first task do,
    such as biases; and the norm layers."""
    norms: list[nn.Module] = [m for m in learner.net.modules() if isinstance(m, NORMS)]
    scales = {id(p) for norm in norms for p in norm.parameters()}
    layers, others, start = [], [], 0
    own = learner.head_parameters()
    for name, p in learner.parameters().items():
        where = slice(start, start + p.numel())
        start += p.numel()
        if name.startswith(learner.non_policy_parameters) or name in own:
            continue
        if p.dim() > 1 and id(p) not in scales and "bias" not in name:
            layers.append(where)
        else:
            others.append(where)
    return layers, others, norms


def _non_policy(learner: TorchLearner) -> Tensor:
    """Which weights only steer learning. They are free at all times: a policy that is learned again by
    critics that stand still would find their mistakes."""
    parts = [
        torch.full((p.numel(),), name.startswith(learner.non_policy_parameters), device=p.device)
        for name, p in learner.parameters().items()
    ]
    return torch.cat(parts)


def _heads(learner: TorchLearner) -> Tensor:
    """The head that each weight belongs to, where a task has one of its own; else −1."""
    parts, own = [], learner.head_parameters()
    for name, p in learner.parameters().items():
        of = torch.full(p.shape, -1, dtype=torch.int16, device=p.device)
        if name in own:
            for k, part in enumerate(of.chunk(learner.heads, dim=own[name])):
                part.fill_(k)
        parts.append(of.reshape(-1))
    return torch.cat(parts)


strategy = PackNet
