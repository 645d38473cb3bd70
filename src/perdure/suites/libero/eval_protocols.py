"""How LIBERO is evaluated, by those who report numbers on it: a column for each. ``primitive`` is our own:
as openpi, in the look that needs no published meshes.

What a task takes as a parameter (``horizon``, ``settle``, ``size``, …) is given to it; the rest is
between the environment and a policy, and read by agents that speak to policies (``remote``).

============  ====================================================================================
parameter     what
============  ====================================================================================
episodes      of each task
seed          of the evaluation's first lifetime
image_size    to which a policy's pictures are made smaller; null: as they are drawn
resize        ``pad``: bilinear, aspect kept; ``jpeg-lanczos``: through JPEG, then Lanczos
crop          share of the picture's area that the policy's own preprocessing keeps; the policy
              does that, it is written down here
state         ``axis-angle``: hand's place, turn and fingers (8); ``none``: policies read what they like
axis_angle    ``robosuite``: angles up to 2π; ``shortest``: up to π
replan        actions of a chunk that are executed before the next query
gripper       ``as-is``: −1 opens; ``zero-one``: 1 opens, 0 closes; ``sign``: as it is, all or nothing
success       ``any``: at any step; ``end``: at the last
============  ====================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.protocol import EvalProtocol
from perdure.suites.libero.tasks import HORIZONS

_OPENPI: Mapping[str, Any] = {
    "initial_states": "official",
    "episodes": 50,
    "seed": 7,
    "horizon": HORIZONS,
    "settle": 10,
    "settle_gripper": "open",
    "fixture_seed": 7,
    "size": 256,
    "image_size": 224,
    "resize": "pad",
    "crop": 1.0,
    "orientation": "rotated",
    "instruction": "benchmark",
    "look": "official",
    "state": "axis-angle",
    "axis_angle": "robosuite",
    "replan": 5,
    "gripper": "as-is",
    "success": "any",
}
_OTHERS: Mapping[str, Mapping[str, Any]] = {
    "openpi": {},
    "primitive": {"look": "primitive", "initial_states": "numbered", "fixture_seed": None},
    "openvla-oft": {
        "fixture_seed": 0,
        "resize": "jpeg-lanczos",
        "crop": 0.9,
        "replan": 8,
        "gripper": "zero-one",
    },
    "lerobot": {
        "seed": 1000,
        "horizon": {**HORIZONS, "spatial": 280},
        "fixture_seed": None,
        "size": 360,
        "image_size": None,
        "replan": 10,
    },
    "groot": {
        "initial_states": "random",
        "episodes": 20,
        "seed": 0,
        "horizon": dict.fromkeys(HORIZONS, 720),
        "settle": 0,
        "fixture_seed": None,
        "image_size": None,
        "replan": 8,
        "gripper": "zero-one",
    },
    "vla-eval": {
        "image_size": None,
        "axis_angle": "shortest",
        "replan": 1,
        "gripper": "sign",
    },
    "paper": {
        "initial_states": "cycle",
        "episodes": 20,
        "seed": 0,
        "horizon": dict.fromkeys(HORIZONS, 600),
        "settle": 5,
        "settle_gripper": "hold",
        "fixture_seed": None,
        "size": 128,
        "image_size": None,
        "orientation": "upstream",
        "state": "none",
        "replan": 1,
    },
}

PROTOCOLS: Mapping[str, EvalProtocol] = {
    name: EvalProtocol(name, {**_OPENPI, **other}) for name, other in _OTHERS.items()
}
