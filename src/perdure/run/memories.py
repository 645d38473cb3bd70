"""Where episodes and trials begin, and when the agent is to forget what it carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perdure.agent import Agent
from perdure.run.guards import agent_fault
from perdure.run.runner import LastTrials
from perdure.types import Array, Exposure


class EpisodeBoundaries:
    """Of the slots of a group: which begin an episode or a trial, and whose memory is to be reset."""

    def __init__(
        self,
        agent: Agent,
        exposures: Sequence[Exposure],
        slots: int,
        carried: set[int],
    ) -> None:
        self.agent = agent
        self.episode_start: Array = np.ones(slots, bool)
        # Where every episode is a trial of its own, one array serves both.
        self.trials = any(e.episodes_per_trial > 1 for e in exposures)
        self.trial_start = np.ones(slots, bool) if self.trials else self.episode_start
        self.begun: list[int] = []
        """Slots whose memory is to be reset before the next step."""
        self.remembers = type(agent).reset_memory is not Agent.reset_memory
        self.carried = carried
        """Slots whose first trial here is the one they played last."""

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

    def reset_memories(self, acting: Sequence[int]) -> None:
        """Let the agent forget what it carried for those of the slots that act now where something new
        begins. A slot whose budget ends before it acts keeps what it carries."""
        if due := [slot for slot in self.begun if slot in acting]:
            reset_memory(self.agent, due)
            self.begun = [slot for slot in self.begun if slot not in acting]

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


def adapted_trials(
    last: LastTrials, exposures: Sequence[Exposure], per_exposure: int
) -> list[dict[int, int]]:
    """For each exposure, of its slots that adapted to its task last: to which of the task's trials."""
    return [
        {
            i: last[j * per_exposure + i][1]
            for i in range(per_exposure)
            if last.get(j * per_exposure + i, ("", 0))[0] == e.task.key
        }
        for j, e in enumerate(exposures)
    ]


def reset_memory(agent: Agent, slots: Sequence[int]) -> None:
    """Let an agent forget what it carries for some slots."""
    try:
        agent.reset_memory(np.array(slots, np.int64))
    except Exception as e:
        raise agent_fault(agent, "reset_memory", e) from e
