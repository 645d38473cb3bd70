"""How Meta-World is evaluated, by those who report numbers on it: a column for each.

``official``: Meta-World's own evaluation of multi-task benchmarks, each of the 50 goals once.
``paper``: the first release's, 150 steps and one fixed goal. ``lerobot``: pictures of one camera, moved a
little, and the hand's place, by policies that read an instruction; an episode ends with success.
What a task takes as a parameter is given to it, the rest is between environment and policy
(:mod:`perdure.suites.libero.eval_protocols` lists it).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perdure.curricula import about_of
from perdure.errors import CurriculumError
from perdure.protocol import EvalProtocol
from perdure.suites._evaluation import chosen_protocol, task_parameters
from perdure.suites.metaworld.tasks import MT10, MT25, NAMES, check_task
from perdure.types import Curriculum, Exposure, Task, evaluate

_OFFICIAL: Mapping[str, Any] = {
    "episodes": 50,
    "seed": 0,
    "horizon": 500,
    "goals": "set",
    "benchmark_seed": 0,
    "reward": "v2",
    "observation": "state",
    "hide_goal": False,
    "end_on_success": False,
    "instruction": "",
    "state": "none",
    "replan": 1,
    "gripper": "as-is",
    "success": "any",
}
_OTHERS: Mapping[str, Mapping[str, Any]] = {
    "official": {},
    "paper": {"horizon": 150, "goals": "fixed", "benchmark_seed": None},
    "lerobot": {
        "episodes": 10,
        "seed": 1000,
        "goals": "random",
        "benchmark_seed": None,
        "observation": "image+hand",
        "size": 480,
        "camera": "corner2",
        "camera_position": [0.75, 0.075, 0.7],
        "end_on_success": True,
        "instruction": "about",
        "image_size": None,
        "resize": "pad",
        "crop": 1.0,
        "state": "hand",
    },
}
PROTOCOLS: Mapping[str, EvalProtocol] = {
    name: EvalProtocol(name, {**_OFFICIAL, **other}) for name, other in _OTHERS.items()
}

DIFFICULTIES = {
    "easy": """button-press button-press-topdown button-press-topdown-wall button-press-wall
        coffee-button dial-turn door-close door-lock door-open door-unlock drawer-close drawer-open
        faucet-close faucet-open handle-press handle-press-side handle-pull handle-pull-side
        lever-pull plate-slide plate-slide-back plate-slide-back-side plate-slide-side reach
        reach-wall window-close window-open peg-unplug-side""",
    "medium": """basketball bin-picking box-close coffee-pull coffee-push hammer peg-insert-side
        push-wall soccer sweep sweep-into""",
    "hard": "assembly hand-insert pick-out-of-hole pick-place push push-back",
    "very-hard": "shelf-place disassemble stick-pull stick-push pick-place-wall",
}
"""LeRobot's groups of tasks."""


def tasks(
    names: Sequence[str] = ("reach", "drawer-close", "window-close"),
    protocol: str = "official",
    episodes: int | None = None,
    instructions: Mapping[str, str] | None = None,
    **params: Any,
) -> Curriculum:
    """Evaluate any tasks; ``instructions`` has sentences for some of them."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise CurriculumError(f"metaworld/eval-tasks: names must be a list of tasks, got {names!r}")
    return _evaluation("tasks", "MT1", names, protocol, episodes, instructions, params)


def _listed(
    name: str, benchmark: str, names: Sequence[str], about: str
) -> Callable[..., Curriculum]:
    def builder(
        protocol: str = "official",
        episodes: int | None = None,
        instructions: Mapping[str, str] | None = None,
        **params: Any,
    ) -> Curriculum:
        return _evaluation(name, benchmark, names, protocol, episodes, instructions, params)

    builder.__doc__ = about
    return builder


def _evaluation(
    name: str,
    benchmark: str,
    names: Sequence[str],
    protocol: str,
    episodes: int | None,
    instructions: Mapping[str, str] | None,
    params: Mapping[str, Any],
) -> Curriculum:
    where = f"metaworld/eval-{name}"
    known = {n.removesuffix("-v3"): n for n in names}
    for n in (*known, *(instructions or {})):
        check_task(n)
    chosen = chosen_protocol(where, protocol, PROTOCOLS, episodes, params)
    if instructions:
        chosen = chosen.changed(instructions=dict(instructions))
    own = task_parameters(chosen)
    own.pop("instructions", None)
    if own["goals"] == "set":
        own.setdefault("benchmark", benchmark)
    made = []
    for k, n in enumerate(known):
        more: dict[str, Any] = {}
        if own["observation"] == "state" and len(known) > 1:
            more["one_hot"] = [k, len(known)]
        if n in (instructions or {}):
            more["instruction"] = (instructions or {})[n]
        made.append(Task("metaworld", n, params={**own, **more}))
    return Curriculum(
        where,
        (evaluate(*(Exposure(t, chosen["episodes"]) for t in made)),),
        about=about_of(CURRICULA[f"eval-{name}"]),
        protocol=chosen,
    )


CURRICULA: Mapping[str, Callable[..., Curriculum]] = {
    "eval-tasks": tasks,
    "eval-mt10": _listed("mt10", "MT10", MT10, "Evaluate ten tasks."),
    "eval-mt25": _listed("mt25", "MT25", MT25, "Evaluate twenty-five tasks."),
    "eval-mt50": _listed("mt50", "MT50", NAMES, "Evaluate all fifty tasks."),
    **{
        f"eval-{name}": _listed(
            name, "MT50", text.split(), f"Evaluate the tasks that LeRobot calls {name}."
        )
        for name, text in DIFFICULTIES.items()
    },
}
