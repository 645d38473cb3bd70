"""Feeding data: exposures in epochs or batches, alone or taking turns."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from perdure.arrays import all_finite, leaves
from perdure.errors import AgentFault, EnvironmentFault
from perdure.run.boundaries import context_of
from perdure.run.datasets import Prefetcher
from perdure.run.guards import ARRAYS, action_guard, agent_fault, check_measures
from perdure.run.runner import Experience, Loop, Place, shared_fraction
from perdure.seeds import rng_for
from perdure.spaces import space_leaves
from perdure.suite import Data
from perdure.types import Array, Context, Examples, Exposure


class _Feed:
    """One exposure's data and how much of it has been shown."""

    def __init__(self, exposure: Exposure, data: Data, path: tuple[str | int, ...] | None) -> None:
        self.exposure, self.path = exposure, path
        self.size, self.examples = data.batch_size, len(data)
        if self.examples < 1 or self.size < 1:
            raise EnvironmentFault(f"{exposure.task.id}: expected data, got {len(data)} examples")
        self.per_epoch = -(-self.examples // self.size)
        whole = exposure.amount if exposure.unit == "batches" else exposure.amount * self.per_epoch
        self.total, self.shown = whole, 0
        self.checked = False
        """Whether a minibatch was found to be of the observation space."""
        self._orders: dict[int, Array] = {}

    def upcoming(self, ahead: int) -> Array | None:
        """Indices of the minibatch that comes after ``ahead`` others; None after the last."""
        number = self.shown + ahead
        if number >= self.total:
            return None
        epoch, k = divmod(number, self.per_epoch)
        return self._order(epoch)[k * self.size : (k + 1) * self.size]

    def _order(self, epoch: int) -> Array:
        """Learning shuffles each epoch by its address; evaluation goes through in order."""
        if self.path is None:
            epoch = 0
        if epoch not in self._orders:
            while len(self._orders) > 1:  # Of this epoch and, fetched ahead, of the next.
                del self._orders[min(self._orders)]
            self._orders[epoch] = (
                np.arange(self.examples)
                if self.path is None
                else rng_for(*self.path, epoch).permutation(self.examples)  # type: ignore[arg-type]
            )
        return self._orders[epoch]


class DataRunner:
    """One group of exposures on their data. Side by side means taking turns, a batch each."""

    def __init__(self, loop: Loop, place: Place, exposures: Sequence[Exposure]) -> None:
        self.loop, self.agent, self.place = loop, loop.agent, place
        self.learning, self.exposures = place.learning, exposures
        self.guard = action_guard(loop.config.action_space, type(self.agent).__name__)
        self.feeds: list[_Feed] = []
        self.prefetchers: list[Prefetcher] = []
        self.datasets = loop.config.datasets
        for j, e in enumerate(exposures):
            path = (loop.config.seed, "data", *place.address, j) if self.learning else None
            dataset = self.datasets.open(e.task, self.learning)
            self.feeds.append(_Feed(e, dataset.data, path))
            self.prefetchers.append(Prefetcher(dataset.fetch))
        self.length = sum(f.total for f in self.feeds)
        self.phrasings = [loop.config.phrasings(e.task) for e in exposures]
        self.contexts: dict[tuple[int, int, str], Context] = {}

    def save(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """How many batches of each exposure were shown."""
        return {"shown": [f.shown for f in self.feeds]}, {}

    def restore(self, position: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Go on after the batches already shown."""
        for f, shown in zip(self.feeds, position["shown"], strict=True):
            f.shown = shown

    def run(self) -> None:
        """Show every batch."""
        try:
            while waiting := [(j, f) for j, f in enumerate(self.feeds) if f.shown < f.total]:
                # After a resume in mid-turn the one that is behind goes first, as it would have.
                least = min(f.shown for _, f in waiting)
                for j, feed in waiting:
                    if feed.shown == least:
                        self._show(j, feed)
        finally:
            for prefetcher in self.prefetchers:
                prefetcher.close()
            for e in self.exposures:
                self.datasets.close(e.task, self.learning)

    def _show(self, j: int, feed: _Feed) -> None:
        loop, agent, e, number = self.loop, self.agent, feed.exposure, feed.shown
        batch = self.prefetchers[j].next(feed.upcoming)
        feed.shown += 1
        n = len(batch)
        self._check(batch, e, number)
        if not feed.checked:
            self._check_space(batch, e, number)
            feed.checked = True
        ctx = self._context(j, n, number)
        measures: Mapping[str, float] | None
        if self.learning:
            try:
                measures = agent.learn(batch, ctx)
            except Exception as error:
                raise agent_fault(agent, "learn", error) from error
            if measures is not None:
                measures = check_measures(measures, f"{type(agent).__name__}.learn")
        else:
            measures = self._score(batch, ctx)
        loop.count(1, n, self.learning)
        row = Experience(
            e, j, slot=0, episode=number, trial=number, seed=None, trial_seed=None, steps=n,
            status="complete", terminated=False, truncated=False, measures=dict(measures or {}),
        )  # fmt: skip
        loop.add_row(self.place, row)
        if loop.until_commit <= 0 or time.monotonic() >= loop.next_beat:
            loop.tick(self)

    def _context(self, j: int, n: int, number: int) -> Context:
        """The same object for all minibatches of one size and phrasing."""
        phrasings = self.phrasings[j]
        words = phrasings[number % len(phrasings)] if phrasings else ""
        key = (j, n, words)
        if key not in self.contexts:
            self.contexts[key] = context_of(
                self.loop.config,
                self.place,
                [self.exposures[j]] * n,
                np.arange(n),
                np.zeros(n, bool),
                instructions=[words] * n,
                length=self.length,
                fraction=shared_fraction(self),
            )
        return self.contexts[key]

    def _check(self, batch: Examples, e: Exposure, number: int) -> None:
        parts = leaves(batch.inputs)
        for name, part in parts.items():
            if np.ndim(part) < 1 or len(part) != len(batch):
                raise EnvironmentFault(
                    f"data of {e.task.id}, batch {number}: expected {len(batch)} inputs, as many as "
                    f"targets, got {name or 'an array'} of shape {np.shape(part)}"
                )
        for what, values in (("inputs", parts), ("targets", batch.targets)):
            if not all_finite(values):
                raise EnvironmentFault(
                    f"data of {e.task.id}, batch {number}: expected finite {what}, got NaN or infinity"
                )

    def _check_space(self, batch: Examples, e: Exposure, number: int) -> None:
        """Inputs must have the parts and shapes of the observation space; of sequences, at every step."""
        space = self.loop.config.observation_space
        expected, found = space_leaves(space), leaves(batch.inputs)
        where = f"data of {e.task.id}, batch {number}: expected inputs in {space}, got"
        if expected.keys() != found.keys():
            raise EnvironmentFault(f"{where} {_listed(found)} in place of {_listed(expected)}")
        for name, part in expected.items():
            shape = np.shape(found[name])[1:]
            if isinstance(part, ARRAYS) and part.shape not in (shape, shape[1:]):
                raise EnvironmentFault(
                    f"{where} {name or 'an array'} of shape {shape} for each example in place of {part.shape}"
                )

    def _score(self, batch: Examples, ctx: Context) -> dict[str, float]:
        """Accuracy (of several choices at once, over all of them), or mean squared error; of
        sequences, over all their steps."""
        try:
            answers = self.agent.act(batch.inputs, ctx)
        except Exception as error:
            raise agent_fault(self.agent, "act", error) from error
        space, targets = self.loop.config.action_space, np.asarray(batch.targets)
        single = np.ndim(targets) - len(space.shape or ())
        if single > 1:
            # Sequences: an answer for each of their steps.
            lead, given = targets.shape[:single], np.asarray(answers)
            if given.shape[:single] != lead:
                raise AgentFault(
                    f"{type(self.agent).__name__}.act: expected an answer for each step of "
                    f"{lead} sequences, got an array of shape {given.shape}"
                )
            flat = given.reshape(-1, *given.shape[single:])
            given = np.asarray(self.guard(flat, len(flat))).reshape(targets.shape)
        else:
            given = np.asarray(self.guard(answers, len(batch)))
        if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)):
            return {"accuracy": float(np.mean(given == targets))}
        return {"loss": float(np.mean((given - targets) ** 2))}

    @property
    def fractions(self) -> list[tuple[Exposure, float]]:
        """How much of each exposure is done."""
        return [(f.exposure, f.shown / f.total) for f in self.feeds]


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(name or "an array" for name in sorted(parts)) or "nothing"
