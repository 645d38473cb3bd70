"""Conformance checks for authors of agents, strategies, suites, metrics and executors.

Each check raises :class:`CheckFailed` with one sentence for every problem it found::

    from perdure.testing import check_agent
    def test_my_agent():
        check_agent(MyAgent)
"""

from perdure.testing.agents import check_agent
from perdure.testing.executors import check_executor
from perdure.testing.metrics import check_metric
from perdure.testing.report import CheckFailed
from perdure.testing.strategies import check_strategy
from perdure.testing.suites import check_curriculum, check_suite, check_task

__all__ = [
    "CheckFailed",
    "check_agent",
    "check_curriculum",
    "check_executor",
    "check_metric",
    "check_strategy",
    "check_suite",
    "check_task",
]
