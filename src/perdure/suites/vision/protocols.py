"""The classics of continual classification, in the three scenarios of van de Ven and Tolias (2019).

What tells the scenarios apart is what is known when a label is asked for:

``task``
    Which task it is. Labels are counted within the task, and a learner may have a head for each
    (``classifier,multihead=true``).
``domain``
    Not which task it is, and the answer is a label within the task: was it the first class or the
    second?
``class``
    Not which task it is, and the answer is the class itself, which no two tasks share.

While learning, the boundaries between tasks are known in all three. A scenario's name may end in
``-incremental``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perdure.curricula import interleave
from perdure.errors import CurriculumError, UnknownName
from perdure.suites.vision.files import CORE50_TEST
from perdure.suites.vision.sources import SOURCES
from perdure.types import Curriculum, Exposure, Task, Visibility, evaluate, learn

SCENARIOS = ("task", "domain", "class")
WAYS = ("split", "permuted", "rotated")


def permuted(k: int, name: str = "digits", **params: Any) -> Task:
    """A set in the k-th order of pixels; 0 is its own."""
    return Task("vision", name, f"permutation{k}", {"permutation": k, **params})


def rotated(degrees: float, name: str = "digits", **params: Any) -> Task:
    """A set turned by an angle."""
    return Task("vision", name, f"rotation{degrees:g}", {"rotation": degrees, **params})


def relabelled(k: int, name: str = "digits", **params: Any) -> Task:
    """A set with the k-th random labels, from 1."""
    return Task("vision", name, f"labels{k}", {"random_labels": k, **params})


def split(classes: Sequence[int], scenario: str, name: str = "digits", **params: Any) -> Task:
    """Some of a set's classes, labelled as the scenario asks."""
    relabel = {} if scenario == "class" else {"relabel": True}
    words = "-".join(map(str, classes))
    if len(words) > 40:
        words = f"{classes[0]}-to-{classes[-1]}"
    variant = f"classes{words}" if scenario == "class" else f"labels{words}"
    return Task("vision", name, variant, {"classes": list(classes), **relabel, **params})


def tasks_of(
    name: str,
    way: str,
    classes: int,
    tasks: int,
    scenario: str,
    groups: Sequence[Sequence[int]] | None = None,
    **params: Any,
) -> list[Task]:
    """The tasks that a set becomes: its classes ``split`` into groups, or all of them ``permuted`` or
    ``rotated`` by angles from 0 up to 180 degrees."""
    if way not in WAYS:
        raise UnknownName("way to make tasks", way, WAYS, f"Known are {', '.join(WAYS)}.")
    scenario = checked_scenario(scenario)
    if way == "split":
        chosen = groups or _even_groups(name, classes, tasks)
        if scenario != "class" and len({len(g) for g in chosen}) > 1:
            raise CurriculumError(
                f"vision/{name}: tasks whose labels are counted within them need as many classes each, "
                f"got {[len(g) for g in chosen]}; or scenario=class"
            )
        return [split(tuple(g), scenario, name, **params) for g in chosen]
    own = [{"offset": k * classes, "labels": tasks * classes} for k in range(tasks)]
    more = own if scenario == "class" else [{}] * tasks
    if way == "permuted":
        return [permuted(k, name, **more[k], **params) for k in range(tasks)]
    angles = [round(180 * k / tasks, 3) for k in range(tasks)]
    return [rotated(a, name, **more[k], **params) for k, a in enumerate(angles)]


def _even_groups(name: str, classes: int, tasks: int) -> list[range]:
    if tasks < 1 or classes % tasks:
        raise CurriculumError(f"vision/split-{name}: tasks must divide {classes}, got {tasks}")
    size = classes // tasks
    return [range(k * size, (k + 1) * size) for k in range(tasks)]


def checked_scenario(scenario: str) -> str:
    """A scenario's name in its short form."""
    short = scenario.removesuffix("-incremental")
    if short not in SCENARIOS:
        raise UnknownName("scenario", scenario, SCENARIOS, f"Known are {', '.join(SCENARIOS)}.")
    return short


def in_turn(name: str, tasks: Sequence[Task], epochs: int, scenario: str, about: str) -> Curriculum:
    """The tasks one after another, all evaluated before the first and after each."""
    scenario = checked_scenario(scenario)
    if not tasks:
        raise CurriculumError(f"{name}: at least one task, got none")
    blocks = [learn(Exposure(t, epochs, "epochs")) for t in tasks]
    shown = Visibility(task_ids=scenario == "task")
    evaluation = evaluate(*(Exposure(t, 1, "epochs") for t in tasks), visibility=shown)
    about += f"; {scenario}-incremental; all evaluated before the first and after each"
    return Curriculum(name, interleave(blocks, evaluation), about=about)


def _known(
    source: str,
    way: str,
    tasks: int = 5,
    epochs: int = 10,
    scenario: str = "domain",
    batch_size: int = 32,
    root: str | None = None,
    flat: bool | None = None,
) -> Curriculum:
    given: dict[str, Any] = {"batch_size": batch_size, "root": root, "flat": flat}
    params = {k: v for k, v in given.items() if v is not None}
    classes = SOURCES[source].classes
    made = tasks_of(source, way, classes, tasks, scenario, **params)
    what = f"{classes // tasks} classes at a time" if way == "split" else f"all classes, {way}"
    about = f"{SOURCES[source].about}: {what}"
    return in_turn(f"vision/{way}-{source}", made, epochs, scenario, about)


def permuted_digits(
    tasks: int = 5, epochs: int = 10, scenario: str = "domain", batch_size: int = 32
) -> Curriculum:
    """All digits in ``tasks`` orders of their pixels, one after another."""
    return _known("digits", "permuted", tasks, epochs, scenario, batch_size)


def rotated_digits(
    tasks: int = 5, epochs: int = 10, scenario: str = "domain", batch_size: int = 32
) -> Curriculum:
    """All digits at ``tasks`` angles from 0 up to 180 degrees, one after another."""
    return _known("digits", "rotated", tasks, epochs, scenario, batch_size)


def random_labels(
    tasks: int = 20, epochs: int = 20, repeats: int = 1, batch_size: int = 32
) -> Curriculum:
    """The digits with other random labels in every task, which must be memorised: a classic of lost
    plasticity (Lyle et al., 2023), because the inputs never change and no task is harder than another.

    After each task its own labels are evaluated. The sequence may come several times."""
    made = [relabelled(k + 1, batch_size=batch_size) for k in range(tasks)]
    hidden = Visibility(task_ids=False)
    blocks = []
    for task in made * repeats:
        blocks.append(learn(Exposure(task, epochs, "epochs")))
        blocks.append(evaluate(Exposure(task, 1, "epochs"), visibility=hidden))
    about = f"{SOURCES['digits'].about}: {tasks} random labellings, one after another"
    return Curriculum("vision/random-labels", tuple(blocks), about=about)


def split_digits(
    tasks: int = 5, epochs: int = 30, scenario: str = "task", batch_size: int = 32
) -> Curriculum:
    """The ten digits split into ``tasks`` groups, one after another."""
    return _known("digits", "split", tasks, epochs, scenario, batch_size)


def from_files(source: str, way: str) -> Callable[..., Curriculum]:
    """The curriculum of a set that is read from files."""
    scenario = "task" if way == "split" else "domain"
    tasks = 20 if source == "cifar100" and way == "split" else 10 if way != "split" else 5

    def made(
        tasks: int = tasks,
        epochs: int = 1,
        scenario: str = scenario,
        batch_size: int = 32,
        root: str | None = None,
        flat: bool | None = None,
    ) -> Curriculum:
        return _known(source, way, tasks, epochs, scenario, batch_size, root, flat)

    what = "classes split into groups" if way == "split" else f"all classes, {way}"
    made.__doc__ = (
        f"{SOURCES[source].about.partition(':')[0]}, {what}, one task after another.\n\n"
        f"From the files that you have, in ``root`` or $PERDURE_DATA/{source}: {SOURCES[source].expects}."
    )
    return made


def core50_sessions(
    epochs: int = 1, scenario: str = "domain", batch_size: int = 32, root: str | None = None
) -> Curriculum:
    """CORe50's new instances: its fifty objects in eight sessions, one after another.

    Sessions 3, 7 and 10 are held out, and all of them are evaluated at once: one task of the same
    objects. From the files that you have, in ``root`` or $PERDURE_DATA/core50.
    """
    params = {"batch_size": batch_size, **({"root": root} if root is not None else {})}
    sessions = [k for k in range(1, 12) if k not in CORE50_TEST]
    tasks = [Task("vision", "core50", f"session{k}", {"group": k, **params}) for k in sessions]
    scenario, about = checked_scenario(scenario), "CORe50: 50 objects, a session at a time"
    return in_turn("vision/core50-sessions", tasks, epochs, scenario, about)


def core50_classes(
    epochs: int = 1, scenario: str = "class", batch_size: int = 32, root: str | None = None
) -> Curriculum:
    """CORe50's new classes: ten objects, then five at a time; all training sessions.

    From the files that you have, in ``root`` or $PERDURE_DATA/core50.
    """
    params = {"batch_size": batch_size, **({"root": root} if root is not None else {})}
    groups = [range(10), *(range(k, k + 5) for k in range(10, 50, 5))]
    if checked_scenario(scenario) != "class":
        groups = [range(k, k + 10) for k in range(0, 50, 10)]
    tasks = tasks_of("core50", "split", 50, len(groups), scenario, groups, **params)
    return in_turn(
        "vision/core50-classes", tasks, epochs, scenario, "CORe50: new objects each time"
    )


CURRICULA: Mapping[str, Callable[..., Curriculum]] = {
    "permuted-digits": permuted_digits,
    "rotated-digits": rotated_digits,
    "split-digits": split_digits,
    "random-labels": random_labels,
    **{
        f"{way}-{source}": from_files(source, way)
        for source, ways in {
            "mnist": WAYS, "fashion-mnist": ("split",), "cifar10": ("split",), "cifar100": ("split",),
        }.items()
        for way in ways
    },
    "core50-sessions": core50_sessions,
    "core50-classes": core50_classes,
}  # fmt: skip
