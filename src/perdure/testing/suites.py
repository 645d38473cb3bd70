"""Does a suite keep its promises? Above all: is ``reset(seed)`` honest?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from perdure.arrays import leaves, map_leaves, rows_of, same_leaves
from perdure.curricula.named import curriculum_of
from perdure.errors import CurriculumError, EnvironmentFault, PerdureError
from perdure.names import join_task_id
from perdure.registry import entries, is_suite, suite_of
from perdure.run.validate import validate
from perdure.seeds import seed_for
from perdure.specs import Spec
from perdure.suite import OF_SLOTS, BatchedEnv, Data, Episode, Suite, is_restorable, phrasings_of
from perdure.testing.report import CheckFailed, global_rng_untouched
from perdure.types import Curriculum, Task

STEPS = 60
Step: TypeAlias = tuple[Any, float, bool, bool]
"""Observation, reward, terminated, truncated."""


def check_suite(suite: Suite) -> None:
    """Check every listed task and every curriculum of a suite."""
    problems: list[str] = []
    tasks = list(suite.tasks())
    if not tasks:
        problems.append(f"suite {suite.name} lists no tasks")
    ids = [t.id for t in tasks]
    for double in sorted({i for i in ids if ids.count(i) > 1}):
        problems.append(f"suite {suite.name} lists {double} twice")
    for task in tasks:
        try:
            found = suite.task(join_task_id("", task.name, task.variant))
            if found.key != task.key:
                problems.append(f"suite.task({task.id!r}) gives another task: {found.key}")
        except PerdureError as e:
            problems.append(f"suite.task does not know {task.id}, which tasks() lists: {e}")
        problems += _task_problems(suite, suite.task_to_check(task))
    problems += _curriculum_problems(suite)
    if problems:
        raise CheckFailed(f"suite {suite.name}", problems)


def check_task(suite: Suite, task: Task) -> None:
    """Check one task: spaces, values, and that a seed alone decides an episode."""
    problems = _task_problems(suite, task)
    if problems:
        raise CheckFailed(f"task {task.id}", problems)


def check_curriculum(curriculum: Curriculum) -> None:
    """Check a curriculum: that it holds together, and every task of it as :func:`check_task` does,
    with the parameters that it has there."""
    validate(curriculum)
    problems: list[str] = []
    for task in curriculum.tasks:
        suite = suite_of(task)
        problems += _task_problems(suite, suite.task_to_check(task))
    if problems:
        raise CheckFailed(f"curriculum {curriculum.name}", problems)


def _curriculum_problems(suite: Suite) -> list[str]:
    problems = []
    for name, builder in suite.curricula().items():
        try:
            if suite.name in entries("suites"):
                made = curriculum_of(Spec(f"{suite.name}/{name}"))
            else:
                made = builder()
            if is_suite(suite.name) and len(made.tasks) <= 3:
                validate(made)
        except Exception as e:
            problems.append(f"curriculum {suite.name}/{name} is not valid: {e}")
    return problems


def _task_problems(suite: Suite, task: Task) -> list[str]:
    problems: list[str] = []
    try:
        observation_space, action_space = suite.spaces(task)
    except Exception as e:
        return [f"{task.id}: spaces() raised {type(e).__name__}: {e}"]
    try:
        phrasings_of(suite, task)
    except Exception as e:
        problems.append(f"{task.id}: instructions: {e}")
    offers = 0
    try:
        data = suite.data(task, True)
        offers += 1
    except CurriculumError:
        data = None
    if data is not None:
        try:
            problems += _data_problems(task, data, observation_space, action_space)
        except Exception as e:
            problems.append(f"{task.id}: data: {type(e).__name__}: {e}")
    try:
        suite.env(task).close()
        offers += 1
    except CurriculumError:
        if not offers:
            problems.append(f"{task.id} offers neither an environment nor data")
        return problems
    except Exception as e:
        return [f"{task.id}: env() raised {type(e).__name__}: {e}"]
    try:
        with global_rng_untouched(task.id, problems):
            problems += _honesty(suite, task, observation_space, action_space)
            problems += _batched_problems(suite, task, action_space)
    except Exception as e:
        problems.append(f"{task.id}: {type(e).__name__}: {e}")
    return problems


def _data_problems(task: Task, data: Data, observation_space: Any, action_space: Any) -> list[str]:
    """Some examples, or every step of some sequences of them, must be in the task's spaces."""
    batch = data.batch(np.arange(min(4, len(data))))
    problems = []
    for k in range(len(batch)):
        x, y = rows_of(batch.inputs, k), rows_of(batch.targets, k)
        if not _within(observation_space, x):
            problems.append(f"{task.id}: data holds an input outside {observation_space}")
        if not _within(action_space, y):
            problems.append(f"{task.id}: data holds a target outside {action_space}: {y!r}")
    return problems


def _within(space: Any, value: Any) -> bool:
    """Whether a value, or every step of a sequence, is in a space."""
    if space.contains(value):
        return True
    lengths = {len(part) if np.ndim(part) else 0 for part in leaves(value).values()}
    steps = lengths.pop() if len(lengths) == 1 else 0
    return steps > 0 and all(space.contains(rows_of(value, t)) for t in range(steps))


def _honesty(suite: Suite, task: Task, observation_space: Any, action_space: Any) -> list[str]:
    """Play an episode in a fresh environment, in another one, and in one with a history."""
    problems: list[str] = []
    action_space.seed(seed_for(0, "check", task.key))
    actions = [action_space.sample() for _ in range(STEPS)]
    first, second = suite.env(task), suite.env(task)
    # The third episode of a trial, which has a seed of its own, where the suite reads that.
    told = Episode(11, 7, 2).options if suite.reset_options else None
    try:
        reference = _play(first, 11, actions, told)
        _play(second, 5, actions[: STEPS // 3])
        _play(second, 6, actions[: STEPS // 2])
        for env, words in (
            (second, "in an environment that ran other episodes before"),
            (first, "a second time in the same environment"),
        ):
            where = _difference(reference, _play(env, 11, actions, told))
            if where is not None:
                problems.append(
                    f"{task.id}: reset(seed=11) {words} gave another episode (first difference at "
                    f"{where}); reset(seed) must alone decide all randomness of an episode"
                )
        for t, (obs, reward, terminated, truncated) in enumerate(reference):
            if not observation_space.contains(obs):
                problems.append(
                    f"{task.id}: the observation at step {t} is outside its space "
                    f"{observation_space}: got {getattr(obs, 'dtype', type(obs).__name__)} {obs!s:.80}"
                )
                break
            if t and not np.isfinite(reward):
                problems.append(f"{task.id}: the reward at step {t} is {reward}")
                break
            if not all(isinstance(f, (bool, np.bool_)) for f in (terminated, truncated)):
                problems.append(f"{task.id}: terminated and truncated must be bools (step {t})")
                break
        problems += _restored_problems(suite, task, first, actions, told, reference)
    finally:
        first.close()
        second.close()
    return problems


def _restored_problems(
    suite: Suite, task: Task, env: Any, actions: list[Any], told: Any, reference: list[Step]
) -> list[str]:
    """Where an environment can save itself: saved in mid-episode and loaded into another one, as by who
    resumes there, it must go on with the same episode."""
    if not is_restorable(env):
        return []
    done = (len(reference) - 1) // 2
    _play(env, 11, actions[:done], told)
    inner: Any = env.unwrapped
    saved = {name: np.array(value) for name, value in inner.save_state().items()}
    other = suite.env(task)
    try:
        _play(other, 11, [], told)
        inner = other.unwrapped
        inner.load_state(saved)
        where = _difference(reference[done + 1 :], _steps(other, actions[done:]), done + 1)
    finally:
        other.close()
    if where is None:
        return []
    return [
        f"{task.id}: saved by save_state() after {done} steps and brought back by load_state() in another "
        f"environment, the episode went on otherwise (first difference at {where}): they must hold "
        "all that its steps depend on, wrappers' counts too"
    ]


PLAN = ((0,), (0, 1), (1, 2, 0), (2, 1), (0, 2))
"""Which slots are stepped together, in turn: they begin one after another and wait for each other."""


def _batched_problems(suite: Suite, task: Task, action_space: Any) -> list[str]:
    """``batched_env`` must play the episodes of ``env``, bit by bit, whatever slots are stepped
    together, and go on with new episodes in the slots where one has ended."""
    count = 3
    batch = suite.batched_env(task, count)
    if batch is None:
        return []
    action_space.seed(seed_for(1, "check", task.key))
    env = suite.env(task)
    try:
        seeds = range(21, 21 + 2 * count)
        episodes = [Episode.alone(seed) for seed in seeds]
        if suite.reset_options:
            # Episodes of trials too, as they are learned and as they are evaluated.
            asked = ((0, None), (7, None), (7, None), (8, None), (8, 0), (9, 1))
            episodes = [
                Episode(seed, trial or seed, n, instance)
                for n, (seed, (trial, instance)) in enumerate(zip(seeds, asked, strict=True))
            ]
        actions = [[action_space.sample() for _ in range(STEPS // 2)] for _ in episodes]
        options = [e.options if suite.reset_options else None for e in episodes]
        expected = [
            _play(env, e.seed, given, options=o)
            for e, given, o in zip(episodes, actions, options, strict=True)
        ]
        found = _play_batched(batch, count, episodes, actions)
    finally:
        env.close()
        batch.close()
    for episode, a, b in zip(episodes, expected, found, strict=True):
        where = _difference(a, b)
        if where is not None:
            return [
                f"{task.id}: batched_env plays another episode of seed {episode.seed} than env "
                f"(first difference at {where}); both must give the same to the bit"
            ]
    return []


def _play_batched(
    batch: BatchedEnv, count: int, episodes: Sequence[Episode], actions: Sequence[list[Any]]
) -> list[list[Step]]:
    """Every episode, slot ``k`` playing number ``k``, ``k + count`` and so on."""
    out: list[list[Step]] = [[] for _ in episodes]
    playing: dict[int, int] = {}
    waiting = {slot: list(range(slot, len(episodes), count)) for slot in range(count)}
    batch.expect(episodes)
    turn = 0
    while playing or any(waiting.values()):
        slots = []
        for slot in PLAN[turn % len(PLAN)]:
            if slot not in playing and waiting[slot]:
                playing[slot] = waiting[slot].pop(0)
                first = batch.reset(slot, episodes[playing[slot]])
                out[playing[slot]].append((_copy(first), 0.0, False, False))
            if slot in playing:
                slots.append(slot)
        turn += 1
        if not slots:
            continue
        given = [actions[playing[s]][len(out[playing[s]]) - 1] for s in slots]
        plain = [a.item() if isinstance(a, np.integer) else a for a in given]
        seen, rewards, ends, cuts, _ = batch.step(slots, plain)
        if isinstance(seen, Mapping):
            raise EnvironmentFault(OF_SLOTS)
        for k, slot in enumerate(slots):
            played = out[playing[slot]]
            played.append((_copy(seen[k]), rewards[k], ends[k], cuts[k]))
            if ends[k] or cuts[k] or len(played) > len(actions[playing[slot]]):
                del playing[slot]
    return out


def _play(
    env: Any, seed: int, actions: list[Any], options: dict[str, Any] | None = None
) -> list[Step]:
    obs, _ = env.reset(seed=seed) if options is None else env.reset(seed=seed, options=options)
    return [(_copy(obs), 0.0, False, False), *_steps(env, actions)]


def _steps(env: Any, actions: list[Any]) -> list[Step]:
    """Steps until an episode ends."""
    out: list[Step] = []
    for action in actions:
        obs, reward, terminated, truncated, _ = env.step(action)
        out.append((_copy(obs), reward, terminated, truncated))
        if terminated or truncated:
            break
    return out


def _copy(obs: Any) -> Any:
    return map_leaves(lambda part: np.array(part) if isinstance(part, np.ndarray) else part, obs)


def _difference(a: list[Any], b: list[Any], first: int = 0) -> str | None:
    for t, (x, y) in enumerate(zip(a, b, strict=False), first):
        for name, u, v in zip(
            ("observation", "reward", "terminated", "truncated"), x, y, strict=True
        ):
            if not same_leaves(u, v):
                return f"step {t}, {name}"
    return None if len(a) == len(b) else f"step {first + min(len(a), len(b))}, the length"
