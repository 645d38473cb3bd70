"""LIBERO's evaluations as curricula.

An evaluation plays 50 initial states of every task of a list, state k in episode k: numbered ones in
the primitive look, the published ones with ``look=official``. Which it was stands in every task.
``protocol`` chooses the horizon, how a scene settles and how pictures are shown: ``paper`` as the
lifelong-learning experiments, ``vla`` as evaluations of vision-language-action models.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perdure.curricula import interleave
from perdure.errors import CurriculumError, UnknownName
from perdure.suites.libero.folders import find_in, tasks_in
from perdure.suites.libero.looks import DEFAULT, INITIAL_STATES, look
from perdure.suites.libero.states import COUNT
from perdure.suites.libero.tasks import HORIZONS, find, names_of
from perdure.types import Curriculum, Exposure, Task, evaluate, learn

ORDERS = (
    "0123456789", "4687312095", "6350429187", "7430812596", "4563802719", "1230695748", "3781629405",
    "4297685130", "1854096723", "8364951207", "6905712834", "6831025974", "8069417325", "3864250719",
    "7156328940", "2095368714", "3596248710", "7659034281", "2509316487", "3512786049", "3419768205",
)  # fmt: skip
"""Upstream's 21 orders of ten tasks; the paper used the first five."""

FOLDER_HORIZON = HORIZONS["10"]
"""Of tasks of a folder: as the long ones, since some are of two steps."""

PROTOCOLS: dict[str, dict[str, Any]] = {
    "paper": {"horizon": 600, "settle": 5, "settle_gripper": "hold", "size": 128},
    "vla": {
        "settle": 10,
        "settle_gripper": "open",
        "size": 256,
        "orientation": "rotated",
    },
}


def spatial(
    protocol: str = "vla", episodes: int = COUNT, order: int = 0, **params: Any
) -> Curriculum:
    """Evaluate ten tasks that differ in where a bowl is."""
    return _evaluation("spatial", names_in_order("spatial", order), protocol, episodes, params)


def object_(
    protocol: str = "vla", episodes: int = COUNT, order: int = 0, **params: Any
) -> Curriculum:
    """Evaluate ten tasks that differ in what goes into a basket."""
    return _evaluation("object", names_in_order("object", order), protocol, episodes, params)


def goal(protocol: str = "vla", episodes: int = COUNT, order: int = 0, **params: Any) -> Curriculum:
    """Evaluate ten tasks that differ in what is to be done in one scene."""
    return _evaluation("goal", names_in_order("goal", order), protocol, episodes, params)


def long(protocol: str = "vla", episodes: int = COUNT, order: int = 0, **params: Any) -> Curriculum:
    """Evaluate ten long tasks, most of them of two steps: LIBERO-10."""
    return _evaluation("long", names_in_order("10", order), protocol, episodes, params)


def ninety(protocol: str = "vla", episodes: int = COUNT, **params: Any) -> Curriculum:
    """Evaluate the ninety tasks of LIBERO-90."""
    return _evaluation("ninety", names_of("90"), protocol, episodes, params)


def hundred(protocol: str = "vla", episodes: int = COUNT, **params: Any) -> Curriculum:
    """Evaluate LIBERO-100: the ninety and the ten long ones."""
    return _evaluation("hundred", names_of("100"), protocol, episodes, params)


def tasks(
    names: Sequence[str] = ("spatial-0", "object-0", "goal-0"),
    protocol: str = "vla",
    episodes: int = COUNT,
    **params: Any,
) -> Curriculum:
    """Evaluate any tasks."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise CurriculumError(f"libero/eval-tasks: names must be a list of tasks, got {names!r}")
    return _evaluation("tasks", [find(n).name for n in names], protocol, episodes, params)


def folder(
    folder: str,
    names: Sequence[str] | None = None,
    protocol: str = "vla",
    episodes: int = COUNT,
    **params: Any,
) -> Curriculum:
    """Evaluate the tasks of a folder of task files, such as perdure generate libero writes.

    Their initial states are drawn by the seed.
    """
    if isinstance(names, str):
        raise CurriculumError(f"libero/eval-folder: names must be a list of tasks, got {names!r}")
    known = tasks_in(folder)
    chosen = list(known) if names is None else [find_in(folder, n).name for n in names]
    return _evaluation("folder", chosen, protocol, episodes, {"folder": folder, **params})


def bc(
    demos: str = "",
    tasks: str | Sequence[str] = "object",
    epochs: int = 50,
    episodes: int = 20,
    order: int = 0,
    protocol: str = "paper",
    **params: Any,
) -> Curriculum:
    """Learn tasks one after another from demonstrations (``demos``, a folder that ``perdure demos`` has
    filled), and be evaluated on all of them by playing, before, between and after."""
    if not demos or not isinstance(demos, str):
        raise CurriculumError("libero/bc: set demos to a folder that perdure demos has filled")
    if isinstance(tasks, str):
        names = names_in_order(tasks, order) if tasks != "90" else list(names_of("90"))
    else:
        names = [find(n).name for n in tasks]
    given = PROTOCOLS[_known(protocol, "bc")] | _looked(params) | dict(params)
    learned = [Task("libero", n, params=given | {"demos": demos}) for n in names]
    blocks = [learn(Exposure(t, epochs, "epochs")) for t in learned]
    evaluation = evaluate(*(Exposure(t, episodes) for t in learned))
    return Curriculum("libero/bc", interleave(blocks, evaluation), about=_about(bc))


def _known(protocol: str, name: str) -> str:
    if protocol not in PROTOCOLS:
        raise UnknownName(f"protocol of libero/{name}", str(protocol), PROTOCOLS)
    return protocol


def _looked(params: Mapping[str, Any]) -> dict[str, str]:
    """Look and initial states, so that results say them."""
    chosen = look(params.get("look", DEFAULT)).name
    usual = "random" if "folder" in params else INITIAL_STATES[chosen]
    return {"look": chosen, "initial_states": params.get("initial_states", usual)}


def names_in_order(list_name: str, order: int) -> list[str]:
    """A list of ten in one of upstream's orders."""
    if type(order) is not int or not 0 <= order < len(ORDERS):
        raise CurriculumError(f"order must be from 0 to {len(ORDERS) - 1}, got {order!r}")
    names = names_of(list_name)
    return [names[int(k)] for k in ORDERS[order]]


def _evaluation(
    name: str, names: Sequence[str], protocol: str, episodes: int, params: Mapping[str, Any]
) -> Curriculum:
    _known(protocol, f"eval-{name}")
    looked = _looked(params)
    if looked["initial_states"] == "official" and episodes > COUNT:
        raise CurriculumError(
            f"libero/eval-{name}: a task has {COUNT} official initial states, so at most {COUNT} "
            f"episodes, got {episodes}"
        )
    made = [
        Task(
            "libero",
            n,
            params={
                "horizon": (
                    FOLDER_HORIZON if "folder" in params else HORIZONS[find(n).list_name]
                ),
                **PROTOCOLS[protocol],
                **looked,
                **params,
            },
        )
        for n in names
    ]
    return Curriculum(
        f"libero/eval-{name}",
        (evaluate(*(Exposure(t, episodes) for t in made)),),
        about=_about(CURRICULA[f"eval-{name}"]),
    )


def _about(builder: Callable[..., Curriculum]) -> str:
    return (inspect.getdoc(builder) or "").split("\n\n")[0].replace("\n", " ")


CURRICULA: Mapping[str, Callable[..., Curriculum]] = {
    "eval-spatial": spatial,
    "eval-object": object_,
    "eval-goal": goal,
    "eval-long": long,
    "eval-ninety": ninety,
    "eval-hundred": hundred,
    "eval-tasks": tasks,
    "eval-folder": folder,
    "bc": bc,
}
