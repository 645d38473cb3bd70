"""One environment, and many of one task by one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from perdure.suite import Episode
from perdure.suites._threads import pool
from perdure.suites.metaworld.fast_env import FastEnv, borrow, give_back
from perdure.suites.metaworld.goals import Fixed, official
from perdure.suites.metaworld.tasks import GOALS, HAND, Settings, spaces_of
from perdure.types import Array

if TYPE_CHECKING:
    from perdure.suites.metaworld.camera import Camera


class Sawyer(gymnasium.Env[Any, Array]):
    """A robot arm at one task. The simulation is made by the first reset."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 80}  # noqa: RUF012

    def __init__(self, name: str, settings: Settings) -> None:
        self.name, self.settings = name, settings
        self.observation_space, self.action_space = spaces_of(settings)
        self.render_mode = "rgb_array"
        self.robot: FastEnv | None = None
        self.camera: Camera | None = None
        self.taken, self.last = 0, settings.horizon * settings.persist
        self.sparse = settings.reward == "sparse"
        self.images = settings.observation != "state"
        self.hand = settings.observation == "image+hand"
        self.extra: Array | None = None
        if settings.one_hot is not None:
            place, count = settings.one_hot
            self.extra = np.zeros(count, np.float32 if self.images else np.float64)
            self.extra[place] = 1.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Set the scene that the trial decides, or the seed if there is no trial, whatever came
        before: goal and objects are the task instance, which a trial's episodes share."""
        super().reset(seed=seed)
        told = options or {}
        seed = int(told["trial_seed"]) if "trial_seed" in told else seed
        drawn = int(self.np_random.integers(2**32)) if seed is None else seed
        return self.begin(drawn, told.get("instance")), {}

    def begin(self, seed: int, instance: int | None = None) -> Any:
        """Reset to the scene of a trial's seed; of the official goals, to those of evaluation in
        turn."""
        s = self.settings
        if self.robot is None:
            self.robot = borrow(self.name, s.hide_goal, "v1" if s.reward == "v1" else "v2")
        robot, self.taken = self.robot, 0
        if s.goals == "random":
            draws = np.random.Generator(np.random.PCG64(seed))
            obs = robot.begin(seed, draws=draws)
        elif s.goals == "fixed":
            obs = robot.begin("fixed", draws=Fixed(robot))
        else:
            place = s.goal
            if place is None and instance is not None:
                place = instance % GOALS
            elif place is None:
                place = int(np.random.Generator(np.random.PCG64(seed)).integers(GOALS))
            vector = official(s.benchmark, s.benchmark_seed, self.name)[place]
            obs = robot.begin((s.benchmark, s.benchmark_seed, place), vector)
        return self.shown(obs)

    def step(self, action: Array) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One control step of 12.5 ms."""
        assert self.robot is not None, "reset before the first step"
        self.robot.push(action)
        self.robot.move()
        obs, reward, info = self.settle(action)
        end, cut = self.over(info)
        return self.shown(obs), reward, end, cut, dict(info)

    def over(self, info: Mapping[str, Any]) -> tuple[bool, bool]:
        """Whether the episode ended, and whether it was cut."""
        end = self.settings.end_on_success and bool(info["success"])
        return end, not end and self.taken >= self.last

    def settle(self, action: Array) -> tuple[Array, float, Mapping[str, Any]]:
        """After the physics: state, reward and info."""
        assert self.robot is not None
        obs, reward, info = self.robot.look(action)
        self.taken += 1
        return obs, float(info["success"] if self.sparse else reward), info

    def shown(self, obs: Array) -> Any:
        """The state as the agent gets it."""
        if self.images:
            image = self.render()
            hand = {"hand": obs[:HAND].astype(np.float64)} if self.hand else {}
            task = {} if self.extra is None else {"task": self.extra}
            return {"image": image, **hand, **task} if hand or task else image
        return obs if self.extra is None else np.concatenate([obs, self.extra])

    def render(self) -> Array:
        """What the camera sees now."""
        assert self.robot is not None, "reset before the first picture"
        if self.camera is None:
            from perdure.suites.metaworld.camera import Camera

            s = self.settings
            hide = s.hide_goal and self.images
            where = s.camera_position
            self.camera = Camera(self.robot.task_class, s.camera, s.size, hide, where)
        return self.camera.picture(self.robot)

    def close(self) -> None:
        """Let the simulation and the camera go."""
        if self.camera is not None:
            self.camera.close()
        if self.robot is not None:
            give_back(self.robot)
        self.robot = self.camera = None


class BatchedSawyer:
    """Several arms, stepped by one call; each may be at a task of its own."""

    def __init__(self, arms: Sequence[Sawyer]) -> None:
        self.arms, self.pool, self.started = list(arms), pool(), False

    def reset(self, slot: int, episode: Episode) -> Any:
        """Begin an episode of a trial."""
        return self.arms[slot].begin(episode.trial_seed, episode.instance)

    def expect(self, episodes: Sequence[Episode]) -> None:
        """Not of use: a scene is cheap beside its episode."""

    def step_async(self, slots: Sequence[int], actions: Sequence[Any]) -> None:
        """Push the arms; their physics may run from now on."""
        robots = [self.arms[slot].robot for slot in slots]
        for robot, action in zip(robots, actions, strict=True):
            robot.push(action)  # type: ignore[union-attr]
        self.pool.add(robots)  # type: ignore[arg-type]
        self.started = True

    def step(
        self, slots: Sequence[int], actions: Sequence[Any]
    ) -> tuple[Any, list[float], list[bool], list[bool], Mapping[int, Mapping[str, Any]]]:
        """Push all arms, let physics run, look at all."""
        if not self.started:
            self.step_async(slots, actions)
        self.started = False
        self.pool.work()
        arms = [self.arms[slot] for slot in slots]
        space = arms[0].observation_space
        seen: Any = [None] * len(arms)
        if space.shape is not None:
            seen = np.empty((len(arms), *space.shape), space.dtype)
        rewards: list[float] = []
        ends: list[bool] = []
        cuts: list[bool] = []
        infos: dict[int, Mapping[str, Any]] = {}
        for k, (arm, action) in enumerate(zip(arms, actions, strict=True)):
            self.pool.wait(arm.robot)  # type: ignore[arg-type]
            obs, reward, infos[k] = arm.settle(action)
            seen[k] = arm.shown(obs)
            rewards.append(reward)
            end, cut = arm.over(infos[k])
            ends.append(end)
            cuts.append(cut)
        return seen, rewards, ends, cuts, infos

    def close(self) -> None:
        """Let go of all of them."""
        for arm in self.arms:
            if arm.robot in self.pool.moving:
                arm.robot = None  # Physics may still be at it, so it is nobody else's to use.
            arm.close()
