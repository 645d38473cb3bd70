"""One lifetime wider than one core: its evaluations are split over processes, task by task.

The rows, and the commits that hold them, are those of a lifetime that evaluates by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from perdure.agent import Agent
from perdure.run.agent_state import tasks_are_independent
from perdure.run.boundaries import Group, tasks_end
from perdure.run.eval_pool import EvalPool
from perdure.run.transcript import TranscribingLoop, Transcript, TranscriptRunner
from perdure.types import Exposure

if TYPE_CHECKING:
    from perdure.run.loop import LifetimeLoop


def visits(groups: Sequence[Group]) -> list[list[int]]:
    """The numbers of the groups that belong to one visit of a task each, counted within the phase."""
    out: list[list[int]] = [[]]
    ends = {groups[k][0].group for k in tasks_end(groups)}
    for place, _ in groups:
        out[-1].append(place.group)
        if place.group in ends:
            out.append([])
    return out[:-1]


def can_be_split(agent: Agent, groups: Sequence[Group]) -> bool:
    """Whether some processes may share these groups of an evaluation."""
    return len(visits(groups)) > 1 and tasks_are_independent(agent)


def evaluate_split(
    loop: LifetimeLoop, pool: EvalPool, groups: Sequence[Group], told: Sequence[int] | None
) -> bool:
    """Evaluate the groups that are left of a phase; of the first, the loop has so many steps and rows
    (``told``) already. False if the agent cannot be handed over."""
    arrays = loop.state.handed_over()
    if arrays is None:
        return False
    place = groups[0][0]
    by_number = {group[0].group: group for group in groups}
    first = place.group

    def fractions() -> list[tuple[Exposure, float]]:
        shares = sorted(pool.fractions.items())
        return [(e, share) for g, share in shares for e in by_number[g][1]]

    head = {
        "number": place.number,
        "phase": place.phase,
        "block": place.block.to_json(),
        "videos": loop.recorder is not None,
        "repeats": loop.repeater is not None,
        "adapted": list(loop.adapted.items()),
    }
    waiting = TranscriptRunner(loop, groups[0], Transcript(), shown=(place, fractions))

    def alive() -> None:
        loop.progress.elsewhere = pool.cpu
        loop.tick(waiting)

    for g, transcript in pool.evaluate(head, arrays, visits(groups), alive):
        loop.position = by_number[g][0].address
        skip = told if told is not None and g == first else (0, 0)
        TranscriptRunner(loop, by_number[g], transcript, skip, (place, fractions)).run()
    return True


def evaluate_again(
    loop: LifetimeLoop, group: Group, told: Sequence[int], enters: bool, leaves: bool
) -> None:
    """Evaluate a group in this process, of which the loop has so many steps and rows (``told``): they came
    from a process that evaluated it elsewhere, and there is no episode to go on with."""
    videos, repeats = loop.recorder is not None, loop.repeater is not None
    inner = TranscribingLoop(loop.config, loop.agent, videos, repeats, loop.adapted, loop.beat)
    transcript = inner.visit(loop.state, group, enters, leaves)
    TranscriptRunner(loop, group, transcript, told).run()
