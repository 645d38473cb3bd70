"""Where goals and objects are: as upstream draws them, from a seed of ours or of a benchmark's.

Upstream places goal and objects by a random vector, drawn until the scene is sensible. A fast
environment draws it without moving the arm, which gives the same vectors.
"""

from __future__ import annotations

import functools

import numpy as np

from perdure.suites.metaworld.cache import folder, read_checked, write_checked
from perdure.suites.metaworld.fast_env import FastEnv, fast_env
from perdure.suites.metaworld.models import versions
from perdure.suites.metaworld.tasks import BENCHMARKS, GOALS
from perdure.types import Array


class Fixed:
    """A generator whose first draw is the scene a task is written with, as in the paper.

    Where upstream now refuses that scene, because object and goal are too near to each other, the
    draws that follow are those of seed 0.
    """

    def __init__(self, env: FastEnv) -> None:
        self.first: Array | None = written(env)
        self.rest = np.random.Generator(np.random.PCG64(0))

    def uniform(self, low: Array, high: Array, size: int) -> Array:
        """The next vector between bounds."""
        vector, self.first = self.first, None
        return self.rest.uniform(low, high, size=size) if vector is None else vector


def written(env: FastEnv) -> Array:
    """The vector of the scene that a task is written with: its object's and its goal's place."""
    space = env._random_reset_space
    config = {k: v for k, v in env.init_config.items() if k.endswith("_pos") and "hand" not in k}
    (start,) = config.values()
    if space.low.size == 6:
        vector = np.concatenate([start, env.goal])
    elif np.array_equal(space.low, env.goal_space.low):
        vector = np.array(env.goal, float)
    else:
        vector = start
    return vector.clip(space.low, space.high)


@functools.cache
def official(benchmark: str, seed: int, name: str) -> Array:
    """The 50 vectors that a benchmark made with this seed has for a task.

    Upstream draws them from one generator for one task after another, so that they depend on the
    tasks before; and ML1's test goals are those of the next seed.
    """
    tasks = BENCHMARKS[benchmark] or (name,)
    start = seed + 1 if benchmark == "ML1-test" else seed
    label = benchmark if BENCHMARKS[benchmark] else f"1-{name}"
    path = folder("goals") / f"{label}-{start}-{versions()}.f8"
    dimensions = [fast_env(n).dimensions() for n in tasks]
    stored = read_checked(path)
    if stored is None or len(stored) != 8 * GOALS * sum(dimensions):
        drawn = np.random.RandomState(start)
        stored = b"".join(_draw(n, drawn).tobytes() for n in tasks)
        write_checked(path, stored)
    numbers = np.frombuffer(stored)
    place = tasks.index(name)
    first = GOALS * sum(dimensions[:place])
    return numbers[first : first + GOALS * dimensions[place]].reshape(GOALS, -1)


def _draw(name: str, drawn: np.random.RandomState) -> Array:
    env = fast_env(name)()
    vectors = []
    for _ in range(GOALS):
        env.place(None, drawn)  # An upstream reset draws twice, and the second counts.
        vectors.append(env.place(None, drawn).copy())
    return np.array(vectors)
