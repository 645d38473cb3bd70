"""What many tests need: a lifetime in one call, and an agent that writes down what it sees."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from perdure.agent import Agent
from perdure.run.config import LifetimeConfig
from perdure.run.loop import LifetimeLoop
from perdure.run.validate import validate
from perdure.store.log import LifetimeLog
from perdure.testing.agents import read_rows
from perdure.types import Curriculum


class Recorder(Agent):
    """Acts 1 and remembers every event and batch."""

    def __init__(self, setup):
        super().__init__(setup)
        self.events, self.batches, self.acted = [], [], []

    def act(self, obs, ctx):
        self.acted.append((np.array(obs), ctx, ctx.episode_start[ctx.slots].tolist()))
        return np.ones(len(obs), int)

    def learn(self, batch, ctx):
        self.batches.append((batch, ctx))

    def observe(self, batch, ctx):
        self.batches.append((batch, ctx))

    def enter(self, ctx):
        self.events.append(("enter", ctx.event, ctx.tasks, ctx.learning))

    def leave(self, ctx):
        self.events.append(("leave", ctx.event, ctx.tasks, ctx.learning))


def setting_of(curriculum: Curriculum, **keys) -> LifetimeConfig:
    resolved = validate(curriculum)
    spaces = (resolved.observation_space, resolved.action_space)
    return LifetimeConfig(curriculum, resolved.suites, *spaces, **{"seed": 0, **keys})


def live(curriculum: Curriculum, agent=Recorder, path: Path | None = None, tmp=None, **keys):
    """One lifetime to its end: (rows, agent)."""
    config = setting_of(curriculum, **keys)
    made = agent(config.setup())
    folder = path or tmp / "life"
    with LifetimeLog(folder, "test", config.seed) as log:
        LifetimeLoop(config, made, log).run()
    return read_rows(folder), made


def load_program(path):
    """A program of this repository, such as studies/libero.py. Not by its name, which may be a package's."""
    spec = importlib.util.spec_from_file_location(
        path.replace("/", "_").removesuffix(".py"), Path(__file__).parent.parent / path
    )
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as m:
        m.setitem(sys.modules, spec.name, module)  # Its dataclasses look there.
        m.setattr(sys, "path", [*sys.path, str(Path(spec.origin).parent)])  # What is beside it.
        spec.loader.exec_module(module)
    return module
