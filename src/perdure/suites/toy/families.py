"""Families of tiny tasks to adapt to. What a trial's seed draws is never seen; its rewards tell.

Each family says what is best in expectation: ``adapted`` for one that knows what the trial drew,
``unadapted`` for one that has to do the same in every trial. ``instance`` fixes the draw, for tests on
the same held-out tasks.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

from perdure.seeds import rng_for
from perdure.types import Array

DIRECTIONS = ("e", "ne", "n", "nw", "w", "sw", "s", "se")
"""Of navigation's goals, counter-clockwise."""


class TrialFamily(gymnasium.Env[Array, Any]):
    """Episodes of ``horizon`` steps, of which those of one trial share what was drawn for them."""

    adapted: ClassVar[float]
    """Expected return of an episode for one that knows what was drawn, with default parameters."""
    unadapted: ClassVar[float]
    """The greatest expected return of a policy that is the same for all trials and has no memory."""

    def __init__(self, horizon: int, instance: int | None) -> None:
        for name, value, least in (("horizon", horizon, 1), ("instance", instance, 0)):
            if value is not None and (type(value) is not int or value < least):
                raise ValueError(
                    f"{name} must be a whole number of at least {least}, got {value!r}"
                )
        self.horizon, self.instance, self.t = horizon, instance, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        trial = (options or {}).get("trial_seed", seed)
        if self.instance is not None:
            rng = rng_for(self.instance, "instance")
        else:
            rng = self.np_random if trial is None else rng_for(int(trial), "trial")
        self.t = 0
        return self.begin(rng), {}

    def begin(self, rng: np.random.Generator) -> Array:
        """Draw what the trial shares from ``rng`` and all else from ``np_random``."""
        raise NotImplementedError


class Navigation(TrialFamily):
    """Walk from the origin to a goal on the unit circle that is never shown.

    A step goes 0.2 at most, into any direction; the reward is minus the distance that is left. Who
    knows the goal returns −Σ max(0, 1 − 0.2 k) = −2. Who does not can do no better than stay at the origin, since the mean distance to a circle is
    least in its middle: −15. ``towards`` one of eight directions, goals are within half a right angle around it.
    """

    SPEED = 0.2
    adapted, unadapted = -2.0, -15.0

    def __init__(
        self, horizon: int = 15, instance: int | None = None, towards: str | None = None
    ) -> None:
        super().__init__(horizon, instance)
        if towards is not None and towards not in DIRECTIONS:
            raise ValueError(f"towards must be one of {', '.join(DIRECTIONS)}, got {towards!r}")
        self.towards = towards
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def begin(self, rng: np.random.Generator) -> Array:
        angle = rng.uniform(0, 2 * np.pi)
        if self.towards is not None:
            angle = (angle + (2 * DIRECTIONS.index(self.towards) - 1) * np.pi) / len(DIRECTIONS)
        self.goal = np.array([np.cos(angle), np.sin(angle)])
        self.at = np.zeros(2)
        return self.at.astype(np.float32)

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        move = np.asarray(action, float)
        self.at = self.at + self.SPEED * move / max(1.0, float(np.linalg.norm(move)))
        left = float(np.linalg.norm(self.goal - self.at))
        self.t += 1
        return self.at.astype(np.float32), -left, False, self.t >= self.horizon, {}


class Bernoulli(TrialFamily):
    """Pull one of ``arms``, ``horizon`` times; each pays 1 with a probability of its own, drawn from
    0 to 1 for the trial. Nothing but the pay is seen.

    Who knows the probabilities gets the greatest of them, arms / (arms + 1) a pull in expectation;
    who does not, 0.5. After n pulls that only explore, :func:`best_after` is what can be had.
    """

    adapted, unadapted = 7.5, 5.0

    def __init__(self, arms: int = 3, horizon: int = 10, instance: int | None = None) -> None:
        super().__init__(horizon, instance)
        if type(arms) is not int or arms < 2:
            raise ValueError(f"arms must be a whole number of at least 2, got {arms!r}")
        self.arms = arms
        self.observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
        self.action_space = spaces.Discrete(arms)

    def begin(self, rng: np.random.Generator) -> Array:
        self.chances = rng.uniform(size=self.arms)
        return np.ones(1, np.float32)

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        paid = float(self.np_random.random() < self.chances[int(action)])
        self.t += 1
        return np.ones(1, np.float32), paid, False, self.t >= self.horizon, {}


class Mass(TrialFamily):
    """Push a mass in a thick fluid to the origin; how it answers a push is never shown.

    A push of a moves it by ``gain`` × a, and the gain is drawn from 0.3 to 0.6 with either sign. It
    starts an episode anywhere from −1 to 1; the reward is minus the distance that is left. Who knows the gain g returns −E Σ max(0, |x| − g k), which is −0.173.
    Who does not can do no better than not to push, for a push is as likely to lead away: −5.
    """

    LEAST, MOST, BOUND = 0.3, 0.6, 3.0
    adapted, unadapted = -0.173, -5.0

    def __init__(self, horizon: int = 10, instance: int | None = None) -> None:
        super().__init__(horizon, instance)
        self.observation_space = spaces.Box(-self.BOUND, self.BOUND, (1,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def begin(self, rng: np.random.Generator) -> Array:
        self.gain = float(rng.uniform(self.LEAST, self.MOST) * rng.choice([-1.0, 1.0]))
        self.at = float(self.np_random.uniform(-1, 1))
        return np.array([self.at], np.float32)

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        moved = self.at + self.gain * float(np.asarray(action).reshape(-1)[0])
        self.at = min(max(moved, -self.BOUND), self.BOUND)
        self.t += 1
        over = self.t >= self.horizon
        return np.array([self.at], np.float32), -abs(self.at), False, over, {}


def best_after(pulls: int, arms: int = 3) -> float:
    """The expected pay of a pull of the arm that seems best after ``pulls`` others, chosen as well as
    can be for that: by going through all that may be known of the arms."""

    @cache
    def value(left: int, known: tuple[tuple[int, int], ...]) -> float:
        chances = [(won + 1) / (won + lost + 2) for won, lost in known]
        if left == 0:
            return max(chances)
        best = 0.0
        for k, chance in enumerate(chances):
            if k and known[k] == known[k - 1]:
                continue
            won, lost = known[k]
            rest = known[:k] + known[k + 1 :]
            after = [tuple(sorted((*rest, more))) for more in ((won + 1, lost), (won, lost + 1))]
            best = max(
                best, chance * value(left - 1, after[0]) + (1 - chance) * value(left - 1, after[1])
            )
        return best

    return value(pulls, ((0, 0),) * arms)
