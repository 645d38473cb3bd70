"""Tabular Q-learning: a table of action values, one row for each observation ever seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from perdure.agent import Agent
from perdure.agents.networks.checks import check_ranges, check_spaces, transitions_of
from perdure.agents.networks.exploration import EpsilonGreedy
from perdure.agents.networks.joint_actions import JointActions
from perdure.arrays import leaves
from perdure.spaces import ALL, JOINT
from perdure.types import Array, Batch, Context, Measures, Setup, State


class QAgent(Agent):
    """Watkins' Q-learning. Of MultiDiscrete and MultiBinary actions every combination is one.

    ``lr`` is the step size, ``gamma`` the discount; epsilon falls to ``epsilon`` over ``explore``
    learned steps, again for every new task if ``restart``. Observations are equal when their bytes
    are; unseen ones are worth ``initial`` whatever is done, and are not entered in evaluation.
    """

    learns_from = ("environments",)
    needs_rewards = True
    reads, acts_in = ALL, JOINT

    def __init__(
        self,
        setup: Setup,
        lr: float = 0.5,
        gamma: float = 0.95,
        epsilon: float = 0.05,
        explore: int = 1000,
        restart: bool = True,
        initial: float = 0.0,
    ) -> None:
        super().__init__(setup)
        check_ranges("q", lr=(lr, 0, 1), gamma=(gamma, 0, 1), epsilon=(epsilon, 0, 1))
        check_ranges("q", explore=(explore, 0, np.inf))
        check_spaces(type(self), setup)
        self.lr, self.gamma, self.initial = lr, gamma, initial
        self.actions = JointActions(setup.action_space)
        self.explore = EpsilonGreedy(epsilon, explore, restart)
        self.rows: dict[bytes, int] = {}
        # Row 0 stands for everything unseen and never changes; the table doubles as it fills.
        self.table: Array = np.full((64, self.actions.count), initial)

    def act(self, obs: Any, ctx: Context) -> Array:
        seen = [self.rows.get(key, 0) for key in keys_of(obs)]
        return self.actions.to_space(self.explore.choose(self.table[seen], self.rng, ctx))

    def learn(self, batch: Batch, ctx: Context) -> Measures:
        moves, rewards = transitions_of("q", batch)
        # One after another: slots may stand on the same row.
        errors = 0.0
        for key, action, reward, over, after in zip(
            keys_of(moves.obs),
            self.actions.numbers(moves.actions).tolist(),
            rewards.tolist(),
            moves.terminated.tolist(),
            keys_of(moves.next_obs),
            strict=True,
        ):
            # Only a true end is worth nothing more; after a truncation life would have gone on.
            future = 0.0 if over else float(self.table[self.rows.get(after, 0)].max())
            row = self._row(key)
            error = reward + self.gamma * future - float(self.table[row, action])
            self.table[row, action] += self.lr * error
            errors += abs(error)
        self.explore.learned += len(moves)
        return {"td_error": errors / len(moves)}

    def _row(self, key: bytes) -> int:
        row = self.rows.setdefault(key, len(self.rows) + 1)
        if row == len(self.table):
            self.table = np.concatenate([self.table, np.full_like(self.table, self.initial)])
        return row

    def enter(self, ctx: Context) -> None:
        self.explore.enter(ctx)

    def state(self) -> dict[str, Array]:
        n = len(self.rows)
        keys = np.frombuffer(b"".join(self.rows), np.uint8).reshape(n, -1 if n else 0)
        return {"keys": keys.copy(), "table": self.table[: n + 1].copy(), **self.explore.state()}

    def load(self, state: State) -> None:
        keys, table = np.ascontiguousarray(state["keys"]), np.asarray(state["table"])
        self.rows = {key.tobytes(): i for i, key in enumerate(keys, start=1)}
        room = max(64, 1 << len(table).bit_length())
        self.table = np.full((room, table.shape[1]), self.initial)
        self.table[: len(table)] = table
        self.explore.load(state)


def keys_of(obs: Any) -> list[bytes]:
    """The bytes of each observation of a batch; of nested ones those of all parts."""
    parts = [[row.tobytes() for row in np.asarray(part)] for part in leaves(obs).values()]
    return parts[0] if len(parts) == 1 else [b"".join(rows) for rows in zip(*parts, strict=True)]


agent = QAgent
