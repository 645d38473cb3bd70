"""Several environments of one task, on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perdure.suite import Episode
from perdure.suites._env_processes import EnvHost, env_hosts
from perdure.suites.libero.env import Libero


class BatchedLibero:
    """Environments that are stepped by one call: some in this process, the others in processes of
    their own, because the robot's controller, in Python, has a part in each of 25 physics steps."""

    def __init__(self, made: Callable[[], Libero], count: int, processes: int) -> None:
        """``made`` makes one of them, in whatever process."""
        self.hosts = env_hosts(os.getpid(), processes)
        self.slots: list[tuple[EnvHost, int]] = []
        """Where each slot's environment is, and its number there."""
        self.asked: list[tuple[EnvHost, int, list[int]]] = []
        """Requests under way, with the rows that each steps."""
        self.skipped: frozenset[int] = frozenset()
        """Slots whose next pictures nobody looks at."""
        try:
            for _ in range(count):
                host = min(self.hosts, key=lambda h: h.held)
                self.slots.append((host, host.make(made)))
        except BaseException:
            self.close()
            raise

    def reset(self, slot: int, episode: Episode) -> Any:
        """Begin an episode."""
        host, number = self.slots[slot]
        return host.answer(host.ask([(number, "begin", (episode,))]))[0]

    def expect(self, episodes: Sequence[Episode]) -> None:
        """Not of use: a state is set in milliseconds."""

    def skip_pictures(self, slots: Sequence[int]) -> None:
        """Draw nothing for these in the next step."""
        self.skipped = frozenset(slots)

    def step_async(self, slots: Sequence[int], actions: Sequence[Any]) -> None:
        """Have the other processes begin."""
        self.asked = []
        for host in self.hosts:
            rows = [k for k, slot in enumerate(slots) if self.slots[slot][0] is host]
            if rows:
                drawn = [slots[k] not in self.skipped for k in rows]
                calls = [
                    (self.slots[slots[k]][1], "move", (actions[k], d))
                    for k, d in zip(rows, drawn, strict=True)
                ]
                self.asked.append((host, host.ask(calls), rows))

    def step(
        self, slots: Sequence[int], actions: Sequence[Any]
    ) -> tuple[Any, list[float], list[bool], list[bool], Mapping[int, Mapping[str, Any]]]:
        """Move all, look at all."""
        if not self.asked:
            self.step_async(slots, actions)
        stepped: list[Any] = [None] * len(slots)
        asked, self.asked, self.skipped = self.asked, [], frozenset()
        for host, request, rows in asked:  # This process, the first of them, moves its own now.
            for k, found in zip(rows, host.answer(request), strict=True):
                stepped[k] = found
        seen, rewards, ends, cuts, infos = map(list, zip(*stepped, strict=True))
        return seen, rewards, ends, cuts, dict(enumerate(infos))

    def close(self) -> None:
        """Let go of all of them."""
        for host, number in self.slots:
            host.drop(number)
        self.slots = []
