"""Tiny tasks with known optima: for tests, tutorials and the demo.

==================  ==============================================================  ============
task                what                                                            optimum
==================  ==============================================================  ============
goal-{ne,nw,se,sw}  5×5 grid, random start, walk to a corner nobody tells you of    see GridGoal
bandit              one step, the context says which arm pays                       return 1
reach               continuous action, reward −|a − target|                         return 0
count               fixed-length episodes, reward = action; for testing the loop    = length
drift               continuing: follow a drifting target forever                    1 per step
recall              name a cue that was seen some steps ago: needs memory           return 1
hidden-goal         which arm pays is hidden and stays for a trial: needs trials    see HiddenGoal
navigation          walk to a goal that a trial hides                               see Navigation
navigation-{e,ne,…} the same, all goals in one of eight directions                  return −2
bernoulli           arms pay with chances that a trial hides                        see Bernoulli
mass                push a mass whose answer to a push a trial hides                see Mass
signed-reach        as reach, with a number and a picture as observations (Dict)    return 0
told                which arm pays is said by the task's instruction alone          return 1
cue                 name two lights, in any kind of space; also as demonstrations   return 1
blobs               labelled 2-D points, classes turned and moved                   accuracy ≈ 1
==================  ==============================================================  ============
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from perdure.specs import call_with
from perdure.suite import Data, Suite
from perdure.suites.toy import protocols
from perdure.suites.toy.cue import Cue, CueData
from perdure.suites.toy.envs import (
    Bandit,
    Blobs,
    Count,
    Drift,
    GridGoal,
    HiddenGoal,
    Reach,
    Recall,
    SignedReach,
    Told,
)
from perdure.suites.toy.families import DIRECTIONS, Bernoulli, Mass, Navigation
from perdure.types import Curriculum, Task

ENVS: dict[str, tuple[type[gymnasium.Env[Any, Any]], dict[str, Any]]] = {
    **{f"goal-{c}": (GridGoal, {"corner": c}) for c in GridGoal.CORNERS},
    "bandit": (Bandit, {}),
    "reach": (Reach, {}),
    "count": (Count, {}),
    "drift": (Drift, {}),
    "recall": (Recall, {}),
    "hidden-goal": (HiddenGoal, {}),
    "navigation": (Navigation, {}),
    **{f"navigation-{d}": (Navigation, {"towards": d}) for d in DIRECTIONS},
    "bernoulli": (Bernoulli, {}),
    "mass": (Mass, {}),
    "signed-reach": (SignedReach, {}),
    "told": (Told, {}),
    "cue": (Cue, {}),
}


_DATA = ("examples", "batch_size")
"""Parameters that concern a task's data alone."""


class ToySuite(Suite):
    """Tiny tasks with known optima."""

    name = "toy"
    reset_options = True
    measure = "success"

    def tasks(self) -> Sequence[Task]:
        return [Task("toy", n) for n in (*ENVS, "blobs")]

    def env(self, task: Task) -> gymnasium.Env[Any, Any]:
        if task.name not in ENVS:
            return super().env(self.task(task.name))
        cls, params = ENVS[task.name]
        mine = {k: v for k, v in task.params.items() if k not in ("window", *_DATA)}
        env: gymnasium.Env[Any, Any] = call_with(f"task {task.id}", cls, **{**params, **mine})
        return env

    def about(self, task: Task) -> str:
        cls = ENVS[task.name][0] if task.name in ENVS else Blobs
        return (cls.__doc__ or "").partition("\n\n")[0]

    def has_env(self, task: Task) -> bool:
        return task.name in ENVS

    def data(self, task: Task, learning: bool) -> Data:
        if task.name not in ("blobs", "cue"):
            return super().data(self.task(task.name), learning)
        kind: Any = Blobs if task.name == "blobs" else CueData
        data: Data = call_with(f"task {task.id}", kind, learning, **task.params)
        return data

    def spaces(self, task: Task) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
        if task.name != "blobs":
            return super().spaces(task)
        self.data(task, True)
        classes = task.params.get("classes", 4)
        return spaces.Box(-np.inf, np.inf, (2,), np.float32), spaces.Discrete(classes)

    def instructions(self, task: Task) -> Sequence[str]:
        if task.name != "told":
            return ()
        arm = task.params.get("arm", "left")
        return f"pull the {arm} arm", f"the {arm} one, please"

    def window(self, task: Task) -> int | None:
        return int(task.params.get("window", 100)) if task.name == "drift" else None

    def curricula(self) -> Mapping[str, Callable[..., Curriculum]]:
        return protocols.CURRICULA


suite = ToySuite()
