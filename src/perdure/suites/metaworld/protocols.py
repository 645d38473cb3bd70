"""Meta-World's protocols and Continual World's as curricula.

Budgets default to the published ones, which are large; every one is a parameter. Evaluation plays
the same episodes each time and counts them all; where goals are the official 50, its k-th episode is of
the k-th goal, so that 50 episodes are one of each.

The preset ``paper`` is the first release's: 150 steps, and one fixed goal in the multi-task
benchmarks. ``current`` is today's: 500 steps, and 50 goals for each task. ``horizon`` overrides the
preset's, for smaller studies.

Every protocol takes ``observation=image`` with ``size`` and ``camera``: pictures in place of the state,
and beside them the one-hot where there is one.

In the benchmarks of meta-learning goals are hidden everywhere, and test tasks do not say who they are.
After each round of learning every test task is evaluated as the agent is; then it gets ``shots``
episodes to adapt in, is evaluated, and what it taught is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perdure.curricula import (
    MetaBudget,
    about_of,
    interleave,
    meta_learning,
    online_meta_learning,
    tasks_in_turn,
)
from perdure.seeds import rng_for
from perdure.suites.metaworld.protocol_parts import (
    NOTHING_ELSE,
    GoalSettings,
    Seen,
    budget_of,
    known,
    numbered,
    shows,
    task_named,
)
from perdure.suites.metaworld.tasks import (
    CW10,
    GOALS,
    ML10_TEST,
    ML10_TRAIN,
    ML25_TEST,
    ML45_TEST,
    ML45_TRAIN,
    MT10,
    MT25,
    NAMES,
)
from perdure.types import Curriculum, Exposure, Task, evaluate, learn


@shows
def mt1(
    task: str = "reach",
    preset: str = "current",
    steps: int = 2_000_000,
    rounds: int = 10,
    episodes: int = 50,
    goal_seed: int = 0,
    horizon: int | None = None,
    seen: Seen = NOTHING_ELSE,
) -> Curriculum:
    """One task with many goals, which are observed."""
    budget = budget_of(steps, rounds, episodes)
    return _multi("mt1", "MT1", [task], budget, GoalSettings(preset, goal_seed, horizon, seen))


@shows
def mt(
    tasks: Sequence[str] = ("reach", "drawer-close", "window-close"),
    preset: str = "current",
    steps: int = 100_000,
    rounds: int = 10,
    episodes: int = 20,
    goal_seed: int = 0,
    horizon: int | None = None,
    one_hot: bool = True,
    seen: Seen = NOTHING_ELSE,
) -> Curriculum:
    """Any tasks side by side, each with its goals of MT1; steps are for each task.

    Without the one-hot, only agents that read the task's name can tell tasks apart.
    """
    budget = budget_of(steps, rounds, episodes)
    settings = GoalSettings(preset, goal_seed, horizon, seen)
    return _multi("mt", "MT1", tasks, budget, settings, one_hot)


def _multi_task(name: str, tasks: Sequence[str], about: str) -> Callable[..., Curriculum]:
    """A benchmark of fixed tasks side by side."""

    @shows
    def protocol(
        preset: str = "current",
        steps: int = 2_000_000,
        rounds: int = 10,
        episodes: int = 50,
        goal_seed: int = 0,
        horizon: int | None = None,
        seen: Seen = NOTHING_ELSE,
    ) -> Curriculum:
        budget = budget_of(steps, rounds, episodes)
        settings = GoalSettings(preset, goal_seed, horizon, seen)
        return _multi(name, name.upper(), tasks, budget, settings)

    protocol.__doc__ = f"{about} side by side, each with a one-hot; steps are for each task."
    return protocol


def _meta_learning(
    name: str, train: Sequence[str], test: Sequence[str], about: str
) -> Callable[..., Curriculum]:
    """A benchmark of tasks to learn from and others to adapt to."""

    @shows
    def protocol(
        preset: str = "current",
        steps: int = 2_000_000,
        rounds: int = 1,
        shots: int = 10,
        episodes: int = 1,
        goals: int = GOALS,
        goal_seed: int = 0,
        trial: int = 20,
        horizon: int | None = None,
        seen: Seen = NOTHING_ELSE,
    ) -> Curriculum:
        budget = MetaBudget(steps, rounds, trial, shots, episodes)
        settings = GoalSettings(preset, goal_seed, horizon, seen, goals)
        return _meta(name, train, test, budget, settings)

    protocol.__doc__ = about
    return protocol


@shows
def ml1(
    task: str = "reach",
    preset: str = "current",
    steps: int = 2_000_000,
    rounds: int = 1,
    shots: int = 10,
    episodes: int = 1,
    goals: int | None = None,
    goal_seed: int = 0,
    trial: int = 20,
    horizon: int | None = None,
    seen: Seen = NOTHING_ELSE,
) -> Curriculum:
    """Learn to adapt to goals of one task: 50 to learn from, others to adapt to, 10 in the paper and 50
    today."""
    budget = MetaBudget(steps, rounds, trial, shots, episodes)
    if goals is None:
        goals = 10 if preset == "paper" else GOALS
    settings = GoalSettings(preset, goal_seed, horizon, seen, goals)
    return _meta("ml1", [task], [task], budget, settings)


@shows
def online(
    tasks: Sequence[str] = MT10,
    preset: str = "current",
    steps: int = 500_000,
    chunk: int = 50_000,
    shots: int = 10,
    episodes: int = 1,
    goals: int = 10,
    threshold: float = 0.8,
    goal_seed: int = 0,
    trial: int = 20,
    horizon: int | None = None,
    seed: int = 0,
    seen: Seen = NOTHING_ELSE,
) -> Curriculum:
    """Online meta-learning: tasks come one by one, in another order in each lifetime, each until its
    success after adapting, over held-out goals, is at least the threshold or its steps are used up.
    Goals are hidden."""
    params = GoalSettings(preset, goal_seed, horizon, seen, goals).hidden("online")
    names = known("online", tasks)
    came = [names[k] for k in rng_for(seed, "online").permutation(len(names))]
    return online_meta_learning(
        "metaworld/online",
        [
            (task_named(n, benchmark="ML1-train", **params), _held_out(n, "ML1", goals, params))
            for n in came
        ],
        MetaBudget(steps, trial=trial, shots=shots, episodes=episodes),
        threshold=threshold,
        chunk=chunk,
        about=about_of(online),
    )


@shows
def cw10(
    steps: int = 1_000_000,
    episodes: int = 10,
    horizon: int = 200,
    seen: Seen = NOTHING_ELSE,
) -> Curriculum:
    """Continual World: ten tasks in turn."""
    return _in_turn("cw10", CW10, steps, episodes, horizon, seen)


@shows
def cw20(
    steps: int = 1_000_000,
    episodes: int = 10,
    horizon: int = 200,
    seen: Seen = NOTHING_ELSE,
) -> Curriculum:
    """Continual World: its ten tasks in turn, twice."""
    return _in_turn("cw20", CW10, steps, episodes, horizon, seen, repeats=2)


@shows
def sequence(
    tasks: Sequence[str] = ("drawer-close", "window-close", "button-press-topdown"),
    steps: int = 50_000,
    episodes: int = 20,
    horizon: int = 200,
    repeats: int = 1,
    trial: int = 1,
    seen: Seen = NOTHING_ELSE,
) -> Curriculum:
    """Any tasks in turn."""
    names = known("sequence", tasks)
    return _in_turn("sequence", names, steps, episodes, horizon, seen, repeats, trial)


@shows
def cw10_bc(
    epochs: int = 25,
    demonstrations: int = 40,
    episodes: int = 5,
    horizon: int = 200,
    seen: Seen = NOTHING_ELSE,
) -> Curriculum:
    """Lifelong imitation: Continual World's ten tasks in turn from expert demonstrations, evaluated
    by playing them."""
    tasks = numbered(CW10, horizon=horizon, demonstrations=demonstrations, **seen)
    return _imitated("cw10-bc", tasks, epochs, episodes, about_of(cw10_bc))


@shows
def sequence_bc(
    tasks: Sequence[str] = ("hammer", "faucet-close", "handle-press-side", "window-close"),
    epochs: int = 25,
    demonstrations: int = 40,
    episodes: int = 5,
    horizon: int = 200,
    repeats: int = 1,
    seen: Seen = NOTHING_ELSE,
) -> Curriculum:
    """Lifelong imitation of any tasks in turn from expert demonstrations, evaluated by playing them."""
    names = known("sequence-bc", tasks)
    found = numbered(names, horizon=horizon, demonstrations=demonstrations, **seen)
    return _imitated("sequence-bc", found * repeats, epochs, episodes, about_of(sequence_bc))


def _imitated(
    name: str, tasks: Sequence[Task], epochs: int, episodes: int, about: str
) -> Curriculum:
    """Tasks in turn from demonstrations; all are played before, between and after."""
    blocks = [learn(Exposure(t, epochs, "epochs")) for t in tasks]
    played = (Exposure(t, episodes) for t in dict.fromkeys(tasks))
    evaluation = evaluate(*played, parallel=True)
    return Curriculum(f"metaworld/{name}", interleave(blocks, evaluation), about=about)


@shows
def mt10_bc(
    epochs: int = 30,
    demonstrations: int = 40,
    episodes: int = 20,
    horizon: int = 200,
    seen: Seen = NOTHING_ELSE,
) -> Curriculum:
    """Imitation of ten experts side by side, evaluated by playing on unseen goals."""
    tasks = numbered(MT10, horizon=horizon, demonstrations=demonstrations, **seen)
    block = learn(*(Exposure(t, epochs, "epochs") for t in tasks), parallel=True)
    evaluation = evaluate(*(Exposure(t, episodes) for t in tasks), parallel=True)
    return Curriculum("metaworld/mt10-bc", interleave([block], evaluation), about=about_of(mt10_bc))


def _multi(
    name: str,
    benchmark: str,
    names: Sequence[str],
    budget: MetaBudget,
    settings: GoalSettings,
    one_hot: bool = True,
) -> Curriculum:
    params = settings.params(name)
    if params["goals"] == "set":
        params |= {"benchmark": benchmark, "benchmark_seed": settings.seed}
    names = known(name, names)
    if one_hot and len(names) > 1:
        tasks = numbered(names, **params)
    else:
        tasks = [task_named(n, **params) for n in names]
    blocks = budget.learning(f"metaworld/{name}", tasks)
    evaluation = evaluate(*(Exposure(t, budget.episodes) for t in tasks), parallel=True)
    return Curriculum(
        f"metaworld/{name}", interleave(blocks, evaluation), about=about_of(CURRICULA[name])
    )


def _meta(
    name: str,
    train: Sequence[str],
    test: Sequence[str],
    budget: MetaBudget,
    settings: GoalSettings,
) -> Curriculum:
    params = settings.hidden(name)
    benchmark = name.upper()
    tasks = [task_named(n, benchmark=f"{benchmark}-train", **params) for n in known(name, train)]
    tests = [t for n in known(name, test) for t in _held_out(n, benchmark, settings.number, params)]
    return meta_learning(f"metaworld/{name}", tasks, tests, budget, about_of(CURRICULA[name]))


def _held_out(name: str, benchmark: str, goals: int, params: Mapping[str, Any]) -> Sequence[Task]:
    """Test goals of a task. To adapt is to find out where one goal is, so each is a variant and a block of
    its own."""
    return [
        Task("metaworld", name, f"goal{g}", {"benchmark": f"{benchmark}-test", "goal": g, **params})
        for g in range(goals)
    ]


def _in_turn(
    name: str,
    names: Sequence[str],
    steps: int,
    episodes: int,
    horizon: int,
    seen: Seen,
    repeats: int = 1,
    trial: int = 1,
) -> Curriculum:
    return tasks_in_turn(
        f"metaworld/{name}",
        numbered(names, horizon=horizon, **seen),
        amount=steps,
        unit="steps",
        episodes=episodes,
        repeats=repeats,
        trial=trial,
        about=about_of(CURRICULA[name]),
    )


CURRICULA: Mapping[str, Callable[..., Curriculum]] = {
    "mt1": mt1,
    "mt": mt,
    "mt10": _multi_task("mt10", MT10, "Ten tasks"),
    "mt25": _multi_task("mt25", MT25, "Twenty-five tasks"),
    "mt50": _multi_task("mt50", NAMES, "All fifty tasks"),
    "ml1": ml1,
    "ml10": _meta_learning("ml10", ML10_TRAIN, ML10_TEST, "Learn ten tasks, adapt to five others."),
    "ml25": _meta_learning(
        "ml25",
        MT25,
        ML25_TEST,
        "Learn twenty-five tasks, adapt to five, of which upstream has one in both lists.",
    ),
    "ml45": _meta_learning(
        "ml45", ML45_TRAIN, ML45_TEST, "Learn forty-five tasks, adapt to the five others."
    ),
    "online": online,
    "cw10": cw10,
    "cw20": cw20,
    "sequence": sequence,
    "cw10-bc": cw10_bc,
    "sequence-bc": sequence_bc,
    "mt10-bc": mt10_bc,
}
