"""The experts as an agent, which plays them in runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from perdure.agent import Agent
from perdure.errors import AgentFault, SpecError
from perdure.suites.libero.env import look_of, scene_of
from perdure.suites.libero.experts import Expert
from perdure.suites.libero.played import problem_played
from perdure.types import Array, Context, Setup, State


class ExpertAgent(Agent):
    """Reads the simulation's whole state and must know which task it is at.

    A script cannot be written down in its middle; what it has seen in the episode can, and the same
    script comes to the same place from it.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        parts = getattr(setup.observation_space, "spaces", {})
        if "privileged" not in parts:
            raise SpecError(
                "expert reads the whole state of LIBERO's simulation: set privileged = true (in a "
                "curriculum: libero/eval-object,privileged=true)"
            )
        self.problems = {task.id: problem_played(task) for task in setup.shown_tasks}
        if strange := [t for t in setup.tasks if t not in self.problems]:
            raise SpecError(
                f"expert must be told what {strange[0]} is: give its Task in Setup.shown_tasks"
            )
        self.experts: dict[tuple[int, str, str], Expert] = {}
        self.playing: dict[int, str] = {}
        self.seen: dict[int, list[Array]] = {}

    def act(self, obs: Any, ctx: Context) -> Array:
        assert ctx.tasks is not None
        actions = np.empty((len(ctx.slots), 7), np.float32)
        for row, (slot, task) in enumerate(zip(ctx.slots.tolist(), ctx.tasks, strict=True)):
            if ctx.episode_start[slot] or self.playing.get(slot) != task:
                self._begin(slot, task)
            actions[row] = self._next(slot, np.asarray(obs["privileged"][row], np.float64))
        return actions

    def _begin(self, slot: int, task: str) -> None:
        self.playing[slot], self.seen[slot] = task, []

    def _next(self, slot: int, seen: Array) -> Array:
        if not seen.any():
            raise AgentFault("expert was shown an empty state")
        task, look = self.playing[slot], look_of(seen)
        if not self.seen[slot]:
            if (slot, task, look) not in self.experts:
                scene = scene_of(self.problems[task], look)
                self.experts = {k: v for k, v in self.experts.items() if k[0] != slot}
                self.experts[slot, task, look] = Expert(scene)
            self.experts[slot, task, look].reset()
        self.seen[slot].append(seen)
        expert = self.experts[slot, task, look]
        return expert.act(seen[: expert.world.size])

    def reset_memory(self, slots: Array) -> None:
        for slot in np.asarray(slots).tolist():
            self.playing.pop(slot, None)
            self.seen.pop(slot, None)

    def memory(self) -> State:
        kept: dict[str, Array] = {}
        for slot, task in self.playing.items():
            kept[f"{slot}/task"] = np.frombuffer(task.encode(), np.uint8).copy()
            kept[f"{slot}/seen"] = np.array(self.seen[slot])
        return kept

    def load_memory(self, memory: State) -> None:
        self.playing, self.seen = {}, {}
        for name in memory:
            slot, _, what = name.partition("/")
            if what == "task":
                self._begin(int(slot), np.asarray(memory[name], np.uint8).tobytes().decode())
                for seen in np.asarray(memory[f"{slot}/seen"]):
                    self._next(int(slot), seen)
