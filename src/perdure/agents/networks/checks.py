"""What learners refuse, and with which words. No torch here: tabular learners use it too."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real

from perdure import registry
from perdure.agent import Agent
from perdure.errors import AgentFault, PerdureError, SpecError
from perdure.spaces import action_kind, observation_kinds, space_leaves
from perdure.types import Array, Batch, Setup, Transitions


def check_spaces(agent: type[Agent], setup: Setup) -> None:
    """Refuse spaces that an agent does not declare, and name those that declare them."""
    seen, done = setup.observation_space, setup.action_space
    space_leaves(seen)  # Refuses two parts of one path.
    strange = observation_kinds(seen) - (agent.reads or observation_kinds(seen))
    if strange:
        what = f"reads {_listed(agent.reads or ())}, not {_listed(strange)} as in {seen}"
    elif agent.acts_in is not None and action_kind(done) not in agent.acts_in:
        kind = action_kind(done)
        known = "" if kind == type(done).__name__ else f" ({kind})"
        what = f"acts in {_listed(agent.acts_in)} spaces, not in {done}{known}"
    else:
        return
    able = agents_for(setup, agent)
    advice = f"agents that take these spaces: {', '.join(able)}" if able else (
        "no agent here takes these spaces: change them by wrappers of the task (docs/spaces.md)"
    )  # fmt: skip
    raise SpecError(f"{name_of(agent)} {what}; {advice}")


def agents_for(setup: Setup, like: type[Agent]) -> list[str]:
    """Names of the agents that declare the spaces of a set-up and could stand in for one like this:
    they learn from the same, and through trials or not."""
    found = []
    for name, entry in registry.entries("agents").items():
        if entry.source.startswith(("perdure.agents.adapters.", "perdure.suites.")):
            continue
        try:
            agent = registry.load("agents", name)
        except PerdureError:
            continue  # What cannot be loaded is no advice.
        if not (isinstance(agent, type) and issubclass(agent, Agent)):
            continue
        if agent.needs_trials and (setup.least_trial or 1) < 2:
            continue
        same = set(like.learns_from) <= set(agent.learns_from)
        if same and agent.memory_scope == like.memory_scope and takes(agent, setup):
            found.append(name)
    return found


def takes(agent: type[Agent], setup: Setup) -> bool:
    """Whether an agent declares the spaces of a set-up."""
    if agent.reads is None or agent.acts_in is None:
        return False
    if agent.needs_task_ids and not setup.tasks:
        return False
    known = observation_kinds(setup.observation_space) <= agent.reads
    return known and action_kind(setup.action_space) in agent.acts_in


def name_of(agent: type[Agent]) -> str:
    """As the registry has it, or its class."""
    entries = registry.entries("agents").values()
    return next((e.name for e in entries if e.source == agent.__module__), agent.__name__)


def _listed(kinds: Iterable[str]) -> str:
    *some, last = sorted(kinds)
    return f"{', '.join(some)} and {last}" if some else last


def transitions_of(agent: str, batch: Batch) -> tuple[Transitions, Array]:
    """The transitions of a learning batch, and their rewards."""
    if not isinstance(batch, Transitions):
        raise AgentFault(
            f"{agent} learns from rewards, got {type(batch).__name__} without them: expose it to "
            "episodes or steps, or use a learner for labelled data"
        )
    if batch.rewards is None:
        raise AgentFault(
            f"{agent} learns from rewards, and the block hides them: show them there "
            "(Visibility(rewards=None)), or take an agent that learns without"
        )
    return batch, batch.rewards


def check_ranges(agent: str, **rules: tuple[float, float, float]) -> None:
    """Refuse parameters outside their range; each rule is (value, least, most)."""
    for name, (value, least, most) in rules.items():
        if not isinstance(value, Real) or not least <= value <= most:
            raise SpecError(f"{agent}: {name} must be from {least:g} to {most:g}, got {value!r}")
