"""Does what was learned perdure? For each agent and task: the score right after learning, and at the end.

An agent that acts at random is a reference, not a contestant. A task whose score never rose above what
it was before learning was not learned: nothing of it can be kept, and nothing lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import NamedTuple

import numpy as np

from perdure.arrays import mean
from perdure.measure.matrix import Matrix
from perdure.measure.stats import Bounds, Estimate, mean_interval
from perdure.measure.summary import LEAST

WORDS = [
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
SAID = 4
"""So many agents follow the first in one sentence; of more, the last ends it."""
NAMED = 3
"""So many tasks that were never learned are named; of more, the sentence says how many."""


class _Seen(NamedTuple):
    """An agent's lifetimes on one task."""

    before: float
    """Mean before any learning."""
    pairs: list[tuple[float, float]]
    """(learned, kept) of each lifetime."""
    exposed: bool
    followed: bool


@dataclass(frozen=True)
class KeptTask:
    """One agent on one task, over its lifetimes."""

    task: str
    before: float
    """Mean score before any learning; NaN where it was not evaluated."""
    learned: Estimate
    """Right after the task was last learned."""
    kept: Estimate
    """At its last evaluation."""
    never: bool
    """Whether it was not learned by then either."""
    exposed: bool
    """Whether it was evaluated again after something else had been learned, in some lifetime."""
    followed: bool
    """Whether something else was learned after it, in some lifetime."""
    lives: tuple[tuple[float, float], ...]
    """Of each lifetime: learned and kept; NaN where it did not learn the task."""


@dataclass(frozen=True)
class KeptAgent:
    """One agent over all tasks that it learned."""

    agent: str
    n: int
    """Lifetimes."""
    learned: Estimate
    """Mean over tasks right after each was learned."""
    kept: Estimate
    """Mean over the same tasks at the end of life."""
    tasks: tuple[KeptTask, ...]
    chance: bool = False
    """Whether it acts at random: then it is no contestant."""

    @property
    def never(self) -> tuple[str, ...]:
        """The tasks that it never learned."""
        return tuple(t.task for t in self.tasks if t.never)

    @property
    def nothing(self) -> bool:
        """Whether it learned none."""
        return len(self.never) == len(self.tasks)

    @property
    def little(self) -> bool:
        """Whether it never learned most of them: what it kept is no feat then."""
        return 2 * len(self.never) > len(self.tasks)


def kept(
    matrices: Mapping[str, Sequence[Matrix]],
    bounds: Bounds | None = None,
    chance: Sequence[str] = (),
    level: float = 0.95,
) -> list[KeptAgent]:
    """What each agent kept, the one that kept most first; then who learned nothing, then chance.

    ``matrices`` holds each agent's lifetimes. An agent none of whose lifetimes learned a task and was
    evaluated on it afterwards is left out.
    """
    found: dict[str, dict[str, _Seen]] = {}
    for agent, lives in matrices.items():
        own = _by_task(lives)
        if own:
            found[agent] = own
    floor = _floor(found, chance, bounds)
    scale = _scale(found, floor, bounds)
    out = []
    for agent, own in found.items():
        tasks = tuple(
            _task(task, seen, floor[task], scale[task], bounds, level) for task, seen in own.items()
        )
        means = np.array([_means(m) for m in matrices[agent]])
        learned, last = (mean_interval(means[:, k], level, bounds) for k in (0, 1))
        out.append(KeptAgent(agent, len(matrices[agent]), learned, last, tasks, agent in chance))
    return sorted(out, key=lambda a: (a.chance, a.nothing, -_number(a.kept), -_number(a.learned)))


def _number(e: Estimate) -> float:
    return -np.inf if isnan(e.value) else e.value


def _means(matrix: Matrix) -> tuple[float, float]:
    acquired, last = matrix.acquired_by_task(), matrix.last()
    return (matrix.acquired(), matrix.final()) if acquired and last else (nan, nan)


def _by_task(lives: Sequence[Matrix]) -> dict[str, _Seen]:
    """What the lifetimes show of each task that they learned."""
    acquired = [m.acquired_by_task() for m in lives]
    last = [m.last() for m in lives]
    before = [m.initial_by_task() for m in lives]
    exposed = {t for m in lives for t in m.could_be_forgotten()}
    followed = {t for m in lives for t in m.followed()}
    out = {}
    for task in dict.fromkeys(t for by in acquired for t in by):
        pairs = [(a.get(task, nan), b.get(task, nan)) for a, b in zip(acquired, last, strict=True)]
        starts = [b[task] for b in before if task in b]
        before_any = mean(starts) if starts else nan
        out[task] = _Seen(before_any, pairs, task in exposed, task in followed)
    return out


def _floor(
    found: Mapping[str, Mapping[str, _Seen]],
    chance: Sequence[str],
    bounds: Bounds | None,
) -> dict[str, float]:
    """What a task scores without learning, for agents that were not evaluated before: that of chance,
    else the lower bound."""
    out = {t: nan if bounds is None else bounds[0] for own in found.values() for t in own}
    for agent in chance:
        for task, seen in found.get(agent, {}).items():
            out[task] = float(np.nanmean([end for _, end in seen.pairs]))
    return out


def _scale(
    found: Mapping[str, Mapping[str, _Seen]],
    floor: Mapping[str, float],
    bounds: Bounds | None,
) -> dict[str, float]:
    """How far a task's score can rise: to the upper bound, else to the best that any agent had."""
    out: dict[str, float] = {}
    for own in found.values():
        for task, seen in own.items():
            low = floor[task] if isnan(seen.before) else seen.before
            top = bounds[1] if bounds else float(np.nanmax(np.nanmean(seen.pairs, axis=0)))
            out[task] = max(out.get(task, 0.0), top - low if not isnan(low) else 0.0)
    return out


def _task(
    task: str, seen: _Seen, floor: float, scale: float, bounds: Bounds | None, level: float
) -> KeptTask:
    learned, last = (mean_interval([p[k] for p in seen.pairs], level, bounds) for k in (0, 1))
    low = floor if isnan(seen.before) else seen.before
    best = max(learned.value, last.value)
    there = bounds is not None and best > sum(bounds) / 2
    never = not isnan(best - low) and best - low <= LEAST * scale and not there
    after = (seen.exposed, seen.followed)
    return KeptTask(task, seen.before, learned, last, never, *after, tuple(seen.pairs))


def in_words(count: int) -> str:
    """A small number as a word."""
    return WORDS[count] if count < len(WORDS) else str(count)


def untested(agent: KeptAgent) -> str:
    """Why it cannot be said what an agent kept; empty if it can."""
    if any(t.exposed for t in agent.tasks):
        return ""
    if any(t.followed for t in agent.tasks):
        return "none was evaluated again after others had been learned"
    return "nothing was learned after" + (" it" if len(agent.tasks) == 1 else "")


def sentence(agent: KeptAgent, labels: Mapping[str, str] | None = None) -> str:
    """What an agent kept, as one would say it: finetune scored 0.64 right after learning each of ten
    tasks and 0.09 at the end."""
    count = len(agent.tasks)
    tasks = f"{in_words(count)} task{'s' * (count != 1)}"
    if agent.nothing:
        which = "the task" if count == 1 else f"any of {tasks}"
        return f"{agent.agent} never learned {which} ({agent.kept.value:.2f} at the end)"
    each = "the task" if count == 1 else f"each of {tasks}"
    said = f"{agent.agent} scored {agent.learned.value:.2f} right after learning {each}"
    said += f" and {agent.kept.value:.2f} at the end"
    if why := untested(agent):
        said = f"{agent.agent} learned {tasks} to {agent.learned.value:.2f}; {why}"
    if agent.never:
        names = [(labels or {}).get(t, t) for t in agent.never]
        few = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
        said += (
            f"; never learned {few if len(names) <= NAMED else in_words(len(names)) + ' of them'}"
        )
    return said


def verdict(agents: Sequence[KeptAgent]) -> str:
    """What the agents kept, in one sentence: replay scored 1.00 right after learning each of four tasks
    and 0.95 at the end; joint 0.95 and 0.90; finetune 1.00 and 0.30."""
    running = [a for a in agents if not a.chance and not a.nothing]
    if not running:
        nobody = [a.agent for a in agents if not a.chance]
        return f"Nothing was learned by {', '.join(nobody)}." if nobody else ""
    first, *rest = running
    said, end = sentence(first), ""
    why = {untested(a) for a in running}
    if rest and (first.never or "" not in why):
        said = said.partition(";")[0]
    same = {len(a.tasks) for a in running} == {len(first.tasks)}
    parts = []
    for a in rest:
        of = "" if same else f" of {in_words(len(a.tasks))}"
        parts.append(f"{a.agent} {a.learned.value:.2f} and {a.kept.value:.2f}{of}")
    if rest and "" not in why:
        # Nobody could forget: how well they learned is all there is to say.
        parts = [f"{a.agent} to {a.learned.value:.2f}" for a in rest]
        end = f"; {why.pop()}" if len(why) == 1 else ""
    if len(parts) > SAID:
        between = len(parts) - SAID
        words = f"{in_words(between)} other{'s' * (between > 1)} between"
        parts = [*parts[: SAID - 1], words, parts[-1]]
    said = "; ".join([said, *parts])
    lazy = [a.agent for a in agents if a.nothing and not a.chance]
    if lazy:
        said += f"; {', '.join(lazy)} never learned"
    return f"{said}{end}."
