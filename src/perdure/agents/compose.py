"""An agent from its specification: a learner, or a strategy composed with one (``ewc+ppo``).

Either may be in a file of one's own: ``file.py:Strategy+classifier``, ``ewc+file.py:Learner``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from perdure import registry
from perdure.agent import Agent
from perdure.errors import AgentFault, PerdureError, SpecError
from perdure.own_files import kind_of
from perdure.specs import Spec, call_with, with_preset
from perdure.types import Setup

Factory = Callable[..., Agent]


def make_agent(spec: Spec, setup: Setup, factory: Factory | None = None) -> Agent:
    """Build an agent; ``factory`` stands for the learner where it is given as an object."""
    *strategies, learner = spec.parts
    base = factory or registry.load("agents", learner)
    what = f"agent {spec.name}"
    if not callable(base):
        raise SpecError(f"{what} is {base!r}, expected an Agent class or a function giving one")
    if len(strategies) > 1:
        raise SpecError(f"{what}: one strategy and one learner, as in ewc+ppo")
    kept = [registry.load("strategies", name) for name in strategies]
    _refuse_mistaken(learner, base, "agent")
    for name, part in zip(strategies, kept, strict=True):
        _refuse_mistaken(name, part, "strategy")
    params = with_preset(what, spec.params, base, *kept)
    try:
        if not kept:
            agent = call_with(what, base, setup, **params)
        else:
            own, rest = _share_out(params, base)
            learning = call_with(f"learner {learner}", base, setup, **own)
            what = f"strategy {strategies[0]}"
            agent = _composed(what, call_with(what, kept[0], learning, **rest))
    except PerdureError:
        raise
    except Exception as e:
        raise AgentFault(f"{what} cannot be made: {type(e).__name__}: {e}") from e
    if not isinstance(agent, Agent):
        raise SpecError(f"{what} gave {type(agent).__name__}, expected a perdure.Agent")
    return agent


def _refuse_mistaken(name: str, part: Any, expected: str) -> None:
    """SpecError if a part of an agent is one of another kind."""
    found = kind_of(part)
    if found == "network":
        raise SpecError(f"{name} is a network: put it into a learner, classifier,network={name}")
    if found not in ("", expected):
        raise SpecError(
            f"{name} is of kind {found}, expected {expected}: an agent is written learner or "
            "strategy+learner, in this order"
        )


def pinned(spec: Spec, factory: Factory | None = None) -> Spec:
    """A specification that means the same agent wherever and whenever it is read.

    A learner whose parameters refer to something that may change (a run, a file of weights) has
    ``pinned``, which gives them with the digest of what they refer to now; it refuses to be made of
    anything else.
    """
    learner = spec.parts[-1]
    pin = getattr(factory or registry.load("agents", learner), "pinned", None)
    return spec if pin is None else Spec(spec.name, {**spec.params, **pin(spec.params)}, spec.label)


def _share_out(
    params: Mapping[str, Any], learner: Factory
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters that the learner takes, and the rest, which are the strategy's."""
    takes = inspect.signature(learner).parameters
    own = {k: v for k, v in params.items() if k in takes}
    return own, {k: v for k, v in params.items() if k not in takes}


def _composed(what: str, strategy: Any) -> Any:
    """The agent that a strategy makes of its learner."""
    if not callable(getattr(strategy, "agent", None)):
        raise SpecError(
            f"{what} is {type(strategy).__name__}, expected a Strategy "
            "(perdure.agents.strategies.base); write strategy+learner in this order"
        )
    return strategy.agent()
