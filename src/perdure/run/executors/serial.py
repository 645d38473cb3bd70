"""One lifetime after another in this process; for debugging and for agents given as objects."""

from __future__ import annotations

import os
import pdb
import sys
import traceback
from collections.abc import Sequence

from perdure.errors import Hung
from perdure.run.child_processes import child_processes
from perdure.run.executors.base import Report, check_patience
from perdure.run.guardian import MARK
from perdure.run.lifetime import Outcome, describe_error, run_lifetime, write_error
from perdure.run.plan import Job, Plan
from perdure.run.signals import deadline
from perdure.run.spec import DEADLINE


class Serial:
    """One lifetime after another in this process: for debugging, and for agents given as
    objects.

    A call that outlives ``deadline`` seconds is broken off and the lifetime replayed from its
    last commit, at most ``retries`` times. Only Python code can be broken off here; a hang inside
    compiled code needs ``processes``.

    ``perdure run --debug`` opens a debugger here where a lifetime fails.
    """

    def __init__(self, deadline: float = DEADLINE, retries: int = 2) -> None:
        check_patience("serial", deadline, retries)
        self.deadline, self.retries = deadline, retries

    def run(self, plan: Plan, jobs: Sequence[Job], report: Report) -> None:
        """Run the jobs in order."""
        before = os.environ.get(MARK)
        with child_processes() as children:
            os.environ.update(children.environment)
            try:
                for job in jobs:
                    report(self._one(plan, job))
            finally:
                os.environ.pop(MARK)
                if before is not None:
                    os.environ[MARK] = before

    def _one(self, plan: Plan, job: Job) -> Outcome:
        error = ""
        for _ in range(self.retries + 1):
            try:
                with deadline(self.deadline) as beat:
                    run_lifetime(plan, job, beat)
                return Outcome(job, "done")
            except Hung as e:
                if plan.lifetime(job).status() == "done":
                    return Outcome(job, "done")
                error = f"hung: {e}, {self.retries + 1} times"
            except Exception as e:
                if plan.debug:
                    look_around(e)
                return Outcome(job, "failed", describe_error(e))
        write_error(plan.lifetime(job), error)
        return Outcome(job, "failed", error)


def look_around(error: BaseException) -> None:
    """Print an error with its traceback, and open a debugger where it was first raised."""
    traceback.print_exception(error)
    first = error
    while first.__cause__ is not None:
        first = first.__cause__
    print("the debugger is where it was raised: u and d walk the stack, q leaves", file=sys.stderr)
    pdb.post_mortem(first.__traceback__)


executor = Serial
