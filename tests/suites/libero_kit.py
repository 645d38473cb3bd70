"""What the tests of suite libero share."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")

from perdure.suites.libero import assets
from perdure.suites.libero.env import scene_of
from perdure.suites.libero.problems import problem_of
from perdure.suites.libero.simulation import Simulation
from perdure.suites.libero.states import official
from perdure.suites.libero.tasks import find, officials
from perdure.types import Task

REFERENCE = Path(__file__).parent / "libero_reference"
"""What upstream did; record.py there made it."""

needs_assets = pytest.mark.skipif(
    not assets.installed(), reason="the official assets are not installed (extra libero-official)"
)

in_both_looks = pytest.mark.parametrize(
    "look", ["primitive", pytest.param("official", marks=needs_assets)]
)


def task(name, **params):
    """In the official look, unless another is named."""
    return Task("libero", name, params={"look": "official", **params})


def blind(name, **params):
    """A task without pictures, which cost more than all else."""
    return task(name, **{"cameras": [], **params})


def simulation(name, look="official", **keys):
    return Simulation(scene_of(problem_of(find(name)), look), **keys)


def states_of(name):
    return official(find(name).folder, find(name).file)


def recorded(what):
    return np.load(REFERENCE / f"{what}.npz", allow_pickle=False)


def rotation(tenths=10):
    """A tenth of the 130 tasks: the one whose turn it is.

    Turns go by $PERDURE_ROTATION, a whole number, or else by the day, so that ten days or ten runs
    see every task. Each tenth has tasks of all lists.
    """
    turn = int(os.environ.get("PERDURE_ROTATION", time.time() // 86400)) % tenths
    return [name for k, name in enumerate(officials()) if k % tenths == turn]
