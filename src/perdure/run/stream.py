"""Feeding data: exposures in epochs or batches, alone or taking turns."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from perdure.agent import Agent
from perdure.errors import EnvironmentFault
from perdure.run.guards import action_guard, agent_fault, check_measures
from perdure.run.vector import fault
from perdure.seeds import rng_for
from perdure.types import Array, Data, Examples, Exposure

if TYPE_CHECKING:
    from perdure.run.loop import Life


class _Feed:
    """One exposure's data and how much of it has been shown."""

    def __init__(self, exposure: Exposure, data: Data, path: tuple[str | int, ...] | None) -> None:
        self.exposure, self.data, self.path = exposure, data, path
        if len(data) < 1 or data.batch_size < 1:
            raise EnvironmentFault(f"{exposure.task.id}: expected data, got {len(data)} examples")
        self.per_epoch = -(-len(data) // data.batch_size)
        whole = exposure.amount if exposure.unit == "batches" else exposure.amount * self.per_epoch
        self.total, self.shown = whole, 0
        self._epoch, self._order = -1, np.arange(len(data))

    def next(self) -> Array:
        """Indices of the next minibatch. Learning shuffles each epoch by its address."""
        epoch, k = divmod(self.shown, self.per_epoch)
        if self.path is not None and epoch != self._epoch:
            self._order = rng_for(*self.path, epoch).permutation(len(self.data))  # type: ignore[arg-type]
            self._epoch = epoch
        self.shown += 1
        size = self.data.batch_size
        return self._order[k * size : (k + 1) * size]


class Stream:
    """One group of exposures on their data. Side by side means taking turns, a batch each."""

    def __init__(
        self, life: Life, agent: Agent, exposures: Sequence[Exposure], learning: bool
    ) -> None:
        self.life, self.agent, self.learning = life, agent, learning
        self.exposures = exposures
        self.guard = action_guard(life.setting.action_space, type(agent).__name__)
        self.feeds = []
        for j, e in enumerate(exposures):
            try:
                data = life.setting.suites[e.task.suite].data(e.task, learning)
            except Exception as error:
                raise fault(f"data of {e.task.id}", error) from error
            path = (life.setting.seed, "data", *life.place, j) if learning else None
            self.feeds.append(_Feed(e, data, path))

    def save(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """How many batches of each exposure were shown."""
        return {"shown": [f.shown for f in self.feeds]}, {}

    def restore(self, position: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Go on after the batches already shown."""
        for f, shown in zip(self.feeds, position["shown"], strict=True):
            f.shown = shown

    def run(self) -> None:
        """Show every batch."""
        while waiting := [(j, f) for j, f in enumerate(self.feeds) if f.shown < f.total]:
            # After a resume in mid-turn the one that is behind goes first, as it would have.
            least = min(f.shown for _, f in waiting)
            for j, feed in waiting:
                if feed.shown == least:
                    self._show(j, feed)

    def _show(self, j: int, feed: _Feed) -> None:
        life, agent, e = self.life, self.agent, feed.exposure
        number = feed.shown
        try:
            batch = feed.data.batch(feed.next())
        except Exception as error:
            raise fault(f"data of {e.task.id}", error) from error
        n = len(batch)
        if np.asarray(batch.inputs).dtype.kind == "f" and not np.isfinite(batch.inputs).all():
            raise EnvironmentFault(
                f"data of {e.task.id}: expected finite inputs, got NaN or infinity in batch {number}"
            )
        ctx = life.context(self.learning, [e.task.id] * n, np.arange(n), np.zeros(n, bool))
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
        life.count(n, self.learning)
        life.row(
            e,
            life.first_exposure + j,
            slot=0,
            episode=number,
            seed=None,
            steps=n,
            status="complete",
            terminated=False,
            truncated=False,
            measures=dict(measures or {}),
        )
        if life.until_commit <= 0 or time.monotonic() >= life.next_beat:
            life.tick(self)

    def _score(self, batch: Examples, ctx: Any) -> dict[str, float]:
        try:
            answers = self.agent.act(batch.inputs, ctx)
        except Exception as error:
            raise agent_fault(self.agent, "act", error) from error
        given = np.asarray(self.guard(answers, len(batch)))
        if isinstance(self.life.setting.action_space, spaces.Discrete):
            return {"accuracy": float(np.mean(given == batch.targets))}
        return {"loss": float(np.mean((given - batch.targets) ** 2))}

    @property
    def fraction(self) -> list[tuple[Exposure, float]]:
        """How far each exposure is."""
        return [(f.exposure, f.shown / f.total) for f in self.feeds]
