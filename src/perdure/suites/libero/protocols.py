"""LIBERO's evaluations as curricula.

An evaluation plays initial states of every task of a list, state k in episode k. ``protocol`` says
everything else, as one of those does who report numbers on LIBERO
(:mod:`perdure.suites.libero.eval_protocols`), or ``primitive``, which needs no published meshes; any of its
values, and any parameter of the tasks, can be given to change it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perdure.curricula import about_of, interleave
from perdure.errors import CurriculumError
from perdure.protocol import EvalProtocol
from perdure.suites._evaluation import chosen_protocol, task_parameters
from perdure.suites.libero.eval_protocols import PROTOCOLS
from perdure.suites.libero.folders import find_in, tasks_in
from perdure.suites.libero.looks import INITIAL_STATES, look
from perdure.suites.libero.states import COUNT
from perdure.suites.libero.tasks import HORIZONS, find, located, names_of, officials
from perdure.types import Curriculum, Exposure, Task, evaluate, learn

ORDERS = (
    "0123456789", "4687312095", "6350429187", "7430812596", "4563802719", "1230695748", "3781629405",
    "4297685130", "1854096723", "8364951207", "6905712834", "6831025974", "8069417325", "3864250719",
    "7156328940", "2095368714", "3596248710", "7659034281", "2509316487", "3512786049", "3419768205",
)  # fmt: skip
"""Upstream's 21 orders of ten tasks; the paper used the first five."""

FOLDER_HORIZON = HORIZONS["10"]
"""Of tasks of a folder: as the long ones, since some are of two steps."""


def spatial(
    protocol: str = "primitive", episodes: int | None = None, order: int = 0, **params: Any
) -> Curriculum:
    """Evaluate ten tasks that differ in where a bowl is."""
    return _evaluation("spatial", names_in_order("spatial", order), protocol, episodes, params)


def object_(
    protocol: str = "primitive", episodes: int | None = None, order: int = 0, **params: Any
) -> Curriculum:
    """Evaluate ten tasks that differ in what goes into a basket."""
    return _evaluation("object", names_in_order("object", order), protocol, episodes, params)


def goal(
    protocol: str = "primitive", episodes: int | None = None, order: int = 0, **params: Any
) -> Curriculum:
    """Evaluate ten tasks that differ in what is to be done in one scene."""
    return _evaluation("goal", names_in_order("goal", order), protocol, episodes, params)


def long(
    protocol: str = "primitive", episodes: int | None = None, order: int = 0, **params: Any
) -> Curriculum:
    """Evaluate ten long tasks, most of them of two steps: LIBERO-10."""
    return _evaluation("long", names_in_order("10", order), protocol, episodes, params)


def ninety(protocol: str = "primitive", episodes: int | None = None, **params: Any) -> Curriculum:
    """Evaluate the ninety tasks of LIBERO-90."""
    return _evaluation("ninety", names_of("90"), protocol, episodes, params)


def hundred(protocol: str = "primitive", episodes: int | None = None, **params: Any) -> Curriculum:
    """Evaluate LIBERO-100: the ninety and the ten long ones."""
    return _evaluation("hundred", names_of("100"), protocol, episodes, params)


def tasks(
    names: Sequence[str] = ("spatial-0", "object-0", "goal-0"),
    protocol: str = "primitive",
    episodes: int | None = None,
    **params: Any,
) -> Curriculum:
    """Evaluate any tasks."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise CurriculumError(f"libero/eval-tasks: names must be a list of tasks, got {names!r}")
    return _evaluation("tasks", [find(n).name for n in names], protocol, episodes, params)


def folder(
    folder: str,
    names: Sequence[str] | None = None,
    protocol: str = "primitive",
    episodes: int | None = None,
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
    tasks: str | int | Sequence[str] = "object",
    epochs: int = 50,
    episodes: int = 20,
    order: int = 0,
    protocol: str = "primitive",
    **params: Any,
) -> Curriculum:
    """Learn tasks one after another from demonstrations (``demos``, a folder that ``perdure demos`` has
    filled), and be evaluated on all of them by playing, before, between and after."""
    if not demos or not isinstance(demos, str):
        raise CurriculumError("libero/bc: set demos to a folder that perdure demos has filled")
    names = names_asked(tasks, order, params.get("folder"))
    params = with_objects(params, names)
    chosen = chosen_for("libero/bc", protocol, episodes, params)
    learned = tasks_of(names, chosen, demos=demos)
    blocks = [learn(Exposure(t, epochs, "epochs")) for t in learned]
    evaluation = evaluate(*(Exposure(t, episodes) for t in learned))
    return Curriculum("libero/bc", interleave(blocks, evaluation), about=about_of(bc))


def chosen_for(
    where: str, protocol: str, episodes: int | None, params: Mapping[str, Any]
) -> EvalProtocol:
    """The protocol with what is given; another look has the initial states that go with it."""
    given = dict(params)
    if "folder" in given:
        given.setdefault("initial_states", "random")
    elif "look" in given:
        given.setdefault("initial_states", INITIAL_STATES[look(given["look"]).name])
    return chosen_protocol(where, protocol, PROTOCOLS, episodes, given)


def tasks_of(names: Sequence[str], protocol: EvalProtocol, **more: Any) -> list[Task]:
    """The tasks as a protocol has them."""
    own, made = task_parameters(protocol), []
    for n in names:
        steps = own["horizon"]
        if isinstance(steps, Mapping):
            steps = FOLDER_HORIZON if "folder" in own else steps[find(n).list_name]
        made.append(Task("libero", n, params={**own, "horizon": steps, **more}))
    return made


def names_asked(
    tasks: str | int | Sequence[str], order: int, folder: str | None = None
) -> list[str]:
    """Of a list of tasks: its name (10 and 90 may be numbers), or names of tasks. Of a folder all, or names."""
    if folder is not None:
        if tasks == "all":
            return list(tasks_in(folder))
        if isinstance(tasks, str | int):
            raise CurriculumError(
                f"tasks of folder {folder}: expected all or a list of names, got {tasks!r}"
            )
        return [find_in(folder, n).name for n in tasks]
    if not isinstance(tasks, str | int):
        return [find(n).name for n in tasks]
    of = str(tasks)
    return list(names_of(of)) if of in ("90", "100") else names_in_order(of, order)


def with_objects(params: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Parameters under which several tasks show the same objects: with true those of all their scenes, each
    once; with a list's name or names of tasks those of these, as a policy observes that has learned
    them; else what is said."""
    objects, folder = params.get("objects"), params.get("folder")
    known = officials() if folder is None else tasks_in(folder)
    if objects is True:
        shown = names
    elif isinstance(objects, str) or type(objects) is int:
        shown = names_asked(objects, 0, folder)
    elif isinstance(objects, Sequence) and objects and all(n in known for n in objects):
        shown = objects
    else:
        return dict(params)
    from perdure.suites.libero.problems import problem_of

    where = {} if folder is None else {"folder": folder}
    tasks = (Task("libero", n, params=where) for n in shown)
    things = {thing.name for t in tasks for thing in problem_of(located(t)).objects}
    return {**params, "objects": sorted(things)}


def names_in_order(list_name: str, order: int) -> list[str]:
    """A list of ten in one of upstream's orders."""
    if type(order) is not int or not 0 <= order < len(ORDERS):
        raise CurriculumError(f"order must be from 0 to {len(ORDERS) - 1}, got {order!r}")
    names = names_of(list_name)
    return [names[int(k)] for k in ORDERS[order]]


def _evaluation(
    name: str,
    names: Sequence[str],
    protocol: str,
    episodes: int | None,
    params: Mapping[str, Any],
) -> Curriculum:
    chosen = chosen_for(f"libero/eval-{name}", protocol, episodes, params)
    count = chosen["episodes"]
    if chosen["initial_states"] == "official" and count > COUNT:
        raise CurriculumError(
            f"libero/eval-{name}: a task has {COUNT} official initial states, so at most {COUNT} "
            f"episodes, got {count}"
        )
    made = tasks_of(names, chosen)
    return Curriculum(
        f"libero/eval-{name}",
        (evaluate(*(Exposure(t, count) for t in made)),),
        about=about_of(CURRICULA[f"eval-{name}"]),
        protocol=chosen,
    )


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
