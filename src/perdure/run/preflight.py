"""Before the first episode: what a policy expects, beside what the protocol gives it.

A policy may say what it expects: a server in its metadata (``expects``), a policy in Python as the
attribute ``expects``. Any of these keys, with the values of a protocol or of an observation:

``cameras`` (names), ``image_size``, ``orientation``, ``resize``, ``state`` (its length), ``axis_angle``,
``gripper``, ``chunk`` (its length), ``actions`` (numbers of one), ``normalized`` (whether its actions still
are: true is refused).

What it does not say is found out as far as possible: it is asked for one chunk, of the first
observation of the first episode, and that is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from perdure.agents._chunks import ChunkAgent
from perdure.agents.infer import InferAgent
from perdure.agents.remote import RemoteAgent
from perdure.arrays import Array
from perdure.errors import SpecError
from perdure.policies.connect import connect
from perdure.policies.interface import View
from perdure.policies.openpi import OURS
from perdure.run.plan import Plan
from perdure.run.vector import reset_env
from perdure.seeds import Address
from perdure.suite import Episode, phrasings_of
from perdure.types import Task

KEYS = (
    "cameras", "image_size", "orientation", "resize", "state", "axis_angle", "gripper", "chunk", "actions",
    "normalized",
)  # fmt: skip
FAR = 1.5
"""Beyond the bounds by so much, an action was hardly meant."""


def preflight(plan: Plan, label: str) -> list[str]:
    """Notes on a policy; SpecError if it contradicts the protocol, PolicyServerFault if it does not
    answer as it should."""
    job = next(job for job in plan.jobs if job.agent == label)
    config = plan.config(job)
    agent = plan.make_agent(label, config.setup())
    if not isinstance(agent, ChunkAgent):
        return []
    exposure = config.curriculum.blocks[0].exposures[0]
    task, suite = exposure.task, config.suites[exposure.task.suite]
    address = Address(config.seed, "eval", task.key, "episode")
    seed = address.seed(0)
    env = suite.env(task)
    try:
        obs, _ = reset_env(suite, env, Episode(seed, seed, 0, 0))
    finally:
        env.close()
    rows = (
        {k: v[None] for k, v in obs.items()} if isinstance(obs, Mapping) else np.asarray(obs)[None]
    )
    words = next(iter(phrasings_of(suite, task)), "")
    view = agent.interface.view(rows, 0, prompt=words, first=True, task=task.id)
    told, chunk = _asked(agent, view)
    given = _given(agent, view, task)
    wrong = contradictions(told, given, len(chunk) if isinstance(chunk, np.ndarray) else None)
    if wrong:
        lines = "\n  ".join(wrong)
        raise SpecError(
            f"{label} and the protocol contradict each other (--set changes the protocol, "
            f"--no-preflight goes on all the same):\n  {lines}"
        )
    agent.interface.chunk(chunk, agent.who)
    return [*plausible(agent, np.asarray(chunk, np.float64)), *_agreed(told, given)]


def _asked(agent: ChunkAgent, view: View) -> tuple[dict[str, Any], Any]:
    """What a policy says that it expects, and its first chunk."""
    if isinstance(agent, InferAgent):
        told = expectations(getattr(agent.policy, "expects", {}), agent.who)
        return told, agent.query([view])[0]
    assert isinstance(agent, RemoteAgent)
    client = connect(agent.address, agent.patience, agent.anywhere)
    try:
        ours = client.metadata.get(OURS)
        told = expectations(client.metadata.get("expects", {}), agent.who)
        if isinstance(ours, Mapping) and isinstance(ours.get("protocol"), Mapping):
            values = ours["protocol"].get("values", {})
            told = {k: v for k, v in values.items() if k in KEYS and k != "state"} | told
        return told, client.infer([view])[0]
    finally:
        client.close()


def expectations(found: Any, who: str) -> dict[str, Any]:
    """What a policy says that it expects; unknown keys are refused."""
    if not isinstance(found, Mapping):
        raise SpecError(f"{who}: expects must be a map, got {type(found).__name__}")
    strange = [k for k in found if k not in KEYS]
    if strange:
        raise SpecError(f"{who}: expects {strange[0]!r}, which is none of {', '.join(KEYS)}")
    return dict(found)


def _given(agent: ChunkAgent, view: View, task: Task) -> dict[str, Any]:
    """What the protocol gives, by the same keys."""
    face = agent.interface
    sizes = {picture.shape[0] for picture in view.images.values()}
    state = view.numbers.get("state")
    given: dict[str, Any] = {
        "cameras": sorted(view.images),
        "image_size": sizes.pop() if len(sizes) == 1 else None,
        "orientation": task.params.get("orientation", "upright"),
        "resize": face.resize,
        "state": None if state is None else len(state),
        "axis_angle": face.axis_angle,
        "gripper": face.gripper,
        "chunk": face.replan,
        "actions": face.actions,
        "normalized": False,
    }
    return given


def contradictions(
    told: Mapping[str, Any], given: Mapping[str, Any], chunk: int | None = None
) -> list[str]:
    """Where a policy expects something else than the protocol gives, a line each."""
    wrong = []
    for key, wanted in told.items():
        has = given[key]
        if key == "cameras":
            lacking = sorted(set(wanted) - set(has))
            if lacking:
                wrong.append(f"cameras: the policy needs {', '.join(lacking)}, it is shown {has}")
        elif key == "chunk":
            if has is not None and wanted < has:
                wrong.append(
                    f"chunk: the policy gives {wanted} actions, the protocol executes {has}"
                )
            if chunk is not None and chunk != wanted:
                wrong.append(f"chunk: the policy says {wanted} actions, it gave {chunk}")
        elif key == "image_size" and wanted is None:
            continue
        elif wanted != has:
            wrong.append(f"{key}: the policy expects {wanted}, the protocol gives {has}")
    return wrong


def plausible(agent: ChunkAgent, chunk: Array) -> list[str]:
    """What a look at a chunk of actions tells; SpecError if it cannot be meant so."""
    face, notes = agent.interface, []
    grip, arm = chunk[:, -1], chunk[:, :-1]
    if face.gripper == "zero-one" and ((grip < -0.1) | (grip > 1.1)).any():
        raise SpecError(
            f"{agent.who}: the protocol's gripper goes from 0 (closed) to 1 (open), and the policy gave "
            f"{grip.min():.2g} to {grip.max():.2g}: --set gripper=as-is if −1 opens"
        )
    bound = np.maximum(np.abs(face.low[:-1]), np.abs(face.high[:-1]))
    if arm.size and (np.abs(arm) > FAR * bound).any():
        notes.append(
            f"its first actions reach {np.abs(arm).max():.3g}, the bounds are {float(bound.max()):g}, beyond "
            "which they are cut off: are they still normalised, or in other units?"
        )
    if not chunk.any():
        notes.append("its first actions are all zero")
    if (
        face.gripper != "zero-one"
        and len(grip) > 1
        and ((grip >= 0) & (grip <= 1)).all()
        and grip.any()
    ):
        notes.append(
            "its gripper stays between 0 and 1: if 1 means open there, --set gripper=zero-one"
        )
    return notes


def _agreed(told: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    if told:
        return [f"agrees on {', '.join(told)}"]
    shown = ", ".join(f"{k} {v}" for k, v in given.items() if v is not None and k != "normalized")
    return [f"says nothing of what it expects; the protocol gives {shown}"]
