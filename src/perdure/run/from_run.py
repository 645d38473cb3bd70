"""A trained agent of a run, on any curriculum: to evaluate it, or to go on with it (pretraining)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from perdure.agent import Agent
from perdure.agents.compose import make_agent
from perdure.agents.wrapped import FrozenAgent, WrappedAgent
from perdure.arrays import Array
from perdure.errors import AgentFault, NameRefused, PerdureError, SpecError
from perdure.run.config import LifetimeConfig
from perdure.run.datasets import Datasets
from perdure.run.guards import agent_fault
from perdure.run.persistence import read_spec
from perdure.run.plan import load_plan
from perdure.run.validate import resolve
from perdure.spaces import differences
from perdure.specs import Spec
from perdure.store.layout import RunFolder
from perdure.store.run import Run
from perdure.store.saved import AgentReference, SavedAgent, saved_agent
from perdure.types import Batch, Context, Curriculum, Examples, Measures, Setup

DIGITS = 16
"""Of a digest that stand in specifications."""


class FromRun:
    """``from_run,run=PATH,agent=LABEL``: the agent that a lifetime of another run ended with.

    It has everything that it had learned: networks, optimiser, what a strategy keeps. It goes on
    learning from there, or not if ``frozen``: then it only acts, as in evaluation. ``seed`` is that of
    its lifetime (the first), ``commit`` the commit that it is taken from (the last), ``expert`` the
    task of a single-task expert. A learner that no strategy was composed with may get one now:
    ``ewc+from_run,run=…,agent=classifier``.

    ``weights`` is written by the plan: a digest of what was learned, so that a specification always
    means the same agent.
    """

    closed = (
        "it is what the run's agent is: a learner that was trained without a strategy can have one"
    )

    def __call__(
        self,
        setup: Setup,
        run: str,
        agent: str = "",
        seed: int | None = None,
        commit: int = -1,
        expert: str = "",
        frozen: bool = False,
        weights: str = "",
    ) -> Agent:
        saved = saved_agent(AgentReference(Run(str(run)), agent, seed, commit, expert))
        if weights and saved.sha256[:DIGITS] != weights:
            raise SpecError(
                f"{saved} is not the agent that this run was planned with: its digest is "
                f"{saved.sha256[:DIGITS]}, expected {weights}. Restore the run, or choose another folder "
                "with --out"
            )
        made = _taken_up(saved, setup)
        return FrozenAgent(made) if frozen else made

    def inside(self, params: Mapping[str, Any]) -> Spec:
        """The specification of the agent that is taken up: its code is executed too."""
        keys = {k: params[k] for k in ("seed", "commit", "expert") if k in params}
        run, label = Run(str(params["run"])), str(params.get("agent", ""))
        saved = saved_agent(AgentReference(run, label, **keys))
        return Spec.parse(saved.description["agent"])

    def pinned(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Which agent the parameters mean now."""
        if "run" not in params:
            raise SpecError("from_run: name the run, from_run,run=PATH,agent=LABEL")
        if "\0" in str(params["run"]):
            raise NameRefused(f"from_run: {params['run']!r} holds a NUL character")
        agent, expert = (str(params.get(k, "")) for k in ("agent", "expert"))
        numbers = {k: params[k] for k in ("seed", "commit") if k in params}
        if any(type(n) is not int for n in numbers.values()):
            raise SpecError(f"from_run: seed and commit are whole numbers, got {numbers}")
        run = Run(str(params["run"]))
        saved = saved_agent(AgentReference(run, agent, expert=expert, **numbers))
        found = {"agent": saved.info.agent, "seed": saved.info.seed, "commit": saved.commit.n}
        return {**found, "weights": params.get("weights", saved.sha256[:DIGITS])}

    def again(
        self, run: Path, agent: str, seed: int | None, commit: int, expert: str = ""
    ) -> Agent:
        """The agent in the setting that it was trained in."""
        saved = saved_agent(AgentReference(Run(run), agent, seed, commit, expert))
        return _loaded(saved, lifetime_of(saved).setup())


def lifetime_of(saved: SavedAgent) -> LifetimeConfig:
    """The lifetime that an agent is from."""
    described = saved.description
    curriculum = _curriculum(saved)
    resolved = resolve(curriculum)
    return LifetimeConfig(
        curriculum,
        resolved.suites,
        resolved.observation_space,
        resolved.action_space,
        described["seed"],
        described["envs"],
        described["hide_tasks"],
    )


def _curriculum(saved: SavedAgent) -> Curriculum:
    described = saved.description
    try:
        # A file that it is written in may have its suites too.
        made = load_plan(saved.run).curriculum(described["seed"], described["expert"])
        if made.fingerprint == described["fingerprint"]:
            return made
    except PerdureError:
        pass  # It was made otherwise, or is gone: its outline is in the description.
    return Curriculum.from_json(described["curriculum"])


def _taken_up(saved: SavedAgent, setup: Setup) -> Agent:
    """The agent in another setting than the one it was trained in."""
    config = lifetime_of(saved)
    before = config.setup()
    for name in ("observation_space", "action_space"):
        had, has = getattr(before, name), getattr(setup, name)
        if had != has:
            raise SpecError(
                f"{saved}: {name.replace('_', ' ')} here is not the one that it was trained with: "
                f"{differences(has, had)}. Give the curriculum "
                f"parameters with which its tasks show and take the same as those of the agent's run, {_asked(saved)}"
            )
    sources = _Sources(config.datasets, setup.examples)
    here = replace(
        setup,
        tasks=tuple(dict.fromkeys((*before.tasks, *setup.tasks))),
        instructions={**before.instructions, **setup.instructions},
        shown_tasks=tuple({t.key: t for t in (*before.shown_tasks, *setup.shown_tasks)}.values()),
        examples=sources,
    )
    made = _loaded(saved, here, before)
    if any(base.__name__ == "TorchLearner" for base in type(made).__mro__):
        # It keeps no references into data itself, and a strategy may be composed with it.
        sources.earlier = 0
        return made
    return _WithSources(made, sources)


def _asked(saved: SavedAgent) -> str:
    """The curriculum that a run was asked for."""
    return str(read_spec(RunFolder(saved.run))["curriculum"])


def _loaded(saved: SavedAgent, setup: Setup, before: Setup | None = None) -> Agent:
    """An agent for this setting with what was learned, in the setting ``before`` if that was another."""
    made = make_agent(Spec.parse(saved.description["agent"]), setup)
    state: dict[str, Any] = dict(saved.state)
    if before is not None and before.slots != setup.slots:
        state |= _begun_anew(made, state, before.slots, setup.slots)
    try:
        made.load(state)
    except Exception as e:
        new = [t for t in setup.tasks if before is not None and t not in before.tasks]
        why = f"{agent_fault(made, 'load', e)}"
        if new:
            known = ", ".join(before.tasks) if before is not None else ""
            why = (
                f"it keeps something for each of its tasks ({known or 'hidden then'}), and "
                f"{', '.join(new)} are not among them ({why})"
            )
        raise SpecError(f"{saved} cannot be taken up here: {why}") from e
    return made


def _begun_anew(made: Agent, state: Mapping[str, Any], before: int, now: int) -> dict[str, Any]:
    """What a new agent has for each slot, in place of what was saved for another number of slots: it is
    about episodes that were under way."""
    out = {}
    for name, fresh in (made.state() or {}).items():
        had, has = np.shape(state.get(name, ())), np.shape(fresh)
        if had[:1] == (before,) and has == (now, *had[1:]):
            out[name] = fresh
    return out


class _Sources:
    """Examples of the data that an agent was trained on, and after those of the data that it sees now."""

    def __init__(self, before: Datasets, now: Callable[[int, Array], Examples] | None) -> None:
        self.before, self.now, self.earlier = before, now, len(before.tasks)

    def __call__(self, source: int, indices: Array) -> Examples:
        if source < self.earlier:
            return self.before.examples(source, indices)
        if self.now is None:
            raise AgentFault("examples were asked for where there are no data")
        found = self.now(source - self.earlier, indices)
        return replace(found, source=source)


class _WithSources(WrappedAgent):
    """An agent for which the data that it sees now come after those that it was trained on."""

    def __init__(self, inner: Agent, sources: _Sources) -> None:
        super().__init__(inner)
        self.sources = sources

    def learn(self, batch: Batch, ctx: Context) -> Measures | None:
        if isinstance(batch, Examples) and batch.source >= 0:
            batch = replace(batch, source=batch.source + self.sources.earlier)
        return self.inner.learn(batch, ctx)


agent = FromRun()
