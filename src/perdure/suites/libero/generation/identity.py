"""When two tasks are the same: the same things in the same kind of scene, and the same goal.

Names and numbers of objects do not count. Where a scene has several of a category that the goal speaks
of, it counts where they are; and so does what is beside what, if the goal is a part of the surface.
"""

from __future__ import annotations

import functools
from collections import Counter

from perdure.suites.libero.problem import Problem, Region, Relation
from perdure.suites.libero.workspaces import workspace

CELL = 0.05
"""Places nearer than about this are one."""

Key = tuple[object, ...]


def key(problem: Problem) -> Key:
    """Equal for tasks that are the same."""
    things = (*problem.objects, *problem.fixtures)
    counts = Counter(t.category for t in things)
    goal = frozenset(
        (r.predicate, *(_described(problem, n, counts) for n in r.names)) for r in problem.goal
    )
    owners = {_owner(problem, n) for r in problem.goal for n in r.names}
    twins = frozenset(
        (t.category, _start(problem, t.name))
        for t in problem.objects
        if counts[t.category] > 1 and t.category in {problem.category(o) for o in owners if o}
    )
    return problem.name, frozenset(counts.items()), goal, twins


def _owner(problem: Problem, name: str) -> str | None:
    if problem.category(name) is not None:
        return name
    region = problem.region(name)
    return None if region is None else region.target


def _described(problem: Problem, name: str, counts: Counter[str]) -> Key:
    """A thing, or a region of one, or a place on the surface."""
    category = problem.category(name)
    if category is not None:
        where = _start(problem, name) if counts[category] > 1 else ()
        return (category, where)
    region = problem.region(name)
    assert region is not None, name
    if region.target == workspace(problem.name).name:
        return (_cell(region),)
    return (region.name, _described(problem, region.target, counts))


def _start(problem: Problem, name: str) -> Key:
    """Where a thing is at first."""
    for relation in problem.init:
        if relation.predicate in ("on", "in") and relation.names[0] == name:
            return _place(problem, relation)
    return ()


def _place(problem: Problem, relation: Relation) -> Key:
    where = relation.names[1]
    category = problem.category(where)
    if category is not None:
        return (relation.predicate, category)
    region = problem.region(where)
    assert region is not None, where
    if region.target == workspace(problem.name).name:
        return (_cell(region),)
    return (relation.predicate, region.name, problem.category(region.target))


def _cell(region: Region) -> Key:
    r = region.ranges[0]
    return round((r.x0 + r.x1) / 2 / CELL), round((r.y0 + r.y1) / 2 / CELL)


@functools.cache
def official_keys() -> frozenset[Key]:
    """Of the 130 tasks of the benchmark."""
    from perdure.suites.libero.problems import problem_of
    from perdure.suites.libero.tasks import officials

    return frozenset(key(problem_of(task)) for task in officials().values())
