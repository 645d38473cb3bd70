"""The 130 official tasks, the lists of them, and the parameters they take.

A task is known by its list and its place in it: ``spatial-3`` is what others call task 3 of
``libero_spatial``. The name of its file is understood too.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.errors import CurriculumError, UnknownName
from perdure.suites._parameters import checked_parameters
from perdure.suites.libero.folders import FolderTask, find_in
from perdure.suites.libero.looks import DEFAULT, INITIAL_STATES, LOOKS
from perdure.suites.libero.phrasing import REPHRASED
from perdure.suites.libero.states import COUNT
from perdure.types import Task

TABLE = Path(__file__).parent / "tasks.txt"
LISTS = ("spatial", "object", "goal", "10", "90")
CAMERAS = ("agentview", "robot0_eye_in_hand")
"""What upstream's observations show; an arena has more: frontview, birdview, sideview, …"""
PROPRIOCEPTION: Mapping[str, int] = {
    "robot0_joint_pos": 7,
    "robot0_joint_pos_cos": 7,
    "robot0_joint_pos_sin": 7,
    "robot0_joint_vel": 7,
    "robot0_eef_pos": 3,
    "robot0_eef_quat": 4,
    "robot0_gripper_qpos": 2,
    "robot0_gripper_qvel": 2,
}
"""Names and lengths."""
HORIZONS = {"spatial": 220, "object": 280, "goal": 300, "10": 520, "90": 400}
"""Steps that evaluations of vision-language-action models give: a little more than the longest
human demonstration took."""


@dataclass(frozen=True)
class Official:
    """One of the 130."""

    name: str
    folder: str
    file: str
    """Without its ending."""

    @property
    def list_name(self) -> str:
        """Which list it is on."""
        return self.name.rpartition("-")[0]

    @property
    def scene(self) -> str:
        """``KITCHEN_SCENE3``; nothing where the list has one scene."""
        head, found, rest = self.file.partition("SCENE")
        return head + found + rest.partition("_")[0] if found else ""

    @property
    def instruction(self) -> str:
        """As benchmarks have it: the file's name, without the scene."""
        return self.file.removeprefix(self.scene).strip("_").replace("_", " ")


@functools.cache
def officials() -> Mapping[str, Official]:
    """All tasks by name, in upstream's order."""
    rows = (line.split() for line in TABLE.read_text().splitlines())
    return {name: Official(name, folder, file) for name, folder, file in rows}


def names_of(list_name: str) -> tuple[str, ...]:
    """The tasks of a list: spatial, object, goal, 10, 90; or 100, which is 90 and 10."""
    if list_name == "100":
        return (*names_of("90"), *names_of("10"))
    if list_name not in LISTS:
        raise UnknownName("list of LIBERO tasks", list_name, (*LISTS, "100"))
    return tuple(n for n, o in officials().items() if o.list_name == list_name)


def find(name: str) -> Official:
    """A task by its name or its file's."""
    known = officials()
    if name in known:
        return known[name]
    for official in known.values():
        if official.file == name:
            return official
    raise UnknownName("libero task", name, (*known, *(o.file for o in known.values())))


def located(task: Task) -> Official | FolderTask:
    """The official task of this name, or that of the folder that its parameters name."""
    folder = task.params.get("folder")
    if folder is None:
        return find(task.name)
    if not isinstance(folder, str) or not folder:
        raise CurriculumError(f"{task.id}: folder must be the path of a folder, got {folder!r}")
    return find_in(folder, task.name)


CHOICES: dict[str, tuple[Any, ...]] = {
    "initial_states": ("numbered", "official", "cycle", "random"),
    "orientation": ("upright", "upstream", "rotated"),
    "settle_gripper": ("hold", "open"),
    "instruction": ("benchmark", "file", *REPHRASED),
    "look": tuple(LOOKS),
    "rendering": ("exact", "fast"),
    "pairing": ("next", "published"),
    "rearranged": (0, 1, 2, 3),
    "other_goal": (0, 1, 2, 3),
    "solves": (1, 3),
}


@dataclass(frozen=True)
class Settings:
    """The parameters of a task."""

    horizon: int = 600
    """Steps of an episode, not counting those in which it settles. 600 in the paper."""
    settle: int = 5
    """Steps at first in which the arm is told to stay and things fall into place: 5 in the paper's
    evaluation, 10 in those of vision-language-action models."""
    settle_gripper: str = "hold"
    """``hold``: the gripper is told nothing then; ``open``: to open."""
    initial_states: str = INITIAL_STATES[DEFAULT]
    """``numbered``: episode k of an evaluation begins in what number k, as a seed, draws from the
    task file, the same for everybody, and one of learning in what its own seed draws; ``official``: in the k-th of the 50 published states, and there is no 51st;
    ``cycle``: after the last of them comes the first; ``random``: drawn from the task file by the
    episode's own seed. If nothing is said it goes by the look: numbered or official."""
    initial_state: int | None = None
    """Always the one of this number."""
    fixture_seed: int | None = None
    """Where fixtures stand, to a centimetre or so, is no part of a state. This seed decides it; the
    episode's does if there is none."""
    cameras: tuple[str, ...] = CAMERAS
    """Whose pictures are observed."""
    size: int = 128
    """Width and height of a picture."""
    orientation: str = "upright"
    """``upright``; ``upstream``: as OpenGL has it, upside down; ``rotated``: upstream's turned by
    180 degrees, as most models are given it: upright and mirrored."""
    proprioception: tuple[str, ...] = tuple(PROPRIOCEPTION)
    """What is observed of the robot."""
    objects: bool | tuple[str, ...] = False
    """Whether the poses of objects are observed: of all that the scene has, or of those named. One that
    is named and not there is observed as zeros, so that tasks of different scenes look alike."""
    privileged: bool = False
    """Whether the simulation's whole state is observed, as experts need it."""
    instruction: str = "benchmark"
    """``benchmark``: from the name of the task's file; ``file``: the one in it, which differs in 29
    of the 130; ``polite``, ``synonyms`` or ``reworded``: the benchmark's in other words."""
    start_shift: float = 0.0
    """How far the hand is moved, in metres, before the episode begins: somewhere to the side or up."""
    camera_shift: float = 0.0
    """How far the cameras that stand in the room are moved, in metres, in any direction."""
    light: float = 1.0
    """How bright the lights are; 1 is as the look has them."""
    distractors: int = 0
    """How many things more stand there, which the task is not about."""
    rearranged: int = 0
    """Things stand elsewhere: one that the task is not about (1), all of those (2), and what is to be
    moved too (3)."""
    other_goal: int = 0
    """Another goal in the same scene: another thing to the same place (1), the same thing to another
    place (2), both (3). The instruction asks for it."""
    look: str = DEFAULT
    """Where bodies and their looks come from: ``primitive``, our own object library, or
    ``official``, the published meshes, which are an extra."""
    rendering: str = "exact"
    """``exact``: pictures as the look has them, in the official one upstream's to the pixel;
    ``fast``: with fewer faces, smaller textures and unsmoothed edges, several times as fast."""
    solves: int = 3
    """How often the constraints are solved in a physics step: 3 as upstream, or 1."""
    folder: str | None = None
    """Where the task's file is, if it is none of the 130: see :mod:`perdure.suites.libero.folders`."""
    demos: str = ""
    """The folder of demonstrations that are the task's data."""
    pairing: str = "next"
    """Which action goes with what is seen, in files that show what was seen after each action, as the published
    ones do: the ``next`` one, which was taken upon it; or the one before, beside which it is ``published``."""
    sequence: int = 1
    """Steps of a sequence of them; with 1, single steps."""
    batch_size: int = 64
    noise: float = 0.1
    """Standard deviation of what is added to an expert's actions when it demonstrates."""


REACHES = {"noise": 1, "start_shift": 0.3, "camera_shift": 1, "light": 2}
"""Numbers from 0 to their most."""
INTEGERS = {"horizon": 1, "settle": 0, "size": 8, "sequence": 1, "batch_size": 1, "distractors": 0}
"""Whole numbers and their least."""
LISTED = {"cameras": None, "proprioception": tuple(PROPRIOCEPTION)}
"""Lists of names, and the names if they are known before the scene is."""


def settings(task: Task) -> Settings:
    """A task's parameters, checked."""
    located(task)
    given = checked_parameters(task, Settings, CHOICES, INTEGERS)
    own = given.get("folder") is not None
    # Of a task of one's own there are no official states.
    starts = given.setdefault("initial_states", "random") if own else ""
    if own and (starts != "random" or given.get("initial_state") is not None):
        raise CurriculumError(
            f"{task.id}: a task of a folder has no official initial states: they are drawn by the "
            "seed (initial_states=random)"
        )
    for name, most in (("initial_state", COUNT), ("fixture_seed", 2**32)):
        value = given.get(name)
        if value is not None and (type(value) is not int or not 0 <= value < most):
            raise CurriculumError(
                f"{task.id}: {name} must be a whole number from 0 to {most - 1}, got {value!r}"
            )
    for name, choices in LISTED.items():
        if name in given:
            given[name] = _names(task, name, given[name], choices)
    if not isinstance(given.get("privileged", False), bool):
        raise CurriculumError(f"{task.id}: privileged must be true or false")
    shown = given.get("objects", False)
    if not isinstance(shown, (bool, list, tuple)):
        raise CurriculumError(
            f"{task.id}: objects must be true or false, or a list of names, got {shown!r}"
        )
    if not isinstance(shown, bool):
        given["objects"] = _names(task, "objects", shown, None)
    given.setdefault("initial_states", INITIAL_STATES[given.get("look", DEFAULT)])
    for name, top in REACHES.items():
        value = given.get(name, 0.0)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= top:
            raise CurriculumError(
                f"{task.id}: {name} must be a number from 0 to {top}, got {value!r}"
            )
    if not isinstance(given.get("demos", ""), str):
        raise CurriculumError(f"{task.id}: demos must be the name of a folder")
    made = Settings(**given)
    if made.initial_state is not None and made.initial_states == "random":
        raise CurriculumError(
            f"{task.id}: random initial_states have no numbers, so none is initial_state"
        )
    if (made.distractors or made.rearranged) and made.initial_states in ("official", "cycle"):
        raise CurriculumError(
            f"{task.id}: official initial states do not say where {made.distractors or 'moved'} things "
            "stand: with distractors or rearranged, set initial_states to numbered"
        )
    if not (made.cameras or made.proprioception or made.objects):
        raise CurriculumError(f"{task.id}: cameras, proprioception or objects: observe something")
    return made


def _names(task: Task, name: str, value: Any, known: tuple[str, ...] | None) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise CurriculumError(f"{task.id}: {name} must be a list of names, got {value!r}")
    for item in value:
        if not isinstance(item, str):
            raise CurriculumError(f"{task.id}: {name} must be a list of names, got {value!r}")
        if known is not None and item not in known:
            raise UnknownName(f"{name} of {task.id}", item, known)
    if len(set(value)) < len(value):
        raise CurriculumError(f"{task.id}: {name} names something twice: {value!r}")
    return tuple(value)
