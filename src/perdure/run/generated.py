"""What a curriculum that is made up on the way may yield, and what an agent may choose."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from perdure.agent import Agent
from perdure.errors import AgentFault, CurriculumError
from perdure.types import Block, BlockChoice, BlockGenerator, Curriculum


def generated_items(curriculum: Curriculum) -> BlockGenerator:
    """What a curriculum's own function yields. What goes wrong in it is a CurriculumError that says at
    which block, and so is a curriculum without any."""
    assert curriculum.generate is not None
    number = len(curriculum.before)
    try:
        blocks = curriculum.generate()
        if not isinstance(blocks, Generator):
            raise TypeError(
                f"generate must be a function that yields blocks, got {type(blocks).__name__} from it"
            )
        item = next(blocks)
        while True:
            results = yield item
            number += 1
            item = blocks.send(results)
    except StopIteration:
        if not number:
            raise CurriculumError(
                f"curriculum {curriculum.name} is empty: it generates no block, and has none before"
            ) from None
    except Exception as e:
        raise CurriculumError(
            f"curriculum {curriculum.name}, generated block {number}: {type(e).__name__}: {e}"
        ) from e


def checked_choice(agent: Agent, picked: Any, choice: BlockChoice) -> int:
    """The number of the option that an agent chose, or refused."""
    if (
        isinstance(picked, bool)
        or not isinstance(picked, (int, np.integer))
        or not (0 <= picked < len(choice.options))
    ):
        raise AgentFault(
            f"{type(agent).__name__}.choose: expected a number from 0 to {len(choice.options) - 1}, got "
            f"{picked!r}"
        )
    return int(picked)


def check_named(curriculum: Curriculum, choice: BlockChoice, number: int, hidden: bool) -> None:
    """CurriculumError if an agent would be told by a choice what is hidden from it: options name their
    tasks, and results are asked for by task."""
    shows = all(phase.visibility.task_ids for b in choice.options for phase in b.phases)
    if hidden or not shows:
        raise CurriculumError(
            f"curriculum {curriculum.name}, generated block {number}: the agent is to choose among tasks whose "
            "ids are hidden from it, and a choice names them: show them (no --hide-tasks, "
            "Visibility(task_ids=True)), or let the curriculum decide"
        )


def check_generated(
    curriculum: Curriculum, item: Any, number: int, allowed: set[str], hidden: bool
) -> None:
    """CurriculumError unless a generated item is a block that the curriculum could have, and shows what
    the agent was told that it would; where the run hides all tasks (``hidden``), it is told of none."""
    where = f"curriculum {curriculum.name}, generated block {number}"
    if not isinstance(item, Block):
        raise CurriculumError(f"{where}: expected a Block or a BlockChoice, got {item!r}")
    if item.width > curriculum.width:
        raise CurriculumError(
            f"{where}: {item.width} exposures side by side; say Curriculum(width={item.width})"
        )
    for e in (*item.exposures, *item.then):
        if e.task.key not in allowed:
            raise CurriculumError(f"{where}: {e.task.id} is not among the curriculum's tasks")
    if not hidden:
        curriculum.check_shown(item, where)
