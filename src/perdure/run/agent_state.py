"""An agent's state: taken, put back, and found unchanged by evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from perdure.agent import Agent
from perdure.arrays import ChunkedArray, Content
from perdure.errors import AgentFault
from perdure.run.guards import agent_fault
from perdure.seeds import pack_rng, rng_for, unpack_rng
from perdure.store import state
from perdure.types import Array


class AgentState:
    """What the loop keeps of an agent beside the agent itself.

    ``digest`` and ``contents`` tell during an evaluation how the agent was before it: CRCs of its
    plain arrays, and what its chunked ones held. ``snapshot`` is what an adapt block restores,
    ``learning_rng`` the agent's own generator while it has another one lent. ``adapted`` is what the
    agent remembered when the adaptation of an adapt block ended.
    """

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.digest: dict[str, int] | None = None
        self.contents: dict[str, tuple[Content, ...]] = {}
        self.snapshot: dict[str, Array | ChunkedArray] | None = None
        self.learning_rng: np.random.Generator | None = None
        self.adapted: dict[str, Array] | None = None

    # Evaluation leaves no trace in the agent.

    def begin_evaluation(self, seed: int, block: int, phase: int) -> None:
        """Remember how the agent is, and lend it another generator."""
        saved = self._learned()
        if saved is not None:
            self.digest, self.contents = state.digest(_plain(saved)), _contents(saved)
        self.learning_rng = self.agent.rng
        self.agent.rng = _evaluation_rng(seed, block, phase)
        if phase and self.agent.memory_scope == "trial":
            self.adapted = self._memory()

    def begin_group(self, seed: int, *place: int) -> None:
        """Give the agent what it draws from in this group of an evaluation, and, after an adaptation, the
        memory that this left: no group depends on those before."""
        self.agent.rng = _evaluation_rng(seed, *place)
        if self.adapted:
            self._load_memory({name: np.array(value) for name, value in self.adapted.items()})

    def handed_over(self) -> dict[str, Array | ChunkedArray] | None:
        """What another process needs to evaluate the agent as it is now; None if it cannot be saved."""
        saved = self._whole()
        if saved is None:
            return None
        return saved | (self._memory() if self.adapted is None else self.adapted)

    def end_evaluation(self, block: int) -> None:
        """Give the agent its own generator back, and refuse one that has changed."""
        assert self.learning_rng is not None
        self.agent.rng = self.learning_rng
        self.learning_rng = self.adapted = None
        saved = self._learned()
        if saved is None or self.digest is None:
            return
        self._refuse_changed(state.digest(_plain(saved)), self.digest, block)
        self._refuse_changed(_contents(saved), self.contents, block)
        self.digest, self.contents = None, {}

    def _refuse_changed(
        self, after: Mapping[str, object], before: Mapping[str, object], block: int
    ) -> None:
        names = sorted({*after, *before})
        changed = [n for n in names if after.get(n) != before.get(n)]
        if changed:
            raise AgentFault(
                f"{type(self.agent).__name__} changed in evaluation (block {block}): "
                f"state()[{', '.join(map(repr, changed[:5]))}] differs; act and observe must not "
                "learn when ctx.learning is False. What is carried during an episode belongs into "
                "memory(), not into state()"
            )

    # An adapt block restores what it began with.

    def begin_adapt(self, seed: int, block: int) -> None:
        """Remember the whole agent, and give it a generator of the block's own: adapting to one task
        draws nothing that adapting to another one drew."""
        self.snapshot = self._whole()
        if self.snapshot is None:
            raise AgentFault(
                f"{type(self.agent).__name__}.state() gives None: an agent that cannot be saved "
                "cannot take part in an adapt block, which must restore it"
            )
        self.agent.rng = rng_for(seed, "agent in adapt", block)

    def end_adapt(self) -> None:
        """Bring the agent back to the snapshot."""
        assert self.snapshot is not None
        self._load(self.snapshot)
        self.snapshot = None

    # Checkpoints.

    def save(self, in_block: int | None) -> dict[str, Array | ChunkedArray] | None:
        """Everything of the agent that a checkpoint holds; None if it cannot be saved. What it
        remembers of an episode counts only in the middle of a block."""
        saved = self._whole()
        if saved is None or in_block is None:
            return saved
        if self.digest is not None:
            # Who resumes from here cannot tell what the chunks held before the evaluation.
            self._refuse_changed(_contents(_below("agent/", saved)), self.contents, in_block)
        saved |= self._memory()
        if self.learning_rng is not None:
            saved["rng_eval"] = pack_rng(self.agent.rng)
        if self.snapshot is not None:
            saved |= {f"snapshot/{k}": v for k, v in self.snapshot.items()}
        if self.adapted is not None:
            saved |= {f"adapted/{k}": v for k, v in self.adapted.items()}
        return saved

    def restore(self, arrays: Mapping[str, Any], digest: dict[str, int] | None) -> None:
        """Bring the agent back to a checkpoint."""
        self._load(arrays)
        self.digest = digest
        if digest is not None:
            self.contents = _contents(self._learned() or {})
        self._load_memory(arrays)
        self.adapted = _below("adapted/", arrays) or None
        if "rng_eval" in arrays:
            self.learning_rng = self.agent.rng
            self.agent.rng = unpack_rng(arrays["rng_eval"])
        self.snapshot = _below("snapshot/", arrays) or None

    def _whole(self) -> dict[str, Array | ChunkedArray] | None:
        saved = self._learned()
        if saved is None:
            return None
        out: dict[str, Array | ChunkedArray] = {}
        for name, value in saved.items():
            # Chunks never change; a plain array may be the agent's own.
            out[f"agent/{name}"] = value if isinstance(value, ChunkedArray) else np.array(value)
        out["rng"] = pack_rng(self.learning_rng or self.agent.rng)
        return out

    def _load(self, saved: Mapping[str, Any]) -> None:
        try:
            self.agent.load(_below("agent/", saved))
        except Exception as e:
            raise agent_fault(self.agent, "load", e) from e
        self.agent.rng = unpack_rng(saved["rng"])

    def _learned(self) -> dict[str, Array | ChunkedArray] | None:
        saved = self._call("state")
        return None if saved is None else state.checked(f"{self._name}.state()", saved)

    def _memory(self) -> dict[str, Array]:
        carried = state.checked(f"{self._name}.memory()", self._call("memory"))
        return {f"memory/{name}": np.array(value) for name, value in carried.items()}

    def _load_memory(self, saved: Mapping[str, Any]) -> None:
        try:
            self.agent.load_memory(_below("memory/", saved))
        except Exception as e:
            raise agent_fault(self.agent, "load_memory", e) from e

    def _call(self, method: str) -> Any:
        try:
            return getattr(self.agent, method)()
        except Exception as e:
            raise agent_fault(self.agent, method, e) from e

    @property
    def _name(self) -> str:
        return type(self.agent).__name__


def tasks_are_independent(agent: Agent) -> bool:
    """Whether the evaluation of a task does not depend on those before it in the block: nothing is
    carried from one to the next."""
    if type(agent).memory is not Agent.memory and type(agent).reset_memory is Agent.reset_memory:
        return False
    return agent.memory_scope != "block"


def _evaluation_rng(seed: int, *place: int) -> np.random.Generator:
    return rng_for(seed, "agent in eval", *place)


def _plain(saved: Mapping[str, Array | ChunkedArray]) -> dict[str, Array]:
    return {k: v for k, v in saved.items() if not isinstance(v, ChunkedArray)}


def _contents(saved: Mapping[str, Array | ChunkedArray]) -> dict[str, tuple[Content, ...]]:
    return {k: v.contents for k, v in saved.items() if isinstance(v, ChunkedArray)}


def _below(prefix: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {k[len(prefix) :]: v for k, v in arrays.items() if k.startswith(prefix)}
