"""The classics of continual classification, in the three scenarios of van de Ven and Tolias (2019).

What tells the scenarios apart is what is known when a label is asked for:

``task``
    Which task it is. Labels are counted within the task, and a learner may have a head for each
    (``classifier,multihead=true``).
``domain``
    Not which task it is, and the answer is a label within the task: was it the first class or the
    second?
``class``
    Not which task it is, and the answer is the class itself.

While learning, the boundaries between tasks are known in all three.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perdure.curricula import interleave
from perdure.errors import CurriculumError, UnknownName
from perdure.suites.vision.digits import CLASSES
from perdure.types import Curriculum, Exposure, Task, Visibility, evaluate, learn

SCENARIOS = ("task", "domain", "class")


def permuted(k: int, **params: Any) -> Task:
    """The digits in the k-th order of pixels; 0 is their own."""
    return Task("vision", "digits", f"permutation{k}", {"permutation": k, **params})


def rotated(degrees: float, **params: Any) -> Task:
    """The digits turned by an angle."""
    return Task("vision", "digits", f"rotation{degrees:g}", {"rotation": degrees, **params})


def split(classes: Sequence[int], scenario: str, **params: Any) -> Task:
    """Some of the digits, labelled as the scenario asks."""
    relabel = {} if scenario == "class" else {"relabel": True}
    name = "-".join(map(str, classes))
    variant = f"classes{name}" if scenario == "class" else f"labels{name}"
    return Task("vision", "digits", variant, {"classes": list(classes), **relabel, **params})


def permuted_digits(
    tasks: int = 5, epochs: int = 10, scenario: str = "domain", batch_size: int = 32
) -> Curriculum:
    """All digits in ``tasks`` orders of their pixels, one after another."""
    made = [permuted(k, batch_size=batch_size) for k in range(tasks)]
    return _in_turn("vision/permuted-digits", made, epochs, scenario, "Ten digits, pixels permuted")


def rotated_digits(
    tasks: int = 5, epochs: int = 10, scenario: str = "domain", batch_size: int = 32
) -> Curriculum:
    """All digits at ``tasks`` angles from 0 up to 180 degrees, one after another."""
    made = [rotated(round(180 * k / tasks, 3), batch_size=batch_size) for k in range(tasks)]
    return _in_turn("vision/rotated-digits", made, epochs, scenario, "Ten digits, turned")


def split_digits(
    tasks: int = 5, epochs: int = 30, scenario: str = "task", batch_size: int = 32
) -> Curriculum:
    """The ten digits split into ``tasks`` groups, one after another."""
    if tasks < 1 or CLASSES % tasks:
        raise CurriculumError(f"vision/split-digits: tasks must divide {CLASSES}, got {tasks}")
    size = CLASSES // tasks
    groups = [range(k * size, (k + 1) * size) for k in range(tasks)]
    made = [split(tuple(g), scenario, batch_size=batch_size) for g in groups]
    about = f"{size} digits at a time"
    return _in_turn("vision/split-digits", made, epochs, scenario, about)


def _in_turn(
    name: str, tasks: Sequence[Task], epochs: int, scenario: str, about: str
) -> Curriculum:
    if scenario not in SCENARIOS:
        raise UnknownName("scenario", scenario, SCENARIOS, f"Known are {', '.join(SCENARIOS)}.")
    if not tasks:
        raise CurriculumError(f"{name}: at least one task, got none")
    blocks = [learn(Exposure(t, epochs, "epochs")) for t in tasks]
    shown = Visibility(task_ids=scenario == "task")
    evaluation = evaluate(*(Exposure(t, 1, "epochs") for t in tasks), visibility=shown)
    about += f"; {scenario}-incremental; all evaluated before the first and after each"
    return Curriculum(name, interleave(blocks, evaluation), about=about)


CURRICULA: Mapping[str, Callable[..., Curriculum]] = {
    "permuted-digits": permuted_digits,
    "rotated-digits": rotated_digits,
    "split-digits": split_digits,
}
