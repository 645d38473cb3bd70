"""A model that Stable-Baselines3 saved (``model.save("model.zip")``), read without unpickling anything."""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.save_util import recursive_getattr

from perdure.agents.adapters.sb3.build import OURS
from perdure.errors import SpecError

VARIABLES = "pytorch_variables"
SERIALIZED = ":serialized:"
"""What Stable-Baselines3 calls a pickle within its JSON."""


@dataclass(frozen=True)
class SavedModel:
    """What of a model's file can be read without running code of others."""

    path: str
    values: dict[str, Any]
    """Its plain settings and counters."""
    parameters: dict[str, Any]
    """By the name of a network or optimiser, what its ``load_state_dict`` takes."""

    def settings(self, algorithm: type[BaseAlgorithm], given: dict[str, Any]) -> dict[str, Any]:
        """What the model was made with, as far as that is plain, below what is given."""
        names = set(inspect.signature(algorithm).parameters) - {*OURS, "policy", "device"}
        return {**{n: v for n, v in self.values.items() if n in names and v is not None}, **given}

    def put_into(self, build: Callable[[], BaseAlgorithm]) -> BaseAlgorithm:
        """A model made alike, with the weights, and with the optimisers where they were."""
        own = {k: v for k, v in self.parameters.items() if k != VARIABLES}
        try:
            model = build()
            model.set_parameters(own, exact_match=True, device=model.device)
            with torch.no_grad():
                for name, value in (self.parameters.get(VARIABLES) or {}).items():
                    recursive_getattr(model, name).copy_(value)
        except Exception as e:
            raise SpecError(
                f"sb3: the model in {self.path} cannot be made here: say what it was trained with "
                f"(algo=…, policy_kwargs={{net_arch=[…]}}, …): {e}"
            ) from e
        return model


def read_model(path: str) -> SavedModel:
    """Read a saved model. Pickles in it (schedules, classes, spaces) are passed over."""
    try:
        with zipfile.ZipFile(path) as archive:
            values = json.loads(archive.read("data"))
            parameters = {
                name.removesuffix(".pth"): torch.load(
                    io.BytesIO(archive.read(name)), map_location="cpu", weights_only=True
                )
                for name in archive.namelist()
                if name.endswith(".pth")
            }
        plain = {k: v for k, v in values.items() if not (isinstance(v, dict) and SERIALIZED in v)}
    except FileNotFoundError:
        raise SpecError(f"sb3: load={path}: there is no such file") from None
    except Exception as e:
        raise SpecError(
            f"sb3: load={path} is not a model that Stable-Baselines3 saved: {type(e).__name__}: {e}"
        ) from e
    return SavedModel(path, plain, parameters)


def digest(path: str) -> str:
    """Of the file, as it stands in specifications."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]
    except (OSError, ValueError) as e:  # A name that no file can have is a ValueError.
        raise SpecError(f"sb3: load={path!r} cannot be read: {e}") from e
