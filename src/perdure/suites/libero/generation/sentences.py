"""The sentence that asks for a goal: written from the steps, as a person would say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perdure.suites.libero.generation.behaviours import Step
from perdure.suites.libero.generation.nouns import FIXTURES, words

STYLES = {
    "put": "put {} {}",
    "pick": "pick up {} and place it {}",
    "place": "place {} {}",
}
"""Ways to say that something goes somewhere."""


@dataclass(frozen=True)
class Said:
    """A step, and how its things are called."""

    step: Step
    thing: str
    owner: str

    @property
    def part(self) -> str:
        """What opens or is turned on."""
        parts = dict(FIXTURES[self.step.place.owner].parts)
        inner = parts.get(self.step.place.part, "")
        return f"the {inner} of {self.owner}" if inner else self.owner


def called(category: str) -> str:
    """A thing of which there is one."""
    return f"the {words(category)}"


def sentence(said: Sequence[Said], style: str = "put") -> str:
    """What a robot is told."""
    if len(said) == 1:
        return _clause(said[0], style)
    first, then = said
    same = (first.step.place.owner, first.step.place.part) == (
        then.step.place.owner,
        then.step.place.part,
    )
    if first.step.thing and then.step.thing and first.step.place == then.step.place:
        return (
            f"put both {first.thing} and {then.thing} {first.step.place.phrase.format(first.owner)}"
        )
    if same and first.step.verb in ("open", "turn on"):
        return f"{_clause(first)} and put {then.thing} {then.step.place.predicate} it"
    if same and then.step.verb == "close":
        return f"{_clause(first)} and close it"
    return f"{_clause(first)} and {_clause(then)}"


def _clause(said: Said, style: str = "put") -> str:
    step = said.step
    if step.verb in ("open", "close", "turn on", "turn off"):
        return f"{step.verb} {said.part}"
    where = step.place.phrase.format(said.owner)
    if step.verb == "put":
        return STYLES[style].format(said.thing, where)
    return f"{step.verb} {said.thing} {where}"
