"""Meta-World's protocols and Continual World's as curricula.

Budgets default to the published ones, which are large; every one is a parameter. Evaluation plays
the same episodes, and so the same goals, each time, and counts them all.

The preset ``paper`` is the first release's: 150 steps, and one fixed goal in the multi-task
benchmarks. ``current`` is today's: 500 steps, and 50 goals for each task. In the multi-task
benchmarks ``horizon`` overrides the preset's, for smaller studies.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.curricula import interleave, tasks_in_turn
from perdure.errors import CurriculumError, UnknownName
from perdure.suites.metaworld.tasks import (
    CW10,
    GOALS,
    ML10_TEST,
    ML10_TRAIN,
    ML45_TEST,
    ML45_TRAIN,
    MT10,
    NAMES,
)
from perdure.types import Block, Curriculum, Exposure, Task, Visibility, adapt, evaluate, learn

PRESETS: dict[str, dict[str, Any]] = {
    "current": {"horizon": 500, "goals": "set"},
    "paper": {"horizon": 150, "goals": "fixed"},
}


def mt1(
    task: str = "reach",
    preset: str = "current",
    steps: int = 2_000_000,
    rounds: int = 10,
    episodes: int = 50,
    goal_seed: int = 0,
    horizon: int | None = None,
) -> Curriculum:
    """One task with many goals, which are observed."""
    return _multi("mt1", "MT1", [task], preset, Budget(steps, rounds, episodes), goal_seed, horizon)


def mt(
    tasks: Sequence[str] = ("reach", "drawer-close", "window-close"),
    preset: str = "current",
    steps: int = 100_000,
    rounds: int = 10,
    episodes: int = 20,
    goal_seed: int = 0,
    horizon: int | None = None,
    one_hot: bool = True,
) -> Curriculum:
    """Any tasks side by side, each with its goals of MT1; steps are for each task.

    Without the one-hot, only agents that read the task's name can tell tasks apart.
    """
    return _multi(
        "mt", "MT1", tasks, preset, Budget(steps, rounds, episodes), goal_seed, horizon, one_hot
    )


def mt10(
    preset: str = "current",
    steps: int = 2_000_000,
    rounds: int = 10,
    episodes: int = 50,
    goal_seed: int = 0,
    horizon: int | None = None,
) -> Curriculum:
    """Ten tasks side by side, each with a one-hot; steps are for each task."""
    return _multi("mt10", "MT10", MT10, preset, Budget(steps, rounds, episodes), goal_seed, horizon)


def mt50(
    preset: str = "current",
    steps: int = 2_000_000,
    rounds: int = 10,
    episodes: int = 50,
    goal_seed: int = 0,
    horizon: int | None = None,
) -> Curriculum:
    """All fifty tasks side by side, each with a one-hot; steps are for each task."""
    return _multi(
        "mt50", "MT50", NAMES, preset, Budget(steps, rounds, episodes), goal_seed, horizon
    )


def ml1(
    task: str = "reach",
    preset: str = "current",
    steps: int = 2_000_000,
    rounds: int = 1,
    shots: int = 10,
    episodes: int = 3,
    goals: int = 10,
    goal_seed: int = 0,
    trial: int = 10,
) -> Curriculum:
    """Learn to adapt to goals of one task: 50 to learn from, others to adapt to.

    Of the 50 test goals the current protocol takes 40, the paper 10.
    """
    names = [task], [task]
    budget = MetaBudget(steps, rounds, episodes, trial, shots, goals)
    return _meta("ml1", "ML1", names, preset, budget, goal_seed)


def ml10(
    preset: str = "current",
    steps: int = 2_000_000,
    rounds: int = 1,
    shots: int = 10,
    episodes: int = 3,
    goals: int = 10,
    goal_seed: int = 0,
    trial: int = 10,
) -> Curriculum:
    """Learn ten tasks, adapt to five others."""
    names = ML10_TRAIN, ML10_TEST
    budget = MetaBudget(steps, rounds, episodes, trial, shots, goals)
    return _meta("ml10", "ML10", names, preset, budget, goal_seed)


def ml45(
    preset: str = "current",
    steps: int = 2_000_000,
    rounds: int = 1,
    shots: int = 10,
    episodes: int = 3,
    goals: int = 10,
    goal_seed: int = 0,
    trial: int = 10,
) -> Curriculum:
    """Learn forty-five tasks, adapt to the five others."""
    names = ML45_TRAIN, ML45_TEST
    budget = MetaBudget(steps, rounds, episodes, trial, shots, goals)
    return _meta("ml45", "ML45", names, preset, budget, goal_seed)


def cw10(steps: int = 1_000_000, episodes: int = 10, horizon: int = 200) -> Curriculum:
    """Continual World: ten tasks in turn."""
    return _in_turn("cw10", CW10, steps, episodes, horizon)


def cw20(steps: int = 1_000_000, episodes: int = 10, horizon: int = 200) -> Curriculum:
    """Continual World: its ten tasks in turn, twice."""
    return _in_turn("cw20", CW10, steps, episodes, horizon, repeats=2)


def sequence(
    tasks: Sequence[str] = ("drawer-close", "window-close", "button-press-topdown"),
    steps: int = 50_000,
    episodes: int = 20,
    horizon: int = 200,
    repeats: int = 1,
) -> Curriculum:
    """Any tasks in turn."""
    return _in_turn("sequence", _known("sequence", tasks), steps, episodes, horizon, repeats)


def cw10_bc(
    epochs: int = 25, demonstrations: int = 40, episodes: int = 5, horizon: int = 200
) -> Curriculum:
    """Lifelong imitation: Continual World's ten tasks in turn from expert demonstrations, evaluated
    by playing them."""
    tasks = _numbered(CW10, horizon=horizon, demonstrations=demonstrations)
    blocks = [learn(Exposure(t, epochs, "epochs")) for t in tasks]
    evaluation = evaluate(*(Exposure(t, episodes) for t in tasks), parallel=True)
    return Curriculum("metaworld/cw10-bc", interleave(blocks, evaluation), about=_about(cw10_bc))


def mt10_bc(
    epochs: int = 30, demonstrations: int = 40, episodes: int = 20, horizon: int = 200
) -> Curriculum:
    """Imitation of ten experts side by side, evaluated by playing on unseen goals."""
    tasks = _numbered(MT10, horizon=horizon, demonstrations=demonstrations)
    block = learn(*(Exposure(t, epochs, "epochs") for t in tasks), parallel=True)
    evaluation = evaluate(*(Exposure(t, episodes) for t in tasks), parallel=True)
    return Curriculum("metaworld/mt10-bc", interleave([block], evaluation), about=_about(mt10_bc))


def _multi(
    name: str,
    benchmark: str,
    names: Sequence[str],
    preset: str,
    budget: Budget,
    goal_seed: int,
    horizon: int | None,
    one_hot: bool = True,
) -> Curriculum:
    params = _preset(name, preset)
    if horizon is not None:
        params["horizon"] = horizon
    if params["goals"] == "set":
        params |= {"benchmark": benchmark, "benchmark_seed": goal_seed}
    names = _known(name, names)
    if one_hot and len(names) > 1:
        tasks = _numbered(names, **params)
    else:
        tasks = [_task(n, **params) for n in names]
    blocks = _rounds(name, tasks, budget.steps, budget.rounds)
    evaluation = evaluate(*(Exposure(t, budget.episodes) for t in tasks), parallel=True)
    return Curriculum(
        f"metaworld/{name}", interleave(blocks, evaluation), about=_about(CURRICULA[name])
    )


@dataclass(frozen=True)
class Budget:
    """How much is learned and evaluated."""

    steps: int
    """Of each training task."""
    rounds: int
    episodes: int
    """Episodes of each evaluation."""


@dataclass(frozen=True)
class MetaBudget(Budget):
    """How much a meta-learner learns and adapts."""

    trial: int
    """Consecutive episodes with the same hidden goal in meta-training."""
    shots: int
    """Episodes to adapt in."""
    goals: int
    """Test goals of each test task."""


def _meta(
    name: str,
    benchmark: str,
    names: tuple[Sequence[str], Sequence[str]],
    preset: str,
    budget: MetaBudget,
    goal_seed: int,
) -> Curriculum:
    if not 1 <= budget.goals <= GOALS:
        raise CurriculumError(
            f"metaworld/{name}: goals must be from 1 to {GOALS}, got {budget.goals}"
        )
    params = {
        **_preset(name, preset),
        "goals": "set",
        "benchmark_seed": goal_seed,
        "hide_goal": True,
    }
    learned, unseen = (_known(name, n) for n in names)
    tasks = [_task(n, benchmark=f"{benchmark}-train", **params) for n in learned]
    # To adapt is to find out where one goal is, so each goal is a variant and a block of its own.
    # Who it is that is tested is hidden; rewards are not: a recurrent policy reads them.
    probes = [
        adapt(
            Exposure(task, budget.shots, episodes_per_trial=budget.shots),
            then=[Exposure(task, budget.episodes, episodes_per_trial=budget.episodes)],
            visibility=Visibility(task_ids=False),
            then_visibility=Visibility(rewards=True, task_ids=False),
        )
        for n in unseen
        for g in range(budget.goals)
        for task in [
            Task(
                "metaworld", n, f"goal{g}", {"benchmark": f"{benchmark}-test", "goal": g, **params}
            )
        ]
    ]
    blocks: list[Block] = []
    for block in _rounds(name, tasks, budget.steps, budget.rounds, budget.trial):
        blocks += [block, *probes]
    return Curriculum(f"metaworld/{name}", tuple(blocks), about=_about(CURRICULA[name]))


def _rounds(
    name: str, tasks: Sequence[Task], steps: int, rounds: int, trial: int = 1
) -> list[Block]:
    if not 1 <= rounds <= steps:
        raise CurriculumError(
            f"metaworld/{name}: rounds must be from 1 to the number of steps, got {rounds}"
        )
    whole, rest = divmod(steps, rounds)
    return [
        learn(*(Exposure(t, whole + (k < rest), "steps", trial) for t in tasks), parallel=True)
        for k in range(rounds)
    ]


def _in_turn(
    name: str, names: Sequence[str], steps: int, episodes: int, horizon: int, repeats: int = 1
) -> Curriculum:
    return tasks_in_turn(
        f"metaworld/{name}",
        _numbered(names, horizon=horizon),
        amount=steps,
        unit="steps",
        episodes=episodes,
        repeats=repeats,
        about=_about(CURRICULA[name]),
    )


def _numbered(names: Sequence[str], **params: Any) -> list[Task]:
    """Tasks that say by a one-hot which of them they are."""
    return [_task(n, one_hot=[k, len(names)], **params) for k, n in enumerate(names)]


def _task(name: str, **params: Any) -> Task:
    return Task("metaworld", name, params=params)


def _known(curriculum: str, names: object) -> list[str]:
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise CurriculumError(
            f"metaworld/{curriculum}: tasks must be a list of names, as in [reach, push] with each "
            f"name in quotes, got {names!r}"
        )
    for name in names:
        if name not in NAMES:
            raise UnknownName("metaworld task", str(name), NAMES)
    if len(set(names)) < len(names):
        raise CurriculumError(f"metaworld/{curriculum}: a task is named twice; use repeats")
    return list(names)


def _preset(curriculum: str, preset: str) -> dict[str, Any]:
    if preset not in PRESETS:
        raise UnknownName(f"preset of metaworld/{curriculum}", str(preset), PRESETS)
    return dict(PRESETS[preset])


def _about(builder: Callable[..., Curriculum]) -> str:
    return (inspect.getdoc(builder) or "").split("\n\n")[0].replace("\n", " ")


CURRICULA: Mapping[str, Callable[..., Curriculum]] = {
    "mt1": mt1,
    "mt": mt,
    "mt10": mt10,
    "mt50": mt50,
    "ml1": ml1,
    "ml10": ml10,
    "ml45": ml45,
    "cw10": cw10,
    "cw20": cw20,
    "sequence": sequence,
    "cw10-bc": cw10_bc,
    "mt10-bc": mt10_bc,
}
