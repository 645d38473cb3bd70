"""The robot at one task, as a Gymnasium environment."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium import spaces

from perdure.suite import Episode
from perdure.suites.libero import states
from perdure.suites.libero.clearance import set_down
from perdure.suites.libero.kept import kept_scene
from perdure.suites.libero.looks import LOOKS
from perdure.suites.libero.problem import Problem
from perdure.suites.libero.rotations import product
from perdure.suites.libero.scene import Scene
from perdure.suites.libero.simulation import Reading, Simulation
from perdure.suites.libero.tasks import PROPRIOCEPTION, Settings
from perdure.types import Array

if TYPE_CHECKING:
    from perdure.suites.libero.camera import Renderer

FILMED = "agentview"
PERTURBED = 77
"""Sets the draws of perturbations apart from those of the scene."""
STEP, SHIFT_STEPS, SHIFT_GAIN = 0.05, 20, 4.0
"""Metres that an action of 1 leads the hand; in how many actions it is shifted, and how hard: a small
push does not overcome the friction of the joints."""
ACTIONS = 7
PRIVILEGED = 320
"""Length of the observation of the whole state: more than any scene's. The rest are zeros, and the last
is the place of the look among :data:`LOOKS`."""


@functools.lru_cache(maxsize=16)
def scene_of(problem: Problem, look: str) -> Scene:
    """The scene of a task file."""
    return kept_scene(problem, look)


def spaces_of(chosen: Settings, objects: Iterable[str]) -> tuple[spaces.Dict, spaces.Box]:
    """Observation and action space; ``objects`` are those whose poses are observed, if any are."""
    parts: dict[str, spaces.Space[Any]] = {}
    for camera in chosen.cameras:
        parts[f"{camera}_image"] = spaces.Box(0, 255, (chosen.size, chosen.size, 3), np.uint8)
    numbers = {name: PROPRIOCEPTION[name] for name in chosen.proprioception}
    for name in objects_of(chosen, objects):
        numbers |= dict(zip(object_names(name), (3, 4, 3, 4), strict=True))
    if chosen.privileged:
        numbers["privileged"] = PRIVILEGED
    for name, length in numbers.items():
        parts[name] = spaces.Box(-np.inf, np.inf, (length,), np.float64)
    return spaces.Dict(parts), spaces.Box(-1.0, 1.0, (ACTIONS,), np.float32)


def objects_of(chosen: Settings, there: Iterable[str]) -> tuple[str, ...]:
    """The objects whose poses are observed, of those that are there or as they are named."""
    return tuple(there) if chosen.objects is True else tuple(chosen.objects or ())


def look_of(privileged: Array) -> str:
    """The look of the simulation whose whole state was observed: its last number."""
    return list(LOOKS)[int(privileged[-1])]


def object_names(name: str) -> tuple[str, str, str, str]:
    """What is observed of an object."""
    return (
        f"{name}_pos",
        f"{name}_quat",
        f"{name}_to_robot0_eef_pos",
        f"{name}_to_robot0_eef_quat",
    )


class Libero(gymnasium.Env[dict[str, Array], Array]):
    """A Panda arm at one task. The simulation is made by the first reset.

    An episode ends with success, and is cut at the horizon; the reward is 1 on success and else 0.
    ``reset`` reads ``options``: ``episode`` is the number of the initial state, and without it the
    seed picks or draws one. Numbered states are for evaluation: where an ``instance`` is given as
    None, as in learning, the seed draws.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012

    def __init__(
        self, problem: Problem, settings: Settings, state: Callable[[int], Array] | None = None
    ) -> None:
        """``state`` gives the official state of a number; without it all are drawn from the task
        file."""
        self.problem, self.settings, self.state = problem, settings, state
        # Gymnasium declares them as spaces of what it is generic in.
        self.observation_space, self.action_space = spaces_of(  # type: ignore[assignment]
            settings, [thing.name for thing in problem.objects]
        )
        self.render_mode = "rgb_array"
        self.simulation: Simulation | None = None
        self.renderer: Renderer | None = None
        self.taken = 0
        self.camera_shift: Array = np.zeros(3)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Begin the episode that the seed and its number decide, whatever came before."""
        super().reset(seed=seed)
        if seed is None:
            seed = int(self.np_random.integers(2**32))
        chosen = self.settings
        simulation, self.taken = self._made(), 0
        given = options or {}
        number = self._number(given)
        if chosen.initial_states in ("official", "cycle") and self.state is not None:
            simulation.reset(seed if chosen.fixture_seed is None else chosen.fixture_seed)
            if number is None:
                number = int(np.random.Generator(np.random.PCG64(seed)).integers(states.COUNT))
            cycle = chosen.initial_states == "cycle"
            simulation.set_state(self.state(number % states.COUNT if cycle else number))
        else:
            learning = "instance" in given and given["instance"] is None
            free = chosen.initial_states == "random" or (chosen.initial_state is None and learning)
            simulation.reset(seed if number is None or free else number)
            if chosen.folder is not None:
                set_down(simulation)
        # Perturbations of an episode go by its number where it has one: all agents meet the same.
        draws = np.random.default_rng([seed if number is None else number, PERTURBED])
        self.camera_shift = chosen.camera_shift * _direction(draws)
        rest = np.zeros(ACTIONS)
        rest[-1] = -1.0 if chosen.settle_gripper == "open" else 0.0
        if chosen.start_shift:
            # Not down, where things are.
            way = np.abs(_direction(draws)) * (1, draws.choice((-1, 1)), 1)
            self._lead(simulation, chosen.start_shift * way, rest)
        for _ in range(chosen.settle):
            simulation.act(rest)
            simulation.finish()
        return self._observation(), {}

    @staticmethod
    def _lead(simulation: Simulation, way: Array, rest: Array) -> None:
        """Move the hand by so much, as a policy would."""
        assert simulation.reading is not None
        aim = simulation.reading.hand + way
        for _ in range(SHIFT_STEPS):
            action = rest.copy()
            action[:3] = np.clip(SHIFT_GAIN * (aim - simulation.reading.hand) / STEP, -1, 1)
            simulation.act(action)
            simulation.finish()

    def _made(self) -> Simulation:
        if self.simulation is None:
            scene = scene_of(self.problem, self.settings.look)
            self.simulation = Simulation(scene, self.settings.solves)
        return self.simulation

    def _number(self, options: Mapping[str, Any]) -> int | None:
        if self.settings.initial_state is not None:
            return self.settings.initial_state
        return int(options["episode"]) if "episode" in options else None

    def begin(self, episode: Episode) -> dict[str, Array]:
        """Reset by an episode; its first observation."""
        return self.reset(seed=episode.seed, options=episode.options)[0]

    def step(self, action: Array) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        """One control step of 50 ms."""
        return self.move(action)

    def move(
        self, action: Array, drawn: bool = True
    ) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        """One control step; pictures are black unless they are ``drawn``."""
        simulation = self.simulation
        assert simulation is not None, "reset before the first step"
        simulation.act(np.asarray(action, np.float64))
        seen = self._observation(drawn)
        simulation.finish()
        success = simulation.success()
        self.taken += 1
        cut = self.taken >= self.settings.horizon and not success
        return seen, float(success), success, cut, {"success": float(success)}

    def _observation(self, drawn: bool = True) -> dict[str, Array]:
        simulation, chosen = self.simulation, self.settings
        assert simulation is not None and simulation.reading is not None
        seen: dict[str, Array] = {}
        if not drawn:
            black = np.zeros((chosen.size, chosen.size, 3), np.uint8)
            seen = {f"{camera}_image": black for camera in chosen.cameras}
        elif chosen.cameras:
            drawing = self._shown(chosen.size)
            for camera in chosen.cameras:
                seen[f"{camera}_image"] = self._turned(drawing.picture(camera, chosen.size))
        known = robot_state(simulation, simulation.reading)
        seen |= {name: known[name] for name in chosen.proprioception}
        if chosen.objects:
            names = objects_of(chosen, simulation.objects)
            seen |= object_state(simulation, simulation.reading, names)
        if chosen.privileged:
            whole = simulation.privileged()
            seen["privileged"] = np.pad(whole, (0, PRIVILEGED - len(whole)))
            seen["privileged"][-1] = list(LOOKS).index(chosen.look)
        return seen

    def _shown(self, size: int) -> Renderer:
        from perdure.suites.libero.camera import renderer

        assert self.simulation is not None
        if self.renderer is None:
            self.renderer = renderer(self.simulation, size, self.settings.rendering)
        self.renderer.show(self.simulation, self.camera_shift, self.settings.light)
        return self.renderer

    def _turned(self, picture: Array) -> Array:
        from perdure.suites.libero.camera import turned

        return turned(picture, self.settings.orientation)

    def render(self) -> Array:
        """What the agent's camera sees now, upright."""
        assert self.simulation is not None, "reset before the first picture"
        picture = self._shown(self.settings.size).picture(FILMED, self.settings.size)
        return picture[::-1].copy()

    def save_state(self) -> dict[str, Array]:
        """Everything that the rest of the episode depends on."""
        assert self.simulation is not None, "reset before the first save"
        return {
            "taken": np.array(self.taken),
            "camera_shift": self.camera_shift.copy(),
            **self.simulation.save(),
        }

    def load_state(self, state: Mapping[str, Array]) -> None:
        """Go on from what :meth:`save_state` gave."""
        self.taken, self.camera_shift = int(state["taken"]), np.array(state["camera_shift"])
        self._made().load(state)

    def close(self) -> None:
        """Let the simulation and its pictures go."""
        self.simulation = self.renderer = None


def _direction(draws: np.random.Generator) -> Array:
    """Any, of length 1."""
    found = draws.standard_normal(3)
    return np.asarray(found / np.linalg.norm(found))


def robot_state(simulation: Simulation, reading: Reading) -> dict[str, Array]:
    """Proprioception by upstream's names."""
    joints = reading.positions[simulation.arm]
    return {
        "robot0_joint_pos": joints,
        "robot0_joint_pos_cos": np.cos(joints),
        "robot0_joint_pos_sin": np.sin(joints),
        "robot0_joint_vel": reading.velocities[simulation.arm_dofs],
        "robot0_eef_pos": reading.hand,
        "robot0_eef_quat": reading.quaternions[-1][[1, 2, 3, 0]],
        "robot0_gripper_qpos": reading.positions[simulation.fingers],
        "robot0_gripper_qvel": reading.velocities[simulation.finger_dofs],
    }


def object_state(
    simulation: Simulation, reading: Reading, names: Iterable[str]
) -> dict[str, Array]:
    """Poses of objects in the world and in the hand, by upstream's names; real parts last. One that
    is not there is all zeros."""
    seen: dict[str, Array] = {}
    places = {name: k for k, name in enumerate(simulation.objects)}
    hand = reading.quaternions[-1][[1, 2, 3, 0]]
    back = hand * (-1, -1, -1, 1)
    for name in names:
        k = places.get(name)
        if k is None:
            seen |= {n: np.zeros(3 + n.endswith("quat")) for n in object_names(name)}
            continue
        position, quaternion = reading.origins[k], reading.quaternions[k][[1, 2, 3, 0]]
        away = np.array([*(position - reading.hand), 0.0])
        relative = product(back, quaternion)
        values = (
            position,
            quaternion,
            product(product(back, away), hand)[:3],
            relative if relative[3] >= 0 else -relative,
        )
        seen |= dict(zip(object_names(name), values, strict=True))
    return seen
