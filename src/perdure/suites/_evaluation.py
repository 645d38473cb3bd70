"""What suites share of evaluations by protocol: what is between an environment and a policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.errors import CurriculumError, UnknownName
from perdure.protocol import EvalProtocol

INTERFACE: Mapping[str, Any] = {
    "episodes": 1,
    "seed": 0,
    "image_size": 8,
    "replan": 1,
    "crop": None,
    "resize": ("pad", "jpeg-lanczos"),
    "state": ("axis-angle", "hand", "none"),
    "axis_angle": ("robosuite", "shortest"),
    "gripper": ("as-is", "zero-one", "sign"),
    "success": ("any", "end"),
}
"""Parameters of a protocol that are none of a task: of whole numbers the least, of words which."""
OPTIONAL = ("image_size",)
"""Those that may be null."""


def chosen_protocol(
    where: str,
    name: str,
    known: Mapping[str, EvalProtocol],
    episodes: int | None,
    given: Mapping[str, Any],
) -> EvalProtocol:
    """The protocol of a name with what is given in place of its own values, checked."""
    if name not in known:
        raise UnknownName(f"protocol of {where}", str(name), known)
    changes = dict(given) | ({} if episodes is None else {"episodes": episodes})
    made = known[name].changed(**changes)
    for key, allowed in INTERFACE.items():
        value = made.get(key)
        if key not in made.values or (value is None and key in OPTIONAL):
            continue
        if isinstance(allowed, int) and (type(value) is not int or value < allowed):
            raise CurriculumError(
                f"{where}: {key} must be a whole number of at least {allowed}, got {value!r}"
            )
        if isinstance(allowed, tuple) and value not in allowed:
            raise CurriculumError(
                f"{where}: {key} must be one of {', '.join(allowed)}, got {value!r}"
            )
    crop = made.get("crop", 1.0)
    if isinstance(crop, bool) or not isinstance(crop, (int, float)) or not 0 < crop <= 1:
        raise CurriculumError(f"{where}: crop must be a share between 0 and 1, got {crop!r}")
    return made


def task_parameters(protocol: EvalProtocol) -> dict[str, Any]:
    """Those of a protocol's values that are a task's parameters."""
    return {k: v for k, v in protocol.values.items() if k not in INTERFACE and v is not None}
