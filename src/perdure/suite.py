"""What a suite is: a family of tasks with its environments or data and its curricula."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from perdure.errors import CurriculumError, SpecError, UnknownName
from perdure.names import join_task_id
from perdure.protocol import EvalProtocol
from perdure.types import Array, Curriculum, Examples, Setup, Task

if TYPE_CHECKING:
    import gymnasium


class Data(Protocol):
    """What a task offers to data exposures."""

    batch_size: int

    def __len__(self) -> int: ...

    def batch(self, indices: Array) -> Examples:
        """The examples at these indices."""


class Demonstration(NamedTuple):
    """A successful episode as it is kept on disk."""

    arrays: Mapping[str, Array]
    """By path, as in ``obs/joint_states``; a row a step. ``actions`` is among them."""
    attributes: Mapping[str, Any]


class Suite(Protocol):
    """A family of tasks: its environments or data and its protocols. Subclass it.

    Built-in suites are modules of ``perdure.suites`` with a module-level ``suite``; plugins use
    the entry-point group ``perdure.suites``.
    """

    name: str
    reset_options: bool = False
    """Whether environments read ``options={"trial_seed": …, "episode": …, "instance": …}`` (see
    :class:`Episode`) when they are reset: what a trial's episodes share is to be drawn from
    ``trial_seed``, all else from the seed."""

    measure: str = ""
    """What its environments are scored by, ``success`` or ``return``, where that is the same for all and
    known before any is played."""

    def tasks(self) -> Sequence[Task]:
        """The tasks to list and check; an open family lists examples."""
        ...

    def env(self, task: Task) -> gymnasium.Env[Any, Any]:
        """A new environment; its ``reset(seed=s)`` (and the trial's, see ``reset_options``) alone
        decides an episode."""
        raise CurriculumError(f"{task.id} has no environment: give it epochs or batches")

    def about(self, task: Task) -> str:
        """What a task is, in a line, for ``perdure ls tasks``. By default its first instruction."""
        return next(iter(phrasings_of(self, task)), "")

    def has_env(self, task: Task) -> bool:
        """Whether the task can be played. By default, whether the suite has environments at all."""
        return type(self).env is not Suite.env

    def instructions(self, task: Task) -> Sequence[str]:
        """The task's instruction in one or several phrasings; none by default."""
        return ()

    def render_env(self, task: Task) -> gymnasium.Env[Any, Any]:
        """A new environment that plays the same episodes and, if it can be seen at all, renders
        them as ``rgb_array``."""
        return self.env(task)

    def batched_env(self, task: Task, count: int) -> BatchedEnv | None:
        """``count`` environments stepped by one call, or None: then they are made by ``env``."""
        return None

    def expert(self, setup: Setup) -> Any:
        """The :class:`~perdure.agent.Agent` that plays the suite's scripted experts: ``perdure run -a expert``."""
        raise SpecError(f"suite {self.name} has no scripted experts")

    def demonstration_tasks(self, name: str, params: Mapping[str, Any]) -> Sequence[Task]:
        """The tasks that ``perdure demos SUITE/NAME`` collects demonstrations of: a list's, or one.
        ``params`` are ``noise``, ``cameras``, ``size`` and ``look``, where they were given."""
        raise SpecError(f"suite {self.name} has no scripted experts to demonstrate anything")

    def demonstrate(self, task: Task, seed: int) -> Demonstration | None:
        """Let the expert play the episode of a seed; None if it fails."""
        raise SpecError(f"suite {self.name} has no scripted experts to demonstrate anything")

    def demonstration_file(self, task: Task) -> tuple[str, Mapping[str, Any]]:
        """Where a task's demonstrations are kept, below the folder, and the file's attributes."""
        raise SpecError(f"suite {self.name} has no scripted experts to demonstrate anything")

    def replay(self, task: Task, shown: Demonstration) -> bool:
        """Whether a demonstration's actions, from its initial state, succeed again."""
        raise SpecError(f"suite {self.name} cannot play demonstrations again")

    def data(self, task: Task, learning: bool) -> Data:
        """The task's training or held-out data."""
        raise CurriculumError(f"{task.id} has no data: give it episodes or steps")

    def data_folder(self) -> Path | None:
        """Where the data that the suite reads are on this machine; None if it reads none. An error
        says how they can be had. ``perdure doctor`` shows it."""
        return None

    def task(self, name: str) -> Task:
        """The task of this name (``name`` or ``name@variant``); UnknownName otherwise."""
        known = {join_task_id("", t.name, t.variant): t for t in self.tasks()}
        if name not in known:
            raise UnknownName(f"{self.name} task", name, known)
        return known[name]

    def task_to_check(self, task: Task) -> Task:
        """The task as ``perdure check`` plays it: the same, unless that would be costly."""
        return task

    def spaces(self, task: Task) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
        """Observation and action space of the task with its own parameters."""
        env = self.env(task)
        try:
            return env.observation_space, env.action_space
        finally:
            env.close()

    def curricula(self) -> Mapping[str, Callable[..., Curriculum]]:
        """Curricula by name. A function that takes ``seed`` gets one of its own per lifetime."""
        return {}

    def protocols(self) -> Mapping[str, EvalProtocol]:
        """The evaluation protocols by name, if any: ``perdure eval SUITE --protocol NAME``."""
        return {}

    def aliases(self) -> Mapping[str, str]:
        """Other names of what ``perdure eval`` evaluates: short ones of lists, upstream's of tasks."""
        return {}

    def lerobot_observations(self, seen: Mapping[str, Array]) -> Mapping[str, Array]:
        """An episode's observations by the names that LeRobot's own datasets of these tasks give them, with
        what these make of them; as they are by default."""
        return seen

    def demonstrator(self) -> tuple[str, Mapping[str, Any]]:
        """An agent that solves the suite's tasks, by its name, and the parameters with which tasks show
        it what it needs; no name if there is none. ``perdure selftest`` replays what it does."""
        return "", {}

    def code(self, task: Task) -> Sequence[Any]:
        """What a task executes that the suite's own module does not import: modules by name, files as paths,
        classes or functions; and what it learns from, as a mapping from names to digests. Lifetimes of
        different code or data are not mixed."""
        return ()

    def window(self, task: Task) -> int | None:
        """For a continuing task: a row is written every so many steps. None if episodic."""
        return None


def phrasings_of(suite: Suite, task: Task) -> tuple[str, ...]:
    """A task's instruction in all its phrasings."""
    said = suite.instructions(task)
    if isinstance(said, str):
        raise CurriculumError(
            f"suite {suite.name}: instructions({task.id}) gave the text {said!r}, expected a sequence of "
            "phrasings: give [text]"
        )
    return tuple(said)


class Episode(NamedTuple):
    """What decides an episode."""

    seed: int
    trial_seed: int
    """Equal for all episodes of a trial; the seed itself where a trial is one episode."""
    number: int
    """Which episode of its exposure it is."""
    instance: int | None = None
    """In evaluation: which trial of its exposure it is of. A suite that has a list of instances (goals,
    initial states) plays them in turn by it, so that each is evaluated as often. None where the agent
    learns or adapts: there ``trial_seed`` draws one."""

    @classmethod
    def alone(cls, seed: int) -> Episode:
        """The episode of a seed that is a trial of its own."""
        return cls(seed, seed, 0)

    @property
    def options(self) -> dict[str, Any]:
        """As ``reset`` gets it from a suite with ``reset_options``."""
        return {
            "trial_seed": self.trial_seed,
            "episode": self.number,
            "instance": self.instance,
        }


OF_SLOTS = "batched_env.step: expected a list with the observation of each slot, got a dict for all of them"
"""What is said of the other way to put dicts side by side."""


class BatchedEnv(Protocol):
    """Several environments of one task, stepped by one call. Optional: a suite that can do this
    faster than one environment after another returns it from :meth:`Suite.batched_env`."""

    def reset(self, slot: int, episode: Episode) -> Any:
        """Begin an episode in one slot; its first observation."""

    def expect(self, episodes: Sequence[Episode]) -> None:
        """Which episodes come next, should it help to know. Not all of them need come."""

    def step(
        self, slots: Sequence[int], actions: Sequence[Any]
    ) -> tuple[Any, list[float], list[bool], list[bool], Mapping[int, Mapping[str, Any]]]:
        """Step some of the slots: observations (a new array each time, a row a slot; a list of them where they are
        dicts or tuples), finite rewards, terminated, truncated, and infos by row where there are any. Actions have been checked;
        those of a Discrete space are Python ints."""

    def close(self) -> None:
        """Let go of everything."""


class AsyncBatchedEnv(Protocol):
    """A :class:`BatchedEnv` whose steps may begin before they are asked for. Where several tasks run
    side by side, all of them are started before the first is stepped, so that their work can
    overlap."""

    def step_async(self, slots: Sequence[int], actions: Sequence[Any]) -> None:
        """The next ``step`` will be with these slots and actions."""


class SkippingBatchedEnv(Protocol):
    """A :class:`BatchedEnv` that need not draw what nobody looks at."""

    def skip_pictures(self, slots: Sequence[int]) -> None:
        """In the next step, pictures of these slots may be left black; all else is as ever."""


def is_restorable(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether an environment is :class:`Restorable`."""
    inner = env.unwrapped
    return hasattr(inner, "save_state") and hasattr(inner, "load_state")


class Restorable(Protocol):
    """An environment whose unwrapped form can save itself. Without it, a block resumed in
    mid-episode replays the episode's actions."""

    def save_state(self) -> dict[str, Array]: ...

    def load_state(self, state: Mapping[str, Array]) -> None: ...
