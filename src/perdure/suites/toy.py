"""Tiny tasks with known optima: for tests, tutorials and the demo.

==================  ==============================================================  ============
task                what                                                            optimum
==================  ==============================================================  ============
goal-{ne,nw,se,sw}  5×5 grid, random start, walk to a corner nobody tells you of    see GridGoal
bandit              one step, the context says which arm pays                       return 1
reach               continuous action, reward −|a − target|                         return 0
count               fixed-length episodes, reward = action; for testing the loop    = length
drift               continuing: follow a drifting target forever                    1 per step
blobs               labelled 2-D points, classes turned and moved                   accuracy ≈ 1
==================  ==============================================================  ============
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from perdure import curricula
from perdure.errors import CurriculumError
from perdure.seeds import rng_for
from perdure.specs import call_with
from perdure.types import (
    Array,
    Curriculum,
    Data,
    Examples,
    Exposure,
    Suite,
    Task,
    Unit,
    adapt,
    evaluate,
    learn,
)


class GridGoal(gymnasium.Env[Array, int]):
    """Walk a ``size``×``size`` grid from a random start to one corner.

    The observation is the position one-hot; the goal is not in it, so what one corner taught is
    wrong for the next. Reward 1 at the goal, −0.02 on every other step; at most ``horizon``
    steps. The shortest path of d steps returns 1 − 0.02 (d − 1): the optimum from any start.
    """

    CORNERS: Mapping[str, tuple[int, int]] = {
        "ne": (1, 0),
        "nw": (0, 0),
        "se": (1, 1),
        "sw": (0, 1),
    }
    MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))
    metadata = {"render_modes": ["rgb_array"], "render_fps": 5}  # noqa: RUF012
    render_mode = "rgb_array"
    CELL = 32

    def __init__(self, corner: str = "ne", size: int = 5, horizon: int = 25) -> None:
        if corner not in self.CORNERS:
            raise ValueError(f"corner must be one of {sorted(self.CORNERS)}, got {corner!r}")
        self.size, self.horizon = size, horizon
        cx, cy = self.CORNERS[corner]
        self.goal = (cx * (size - 1), cy * (size - 1))
        self.observation_space = spaces.Box(0.0, 1.0, (size * size,), np.float32)
        self.action_space = spaces.Discrete(4)  # type: ignore[assignment]

    def distance(self) -> int:
        """Steps of the shortest path from here."""
        return abs(self.x - self.goal[0]) + abs(self.y - self.goal[1])

    def _obs(self) -> Array:
        obs = np.zeros(self.size * self.size, np.float32)
        obs[self.y * self.size + self.x] = 1.0
        return obs

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self.t = 0
        while True:
            self.x, self.y = (int(v) for v in self.np_random.integers(self.size, size=2))
            if (self.x, self.y) != self.goal:
                return self._obs(), {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        dx, dy = self.MOVES[int(action)]
        self.x = min(max(self.x + dx, 0), self.size - 1)
        self.y = min(max(self.y + dy, 0), self.size - 1)
        self.t += 1
        done = (self.x, self.y) == self.goal
        reward = 1.0 if done else -0.02
        return self._obs(), reward, done, self.t >= self.horizon, {"success": done}

    def render(self) -> Array:
        """The grid from above: the goal green, the walker a blue square within its cell."""
        cell = self.CELL
        image = np.full((self.size * cell, self.size * cell, 3), 245, np.uint8)
        image[::cell] = image[:, ::cell] = 205
        for (x, y), colour, rim in (
            (self.goal, (120, 190, 130), 1),
            ((self.x, self.y), (0, 114, 178), 7),
        ):
            rows, columns = (slice(v * cell + rim, (v + 1) * cell - rim + 1) for v in (y, x))
            image[rows, columns] = colour
        return image


class Bandit(gymnasium.Env[Array, int]):
    """One step: the one-hot context names the arm that pays 1 (turned by ``shift``)."""

    def __init__(self, arms: int = 4, shift: int = 0) -> None:
        self.arms, self.shift = arms, shift
        self.observation_space = spaces.Box(0.0, 1.0, (arms,), np.float32)
        self.action_space = spaces.Discrete(arms)  # type: ignore[assignment]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self.context = int(self.np_random.integers(self.arms))
        return np.eye(self.arms, dtype=np.float32)[self.context], {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        right = int(action) == (self.context + self.shift) % self.arms
        obs = np.zeros(self.arms, np.float32)
        return obs, float(right), True, False, {"success": right}


class Reach(gymnasium.Env[Array, Array]):
    """``length`` steps; the action should equal ``gain`` × the observed number."""

    def __init__(self, gain: float = 0.5, length: int = 10) -> None:
        self.gain, self.length = gain, length
        self.observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def _obs(self) -> Array:
        self.x = float(self.np_random.uniform(-1, 1))
        return np.array([self.x], np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self.t, self.worst = 0, 0.0
        return self._obs(), {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        error = abs(float(action[0]) - self.gain * self.x)
        self.worst = max(self.worst, error)
        self.t += 1
        over = self.t >= self.length
        return self._obs(), -error, False, over, {"success": over and self.worst < 0.2}


class Count(gymnasium.Env[Array, int]):
    """Episodes of exactly ``length`` steps; the observation counts them, the reward is the
    action."""

    def __init__(self, length: int = 5, actions: int = 2) -> None:
        self.length = length
        self.observation_space = spaces.Box(0.0, np.inf, (1,), np.float64)
        self.action_space = spaces.Discrete(actions)  # type: ignore[assignment]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1), {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        self.t += 1
        return np.array([float(self.t)]), float(action), self.t >= self.length, False, {}


class Drift(gymnasium.Env[Array, int]):
    """Continuing: a target walks a ring of ``places``; pays 1 when the action names its place.

    Never terminates and never truncates. It can save itself, so that resuming in mid-life costs
    nothing however long it has run.
    """

    def __init__(self, places: int = 4, stay: float = 0.9) -> None:
        self.places, self.stay = places, stay
        self.observation_space = spaces.Box(0.0, 1.0, (places,), np.float32)
        self.action_space = spaces.Discrete(places)  # type: ignore[assignment]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self.rng = rng_for(0 if seed is None else seed, "drift")
        self.at = int(self.rng.integers(self.places))
        return np.eye(self.places, dtype=np.float32)[self.at], {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        right = int(action) == self.at
        if self.rng.random() > self.stay:
            self.at = (self.at + 1) % self.places
        obs = np.eye(self.places, dtype=np.float32)[self.at]
        return obs, float(right), False, False, {"success": right}

    def save_state(self) -> dict[str, Array]:
        """The ring position and the generator."""
        from perdure.seeds import pack_rng

        return {"at": np.array(self.at), "rng": pack_rng(self.rng)}

    def load_state(self, state: Mapping[str, Array]) -> None:
        """Go on from a saved state."""
        from perdure.seeds import unpack_rng

        self.at, self.rng = int(state["at"]), unpack_rng(state["rng"])


class Blobs:
    """Points around ``classes`` centres on a circle that is turned by ``angle`` degrees and moved to
    the right by ``shift``."""

    def __init__(
        self,
        learning: bool,
        angle: float = 0.0,
        classes: int = 4,
        examples: int = 256,
        batch_size: int = 32,
        noise: float = 0.15,
        shift: float = 0.0,
    ) -> None:
        self.batch_size = batch_size
        rng = rng_for(int(learning), "blobs", str(angle), classes, examples)
        self.targets: Array = rng.integers(classes, size=examples)
        turn = np.deg2rad(angle) + 2 * np.pi * self.targets / classes
        centres = np.stack([np.cos(turn) + shift, np.sin(turn)], axis=1)
        self.inputs: Array = (centres + rng.normal(0, noise, (examples, 2))).astype(np.float32)

    def __len__(self) -> int:
        return len(self.targets)

    def batch(self, indices: Array) -> Examples:
        """The points at these indices."""
        return Examples(self.inputs[indices], self.targets[indices])


ENVS: dict[str, tuple[type[gymnasium.Env[Any, Any]], dict[str, Any]]] = {
    **{f"goal-{c}": (GridGoal, {"corner": c}) for c in GridGoal.CORNERS},
    "bandit": (Bandit, {}),
    "reach": (Reach, {}),
    "count": (Count, {}),
    "drift": (Drift, {}),
}


class ToySuite(Suite):
    """Tiny tasks with known optima."""

    name = "toy"

    def tasks(self) -> Sequence[Task]:
        return [Task("toy", n) for n in (*ENVS, "blobs")]

    def env(self, task: Task) -> gymnasium.Env[Any, Any]:
        if task.name not in ENVS:
            return super().env(self.task(task.name))
        cls, params = ENVS[task.name]
        mine = {k: v for k, v in task.params.items() if k != "window"}
        env: gymnasium.Env[Any, Any] = call_with(f"task {task.id}", cls, **{**params, **mine})
        return env

    def data(self, task: Task, learning: bool) -> Data:
        if task.name != "blobs":
            return super().data(self.task(task.name), learning)
        data: Data = call_with(f"task {task.id}", Blobs, learning, **task.params)
        return data

    def spaces(self, task: Task) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
        if task.name != "blobs":
            return super().spaces(task)
        self.data(task, True)
        classes = task.params.get("classes", 4)
        return spaces.Box(-np.inf, np.inf, (2,), np.float32), spaces.Discrete(classes)

    def window(self, task: Task) -> int | None:
        return int(task.params.get("window", 100)) if task.name == "drift" else None

    def curricula(self) -> Mapping[str, Callable[..., Curriculum]]:
        return {
            "compass": compass,
            "until": until,
            "chosen": chosen,
            "parallel": parallel,
            "meta": meta,
            "drift": drift,
            "blobs": blobs,
            "islands": islands,
            "deployed": deployed,
            "check": check,
        }


def _corners(corners: Sequence[str] = ("ne", "sw", "nw")) -> list[Task]:
    return [suite.task(f"goal-{c}") for c in corners]


def compass(steps: int = 3000, episodes: int = 20, repeats: int = 1) -> Curriculum:
    """Three corners in turn, all evaluated before, between and after: forgetting is certain."""
    about = (inspect.getdoc(compass) or "").split("\n")[0]
    return curricula.tasks_in_turn(
        "toy/compass",
        _corners(),
        amount=steps,
        unit="steps",
        episodes=episodes,
        repeats=repeats,
        about=about,
    )


def until(threshold: float = 0.9, chunk: int = 500, budget: int = 5000) -> Curriculum:
    """Early stopping: each corner until success ≥ threshold or its budget is used up."""
    return curricula.until("toy/until", _corners(), threshold=threshold, chunk=chunk, budget=budget)


def chosen(choices: int = 9, steps: int = 500) -> Curriculum:
    """Active learning: the agent picks its next corner."""
    return curricula.agent_chosen("toy/chosen", _corners(), choices=choices, amount=steps)


def parallel(steps: int = 2000, episodes: int = 10) -> Curriculum:
    """Multi-task: three bandits side by side, whose contexts mean different arms."""
    tasks = [Task("toy", "bandit", f"shift{k}", {"shift": k}) for k in range(3)]
    block = learn(*(Exposure(t, steps, "steps") for t in tasks), parallel=True)
    final = evaluate(*(Exposure(t, episodes) for t in tasks), parallel=True)
    return Curriculum("toy/parallel", curricula.interleave([block], final))


def meta(steps: int = 2000, shots: int = 50, episodes: int = 10) -> Curriculum:
    """Meta-testing: learn two corners, then adapt to the third and forget the adaptation."""
    first, second, third = _corners()
    probe = adapt(Exposure(third, shots), then=[Exposure(third, episodes)])
    blocks = [learn(Exposure(t, steps, "steps")) for t in (first, second)]
    return Curriculum("toy/meta", curricula.interleave(blocks, probe))


def drift(steps: int = 2000) -> Curriculum:
    """A continuing task on step budgets: no episode ever ends."""
    task = suite.task("drift")
    return Curriculum(
        "toy/drift",
        curricula.interleave(
            [learn(Exposure(task, steps, "steps"))], evaluate(Exposure(task, 500, "steps"))
        ),
    )


def blobs(epochs: int = 5) -> Curriculum:
    """Labelled data: the same classes turned by 0°, 45° and 90°."""
    tasks = [Task("toy", "blobs", f"turn{a}", {"angle": a}) for a in (0, 45, 90)]
    return _labelled("toy/blobs", tasks, epochs)


def islands(islands: int = 2, epochs: int = 20, noise: float = 0.15) -> Curriculum:
    """Labelled data far apart: all of it can be known at once, and who keeps nothing forgets."""
    places = [{"shift": 4.0 * k, "angle": 90.0 * k, "noise": noise} for k in range(islands)]
    tasks = [Task("toy", "blobs", f"island{k}", place) for k, place in enumerate(places)]
    return _labelled("toy/islands", tasks, epochs)


def _labelled(name: str, tasks: Sequence[Task], epochs: int) -> Curriculum:
    blocks = [learn(Exposure(t, epochs, "epochs")) for t in tasks]
    evaluation = evaluate(*(Exposure(t, 1, "epochs") for t in tasks))
    return Curriculum(name, curricula.interleave(blocks, evaluation))


def deployed(before: int = 1000, steps: int = 1000) -> Curriculum:
    """A pre-deployment block on one corner, then a life on the other two."""
    first, second, third = _corners()
    evaluation = evaluate(*(Exposure(t, 10) for t in (first, second, third)))
    blocks = [learn(Exposure(t, steps, "steps")) for t in (second, third)]
    if before < 1:
        raise CurriculumError(f"toy/deployed: 'before' must be at least 1 step, got {before}")
    return Curriculum(
        "toy/deployed",
        curricula.interleave(blocks, evaluation),
        before=(learn(Exposure(first, before, "steps")),),
    )


def check(task: str = "bandit", probe: bool = True) -> Curriculum:
    """A tiny life that visits every kind of block: for conformance checks."""
    one = suite.task(task)
    data = task == "blobs"
    if data:
        one = Task("toy", task, params={"examples": 64, "batch_size": 8})
    unit: Unit = "batches" if data else "steps"
    some, few = (
        Exposure(one, 5 if data else 40, unit),
        Exposure(one, 3, "batches" if data else "episodes"),
    )
    blocks = [evaluate(few), learn(some), learn(some, Exposure(one, 4 if data else 27, unit))]
    if probe:
        blocks.append(adapt(Exposure(one, 4 if data else 30, unit), then=[few]))
    blocks += [learn(some), evaluate(few)]
    return Curriculum("toy/check", tuple(blocks))


suite = ToySuite()
