"""A point that goes east or west, with what shows it how: a curriculum for policies that others train."""

import gymnasium
import numpy as np
from gymnasium import spaces

from perdure import Curriculum, Exposure, adapt, evaluate, learn
from perdure.suite import Suite
from perdure.types import Examples, Task

WAYS = {"east": 1.0, "west": -1.0}


class Point(gymnasium.Env):
    """A point that is to go far enough east or west in four steps."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, way):
        self.way = way

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.steps = np.zeros(2, np.float32), 0
        return self.at.copy(), {}

    def step(self, action):
        self.at, self.steps = self.at + action, self.steps + 1
        success = float(self.way * self.at[0] > 2)
        return self.at.copy(), success, False, self.steps >= 4, {"success": success}


class Shown:
    batch_size = 4

    def __init__(self, way):
        self.way = way

    def __len__(self):
        return 8

    def batch(self, indices):
        return Examples(
            np.zeros((len(indices), 2), np.float32),
            np.tile(np.float32([self.way, 0]), (len(indices), 1)),
        )


class Points(Suite):
    name = "points"

    def tasks(self):
        return [Task("points", n) for n in WAYS]

    def env(self, task):
        return Point(WAYS[task.name])

    def data(self, task, learning):
        return Shown(WAYS[task.name])


suite = Points()


def turn():
    tasks = suite.tasks()
    played = evaluate(*(Exposure(t, 2) for t in tasks))
    blocks = [b for t in tasks for b in (learn(Exposure(t, 1, "epochs")), played)]
    return Curriculum("points/turn", (played, *blocks))


def probed():
    """What an adapt block teaches, before anything was learned and after it, beside what is known."""
    east, west = suite.tasks()
    played = [Exposure(t, 2) for t in (east, west)]
    probe = adapt(Exposure(west, 1, "epochs"), then=played)
    rest = (evaluate(*played), learn(Exposure(east, 1, "epochs")), probe, evaluate(*played))
    return Curriculum("points/probed", (probe, *rest))
