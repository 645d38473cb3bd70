"""Wrappers by name, as a parameter of any task of any suite.

``Task("gym", "CartPole-v1", params={"wrappers": ["PadObservation,to=6", "TimeLimit,max_episode_steps=50"]})``
names them from the innermost to the outermost, each with its parameters as on the command line:
Gymnasium's (:data:`NAMES`), Perdure's own (:mod:`perdure.padding`), or ``file.py:Class``. They are
parameters, so what is wrapped is another task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import wrappers

from perdure.arrays import map_leaves, rows_of
from perdure.errors import CurriculumError, PerdureError, UnknownName
from perdure.padding import PadAction, PadObservation
from perdure.specs import Spec, call_with, is_file_reference
from perdure.suite import BatchedEnv, Data, Suite
from perdure.types import Array, Curriculum, Examples, Task

Env = gymnasium.Env[Any, Any]
PARAMETER = "wrappers"
_GYMNASIUM = (
    "AddRenderObservation", "ClipAction", "ClipReward", "DelayObservation", "DiscretizeAction",
    "DiscretizeObservation", "DtypeObservation", "FilterObservation", "FlattenObservation",
    "FrameStackObservation", "GrayscaleObservation", "MaxAndSkipObservation", "RepeatAction",
    "RescaleAction", "RescaleObservation", "ReshapeObservation", "ResizeObservation",
    "TimeAwareObservation", "TimeLimit",
)  # fmt: skip
NAMES: Mapping[str, Callable[..., Env]] = {
    "PadAction": PadAction,
    "PadObservation": PadObservation,
    **{n: getattr(wrappers, n) for n in _GYMNASIUM if hasattr(wrappers, n)},
}
"""Wrappers under which a seed still decides an episode."""
_REFUSED = {
    "NormalizeObservation": "it carries statistics from one episode to the next",
    "NormalizeReward": "it carries statistics from one episode to the next",
    "Autoreset": "the loop resets environments itself",
    "StickyAction": "it draws numbers that no seed of the episode decides",
}
_NOT_DATA = ("AddRenderObservation",)


class Outermost(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The last of a task's wrappers. To the loop it is the environment itself: one whose inside can
    save itself cannot any more, because wrappers may remember something too."""

    @property
    def unwrapped(self) -> Env:
        """The wrapped environment."""
        return self


class SpacesOnly(gymnasium.Env[Any, Any]):
    """Nothing to play: what wrappers are put around where a task has data alone."""

    def __init__(self, observation_space: Any, action_space: Any) -> None:
        self.observation_space, self.action_space = observation_space, action_space


class WrappingSuite(Suite):
    """A suite whose tasks take the parameter ``wrappers``; all else is the suite's own."""

    def __init__(self, suite: Suite, load_file: Callable[[str], Any]) -> None:
        self.inner, self.load_file = suite, load_file
        self.name, self.reset_options = suite.name, suite.reset_options
        self.measure = suite.measure

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappingSuite) and self.inner is other.inner

    def __hash__(self) -> int:
        return hash((WrappingSuite, id(self.inner)))

    def env(self, task: Task) -> Env:
        return self._wrapped(task, self.inner.env(_plain(task)))

    def render_env(self, task: Task) -> Env:
        return self._wrapped(task, self.inner.render_env(_plain(task)))

    def batched_env(self, task: Task, count: int) -> BatchedEnv | None:
        return None if PARAMETER in task.params else self.inner.batched_env(task, count)

    def data(self, task: Task, learning: bool) -> Data:
        found = self.inner.data(_plain(task), learning)
        if PARAMETER not in task.params:
            return found
        return WrappedData(found, task, self._wrapped(task, self._bare(task)))

    def spaces(self, task: Task) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
        if PARAMETER not in task.params:
            return self.inner.spaces(task)
        try:
            env = self.inner.env(_plain(task))
        except CurriculumError:
            env = self._bare(task)
        wrapped = self._wrapped(task, env)
        try:
            return wrapped.observation_space, wrapped.action_space
        finally:
            env.close()

    def _bare(self, task: Task) -> SpacesOnly:
        return SpacesOnly(*self.inner.spaces(_plain(task)))

    def _wrapped(self, task: Task, env: Env) -> Env:
        if PARAMETER not in task.params:
            return env
        try:
            for text in _texts(task):
                env = self._put(task, Spec.parse(text), env)
        except BaseException:
            env.close()
            raise
        return Outermost(env)

    def _put(self, task: Task, spec: Spec, env: Env) -> Env:
        what = f"wrapper {spec.name} of {task.id}"
        make = self.load_file(spec.name) if is_file_reference(spec.name) else NAMES.get(spec.name)
        if make is None:
            if spec.name in _REFUSED:
                raise CurriculumError(f"{what} is refused: {_REFUSED[spec.name]}")
            known = ", ".join(NAMES)
            raise UnknownName("wrapper", spec.name, NAMES, f"(known: {known}; or file.py:Class)")
        try:
            made = call_with(what, make, env, **{k: _value(k, v) for k, v in spec.params.items()})
        except PerdureError:
            raise
        except Exception as e:
            raise CurriculumError(
                f"{what} cannot be put around observations in {env.observation_space} and actions in "
                f"{env.action_space}: {type(e).__name__}: {e}"
            ) from e
        if not isinstance(made, gymnasium.Env):
            raise CurriculumError(f"{what} gave {type(made).__name__}, expected an environment")
        return made

    # What wrappers do not touch.

    def tasks(self) -> Sequence[Task]:
        return self.inner.tasks()

    def task(self, name: str) -> Task:
        return self.inner.task(name)

    def task_to_check(self, task: Task) -> Task:
        return self.inner.task_to_check(task)

    def instructions(self, task: Task) -> Sequence[str]:
        return self.inner.instructions(_plain(task))

    def data_folder(self) -> Path | None:
        return self.inner.data_folder()

    def curricula(self) -> Mapping[str, Callable[..., Curriculum]]:
        return self.inner.curricula()

    def window(self, task: Task) -> int | None:
        return self.inner.window(_plain(task))


class WrappedData:
    """A task's data as its wrappers show it: each observation by itself."""

    def __init__(self, data: Data, task: Task, wrapped: Env) -> None:
        self.data, self.batch_size = data, data.batch_size
        self.layers: list[Any] = []
        while isinstance(wrapped, gymnasium.Wrapper):
            self.layers.insert(0, wrapped)
            wrapped = wrapped.env
        for layer in self.layers:
            name = type(layer).__name__
            known = isinstance(
                layer, (Outermost, PadAction, PadObservation, wrappers.TransformObservation)
            )
            if not known or name in _NOT_DATA:
                raise CurriculumError(
                    f"{task.id}: wrapper {name} needs episodes and cannot be applied to data; use "
                    "those that change each observation by itself, or PadAction"
                )

    def __len__(self) -> int:
        return len(self.data)

    def batch(self, indices: Array) -> Examples:
        """The examples at these indices."""
        found = self.data.batch(indices)
        inputs: list[Any] = [rows_of(found.inputs, k) for k in range(len(found))]
        targets: list[Any] = list(found.targets)
        for layer in self.layers:
            if isinstance(layer, PadAction):
                targets = [layer.demonstrated(t) for t in targets]
            elif isinstance(layer, gymnasium.ObservationWrapper):
                inputs = [layer.observation(x) for x in inputs]
        return Examples(
            map_leaves(lambda *rows: np.stack(rows), *inputs),
            np.array(targets),
            found.source,
            found.indices,
        )


def _plain(task: Task) -> Task:
    """The task without its wrappers."""
    if PARAMETER not in task.params:
        return task
    params = {k: v for k, v in task.params.items() if k != PARAMETER}
    return Task(task.suite, task.name, task.variant, params)


def _texts(task: Task) -> list[str]:
    given = task.params[PARAMETER]
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise CurriculumError(
            f"{task.id}: wrappers must be a list such as ['FlattenObservation', "
            f"'TimeLimit,max_episode_steps=50'], from the innermost to the outermost, got {given!r}"
        )
    for text in given:
        if not isinstance(text, str):
            raise CurriculumError(
                f"{task.id}: a wrapper is written NAME[,key=value…], got {text!r}"
            )
    return list(given)


def _value(name: str, value: Any) -> Any:
    """As constructors want it: lists are tuples, types are numpy's."""
    if name == "dtype":
        return np.dtype(value)
    return tuple(value) if isinstance(value, list) else value
