"""TELLA's MiniGrid curricula: condensed, dispersed, simple, and the single-task experts.

Given TELLA's seed, the tasks come in TELLA's order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from perdure.curricula import interleave
from perdure.errors import CurriculumError, UnknownName
from perdure.names import join_task_id
from perdure.suites.minigrid.tasks import TASKS, VARIANTS, find
from perdure.types import Block, Curriculum, Exposure, Task, Unit, evaluate, learn

UNITS = ("episodes", "steps")
SIMPLE = (
    find("SimpleCrossing", "S9N1"),
    find("DistShift", "R2"),
    find("DynObstacles", "S6N1"),
)
Lengths = Mapping[str, "int | Mapping[str, Any]"]


def condensed(
    length: int = 1000,
    unit: str = "episodes",
    episodes: int = 100,
    lengths: Lengths | None = None,
    seed: int = 0,
) -> Curriculum:
    """Each of the 18 variants once, in an order the seed decides, evaluated all around.

    ``lengths`` sets single families or variants apart from ``length`` and ``unit``:
    ``{DoorKey = 500, "CustomFetch@S5T1N2" = {length = 9000, unit = "steps"}}``. A variant's entry
    replaces its family's as a whole.
    """
    name = "minigrid/condensed"
    budget = _budgets(name, length, unit, lengths)
    (order,) = _orders(name, seed, TASKS, 1)
    return _around(name, (budget[t] for t in order), _evaluation(name, TASKS, episodes), condensed)


def dispersed(
    length: int = 1000,
    unit: str = "episodes",
    blocks: int = 3,
    episodes: int = 100,
    lengths: Lengths | None = None,
    seed: int = 0,
) -> Curriculum:
    """Each of the 18 variants in three parts, in a new order every round, evaluated all around.

    Lengths are totals over all ``blocks``; what does not divide goes to the first ones.
    """
    name = "minigrid/dispersed"
    _whole(name, "blocks", blocks)
    budget = _budgets(name, length, unit, lengths)
    for e in budget.values():
        if e.amount < blocks:
            raise CurriculumError(
                f"curriculum {name}: {e.amount} {e.unit} of {e.task.id} cannot be spread over "
                f"{blocks} blocks: give it a length of at least {blocks}, or fewer blocks"
            )
    parts = (
        Exposure(e.task, e.amount // blocks + (number < e.amount % blocks), e.unit)
        for number, order in enumerate(_orders(name, seed, TASKS, blocks))
        for e in (budget[t] for t in order)
    )
    return _around(name, parts, _evaluation(name, TASKS, episodes), dispersed)


def simple(length: int = 5, episodes: int = 5, seed: int = 0) -> Curriculum:
    """The first variants of three families for five episodes each: to try things out."""
    return _simple("minigrid/simple", length, "episodes", episodes, seed, simple)


def simple_steps(length: int = 5000, episodes: int = 5, seed: int = 0) -> Curriculum:
    """The first variants of three families for 5,000 steps each."""
    return _simple("minigrid/simple-steps", length, "steps", episodes, seed, simple_steps)


def expert(
    task: str = "SimpleCrossing",
    variant: str = "S9N1",
    length: int = 1000,
    unit: str = "episodes",
    episodes: int = 100,
    lengths: Lengths | None = None,
) -> Curriculum:
    """Single-task expert: one variant alone, evaluated on all 18 before and after."""
    name = "minigrid/expert"
    chosen = find(task, variant)
    budget = _budgets(name, length, unit, lengths)
    blocks = interleave([learn(budget[chosen])], _evaluation(name, TASKS, episodes))
    about = f"Single-task expert on {chosen.id}"
    return Curriculum(f"{name}/{_label(chosen)}", blocks, about=about)


def _expert_on(task: Task) -> Callable[..., Curriculum]:
    def build(
        length: int = 1000,
        unit: str = "episodes",
        episodes: int = 100,
        lengths: Lengths | None = None,
    ) -> Curriculum:
        return expert(task.name, task.variant, length, unit, episodes, lengths)

    build.__doc__ = f"Single-task expert on {task.id}, evaluated on all 18 before and after."
    return build


def _label(task: Task) -> str:
    return f"{task.name}-{task.variant}"


def _simple(
    name: str, length: int, unit: str, episodes: int, seed: int, builder: Callable[..., Curriculum]
) -> Curriculum:
    budget = _budgets(name, length, unit, None)
    (order,) = _orders(name, seed, SIMPLE, 1)
    return _around(name, (budget[t] for t in order), _evaluation(name, SIMPLE, episodes), builder)


def _around(
    name: str, exposures: Iterable[Exposure], evaluation: Block, builder: Callable[..., Curriculum]
) -> Curriculum:
    about = (builder.__doc__ or "").split("\n")[0]
    return Curriculum(name, interleave([learn(e) for e in exposures], evaluation), about=about)


def _evaluation(name: str, tasks: Sequence[Task], episodes: int) -> Block:
    _whole(name, "episodes", episodes)
    return evaluate(*(Exposure(t, episodes) for t in tasks))


def _orders(name: str, seed: int, tasks: Sequence[Task], rounds: int) -> Iterator[list[Task]]:
    """The tasks of each round, in the order that TELLA gives them under the same seed."""
    _whole(name, "seed", seed, least=0)
    rng = np.random.default_rng(seed)
    # TELLA draws from the same stream a seed for its evaluations first, and after each order one
    # for every learn block. Perdure needs no such seeds, but drawing them keeps the orders equal.
    rng.bit_generator.random_raw()
    for _ in range(rounds):
        yield [tasks[i] for i in rng.permutation(len(tasks))]
        rng.bit_generator.random_raw(len(tasks))


def _budgets(name: str, length: int, unit: str, lengths: Lengths | None) -> dict[Task, Exposure]:
    """What each task is given in all: its variant's entry, else its family's, else the default."""
    _whole(name, "length", length)
    _unit(name, "unit", unit)
    special = {} if lengths is None else lengths
    if not isinstance(special, Mapping):
        raise CurriculumError(
            f"curriculum {name}: lengths must map families or variants to lengths, as in "
            f"{{DoorKey = 500}} (words inside it in quotes), got {special!r}"
        )
    known = {*VARIANTS, *(key for t in TASKS for key in _keys(t)[:2])}
    for key in special:
        if key not in known:
            raise UnknownName(f"task in the lengths of {name}", str(key), known)
    return {t: _budget(name, t, length, unit, special) for t in TASKS}


def _keys(task: Task) -> tuple[str, str, str]:
    # TELLA writes a variant CustomFetchS5T1N2; with that spelling its configurations carry over.
    own = join_task_id("", task.name, task.variant)
    return own, f"{task.name}{task.variant}", task.name


def _budget(name: str, task: Task, length: int, unit: str, special: Lengths) -> Exposure:
    key = next((k for k in _keys(task) if k in special), None)
    if key is not None:
        entry, where = special[key], f"lengths.{key}"
        if not isinstance(entry, Mapping):
            entry = {"length": entry}
        for word in entry:
            if word not in ("length", "unit"):
                raise CurriculumError(
                    f"curriculum {name}: {where} takes a number or a table of length and unit, "
                    f"got the key {word!r}"
                )
        length, unit = entry.get("length", length), entry.get("unit", unit)
        _whole(name, where, length)
        _unit(name, where, unit)
    return Exposure(task, length, cast(Unit, unit))


def _whole(name: str, what: str, value: object, least: int = 1) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise CurriculumError(
            f"curriculum {name}: {what} must be a whole number of at least {least}, got {value!r}"
        )


def _unit(name: str, what: str, unit: object) -> None:
    if unit not in UNITS:
        raise CurriculumError(
            f"curriculum {name}: {what} must be in episodes or steps, got {unit!r}"
        )


CURRICULA: Mapping[str, Callable[..., Curriculum]] = {
    "condensed": condensed,
    "dispersed": dispersed,
    "simple": simple,
    "simple-steps": simple_steps,
    "expert": expert,
    **{f"expert/{_label(t)}": _expert_on(t) for t in TASKS},
}
