"""A Stable-Baselines3 model as arrays and back: networks, optimisers, counters, buffers, noise.

Everything is found by its kind, not by its name, so that algorithms of others are covered too:
whatever ``_get_torch_save_params`` names, every plain number on the model, and every array of
its replay buffer that has a row for each step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.distributions import StateDependentNoiseDistribution
from stable_baselines3.common.noise import ActionNoise, VectorizedActionNoise
from stable_baselines3.common.save_util import recursive_getattr
from torch import Tensor

from perdure.agents.networks.column import STRETCH
from perdure.agents.networks.tensors import CPU, to_array, to_tensor
from perdure.arrays import Chunk, ChunkedArray, raw_bytes
from perdure.errors import AgentFault
from perdure.types import Array, State

CLOCKS = ("start_time",)
"""Numbers on a model that are not part of what it learned."""


def pack_model(model: BaseAlgorithm) -> dict[str, Array]:
    """Everything but the experience buffers, copied."""
    out: dict[str, Array] = {f"count/{k}": np.array(v) for k, v in _numbers(model)}
    objects, variables = model._get_torch_save_params()
    for name in objects:
        part = recursive_getattr(model, name)
        if isinstance(part, torch.optim.Optimizer):
            out |= {f"optim/{name}/{k}": v for k, v in _pack_optimizer(part)}
        else:
            out |= {f"net/{name}/{k}": _array(v) for k, v in part.state_dict().items()}
    for name in variables:
        value = recursive_getattr(model, name)
        if value is not None:
            out[f"var/{name}"] = _array(value)
    for name, tensor in _exploration(model):
        out[name] = _array(tensor)
    for i, noise in enumerate(_noises(model.action_noise)):
        out |= {f"noise/{i}/{k}": np.array(v) for k, v in _plain(vars(noise))}
    return out


def unpack_model(model: BaseAlgorithm, state: Mapping[str, Array]) -> None:
    """Write packed arrays into a model of the same construction."""
    for key, value in _under(state, "count/"):
        setattr(model, key, value.item())
    objects, variables = model._get_torch_save_params()
    for name in objects:
        part = recursive_getattr(model, name)
        if isinstance(part, torch.optim.Optimizer):
            _unpack_optimizer(part, dict(_under(state, f"optim/{name}/")))
        else:
            saved = {k: _tensor(v) for k, v in _under(state, f"net/{name}/")}
            part.load_state_dict(saved)
    with torch.no_grad():
        for name in variables:
            if f"var/{name}" in state:
                recursive_getattr(model, name).copy_(_tensor(state[f"var/{name}"]))
    for owner, dist in _distributions(model):
        for attribute, value in _under(state, f"sde/{owner}/"):
            setattr(dist, attribute, _tensor(value).to(model.device))
    for i, noise in enumerate(_noises(model.action_noise)):
        for key, value in _under(state, f"noise/{i}/"):
            setattr(noise, key, value.item() if value.ndim == 0 else np.array(value))


class ReplayChunks:
    """The stretches of a replay buffer as they were packed last.

    Who writes into the buffer, and where, is the algorithm's own matter; so every stretch is compared
    with its copy each time, and one that has not changed is neither copied nor saved again.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], Chunk] = {}

    def of(self, name: str, rows: Array) -> ChunkedArray:
        """A column's rows."""
        size = max(1, STRETCH // max(1, rows[:1].nbytes))
        parts = {start: rows[start : start + size] for start in range(0, len(rows), size)}
        for start, part in parts.items():
            known = self._known.get((name, start))
            if known is None or not _same_bytes(known.array, part):
                self._known[name, start] = Chunk(part.copy())
        return ChunkedArray((self._known[name, k] for k in parts), rows.shape[1:], rows.dtype)


def _same_bytes(a: Array, b: Array) -> bool:
    one, other = (np.frombuffer(raw_bytes(x), np.uint8) for x in (a, b))
    return np.array_equal(one, other)


def pack_replay(buffer: ReplayBuffer, chunks: ReplayChunks) -> dict[str, Any]:
    """The filled part of a replay buffer."""
    out: dict[str, Any] = {"pos": np.array(buffer.pos), "full": np.array(buffer.full)}
    filled = buffer.size()
    if buffer.optimize_memory_usage and filled:
        # The row after the last holds the last next observation.
        filled = min(filled + 1, buffer.buffer_size)
    for name, array in _columns(buffer):
        out[name] = chunks.of(name, array[:filled])
    return out


def unpack_replay(buffer: ReplayBuffer, state: State) -> None:
    """Write the filled part back."""
    buffer.pos, buffer.full = int(state["pos"]), bool(state["full"])
    for name, array in _columns(buffer):
        saved = state[name]
        if saved.shape[1:] != array.shape[1:] or len(saved) > len(array):
            raise AgentFault(
                f"sb3: the saved replay buffer's {name!r} has the shape {saved.shape}, expected "
                f"at most {array.shape}: the agent was built with other parameters"
            )
        array[: len(saved)] = np.asarray(saved)


def _columns(buffer: ReplayBuffer) -> Iterator[tuple[str, Array]]:
    for name, value in vars(buffer).items():
        parts = value.items() if isinstance(value, dict) else [("", value)]
        for key, array in parts:
            if isinstance(array, np.ndarray) and array.shape[:1] == (buffer.buffer_size,):
                yield f"{name}/{key}" if key else name, array


def _plain(attributes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in attributes.items():
        if isinstance(value, (bool, int, float, np.number, np.bool_)) or (
            isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
        ):
            yield name, value


def _numbers(model: BaseAlgorithm) -> Iterator[tuple[str, Any]]:
    for name, value in _plain(vars(model)):
        if name not in CLOCKS and not isinstance(value, np.ndarray):
            yield name, value


def _noises(noise: ActionNoise | None) -> list[ActionNoise]:
    if noise is None:
        return []
    return list(noise.noises) if isinstance(noise, VectorizedActionNoise) else [noise]


def _distributions(model: BaseAlgorithm) -> Iterator[tuple[str, StateDependentNoiseDistribution]]:
    for owner in ("policy", "policy.actor"):
        try:
            dist = recursive_getattr(model, f"{owner}.action_dist")
        except AttributeError:
            continue
        if isinstance(dist, StateDependentNoiseDistribution):
            yield owner, dist


def _exploration(model: BaseAlgorithm) -> Iterator[tuple[str, Tensor]]:
    """gSDE's noise matrices, which no state_dict holds."""
    for owner, dist in _distributions(model):
        for attribute in ("exploration_mat", "exploration_matrices"):
            yield f"sde/{owner}/{attribute}", getattr(dist, attribute)


def _pack_optimizer(optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, Array]]:
    packed = optimizer.state_dict()
    for i, slots in packed["state"].items():
        for key, value in slots.items():
            if isinstance(value, Tensor):
                yield f"{i}/{key}", _array(value)
            elif value is not None:
                # Some optimisers count steps in a plain number and must get one back.
                yield f"{i}/{key}#", np.array(value)
    for i, group in enumerate(packed["param_groups"]):
        yield f"lr/{i}", np.array(float(group["lr"]))


def _unpack_optimizer(optimizer: torch.optim.Optimizer, saved: Mapping[str, Array]) -> None:
    packed = optimizer.state_dict()
    slots: dict[int, dict[str, Any]] = {}
    for name, value in saved.items():
        i, _, key = name.partition("/")
        if i == "lr":
            packed["param_groups"][int(key)]["lr"] = float(value)
        elif key.endswith("#"):
            slots.setdefault(int(i), {})[key[:-1]] = value.item()
        else:
            slots.setdefault(int(i), {})[key] = _tensor(value)
    packed["state"] = slots
    optimizer.load_state_dict(packed)


def _under(state: Mapping[str, Array], prefix: str) -> Iterator[tuple[str, Array]]:
    for name, value in state.items():
        if name.startswith(prefix):
            yield name[len(prefix) :], value


def _array(tensor: Tensor) -> Array:
    return to_array(tensor).copy()


def _tensor(array: Array) -> Tensor:
    return to_tensor(array, CPU)
