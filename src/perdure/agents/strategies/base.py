"""What a strategy is: hooks around a learner's steps, and a word when a task begins and ends.

A learner shows the strategy what comes in once, by ``collect``; from that a sample of the past is
kept. One step of a learner, ``descend``, with a strategy::

    batch = strategy.extend(batch)              # add rows of the past
    for part in strategy.split(batch):          # one, unless their gradients are to be compared
        loss = strategy.objective(part, loss)   # add a penalty
        backward
    strategy.merge(gradients)                   # where there are several
    strategy.project()                          # change gradients
    clip, optimiser step; strategy.stepped()    # look at, or undo, what moved

Acting goes through ``strategy.act``, so that a task may have parameters of its own.

When a task begins and ends is for :class:`TaskBoundary` to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
from torch import Tensor

from perdure import registry
from perdure.agent import Agent
from perdure.agents.networks.learner import Minibatch, NewRows, TorchLearner
from perdure.agents.task_boundary import TaskBoundary
from perdure.errors import PerdureError, SpecError
from perdure.types import Array, Batch, Block, Context, Measures, ResultsSoFar, State, Transitions

Offers: TypeAlias = TorchLearner | type[TorchLearner]
"""A learner, or its class: what it offers is said by class attributes wherever it can be."""

NEEDS: dict[str, tuple[Callable[[Offers], bool], str]] = {
    "replay": (
        lambda learner: learner.replayable,
        "its loss is meaningless on rows of the past: they were drawn by an older policy",
    ),
    "data": (
        lambda learner: "data" in learner.learns_from,
        "it learns from environments, and this strategy replays labelled inputs",
    ),
    "logits": (
        lambda learner: learner.predicts == "logits",
        "it predicts real numbers, not classes",
    ),
    "rows": (
        lambda learner: not learner.sequences,
        "its minibatches are sequences, and this strategy reads one prediction for each row",
    ),
    "units": (
        lambda learner: not learner.sequences,
        "its units are recurrent, or shared by the steps of a sequence: to cut off what leads out of one and "
        "reinitialise it is not defined where that leads into itself at the next step. shrink_perturb, l2_init "
        "and layer_norm=true work with it",
    ),
    "rows or replay": (
        lambda learner: learner.replayable or not learner.sequences,
        "its minibatches are sequences that mean nothing once they are past, and this strategy reads "
        "one prediction for each row",
    ),
    "rows or data": (
        lambda learner: "data" in learner.learns_from or not learner.sequences,
        "its minibatches are sequences without labels, and this strategy reads one prediction for "
        "each row",
    ),
    "one head": (
        lambda learner: learner.heads == 1,
        "it has a head for each task, and this strategy generates inputs that belong to none",
    ),
    "tasks": (
        lambda learner: learner.rows_tell_task,
        "its minibatches are not drawn from every task, nor say which one a row is of",
    ),
    "layers": (
        lambda learner: learner.plain_layers,
        "its network is not of plain layers, in which each unit has weights in and out of its own",
    ),
    "encoder": (
        lambda learner: hasattr(learner, "encode") and hasattr(learner, "decide"),
        "it has no encoder (encode, decide) for the strategy to read from",
    ),
}
"""What a strategy may ask of a learner, beyond a loss, predictions, parameters and an optimiser."""

CLOSED = (
    "it is a closed box: strategies work with learners that offer a loss, predictions, parameters "
    "and an optimiser"
)


def why_not(strategy: type[Strategy], learner: Any) -> str:
    """Why a strategy cannot work with a learner or a class of learners; empty if it can. An agent
    that is no such learner may say why, as ``closed``."""
    kind = learner if isinstance(learner, type) else type(learner)
    if not issubclass(kind, TorchLearner):
        return str(getattr(learner, "closed", CLOSED))
    for need in strategy.needs:
        offered, reason = NEEDS[need]
        if not offered(learner):
            return reason
    return ""


def works_with(strategy: type[Strategy]) -> tuple[list[str], dict[str, str]]:
    """Names of the learners a strategy works with; and of those it does not, with the reason.

    Classes alone decide, no set-up is made. What a class leaves to its instances, as PPO leaves
    whether it predicts logits, is asked again when the agent is made. Adapters wrap other
    libraries' agents, and so do suites that bring some: they are closed boxes and not loaded. A learner that cannot be loaded is
    refused in the words of its error.
    """
    able: list[str] = []
    refused: dict[str, str] = {}
    for name, entry in registry.entries("agents").items():
        if entry.source.startswith(("perdure.agents.adapters.", "perdure.suites.")):
            refused[name] = CLOSED
            continue
        try:
            learner = registry.load("agents", name)
        except PerdureError as e:
            refused[name] = str(e)
            continue
        reason = why_not(strategy, learner)
        if reason:
            refused[name] = reason
        else:
            able.append(name)
    return able, refused


class Strategy:
    """Keeps nothing; the base of all strategies. Override the hooks that are needed."""

    needs: ClassVar[tuple[str, ...]] = ()
    """Names of :data:`NEEDS`."""
    weight: float = 0.0
    """The present task's part of a loss that has one for the past; 0 is its fair share."""

    def __init__(self, learner: TorchLearner) -> None:
        name = type(self).__module__.rpartition(".")[2]
        reason = why_not(type(self), learner)
        if reason:
            raise SpecError(
                f"strategy {name} cannot work with {type(learner).__name__}: {reason} "
                f"(perdure ls strategies {name} says what works together)"
            )
        self.learner = learner
        self.task = ""
        """Key of the task being learned; empty before the first."""
        self.tasks = 0
        """How many tasks have begun; one that comes again counts again."""
        self.adapting = ""
        """In an adapt block: ids of the tasks it has taught so far, a line each. Its end brings back
        everything as it was before."""

    def agent(self) -> ComposedAgent:
        """The learner composed with this strategy."""
        return ComposedAgent(self.learner, self)

    @property
    def rng(self) -> np.random.Generator:
        """The agent's generator, which the loop checkpoints."""
        return self.learner.rng

    @property
    def past(self) -> int:
        """How many tasks are over."""
        return max(self.tasks - 1, 0)

    @property
    def present(self) -> float:
        """The present task's part of the loss: ``weight``, or its fair share, 1 / the number of
        tasks so far."""
        return self.weight or 1 / max(self.tasks, 1)

    def present_heads(self) -> list[int]:
        """The heads of the tasks being learned, where each task has one."""
        if self.learner.heads == 1:
            return []
        return [self.learner.tasks.numbers[task] for task in self.task.split("\n")]

    def collect(self, rows: NewRows) -> None:
        """Rows of the present task, each given once; a data set's come again with every epoch."""

    def extend(self, batch: Minibatch) -> Minibatch:
        """The minibatch to learn from."""
        return batch

    def objective(self, batch: Minibatch, loss: Tensor) -> Tensor:
        """The loss to descend."""
        return loss

    def split(self, batch: Minibatch) -> Sequence[Minibatch]:
        """The minibatch in parts that each give a gradient of their own."""
        return (batch,)

    def merge(self, gradients: Sequence[Tensor]) -> None:
        """Write into ``learner.optimizer.grads`` what is to be followed of several parts' gradients, each
        flat as these."""
        raise NotImplementedError

    def project(self) -> None:
        """Change the gradients of ``learner.optimizer`` in place."""

    def stepped(self) -> None:
        """The optimiser has moved the parameters."""

    def begin(self) -> None:
        """Another task begins; ``tasks`` counts it already."""

    def end(self) -> None:
        """The task is over: the next has not begun."""

    def act(self, obs: Any, ctx: Context) -> Array | Sequence[Any]:
        """What the learner does. Parameters of a task's own may be put in place here, and must be
        taken back: evaluation leaves no trace."""
        return self.learner.act(obs, ctx)

    def state(self) -> dict[str, Array]:
        """What the strategy keeps, as arrays."""
        return {}

    def load(self, state: State) -> None:
        """Take over what :meth:`state` gave."""


class ComposedAgent(Agent):
    """A learner composed with a strategy: an agent like any other."""

    def __init__(self, learner: TorchLearner, strategy: Strategy) -> None:
        self.learner, self.strategy, self.setup = learner, strategy, learner.setup
        self.observation_space, self.action_space = learner.observation_space, learner.action_space
        learner.strategy = strategy
        self.boundary = TaskBoundary()
        self.learns_from = learner.learns_from  # type: ignore[misc]
        self.needs_rewards = learner.needs_rewards  # type: ignore[misc]
        self.memory_scope = learner.memory_scope

    @property
    def rng(self) -> np.random.Generator:
        """The learner's generator: the loop checkpoints and lends it."""
        return self.learner.rng

    @rng.setter
    def rng(self, value: np.random.Generator) -> None:
        self.learner.rng = value

    def act(self, obs: Any, ctx: Context) -> Array | Sequence[Any]:
        return self.strategy.act(obs, ctx)

    def learn(self, batch: Batch, ctx: Context) -> Measures | None:
        return self.learner.learn(batch, ctx)

    def observe(self, batch: Transitions, ctx: Context) -> None:
        self.learner.observe(batch, ctx)

    def diagnose(self) -> Measures | None:
        return self.learner.diagnose()

    def choose(self, options: Sequence[Block], results: ResultsSoFar) -> int:
        return self.learner.choose(options, results)

    def enter(self, ctx: Context) -> None:
        if self.boundary.enter(ctx):
            if self.strategy.tasks:
                self.strategy.end()
            self._tell()
            self.strategy.begin()
        elif ctx.kind == "adapt":
            self.boundary.adapts(ctx)
            self._tell()
        self.learner.enter(ctx)

    def _tell(self) -> None:
        self.strategy.task, self.strategy.tasks = self.boundary.current, self.boundary.count
        self.strategy.adapting = self.boundary.adapting

    def leave(self, ctx: Context) -> None:
        self.learner.leave(ctx)

    def reset_memory(self, slots: Array) -> None:
        self.learner.reset_memory(slots)

    def memory(self) -> State:
        return self.learner.memory()

    def load_memory(self, memory: State) -> None:
        self.learner.load_memory(memory)

    def state(self) -> State | None:
        inner = self.learner.state()
        return {
            **inner,
            **{f"strategy.{k}": v for k, v in self.strategy.state().items()},
            **self.boundary.state("strategy.boundary"),
        }

    def load(self, state: State) -> None:
        kept = {
            k.removeprefix("strategy."): v for k, v in state.items() if k.startswith("strategy.")
        }
        self.boundary.load("boundary", kept)
        kept = {k: v for k, v in kept.items() if not k.startswith("boundary.")}
        self._tell()
        self.learner.load({k: v for k, v in state.items() if not k.startswith("strategy.")})
        self.strategy.load(kept)
