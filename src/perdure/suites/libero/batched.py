"""Several environments of one task, on all cores."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from perdure.suite import Episode
from perdure.suites._env_processes import EnvHost, env_hosts
from perdure.suites.libero.env import Libero


def answers(asked: Iterable[tuple[EnvHost, int]]) -> Iterator[list[Any]]:
    """What requests give, one after another. If one raises, nobody will ask for the others."""
    waiting = deque(asked)
    try:
        while waiting:
            host, request = waiting.popleft()
            yield host.answer(request)
    finally:
        for host, request in waiting:
            host.forget(request)


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
        self.making: list[tuple[EnvHost, int]] = []
        """Requests under way that make environments elsewhere: a process that is started for it imports for a second."""
        self.begun: list[tuple[EnvHost, int, dict[int, Episode]]] = []
        """Requests under way that begin the first episodes, by slot."""
        self.first: dict[int, tuple[Episode, Any]] = {}
        """First episodes of slots, and what they begin with."""
        self.fresh = set(range(count))
        """Slots without an episode so far."""
        self.skipped: frozenset[int] = frozenset()
        """Slots whose next pictures nobody looks at."""
        try:
            for _ in range(count):
                host = min(self.hosts, key=lambda h: h.held)
                number, request = host.make(made)
                self.slots.append((host, number))
                if host is self.hosts[0]:
                    host.answer(request)
                else:
                    self.making.append((host, request))
        except BaseException:
            self.close()
            raise

    def reset(self, slot: int, episode: Episode) -> Any:
        """Begin an episode."""
        self._hear_of_beginnings()
        self.fresh.discard(slot)
        foreseen, obs = self.first.pop(slot, (None, None))
        if foreseen == episode:
            return obs
        host, number = self.slots[slot]
        return host.answer(host.ask([(number, "begin", (episode,))]))[0]

    def expect(self, episodes: Sequence[Episode]) -> None:
        """Begin the first episodes of all slots at once: building a simulation takes seconds, and
        later ones begin in milliseconds. Slots take trials in turn; where one is given another episode
        it begins that in the place of this one."""
        before = (None, *(e.trial_seed for e in episodes))
        trials = [e for e, seed in zip(episodes, before, strict=False) if e.trial_seed != seed]
        coming = dict(zip(sorted(self.fresh), trials, strict=False))
        self.fresh.clear()
        for host in self.hosts:
            mine = {s: e for s, e in coming.items() if self.slots[s][0] is host}
            if mine:
                calls = [(self.slots[s][1], "begin", (e,)) for s, e in mine.items()]
                self.begun.append((host, host.ask(calls), mine))

    def _hear_of_beginnings(self) -> None:
        """Take in that environments were made, and how their first episodes begin. If one of those cannot, it
        will say so when it is asked for by itself."""
        if self.begun and self.begun[0][0] is self.hosts[0]:
            self._hear_first()  # This process begins its own while others are at theirs.
        while self.making:
            host, request = self.making.pop(0)
            host.answer(request)
        while self.begun:
            self._hear_first()

    def _hear_first(self) -> None:
        host, request, mine = self.begun.pop(0)
        with contextlib.suppress(Exception):
            for (slot, episode), obs in zip(mine.items(), host.answer(request), strict=True):
                self.first[slot] = episode, obs

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
        moved = answers((host, request) for host, request, _ in asked)  # This process first.
        for (_, _, rows), found in zip(asked, moved, strict=True):
            for k, one in zip(rows, found, strict=True):
                stepped[k] = one
        seen, rewards, ends, cuts, infos = map(list, zip(*stepped, strict=True))
        return seen, rewards, ends, cuts, dict(enumerate(infos))

    def close(self) -> None:
        """Let go of all of them."""
        under_way = [(host, request) for host, request, _ in (*self.begun, *self.asked)]
        for host, request in (*self.making, *under_way):
            host.forget(request)
        self.making, self.begun, self.asked = [], [], []
        while self.slots:
            host, number = self.slots.pop()
            host.drop(number)
