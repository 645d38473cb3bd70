"""What a check says when it fails."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np


class CheckFailed(AssertionError):
    """A part does not keep its promises; ``problems`` has a sentence for each."""

    def __init__(self, what: str, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        super().__init__(f"{what} fails {len(self.problems)} checks:\n  " + "\n  ".join(problems))


@contextmanager
def global_rng_untouched(what: str, problems: list[str]) -> Iterator[None]:
    """Notes a problem if the block draws from the process's global generators."""
    # Perdure itself uses none of these; looking at their state is the point here.
    numbers, rest = random.getstate(), np.random.get_state()  # noqa: NPY002
    yield
    after = np.random.get_state()  # noqa: NPY002
    if random.getstate() != numbers:
        problems.append(f"{what} uses Python's global random: its episodes depend on history")
    if not all(np.array_equal(a, b) for a, b in zip(rest, after, strict=True)):
        problems.append(f"{what} uses numpy's global random: its episodes depend on history")
