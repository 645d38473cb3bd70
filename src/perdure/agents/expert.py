"""Expert: plays the scripted experts that a suite has for its tasks; an upper bound that learns nothing."""

from __future__ import annotations

from perdure.agents.wrapped import WrappedAgent
from perdure.errors import SpecError
from perdure.names import split_task_id
from perdure.registry import suite
from perdure.types import Setup


class SuiteExpert(WrappedAgent):
    """The agent that the tasks' suite gives for its experts."""

    needs_task_ids = True

    def __init__(self, setup: Setup) -> None:
        if not setup.tasks:
            raise SpecError("expert must know which task it plays: do not hide task identity")
        suites = sorted({split_task_id(t)[0] for t in setup.tasks})
        if len(suites) > 1:
            raise SpecError(f"expert plays the tasks of one suite, got {' and '.join(suites)}")
        super().__init__(suite(suites[0]).expert(setup))


agent = SuiteExpert
