"""A Stable-Baselines3 model from names and plain values, on an environment that only has spaces."""

from __future__ import annotations

import copy
import importlib
import math
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import stable_baselines3
from gymnasium import spaces
from gymnasium.vector.utils import create_empty_array
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from perdure.errors import PerdureError, SpecError, UnknownName
from perdure.registry import extras_named, load_file
from perdure.specs import call_with, is_file_reference
from perdure.types import Setup

SIMPLE = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
OURS = ("env", "seed", "_init_setup_model", "tensorboard_log", "verbose", "stats_window_size")
"""Constructor parameters that the lifetime decides."""
SCHEDULES = ("learning_rate", "clip_range", "clip_range_vf")


class Spaces(VecEnv):
    """What a model wants to know of its environments, and nothing to step."""

    def __init__(self, setup: Setup) -> None:
        # Copies, because Stable-Baselines3 seeds the spaces it gets.
        seen = copy.deepcopy(setup.observation_space)
        super().__init__(setup.slots, seen, copy.deepcopy(setup.action_space))

    def reset(self) -> Any:
        """Nothing is seen before the first step."""
        return create_empty_array(self.observation_space, self.num_envs, fn=np.zeros)

    def step_async(self, actions: Any) -> None:
        """Refused."""
        raise SpecError("sb3: the algorithm steps its environment itself; only Perdure may")

    def step_wait(self) -> Any:
        """Refused."""
        raise SpecError("sb3: the algorithm steps its environment itself; only Perdure may")

    def close(self) -> None:
        """Nothing to close."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """There is nothing behind the spaces."""
        if attr_name != "render_mode":
            raise SpecError(f"sb3: the algorithm asks its environment for {attr_name!r}")
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refused."""
        raise SpecError(f"sb3: the algorithm sets {attr_name!r} of its environment")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kw: Any) -> list[Any]:
        """Refused."""
        raise SpecError(f"sb3: the algorithm calls {method_name!r} of its environment")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Nothing is wrapped."""
        return [False] * self.num_envs


def build(setup: Setup, seed: int, algo: str, policy: str, params: dict[str, Any]) -> BaseAlgorithm:
    """The model, seeded and set up as ``learn()`` would."""
    cls = algorithm(algo)
    check_spaces(algo, setup)
    if policy == "auto":
        policy = _policy(setup.observation_space)
    for name in OURS:
        if name in params:
            raise SpecError(f"sb3: {name!r} is not a parameter here, the lifetime decides it")
    # Copies, because Stable-Baselines3 writes into what it is given.
    params = {name: _value(name, value, setup) for name, value in copy.deepcopy(params).items()}
    _check_buffer(params, setup)
    params.setdefault("device", "cpu")
    try:
        model = call_with(f"sb3 {algo}", cls, policy, Spaces(setup), seed=seed, **params)
        # Without outputs: Perdure writes the measures itself, and no clocks.
        model.set_logger(Logger(folder=None, output_formats=[]))
        model._setup_learn(1)
    except PerdureError:
        raise
    except Exception as e:
        raise SpecError(
            f"sb3: {algo} with {policy} cannot be built for observations in "
            f"{setup.observation_space} and actions in {setup.action_space}: {e}"
        ) from e
    unit = getattr(getattr(model, "train_freq", None), "unit", None)
    if setup.slots > 1 and unit is not None and unit.value == "episode":
        raise SpecError(
            f"sb3: {algo} can train every so many episodes in one environment only, and there "
            f"are {setup.slots}; give train_freq in steps, or run with one environment"
        )
    built: BaseAlgorithm = model
    return built


def algorithm(name: str) -> type[BaseAlgorithm]:
    """The class of this name: Stable-Baselines3's own, ``module:Class`` or ``file.py:Class``."""
    own = {
        n.lower(): c
        for n, c in vars(stable_baselines3).items()
        if isinstance(c, type) and issubclass(c, BaseAlgorithm)
    }
    if ":" in name:
        found = load_file(name) if is_file_reference(name) else named(name)
    elif name.lower() in own:
        found = own[name.lower()]
    else:
        known = [c.__name__ for c in own.values()]
        raise UnknownName(
            "sb3 algorithm", name, known, f"(of {', '.join(known)}; others are module:Class)"
        )
    if not isinstance(found, type) or not issubclass(found, OnPolicyAlgorithm | OffPolicyAlgorithm):
        raise SpecError(
            f"sb3: {name} is not built on OnPolicyAlgorithm or OffPolicyAlgorithm, so it cannot "
            "be driven step by step"
        )
    base: Any = OnPolicyAlgorithm if issubclass(found, OnPolicyAlgorithm) else OffPolicyAlgorithm
    if found.collect_rollouts is not base.collect_rollouts:
        raise SpecError(
            f"sb3: {name} collects its experience in its own way (it overrides collect_rollouts), "
            "which cannot be driven step by step; write it as an agent of its own"
        )
    return found


def named(reference: str) -> Any:
    """The object that ``module:Name`` names."""
    module, _, attribute = reference.partition(":")
    try:
        with extras_named(f"sb3 {reference}"):
            home = importlib.import_module(module)
    except (ImportError, ValueError) as e:
        raise SpecError(f"sb3: {reference}: the module {module!r} cannot be imported: {e}") from e
    if not hasattr(home, attribute):
        public = [n for n in vars(home) if not n.startswith("_")]
        raise UnknownName(f"object in {module}", attribute, public)
    return getattr(home, attribute)


def check_spaces(algo: str, setup: Setup) -> None:
    """Refuse what no algorithm of Stable-Baselines3 can take, in its own words of advice."""
    seen, done = setup.observation_space, setup.action_space
    parts = dict(seen.spaces) if isinstance(seen, spaces.Dict) else {"": seen}
    for key, part in parts.items():
        what = f"observation space {part}" + (f" under {key!r}" if key else "")
        if not isinstance(part, SIMPLE):
            raise SpecError(
                f"sb3: {algo} cannot take the {what}: expected Box, Discrete, MultiDiscrete, "
                "MultiBinary or a Dict of these; change it by wrappers of the task (docs/spaces.md)"
            )
        _check_start(what, part)
    if not isinstance(done, SIMPLE):
        raise SpecError(
            f"sb3: {algo} cannot give actions in {done}: expected Box, Discrete, MultiDiscrete or "
            "MultiBinary; change it by wrappers of the task (docs/spaces.md)"
        )
    _check_start(f"action space {done}", done)


def _check_start(what: str, space: gymnasium.Space[Any]) -> None:
    if np.any(getattr(space, "start", 0)):
        raise SpecError(f"sb3: the {what} must start at 0; shift it with a Gymnasium wrapper")


def _policy(seen: gymnasium.Space[Any]) -> str:
    if isinstance(seen, spaces.Dict):
        return "MultiInputPolicy"
    # The convolutions of CnnPolicy need at least 36 pixels a side.
    if is_image_space(seen) and sorted(seen.shape or ())[1] >= 36:
        return "CnnPolicy"
    return "MlpPolicy"


def _value(name: str, value: Any, setup: Setup) -> Any:
    """A parameter as the constructor wants it, from what a command line can say."""
    if name == "train_freq" and isinstance(value, Sequence):
        return tuple(value)
    if name == "action_noise" and isinstance(value, int | float):
        shape = setup.action_space.shape
        return NormalActionNoise(np.zeros(shape or ()), np.full(shape or (), float(value)))
    if name in SCHEDULES and isinstance(value, str):
        kind, _, start = value.partition("_")
        try:
            initial = float(start)
        except ValueError:
            initial = math.nan
        if kind != "lin" or not math.isfinite(initial):
            raise SpecError(f"sb3: {name} must be a number or lin_NUMBER, got {value!r}")
        return lambda left: left * initial
    if name == "policy_kwargs":
        return {k: _value(k, v, setup) for k, v in value.items()}
    if name.endswith(("_class", "_fn")) and isinstance(value, str):
        return named(value)
    return value


def _check_buffer(params: dict[str, Any], setup: Setup) -> None:
    kind = params.get("replay_buffer_class")
    if isinstance(kind, type) and issubclass(kind, HerReplayBuffer):
        raise SpecError(
            "sb3: HerReplayBuffer asks the environment for the rewards of other goals, and "
            "agents do not see their environment"
        )
    if params.get("optimize_memory_usage") and setup.slots > 1:
        raise SpecError(
            "sb3: optimize_memory_usage needs every step of every environment in its place, and "
            f"of {setup.slots} environments some may be idle; leave it out, or run with one"
        )
