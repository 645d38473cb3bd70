"""Tiny environments and data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from perdure.seeds import pack_rng, rng_for, unpack_rng
from perdure.types import Array, Examples

ARMS = ("left", "right")


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
        return {"at": np.array(self.at), "rng": pack_rng(self.rng)}

    def load_state(self, state: Mapping[str, Array]) -> None:
        """Go on from a saved state."""
        self.at, self.rng = int(state["at"]), unpack_rng(state["rng"])


class Recall(gymnasium.Env[Array, int]):
    """A cue is seen once, then nothing for ``delay`` steps, then the cue is to be named.

    The observation is the cue one-hot and a flag that asks for the answer. Reward 1 for the right
    answer, 0 for all else: the optimum is 1, and without memory 1 / ``cues``.
    """

    def __init__(self, cues: int = 2, delay: int = 3) -> None:
        self.cues, self.delay = cues, delay
        self.observation_space = spaces.Box(0.0, 1.0, (cues + 1,), np.float32)
        self.action_space = spaces.Discrete(cues)  # type: ignore[assignment]

    def _obs(self) -> Array:
        obs = np.zeros(self.cues + 1, np.float32)
        if self.t == 0:
            obs[self.cue] = 1.0
        obs[-1] = float(self.t == self.delay)
        return obs

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self.t, self.cue = 0, int(self.np_random.integers(self.cues))
        return self._obs(), {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        asked = self.t == self.delay
        right = asked and int(action) == self.cue
        self.t += 1
        return self._obs(), float(right), asked, False, {"success": right} if asked else {}


class HiddenGoal(gymnasium.Env[Array, int]):
    """One pull an episode: one of ``arms`` pays 1, which one is drawn from the trial's seed and is
    never seen.

    Who remembers what paid in the trial's earlier episodes and tries another arm after each miss is
    right with probability min(k / arms, 1) in its k-th episode: the optimum. Without memory of the
    trial it is 1 / arms.
    """

    def __init__(self, arms: int = 3) -> None:
        self.arms = arms
        self.observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
        self.action_space = spaces.Discrete(arms)  # type: ignore[assignment]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        trial = (options or {}).get("trial_seed", seed)
        rng = self.np_random if trial is None else rng_for(int(trial), "goal")
        self.goal = int(rng.integers(self.arms))
        return np.ones(1, np.float32), {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        right = int(action) == self.goal
        return np.ones(1, np.float32), float(right), True, False, {"success": right}


class SignedReach(gymnasium.Env[dict[str, Array], Array]):
    """Dict observations: a number, and a small picture that is black or white.

    The action should equal ``gain`` × the number where the picture is black and minus that where it
    is white; the reward is minus the distance, so that the optimum is 0. It can save itself.
    """

    SIDE = 8

    def __init__(self, gain: float = 0.5, length: int = 10, picture: bool = True) -> None:
        self.gain, self.length, self.picture = gain, length, picture
        sign: gymnasium.Space[Any] = spaces.Discrete(2)
        if picture:
            sign = spaces.Box(0, 255, (self.SIDE, self.SIDE, 3), np.uint8)
        number = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.observation_space = spaces.Dict({"number": number, "sign": sign})  # type: ignore[assignment]
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def _obs(self) -> dict[str, Array]:
        self.x = float(self.rng.uniform(-1, 1))
        self.white = bool(self.rng.integers(2))
        return self._shown()

    def _shown(self) -> dict[str, Array]:
        sign: Any = np.int64(self.white)
        if self.picture:
            sign = np.full((self.SIDE, self.SIDE, 3), 255 * self.white, np.uint8)
        return {"number": np.array([self.x], np.float32), "sign": sign}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        super().reset(seed=seed)
        self.rng = rng_for(0 if seed is None else seed, "signed reach")
        self.t, self.worst = 0, 0.0
        return self._obs(), {}

    def step(self, action: Array) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        target = self.gain * self.x * (-1 if self.white else 1)
        error = abs(float(action[0]) - target)
        self.worst = max(self.worst, error)
        self.t += 1
        over = self.t >= self.length
        return self._obs(), -error, False, over, {"success": over and self.worst < 0.2}

    def save_state(self) -> dict[str, Array]:
        """Where the episode stands, and the generator."""
        numbers = [self.x, self.white, self.t, self.worst]
        return {"numbers": np.array(numbers, np.float64), "rng": pack_rng(self.rng)}

    def load_state(self, state: Mapping[str, Array]) -> None:
        """Go on from a saved state."""
        self.x, white, t, self.worst = (float(v) for v in state["numbers"])
        self.white, self.t, self.rng = bool(white), int(t), unpack_rng(state["rng"])


class Told(gymnasium.Env[Array, int]):
    """One pull of one of two arms; the observation is always the same, and the task's instruction
    says which arm pays 1."""

    def __init__(self, arm: str = "left") -> None:
        if arm not in ARMS:
            raise ValueError(f"arm must be one of {', '.join(ARMS)}, got {arm!r}")
        self.pays = ARMS.index(arm)
        self.observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
        self.action_space = spaces.Discrete(len(ARMS))  # type: ignore[assignment]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        return np.ones(1, np.float32), {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        right = int(action) == self.pays
        return np.ones(1, np.float32), float(right), True, False, {"success": right}


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
