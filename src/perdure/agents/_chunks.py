"""What agents share that ask a policy for chunks of actions: when to ask, and what is left of a chunk."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from perdure.agent import Agent
from perdure.errors import AgentFault
from perdure.policies.interface import Interface, View
from perdure.types import Array, Context, Setup, State

MOST = 1024
"""Actions of a chunk that are kept."""


class ChunkAgent(Agent):
    """Asks for a chunk of actions where none is left, for all environments that need one together, and
    executes as many of it as the protocol says. What is left is memory: it ends with the episode."""

    def __init__(self, setup: Setup, replan: int | None = None) -> None:
        super().__init__(setup)
        self.interface = Interface.of(setup, replan)
        self.chunks = np.zeros((setup.slots, self.interface.replan or 1, self.interface.actions))
        self.next = np.zeros(setup.slots, np.int64)
        """Of each slot's chunk, the action that comes next."""
        self.left = np.zeros(setup.slots, np.int64)
        """Actions left of it."""
        self.began = np.ones(setup.slots, bool)
        """Slots whose episode the policy has not seen yet."""

    @abstractmethod
    def query(self, views: Sequence[View]) -> Sequence[Any]:
        """A chunk for each of some environments, as the policy gives it."""

    @property
    @abstractmethod
    def who(self) -> str:
        """The policy, for errors."""

    def act(self, obs: Any, ctx: Context) -> Array:
        rows = [k for k, slot in enumerate(ctx.slots) if not self.left[slot]]
        if rows:
            views = [self._view(obs, k, ctx) for k in rows]
            found = self.query(views)
            if len(found) != len(views):
                raise AgentFault(f"{self.who}: expected {len(views)} chunks, got {len(found)}")
            for view, chunk in zip(views, found, strict=True):
                self._keep(view.slot, self.interface.chunk(chunk, self.who))
        slots = np.asarray(ctx.slots)
        actions = self.chunks[slots, self.next[slots]]
        self.next[slots] += 1
        self.left[slots] -= 1
        given: Array = actions.astype(self.action_space.dtype)
        return given

    def skips_observation(self, slots: Array) -> Array:
        unread: Array = self.left[slots] > 0
        return unread

    def _view(self, obs: Any, k: int, ctx: Context) -> View:
        slot = int(ctx.slots[k])
        prompt = ctx.instructions[k] if ctx.instructions else ""
        task = ctx.tasks[k] if ctx.tasks else ""
        first = bool(self.began[slot])
        self.began[slot] = False
        return self.interface.view(obs, k, prompt=prompt, slot=slot, first=first, task=task)

    def _keep(self, slot: int, chunk: Array) -> None:
        count = min(len(chunk), MOST)
        if count > self.chunks.shape[1]:
            more = np.zeros((len(self.chunks), count - self.chunks.shape[1], chunk.shape[1]))
            self.chunks = np.concatenate([self.chunks, more], axis=1)
        self.chunks[slot, :count] = chunk[:count]
        self.next[slot], self.left[slot] = 0, count

    def reset_memory(self, slots: Array) -> None:
        self.left[slots] = self.next[slots] = 0
        self.began[slots] = True

    def memory(self) -> State:
        return {
            "chunks": self.chunks.copy(),
            "next": self.next.copy(),
            "left": self.left.copy(),
            "began": self.began.copy(),
        }

    def load_memory(self, memory: State) -> None:
        self.chunks, self.next, self.left = (
            np.array(memory[name]) for name in ("chunks", "next", "left")
        )
        self.began = np.array(memory["began"], bool)
