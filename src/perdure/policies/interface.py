"""Between an environment and a policy: what the policy is shown of an observation, and what its actions
mean, as a protocol says.

A policy is shown a :class:`View`: pictures and numbers by name, and the instruction. Names of LIBERO's
are those that its servers know (``image``, ``wrist_image``, ``state``); of anything else, the
environment's own, and ``state`` or ``image`` where an observation is a single array.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import spaces

from perdure.arrays import Array
from perdure.errors import PolicyServerFault, SpecError
from perdure.policies.pictures import resized
from perdure.types import Setup

# The vocabulary of other people's servers and clients, which they have for whatever suite plays: it is no
# suite's to say.
CAMERAS = {"agentview_image": "image", "robot0_eye_in_hand_image": "wrist_image"}
"""LIBERO's pictures, and what its servers call them."""
HAND = ("robot0_eef_pos", "robot0_eef_quat", "robot0_gripper_qpos")
"""What LIBERO's state of eight numbers is made of."""
OPEN = -1.0
"""What opens a gripper, in LIBERO's own actions."""


@dataclass(frozen=True)
class View:
    """What a policy is shown at one step of one environment."""

    images: Mapping[str, Array]
    """Rows, columns and colours, of bytes."""
    numbers: Mapping[str, Array]
    prompt: str
    slot: int = 0
    first: bool = False
    """Whether an episode begins here."""
    task: str = ""
    """Its id, where the agent may know it."""


@dataclass(frozen=True)
class Interface:
    """The values of a protocol that are between environment and policy."""

    actions: int
    """Numbers of an action."""
    low: Array = field(repr=False)
    high: Array = field(repr=False)
    image_size: int | None = None
    resize: str = "pad"
    state: str = "none"
    axis_angle: str = "robosuite"
    replan: int | None = None
    gripper: str = "as-is"

    @classmethod
    def of(cls, setup: Setup, replan: int | None = None) -> Interface:
        """Of the protocol by which a curriculum evaluates; of none, what is observed and done as it is.
        ``replan`` takes the place of the protocol's."""
        space = setup.action_space
        if not isinstance(space, spaces.Box) or len(space.shape) != 1:
            raise SpecError(
                f"a policy server gives vectors of numbers, and actions here are {space}"
            )
        names = ("image_size", "resize", "state", "axis_angle", "replan", "gripper")
        told = {} if setup.protocol is None else setup.protocol.values
        chosen = {n: told[n] for n in names if n in told}
        if replan is not None:
            chosen["replan"] = replan
        made = cls(space.shape[0], space.low, space.high, **chosen)
        if made.state == "axis-angle":
            parts = setup.observation_space
            lacking = [
                n for n in HAND if not isinstance(parts, spaces.Dict) or n not in parts.spaces
            ]
            if lacking:
                raise SpecError(
                    f"the protocol's state is made of {', '.join(HAND)}, and observations have no "
                    f"{', '.join(lacking)}: leave proprioception as it is"
                )
        return made

    def view(self, obs: Any, k: int, **about: Any) -> View:
        """Row ``k`` of observations side by side."""
        if not isinstance(obs, Mapping):
            row = obs[k]
            image = row.ndim == 3 and row.dtype == np.uint8
            obs, k = {"image" if image else "state": obs}, k
        images, numbers = {}, {}
        for name, part in obs.items():
            row = part[k]
            if row.ndim == 3 and row.dtype == np.uint8:
                images[CAMERAS.get(name, name)] = self._sized(row)
            elif self.state == "none":
                numbers[name] = row
        if self.state == "axis-angle":
            place, turn, fingers = (obs[n][k] for n in HAND)
            turned = axis_angle(turn, self.axis_angle == "shortest")
            numbers["state"] = np.concatenate([place, turned, fingers])
        elif self.state == "hand":
            numbers["state"] = obs["hand"][k]
        return View(images, numbers, **about)

    def _sized(self, picture: Array) -> Array:
        return (
            picture if self.image_size is None else resized(picture, self.image_size, self.resize)
        )

    def chunk(self, found: Any, who: str) -> Array:
        """The actions that a policy gave, one after another, as the environment takes them; refused
        if they are not what was expected."""
        wanted = f"{self.replan or 1} or more"
        expected = f"{who}: expected actions as an array of shape (n, {self.actions}), n {wanted}"
        if isinstance(found, (list, tuple)):
            try:
                found = np.array(found, np.float64)
            except (TypeError, ValueError):
                raise PolicyServerFault(f"{expected}, got {found!r:.80}") from None
        if not isinstance(found, np.ndarray) or found.dtype.kind not in "fiu":
            raise PolicyServerFault(f"{expected}, got {type(found).__name__} {found!r:.80}")
        if found.ndim != 2 or found.shape[1] != self.actions or not len(found):
            raise PolicyServerFault(f"{expected}, got shape {found.shape}")
        if self.replan is not None and len(found) < self.replan:
            raise PolicyServerFault(
                f"{expected}, got a chunk of {len(found)}: the protocol executes {self.replan} actions "
                "of each; serve a longer chunk, or change replan"
            )
        used = found[: self.replan].astype(np.float64)
        if not np.isfinite(used).all():
            step, place = (int(i[0]) for i in np.nonzero(~np.isfinite(used)))
            raise PolicyServerFault(
                f"{expected} of finite numbers, got {used[step, place]} in action {step} of the chunk, "
                f"place {place}"
            )
        return self.done(used)

    def done(self, actions: Array) -> Array:
        """Actions of a policy as the environment takes them. Beyond its bounds they are cut off, as
        the controllers of these benchmarks do themselves."""
        out = actions.copy()
        if self.gripper == "zero-one":
            out[:, -1] = OPEN * np.sign(2.0 * out[:, -1] - 1.0)
        elif self.gripper == "sign":
            out[:, -1] = np.where(out[:, -1] < 0, -1.0, 1.0)
        clipped: Array = np.clip(out, self.low, self.high)
        return clipped

    def undone(self, actions: Array) -> Array:
        """What a policy must give for these actions of the environment: the way back of
        :meth:`done`, where a gripper is open or closed."""
        out = np.array(actions, np.float64)
        if self.gripper == "zero-one":
            out[:, -1] = (1.0 + OPEN * np.sign(out[:, -1])) / 2.0
        return out


def axis_angle(quaternion: Array, shortest: bool = False) -> Array:
    """A turn as its axis times its angle; the real part of the quaternion is last.

    As robosuite has it, of angles up to 2π: a quaternion and its negative are the same turn and give
    different numbers, and policies were trained on these. ``shortest`` gives angles up to π.
    """
    q = np.asarray(quaternion, np.float64)
    if shortest and q[3] < 0:
        q = -q
    real = min(1.0, max(-1.0, float(q[3])))
    length = math.sqrt(1.0 - real * real)
    if math.isclose(length, 0.0):
        return np.zeros(3)
    turned: Array = q[:3] * 2.0 * math.acos(real) / length
    return turned


def quaternion(turn: Array) -> Array:
    """The way back, with the sign that :func:`axis_angle` had."""
    angle = float(np.linalg.norm(turn))
    if math.isclose(angle, 0.0):
        return np.array([0.0, 0.0, 0.0, 1.0])
    return np.array([*(turn / angle * math.sin(angle / 2.0)), math.cos(angle / 2.0)])
