"""The same request in other words: what a policy that was told one sentence is told instead."""

from __future__ import annotations

import re
from collections.abc import Mapping

SYNONYMS: Mapping[str, str] = {
    "pick up": "grab",
    "place": "set",
    "put": "set",
    "turn on": "switch on",
    "turn off": "switch off",
    "open": "pull open",
    "close": "shut",
    "push": "slide",
    "stack": "pile",
    "basket": "hamper",
    "box": "carton",
    "bowl": "dish",
    "mug": "cup",
    "stove": "cooker",
    "drawer": "compartment",
}
REPHRASED = ("polite", "synonyms", "reworded")
"""From near to far: other words around it, other words in it, both and another order."""


def rephrased(sentence: str, how: str) -> str:
    """A sentence in one of the ways of :data:`REPHRASED`."""
    if how == "polite":
        return f"could you please {sentence}"
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, SYNONYMS)) + r")\b")
    said = pattern.sub(lambda found: SYNONYMS[found[0]], sentence)
    if how == "synonyms":
        return said
    # "grab the milk and set it in the hamper": what is last is said first.
    first, joint, second = said.partition(" and ")
    return f"{second}, after you {first}, if you would" if joint else f"I would like you to {said}"
