"""Where the groups of a phase stand, which boundaries lie between them, and how the agent learns of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from perdure.agent import Agent
from perdure.run.guards import agent_fault
from perdure.run.runner import Place
from perdure.types import Array, Block, Context, Exposure, Kind

if TYPE_CHECKING:
    from perdure.run.config import LifetimeConfig

Group = tuple[Place, tuple[Exposure, ...]]
"""Exposures that are run at a time, and where they stand."""


def groups_of(config: LifetimeConfig, number: int, index: int, block: Block) -> list[Group]:
    """The groups of exposures that a phase of a block runs one after another."""
    phase = block.phases[index]
    groups = [phase.exposures] if block.parallel else [(e,) for e in phase.exposures]
    deployed = number >= len(config.curriculum.before)
    return [
        (Place(number, block, index, g, phase.learning, phase.visibility, g, deployed), group)
        for g, group in enumerate(groups)
    ]


def tasks_end(groups: Sequence[Group]) -> list[int]:
    """The numbers of the groups after which another task comes: variants of one task that follow each
    other are one visit to it."""
    bases = [{(e.task.suite, e.task.name) for e in group} for _, group in groups]
    return [g for g in range(len(bases)) if g == len(bases) - 1 or bases[g] != bases[g + 1]]


def tell(
    agent: Agent,
    config: LifetimeConfig,
    number: int,
    method: str,
    event: str,
    groups: Sequence[Group] = (),
) -> None:
    """Tell the agent of a boundary (``enter`` or ``leave``) in a block. Tasks whose identity is hidden
    there are not named."""
    shown = [e.task.id for place, group in groups if place.visibility.task_ids for e in group]
    hidden = config.hide_tasks or (groups and not shown)
    tasks = None if hidden else tuple(shown)
    first = groups[0][0] if groups else None
    kind: Kind = first.block.kind if first else "learn"
    learning = first is not None and first.learning
    none = np.zeros(0, int)
    ctx = Context(kind, learning, number, tasks, none, none.astype(bool), event)
    try:
        getattr(agent, method)(ctx)
    except Exception as e:
        raise agent_fault(agent, method, e) from e


def context_of(
    config: LifetimeConfig,
    place: Place,
    exposures: Sequence[Exposure],
    slots: Array,
    episode_start: Array,
    instructions: Sequence[str] = (),
    **more: Any,
) -> Context:
    """The context of a batch whose rows belong to these exposures."""
    shown, kind = place.visibility, place.block.kind
    told = shown.task_ids and not config.hide_tasks
    tasks = tuple(e.task.id for e in exposures) if told else None
    instructed = told if shown.instructions is None else shown.instructions
    said = tuple(instructions) if instructed and any(instructions) else None
    where = (kind, place.learning, place.number, tasks, slots, episode_start)
    stage = config.stages[place.number] if place.number < len(config.stages) else (0.0, 1.0)
    return Context(*where, instructions=said, stage=stage, **more)
