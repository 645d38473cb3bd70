"""The specification of a run: ten keys, from a TOML file, flags or Python."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from perdure.errors import NameRefused, SpecError, StoreError, UnknownName
from perdure.names import slug
from perdure.specs import Spec
from perdure.store.files import read_input
from perdure.store.urls import place

MAX_ENVS = 1024
"""Environments side by side in one process."""
MAX_LIFETIMES = 100_000
"""Of one agent in one run."""
MAX_SEED = 2**63 - 1
"""Rows hold a lifetime's seed in 64 bits."""
MAX_FOLDER = 255
DEADLINE = 600.0
"""Seconds without a sign of life after which something is taken to hang, where an executor does not
set them."""


@dataclass(frozen=True)
class RunSpec:
    """What to run. One TOML of these ten keys; each is also a flag."""

    curriculum: str
    agents: tuple[str, ...] = ("random",)
    lifetimes: int = 1
    seed: int = 0
    out: str = ""
    executor: str = "processes"
    envs: int = 1
    experts: bool = False
    hide_tasks: bool = False
    checkpoint: int = 50_000

    def __post_init__(self) -> None:
        given: Any = self.agents
        if isinstance(given, str):
            given = (given,)
        if not isinstance(given, Sequence):
            raise SpecError(f'agents must be a list of names, as ["ppo", "dqn"], got {given!r}')
        object.__setattr__(self, "agents", tuple(given))
        for f in fields(self):
            value = getattr(self, f.name)
            kind: Any = {"agents": tuple, "experts": bool, "hide_tasks": bool}.get(f.name)
            if kind is None:
                kind = int if isinstance(f.default, int) else str
            if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                raise SpecError(f"{f.name} must be of type {kind.__name__}, got {value!r}")
        for name in ("lifetimes", "envs", "checkpoint"):
            if getattr(self, name) < 1:
                raise SpecError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.envs > MAX_ENVS:
            raise SpecError(f"envs must be at most {MAX_ENVS}, got {self.envs}")
        if self.lifetimes > MAX_LIFETIMES:
            raise SpecError(f"lifetimes must be at most {MAX_LIFETIMES:,}")
        if self.seed < 0:
            raise SpecError(f"seed must not be negative, got {self.seed}")
        if self.seed + self.lifetimes - 1 > MAX_SEED:
            raise SpecError("the seeds of all lifetimes must be less than 2**63")
        if not self.agents:
            raise SpecError("name at least one agent (perdure ls agents)")
        if "\0" in self.out:
            raise NameRefused("the output folder's name holds a NUL character")
        if any(len(os.fsencode(part)) > MAX_FOLDER for part in Path(self.out).parts):
            raise NameRefused(
                f"the output folder {self.out[:40]!r}… has a part of more than {MAX_FOLDER} bytes, "
                "which no file system can hold"
            )

    @classmethod
    def from_toml(cls, path: Path, **flags: Any) -> RunSpec:
        """Read a TOML file; flags that are given win over it."""
        try:
            values = tomllib.loads(read_input(path))
        except StoreError as e:
            raise SpecError(str(e)) from e
        except RecursionError:
            raise SpecError(
                f"{path} holds lists or tables in each other, too deep to read"
            ) from None
        except ValueError as e:
            raise SpecError(f"{path}: {e}") from e
        known = [f.name for f in fields(cls)]
        for key in values:
            if key not in known:
                raise UnknownName(f"key in {path}", key, known, f"(keys: {', '.join(known)})")
        values |= flags
        if "curriculum" not in values:
            raise SpecError(f"{path} names no curriculum (perdure ls curricula)")
        return cls(**values)

    @property
    def folder(self) -> Path:
        """Where the run goes."""
        return place(self.out or f"runs/{slug(Spec.parse(self.curriculum).short)}")

    @property
    def patience(self) -> float:
        """Seconds that a part may take while the run is planned: the executor's deadline."""
        given = Spec.parse(self.executor).params.get("deadline")
        return float(given) if isinstance(given, (int, float)) and given > 0 else DEADLINE

    IDENTITY = ("curriculum", "seed", "envs", "hide_tasks", "checkpoint")
    """What may not change in a folder. Agents and lifetimes may be added."""
