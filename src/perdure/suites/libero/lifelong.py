"""LIBERO's lifelong imitation learning as curricula: tasks in turn from demonstrations, evaluated by playing.

A task's stage is learned in parts of ``every`` epochs, and after each part the task is played: the paper's
c[k, k, e]. Earlier tasks are played when the stage ends (``past=end``) or after each part as well
(``past=every``); with ``epoch_zero`` the task is played before its stage too, as in the paper.

``scale=paper`` is the published setting: pictures of two cameras, joints and gripper, sequences of ten
steps in minibatches of 32, 50 epochs, 20 episodes. ``scale=small`` is one for two cores: poses of objects
instead of pictures, single steps in minibatches of 256, fewer epochs and episodes. Anything can be given to
change it; what else is given goes to the tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perdure.curricula import about_of
from perdure.errors import CurriculumError, UnknownName
from perdure.suites.libero.phrasing import REPHRASED
from perdure.suites.libero.protocols import (
    chosen_for,
    names_asked,
    tasks_of,
    with_objects,
)
from perdure.suites.libero.tasks import located
from perdure.types import Block, Curriculum, Exposure, Task, evaluate, learn

SCALES: Mapping[str, Mapping[str, Any]] = {
    "paper": {
        "epochs": 50, "every": 5, "episodes": 20, "epoch_zero": True,
        "sequence": 10, "batch_size": 32, "size": 128, "settle": 5, "settle_gripper": "hold",
        "proprioception": ["robot0_joint_pos", "robot0_gripper_qpos"], "horizon": 600,
    },
    "small": {
        "epochs": 40, "every": 10, "episodes": 10, "epoch_zero": False,
        "sequence": 1, "batch_size": 256, "cameras": [], "objects": True, "solves": 1,
        "proprioception": ["robot0_eef_pos", "robot0_eef_quat", "robot0_gripper_qpos"],
        "horizon": 200,
    },
}  # fmt: skip
PAST = ("end", "every")


def lifelong(
    demos: str = "",
    tasks: str | int | Sequence[str] = "object",
    scale: str = "paper",
    order: int = 0,
    past: str = "end",
    pretrain: str | int | Sequence[str] = (),
    pretrain_epochs: int | None = None,
    perturb: Sequence[str] = (),
    protocol: str = "primitive",
    **params: Any,
) -> Curriculum:
    """Learn tasks one after another from demonstrations, as in LIBERO's paper, and play them while they
    are learned and after every later one.

    ``tasks`` is a list's name (spatial, object, goal, 10) in one of upstream's 21 orders, or task names.
    ``pretrain`` are tasks, or a list (90), that are learned together before all else. With ``perturb``
    (start, camera, light, words, objects, relations, goals) all tasks are played under graded perturbations when life ends, so that
    what was forgotten and what is not robust stand side by side."""
    where = "libero/lifelong"
    given = _scaled(where, scale, params)
    epochs, every, zero = (given.pop(n) for n in ("epochs", "every", "epoch_zero"))
    if past not in PAST:
        raise UnknownName("past", past, PAST, f"({', '.join(PAST)})")
    folder = params.get("folder")
    names, first = names_asked(tasks, order, folder), names_asked(pretrain, 0, folder)
    learned, before = _made(where, names, first, demos, protocol, given)
    episodes = given["episodes"]
    blocks: list[Block] = []

    def play(*played: Task) -> None:
        blocks.append(evaluate(*(Exposure(t, episodes) for t in played)))

    if zero:
        play(learned[0])
    for k, task in enumerate(learned):
        parts = _parts(where, epochs, every)
        for i, part in enumerate(parts, 1):
            blocks.append(learn(Exposure(task, part, "epochs")))
            last = i == len(parts)
            back = learned[:k] if last or past == "every" else []
            ahead = learned[k + 1 : k + 2] if last and zero else []
            play(*back, task, *ahead)
    if perturb:
        play(*(v for t in learned for v in perturbed(t, perturb)))
    pretraining: tuple[Block, ...] = ()
    if before:
        together = (Exposure(t, pretrain_epochs or epochs, "epochs") for t in before)
        pretraining = (learn(*together, parallel=True),)
    return Curriculum(where, tuple(blocks), pretraining, about=about_of(lifelong))


def multitask(
    demos: str = "",
    tasks: str | int | Sequence[str] = "object",
    scale: str = "paper",
    protocol: str = "primitive",
    **params: Any,
) -> Curriculum:
    """Learn all tasks at once from demonstrations (LIBERO's MTL), and play all of them every few epochs."""
    where = "libero/multitask"
    given = _scaled(where, scale, params)
    epochs, every, zero = (given.pop(n) for n in ("epochs", "every", "epoch_zero"))
    learned, _ = _made(
        where, names_asked(tasks, 0, params.get("folder")), [], demos, protocol, given
    )
    evaluation = evaluate(*(Exposure(t, given["episodes"]) for t in learned))
    blocks: list[Block] = [evaluation] if zero else []
    for part in _parts(where, epochs, every):
        together = (Exposure(t, part, "epochs") for t in learned)
        blocks += [learn(*together, parallel=True), evaluation]
    return Curriculum(where, tuple(blocks), about=about_of(multitask))


AXES: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "start": [{"start_shift": d} for d in (0.03, 0.06, 0.12)],
    "camera": [{"camera_shift": d} for d in (0.03, 0.06, 0.12)],
    "light": [{"light": b} for b in (0.7, 0.45, 0.25)],
    "words": [{"instruction": how} for how in REPHRASED],
    "objects": [{"distractors": k} for k in (1, 2, 3)],
    "relations": [{"rearranged": k} for k in (1, 2, 3)],
    "goals": [{"other_goal": k} for k in (1, 2, 3)],
}
"""Ways in which a task is made harder, from little to much: where the hand begins, where the camera
stands, how bright it is, in which words it is asked for; what stands there besides, what stands
elsewhere, what else is to be done there (:mod:`perdure.suites.libero.perturbations`)."""
GENERATED = ("objects", "relations", "goals")


def perturbed(task: Task, axes: Sequence[str] = ()) -> list[Task]:
    """A task's variants along these axes (all that can be seen, if none is named), such as light-2.
    A level that a task does not have, such as another place for what its sentence tells by its place,
    is left out; an axis of which it has none is refused where it was named."""
    chosen = axes or [
        a for a in AXES if task.params.get("cameras") != [] or a not in ("camera", "light")
    ]
    found: list[Task] = []
    for axis in chosen:
        if axis not in AXES:
            raise UnknownName("axis", axis, AXES, f"({', '.join(AXES)})")
        levels = [_variant(task, axis, k, change) for k, change in enumerate(AXES[axis], 1)]
        if axes and not any(levels):
            raise CurriculumError(f"{task.id} cannot be changed along {axis}: leave the axis out")
        found += filter(None, levels)
    return found


def _variant(task: Task, axis: str, level: int, change: Mapping[str, Any]) -> Task | None:
    """A level of an axis, None if the task does not have it."""
    params = {**task.params, **change}
    if axis in GENERATED:
        from perdure.suites.libero.perturbations import NotChanged, changed
        from perdure.suites.libero.problems import problem_of

        levels = (params.get(n, 0) for n in ("distractors", "rearranged", "other_goal"))
        try:
            changed(problem_of(located(task)), *levels)
        except NotChanged:
            return None
        # Official states are of the scene as it was.
        if axis != "goals" and params.get("initial_states") in ("official", "cycle"):
            params["initial_states"] = "numbered"
    return Task(task.suite, task.name, f"{axis}-{level}", params)


def robustness(
    tasks: str | int | Sequence[str] = "object",
    scale: str = "paper",
    axes: Sequence[str] = (),
    protocol: str = "primitive",
    **params: Any,
) -> Curriculum:
    """Play tasks as they are and under graded perturbations: where the hand begins, camera, light, words,
    and by the generator other things, places and goals.

    For a policy that was trained before: ``-a from_run,run=RUN,agent=A,frozen=true``. Variants are columns
    of their own, ``object-0@light-2``; what a policy reads must be as when it was trained: on states,
    ``objects`` names the tasks that it learned, if these are more."""
    where = "libero/robustness"
    given = _scaled(where, scale, params)
    for name in ("epochs", "every", "epoch_zero"):
        given.pop(name)
    played, _ = _made(where, names_asked(tasks, 0, params.get("folder")), [], None, protocol, given)
    every = [v for t in played for v in (t, *perturbed(t, axes))]
    evaluation = evaluate(*(Exposure(t, given["episodes"]) for t in every))
    return Curriculum(where, (evaluation,), about=about_of(robustness))


def _scaled(where: str, scale: str, params: Mapping[str, Any]) -> dict[str, Any]:
    if scale not in SCALES:
        raise UnknownName(f"scale of {where}", scale, SCALES, f"({', '.join(SCALES)})")
    given = {**SCALES[scale], **params}
    for name in ("epochs", "every", "episodes"):
        if type(given[name]) is not int or given[name] < 1:
            raise CurriculumError(
                f"{where}: {name} must be a whole number of at least 1, got {given[name]!r}"
            )
    return given


def _made(
    where: str,
    names: Sequence[str],
    first: Sequence[str],
    demos: str | None,
    protocol: str,
    given: Mapping[str, Any],
) -> tuple[list[Task], list[Task]]:
    """The tasks, and those learned before them, all of one observation space; with None they are only
    played."""
    if demos is not None and (not demos or not isinstance(demos, str)):
        raise CurriculumError(f"{where}: set demos to a folder that perdure demos has filled")
    if not names:
        raise CurriculumError(f"{where}: tasks must be a list's name or at least one task")
    params = {n: v for n, v in given.items() if n != "episodes"}
    params = with_objects(params, [*names, *first])
    chosen = chosen_for(where, protocol, given["episodes"], params)
    data = {} if demos is None else {"demos": demos}
    return tasks_of(names, chosen, **data), tasks_of(first, chosen, **data)


def _parts(where: str, epochs: int, every: int) -> list[int]:
    """Epochs in parts of ``every``; the last may be smaller."""
    if every > epochs:
        raise CurriculumError(f"{where}: every must be at most epochs = {epochs}, got {every}")
    return [min(every, epochs - k) for k in range(0, epochs, every)]


CURRICULA: Mapping[str, Callable[..., Curriculum]] = {
    "lifelong": lifelong,
    "multitask": multitask,
    "robustness": robustness,
}
