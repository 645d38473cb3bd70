"""Demonstrations of Meta-World's scripted experts as files, in the layout of robomimic."""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perdure.errors import SpecError
from perdure.seeds import rng_for
from perdure.suite import Demonstration
from perdure.suites._demonstrations import SUFFIX
from perdure.suites.metaworld.descriptions import ABOUT
from perdure.suites.metaworld.tasks import NAMES, check_task, settings
from perdure.types import Array, Task

ALL = "all"


def tasks_named(name: str, params: Mapping[str, Any]) -> Sequence[Task]:
    """One task, or ``all`` of them."""
    given = dict(params)
    cameras = given.pop("cameras", None)
    if cameras:
        if len(cameras) > 1:
            raise SpecError(f"Meta-World's tasks show one camera, got {', '.join(cameras)}")
        given |= {"observation": "image", "camera": cameras[0]}
    check_task(name, (ALL,))
    return [Task("metaworld", n, params=given) for n in (NAMES if name == ALL else (name,))]


def file_of(task: Task) -> tuple[str, dict[str, Any]]:
    """A task's file and its attributes."""
    arguments = {"env_name": f"{task.name}-v3", "type": 2, "env_kwargs": dict(task.params)}
    attributes = {
        "env_name": f"{task.name}-v3",
        "problem_info": json.dumps({"language_instruction": ABOUT[task.name]}),
        "env_args": json.dumps(arguments),
        "perdure_task": task.id,
        "perdure_params": json.dumps(dict(task.params), sort_keys=True),
    }
    return f"metaworld/{task.name}{SUFFIX}", attributes


def demonstrate(task: Task, seed: int) -> Demonstration | None:
    """The expert's episode of a seed, None if it does not succeed."""
    from metaworld.policies import ENV_POLICY_MAP

    from perdure.suites.metaworld.demonstrations import AFTER, _picture_of
    from perdure.suites.metaworld.env import Sawyer

    warnings.filterwarnings("ignore", "Constant", UserWarning, "metaworld")
    chosen = settings(task)
    plain = dataclasses.replace(
        chosen, reward="v2", observation="state", hide_goal=False, one_hot=None, persist=1
    )
    policy: Any = ENV_POLICY_MAP[f"{task.name}-v3"]
    env, expert = Sawyer(task.name, plain), policy()
    picture = _picture_of(env, chosen) if chosen.observation == "image" else None
    noise = rng_for(seed, "noise").normal(0, chosen.noise, (chosen.horizon, 4))
    obs = env.begin(seed)
    rows: list[dict[str, Array]] = []
    left: int | None = None
    for added in noise:
        action = np.clip(np.clip(expert.get_action(obs.copy()), -1, 1) + added, -1, 1)
        action = action.astype(np.float32)
        row: dict[str, Any] = {"obs/state": obs.copy(), "states": obs.copy(), "actions": action}
        if picture is not None:
            row[f"obs/{chosen.camera}_rgb"] = picture()
        obs, reward, _, _, info = env.step(action)
        row |= {"rewards": np.float64(reward), "success": np.uint8(bool(info["success"]))}
        rows.append(row)
        left = left - 1 if left is not None else (AFTER if info["success"] else None)
        if left == 0:
            break
    env.close()
    if left is None:
        return None
    arrays = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    arrays["dones"] = np.zeros(len(rows), np.uint8)
    arrays["dones"][-1] = 1
    return Demonstration(arrays, {"seed": np.uint64(seed), "init_state": arrays["states"][0]})


def replay(task: Task, shown: Demonstration) -> bool:
    """Whether the stored actions, from the stored seed, succeed again."""
    from perdure.suites.metaworld.env import Sawyer

    plain = dataclasses.replace(settings(task), observation="state", hide_goal=False, one_hot=None)
    env = Sawyer(task.name, plain)
    env.begin(int(shown.attributes["seed"]))
    found = any(bool(env.step(a)[4]["success"]) for a in shown.arrays["actions"])
    env.close()
    return found
