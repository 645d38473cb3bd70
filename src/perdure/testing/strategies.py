"""Does a strategy keep its promises with every learner that it works with?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from perdure import registry
from perdure.agent import Agent
from perdure.agents.compose import Factory
from perdure.specs import Spec
from perdure.testing.agents import CURRICULA, checked
from perdure.testing.report import CheckFailed
from perdure.types import Setup

if TYPE_CHECKING:
    from perdure.agents.strategies.base import Strategy


def check_strategy(
    strategy: str | type[Strategy],
    learners: Sequence[str] | None = None,
    curricula: Sequence[str] = CURRICULA,
) -> list[str]:
    """Compose a strategy (a name with parameters, ``file.py:Class``, or a class) with learners, and
    put each agent through what :func:`check_agent` asks of agents: the same seed gives the same
    rows, a resumed lifetime goes on exactly, evaluation leaves no trace, ``state()`` and ``load()``
    fit each other.

    ``learners`` are those that it says it works with unless some are named. Learners that fit none
    of the curricula are left out; one must remain. Gives what was left out, with the reason.
    """
    spec = Spec.parse(strategy) if isinstance(strategy, str) else Spec(strategy.__qualname__)
    problems: list[str] = []
    left_out: list[str] = []
    chosen = _fitting(spec, strategy) if learners is None else list(learners)
    fitted = 0
    for learner in chosen:
        found, refused = checked(_composed(spec, strategy, learner), curricula)
        problems += [f"{spec.name}+{learner}, {p}" for p in found]
        left_out += [f"{spec.name}+{learner}, {r}" for r in refused]
        fitted += len(refused) < len(curricula)
    if not fitted:
        problems.append(
            f"{spec.name} works with no learner on the curricula it is checked on: "
            + ("; ".join(left_out) or "none offers what it needs (perdure ls strategies)")
        )
    if problems:
        raise CheckFailed(f"strategy {spec.name}", problems)
    return left_out


def _fitting(spec: Spec, strategy: str | type[Strategy]) -> list[str]:
    from perdure.agents.strategies.base import works_with

    loaded = registry.load("strategies", spec.name) if isinstance(strategy, str) else strategy
    return works_with(loaded)[0]


def _composed(spec: Spec, strategy: str | type[Strategy], learner: str) -> str | Factory:
    """The agent, as a name where the strategy has one."""
    if isinstance(strategy, str):
        return str(Spec(f"{spec.name}+{learner}", spec.params))
    make = registry.load("agents", learner)

    def compose(setup: Setup) -> Agent:
        return strategy(make(setup)).agent()

    return compose
