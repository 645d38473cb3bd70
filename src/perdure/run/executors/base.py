"""What an executor is.

A cluster executor implements :class:`Executor`: start ``plan.command(job)`` for each job on any
machine that sees the run's folder, and report an :class:`Outcome` when it has ended. Only the log
says that a lifetime is done: a worker may end with any exit code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from perdure.run.lifetime import Outcome
from perdure.run.plan import Job, Plan
from perdure.run.progress import BEAT

Report = Callable[[Outcome], None]
LEAST = 2 * BEAT
"""The shortest deadline in seconds: signs of life come once a beat."""


class Executor(Protocol):
    """Runs jobs, in any order and anywhere, and reports each outcome once."""

    def run(self, plan: Plan, jobs: Sequence[Job], report: Report) -> None:
        """Return when every job is done or failed. On Interrupted, stop what runs and raise."""
