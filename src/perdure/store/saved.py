"""A trained agent as a run's folder holds it: which lifetime's, after which commit, and its arrays."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from perdure.arrays import Array, ChunkedArray, raw_bytes
from perdure.errors import StoreError, UnknownName
from perdure.store.journal import Commit
from perdure.store.run import LifetimeInfo, Run

AGENT = "agent/"
"""How the names of a checkpoint's arrays begin that are what the agent has learned."""
WEIGHTS = ("net.", "net/")
"""How the names of networks' parameters begin in what an agent has learned."""


@dataclass(frozen=True)
class AgentReference:
    """Which trained agent of a run is meant."""

    run: Run
    agent: str = ""
    """Its label; empty if the run has one agent alone."""
    seed: int | None = None
    """Of its lifetime; None: the first."""
    commit: int = -1
    """After which it is taken; -1: the last."""
    expert: str = ""
    """The task of a single-task expert."""


@dataclass(frozen=True)
class SavedAgent:
    """The agent of a lifetime at one of its commits."""

    run: Path
    info: LifetimeInfo
    commit: Commit

    @cached_property
    def description(self) -> dict[str, Any]:
        """What its lifetime is made of: agent, seed, curriculum."""
        return self.info.description

    @cached_property
    def state(self) -> dict[str, Array | ChunkedArray]:
        """Everything that it has learned, as its ``state()`` gave it."""
        saved = self.info.read().load_state(self.commit)
        return {k.removeprefix(AGENT): v for k, v in saved.items() if k.startswith(AGENT)}

    @cached_property
    def sha256(self) -> str:
        """The digest of everything that it has learned."""
        digest = hashlib.sha256()
        for name, value in sorted(self.state.items()):
            array = np.asarray(value)
            digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            digest.update(raw_bytes(np.ascontiguousarray(array)))
        return digest.hexdigest()

    @property
    def weights(self) -> dict[str, Array]:
        """The parameters of its networks by the names that they have there; of an agent without
        networks, all of its numbers."""
        found = {n: np.asarray(v) for n, v in self.state.items() if n.startswith(WEIGHTS)}
        if found:
            return {name[4:]: value for name, value in found.items()}
        every = {name: np.asarray(value) for name, value in self.state.items()}
        return {name: value for name, value in every.items() if value.dtype.kind in "biuf"}

    def __str__(self) -> str:
        return f"{self.info.id} of {self.run}, commit {self.commit.n}"


def saved_agent(which: AgentReference) -> SavedAgent:
    """The agent that a reference means."""
    run, agent, seed, expert = which.run, which.agent, which.seed, which.expert
    infos = [i for i in run.lifetimes() if i.expert == expert and i.status != "damaged"]
    labels = list(dict.fromkeys(i.agent for i in infos))
    label = labels[0] if not agent and len(labels) == 1 else agent
    seeds = {i.seed: i for i in infos if i.agent == label}
    if not seeds:
        if not label:
            raise StoreError(f"name an agent of {run.path}: {', '.join(labels) or 'it has none'}")
        whose = f"expert of {expert} in {run.path}" if expert else f"agent in {run.path}"
        raise UnknownName(whose, label, labels, f"(there: {', '.join(labels) or 'none'})")
    info = seeds.get(min(seeds) if seed is None else seed)
    if info is None:
        there = f"(there: {', '.join(map(str, sorted(seeds)))})"
        raise UnknownName(f"seed of {label} in {run.path}", str(seed), [], there)
    life = info.read()
    held = {c.n: c for c in life.held()}
    if not held:
        why = "a compact copy has no checkpoints" if run.folder.compact else "it has no checkpoint"
        if life.commits and life.commits[-1].checkpoint is None and not run.folder.compact:
            why = "it cannot be saved: its state() gives None"
        raise StoreError(f"{info.path}: the agent cannot be loaded: {why}")
    number = max(held) if which.commit == -1 else which.commit
    if number not in held:
        there = f"(there: {', '.join(map(str, sorted(held)))}; older ones make room for new ones)"
        raise UnknownName(f"commit of {info.path} with a checkpoint", str(number), [], there)
    return SavedAgent(run.path, info, held[number])
