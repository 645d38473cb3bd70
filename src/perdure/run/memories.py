"""Where episodes and trials begin, and when the agent is to forget what it carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perdure.agent import Agent
from perdure.run.guards import agent_fault
from perdure.run.runner import Place
from perdure.types import Array, Exposure


class EpisodeBoundaries:
    """Of the slots of a group: which begin an episode or a trial, and whose memory is to be reset."""

    def __init__(
        self, agent: Agent, place: Place, exposures: Sequence[Exposure], per_exposure: int
    ) -> None:
        self.agent = agent
        slots = len(exposures) * per_exposure
        self.episode_start: Array = np.ones(slots, bool)
        # Where every episode is a trial of its own, one array serves both.
        self.trials = any(e.episodes_per_trial > 1 for e in exposures)
        self.trial_start = np.ones(slots, bool) if self.trials else self.episode_start
        self.begun: list[int] = []
        """Slots whose memory is to be reset before the next step."""
        self.remembers = type(agent).reset_memory is not Agent.reset_memory
        self.carried = _carried(place, exposures, per_exposure)

    def begin(self, slot: int, episode: int, per_trial: int) -> None:
        """An episode begins, which may begin a trial, and may be where the slot's memory ends."""
        self.episode_start[slot] = True
        if not (self.trials or self.remembers):
            return
        first = episode % per_trial == 0
        self.trial_start[slot] = first
        scope = self.agent.memory_scope
        forgets = scope == "episode" or (scope == "trial" and first and slot not in self.carried)
        if self.remembers and forgets:
            self.begun.append(slot)
        if first:
            self.carried.discard(slot)

    def stepped(self, slots: Any) -> None:
        """A step was made in these: nothing begins there now."""
        self.episode_start[slots] = False
        if self.trials:
            self.trial_start[slots] = False

    def reset_memories(self) -> None:
        """Let the agent forget what it carried for slots where something new begins."""
        if self.begun:
            reset_memory(self.agent, self.begun)
            self.begun = []

    def save(self) -> dict[str, Any]:
        """All of it, as plain values."""
        return {
            "episode_start": self.episode_start.tolist(),
            "trial_start": self.trial_start.tolist(),
            "begun": list(self.begun),
            "carried": sorted(self.carried),
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go back to what was saved."""
        self.episode_start[:] = saved["episode_start"]
        self.trial_start[:] = saved["trial_start"]
        self.begun, self.carried = list(saved["begun"]), set(saved["carried"])


def _carried(place: Place, exposures: Sequence[Exposure], per_exposure: int) -> set[int]:
    """Slots whose first trial here is the one they played last: those of an adapt block's
    evaluation, if it is of the tasks that were adapted to."""
    block = place.block
    if block.kind != "adapt" or place.learning:
        return set()
    first = place.first_exposure
    same = [
        j
        for j, e in enumerate(exposures)
        if first + j < len(block.exposures) and block.exposures[first + j].task == e.task
    ]
    return {j * per_exposure + i for j in same for i in range(per_exposure)}


def reset_memory(agent: Agent, slots: Sequence[int]) -> None:
    """Let an agent forget what it carries for some slots."""
    try:
        agent.reset_memory(np.array(slots, np.int64))
    except Exception as e:
        raise agent_fault(agent, "reset_memory", e) from e
