"""Any policy on a suite by a named protocol: which agent and curriculum a command means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from perdure import registry
from perdure.agent import Agent
from perdure.curricula.named import curriculum_of
from perdure.errors import SpecError, UnknownName
from perdure.names import join_task_id, slug, split_task_id
from perdure.policies.client import is_address
from perdure.run.spec import RunSpec
from perdure.specs import Spec, is_file_reference
from perdure.store.layout import is_run

CHECKPOINT = 200
"""Steps after which an evaluation commits: what is repeated after a server has failed."""
ENVS = 2
"""Environments side by side, if nothing else is said."""


def policy_spec(text: str, more: Mapping[str, Any] | None = None) -> Spec:
    """The agent that a policy means: ``[LABEL=]P``.

    P is the address of a server (``ws://…``), the folder of a run (``RUN`` or ``RUN:AGENT``),
    ``file.py:Object`` (an agent, an object with ``infer``, or a function of an observation), or an agent
    by its name. ``more`` are parameters for servers.
    """
    label, eq, rest = text.partition("=")
    if not eq or not label.replace("-", "").replace("_", "").isalnum():
        label, rest = "", text
    if is_address(rest):
        plain = rest.partition("://")
        params = {"address": rest, **{k: v for k, v in (more or {}).items() if v is not None}}
        return Spec("remote", params, label or slug(f"{plain[0]}-{plain[2]}".rstrip("/")))
    folder, _, agent = rest.partition(":")
    if not is_file_reference(rest) and is_run(Path(folder)):
        named = {"run": folder, **({"agent": agent} if agent else {}), "frozen": True}
        return Spec("from_run", named, label or slug(agent or Path(folder).name))
    spec = Spec.parse(rest)
    if is_file_reference(spec.name):
        spec = _of_file(spec)
    return replace(spec, label=label or spec.label or slug(Spec.parse(rest).short))


def _of_file(spec: Spec) -> Spec:
    """An agent, or the one that asks what is in a file."""
    found = registry.load_file(spec.name)
    if isinstance(found, type) and issubclass(found, Agent):
        return spec
    if callable(getattr(found, "infer", None)):
        return Spec("infer", {"policy": spec.name, **spec.params})
    if callable(found) and not isinstance(found, type):
        return Spec("policy", {"fn": spec.name, **spec.params})
    raise SpecError(
        f"{spec.name}: expected an Agent, an object or class with infer(observation), or a function of an "
        f"observation, got {found!r:.80}"
    )


def evaluation_spec(
    suite: str, protocol: str = "", episodes: int | None = None, changes: Sequence[str] = ()
) -> Spec:
    """The curriculum that evaluates ``SUITE``: ``libero/spatial``, ``libero_10``, ``metaworld/mt10``, or
    a task, ``libero/goal-3``. ``changes`` are KEY=VALUE in place of the protocol's."""
    given = Spec.parse(suite)
    name = given.name
    for family in registry.entries("suites"):
        if name.startswith(f"{family}_"):  # As LeRobot calls it.
            name = name.replace(f"{family}_", f"{family}/", 1)
    family, short, variant = split_task_id(name) if "/" in name else (name, "", "")
    rest = join_task_id("", short, variant)
    if not registry.is_suite(family):
        known = [n for n in registry.entries("suites") if registry.suite(n).protocols()]
        raise UnknownName("suite", family, known, f"(evaluated by protocol: {', '.join(known)})")
    mine = registry.suite(family)
    protocols, builders = mine.protocols(), mine.curricula()
    if not protocols:
        raise SpecError(
            f"suite {family} has no evaluation protocols: perdure run plays its curricula"
        )
    listed = [n.removeprefix("eval-") for n in builders if n.startswith("eval-")]
    rest = rest.removeprefix("eval-")
    rest = rest if rest in listed else mine.aliases().get(rest, rest)
    params: dict[str, Any] = dict(given.params)
    if rest not in listed:
        try:
            task = mine.task(rest)
        except UnknownName as e:
            raise UnknownName(
                f"evaluation of {family}", rest, [*listed, *mine.aliases(), *e.known]
            ) from e
        rest, params["names"] = "tasks", [task.name]
    if protocol:
        if protocol not in protocols:
            raise UnknownName(
                f"protocol of {family}", protocol, protocols, f"({', '.join(protocols)})"
            )
        params["protocol"] = protocol
    if episodes is not None:
        params["episodes"] = episodes
    for change in changes:
        params |= Spec.parse(f"x,{change}").params
    return Spec(f"{family}/eval-{rest}", params)


def evaluation_run(
    policies: Sequence[Spec],
    curriculum: Spec,
    *,
    out: str = "",
    seed: int | None = None,
    envs: int = ENVS,
    lifetimes: int = 1,
    executor: str = "processes",
) -> RunSpec:
    """The run of an evaluation; its seed is the protocol's unless it is given."""
    made = curriculum_of(curriculum)
    assert made.protocol is not None
    default = made.protocol.get("seed", 0)
    named = f"{curriculum.name}-{made.protocol.name}".replace("/eval-", "/")
    return RunSpec(
        str(curriculum),
        tuple(str(p) for p in policies),
        lifetimes,
        default if seed is None else seed,
        out or f"runs/eval-{slug(named)}",
        executor,
        envs,
        checkpoint=CHECKPOINT,
    )
