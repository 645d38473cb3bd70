"""Builders for any suite: interleave evaluations, repeat, permute, stop early, let the agent
choose, meta-train and meta-test, and derive single-task experts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from perdure import registry
from perdure.errors import CurriculumError
from perdure.seeds import rng_for
from perdure.types import (
    Block,
    BlockChoice,
    BlockGenerator,
    Curriculum,
    Exposure,
    ResultsSoFar,
    Task,
    Unit,
    Visibility,
    adapt,
    evaluate,
    learn,
)

WHEN = ("before", "between", "after")


def interleave(
    blocks: Iterable[Block],
    evaluation: Block,
    when: Sequence[str] = WHEN,
    every: int = 1,
) -> tuple[Block, ...]:
    """Evaluate before the first block, between blocks (after every ``every``-th) and after the
    last, or only some of these."""
    blocks = tuple(blocks)
    for w in when:
        if w not in WHEN:
            raise CurriculumError(f"interleave: 'when' takes {WHEN}, got {w!r}")
    if evaluation.kind == "learn":
        raise CurriculumError("interleave: the evaluation must be an eval or adapt block")
    if every < 1:
        raise CurriculumError(f"interleave: 'every' must be at least 1, got {every}")
    out: list[Block] = [evaluation] if "before" in when else []
    for i, block in enumerate(blocks, start=1):
        out.append(block)
        last = i == len(blocks)
        if (last and "after" in when) or (not last and "between" in when and i % every == 0):
            out.append(evaluation)
    return tuple(out)


def repeat(blocks: Iterable[Block], times: int) -> tuple[Block, ...]:
    """The blocks, over and over."""
    if times < 1:
        raise CurriculumError(f"repeat: at least once, got {times}")
    return tuple(blocks) * times


def permute(blocks: Iterable[Block], seed: int) -> tuple[Block, ...]:
    """The blocks in an order that the seed alone decides."""
    blocks = tuple(blocks)
    return tuple(blocks[i] for i in rng_for(seed, "permute").permutation(len(blocks)))


def tasks_in_turn(
    name: str,
    tasks: Sequence[Task],
    *,
    amount: int,
    unit: str = "episodes",
    episodes: int = 10,
    repeats: int = 1,
    about: str = "",
) -> Curriculum:
    """The commonest lifetime: each task in turn, all tasks evaluated before, between and after."""
    blocks = [learn(Exposure(t, amount, unit)) for t in tasks]  # type: ignore[arg-type]
    evaluation = evaluate(*(Exposure(t, episodes) for t in tasks))
    return Curriculum(name, interleave(repeat(blocks, repeats), evaluation), about=about)


def padded(tasks: Sequence[Task]) -> list[Task]:
    """The tasks with wrappers (see :mod:`perdure.wrappers`) that make their spaces alike: the smaller
    ones are padded to the sizes of the largest, and where bounds or types of numbers differ, actions
    are scaled to −1…1 and observations are float32."""
    if not tasks:
        return []
    found = [registry.suite_of(t).spaces(t) for t in tasks]
    seen = _padding("observation", tasks, [f[0] for f in found])
    done = _padding("action", tasks, [f[1] for f in found])
    out = []
    for task, *added in zip(tasks, seen, done, strict=True):
        more = [text for texts in added for text in texts]
        params = dict(task.params)
        if more:
            params["wrappers"] = [*params.get("wrappers", ()), *more]
        out.append(Task(task.suite, task.name, task.variant, params))
    return out


def _padding(what: str, tasks: Sequence[Task], found: Sequence[Any]) -> list[list[str]]:
    """The wrappers of each task that make these spaces alike."""
    from gymnasium import spaces

    name = f"Pad{what.capitalize()}"
    same = all(space == found[0] for space in found)
    alike = len({(type(s), len(s.shape or ())) for s in found}) == 1
    if not same and not (alike and isinstance(found[0], (spaces.Box, spaces.Discrete))):
        kinds = "; ".join(f"{t.id} has {s}" for t, s in zip(tasks, found, strict=True))
        raise CurriculumError(
            f"padded: the {what} spaces are no Boxes of as many axes, nor all Discrete: {kinds}"
        )
    if same:
        return [[] for _ in tasks]
    if isinstance(found[0], spaces.Discrete):
        most = max(int(s.n) for s in found)
        return [[] if s.n == most else [f"{name},to={most}"] for s in found]
    out: list[list[str]] = [[] for _ in tasks]
    shape = [max(sizes) for sizes in zip(*(s.shape for s in found), strict=True)]
    floats = len({s.dtype for s in found}) > 1
    # Unlike what is seen, what is done must lie within the bounds of every task.
    scaled = (
        what == "action" and len({(float(s.low.min()), float(s.high.max())) for s in found}) > 1
    )
    for mine, space in zip(out, found, strict=True):
        if floats and what == "observation":
            mine.append("DtypeObservation,dtype=float32")
        if scaled:
            mine.append("RescaleAction,min_action=-1.0,max_action=1.0")
        if list(space.shape) != shape:
            mine.append(f"{name},to={shape}")
    return out


def expert(curriculum: Curriculum, task: Task) -> Curriculum:
    """The single-task expert's curriculum: the same total exposure to one task alone, evaluated
    on it before and after as the lifelong curriculum evaluates it."""
    learned: dict[tuple[Unit, int], int] = {}
    first: dict[bool, tuple[Exposure, Visibility]] = {}
    for block in curriculum.fixed:
        for phase in block.phases if block.kind != "adapt" else ():
            for e in phase.exposures:
                if e.task.key != task.key:
                    continue
                first.setdefault(phase.learning, (e, phase.visibility))
                if phase.learning:
                    key = (e.unit, e.episodes_per_trial)
                    learned[key] = learned.get(key, 0) + e.amount
    if not learned:
        raise CurriculumError(f"curriculum {curriculum.name} never learns {task.id}: no expert")
    exposures = (Exposure(task, n, unit, trial) for (unit, trial), n in learned.items())
    blocks: tuple[Block, ...] = (learn(*exposures, visibility=first[True][1]),)
    if False in first:
        evaluation, visibility = first[False]
        blocks = interleave(blocks, evaluate(evaluation, visibility=visibility))
    return Curriculum(f"{curriculum.name}/expert", blocks, about=f"Single-task expert on {task.id}")


def experts(curriculum: Curriculum) -> dict[Task, Curriculum]:
    """A single-task expert's curriculum for every task that the curriculum learns.

    Generated curricula decide their budgets as they go, so they have no fixed expert.
    """
    if curriculum.generate is not None:
        raise CurriculumError(
            f"curriculum {curriculum.name} is generated: its budgets are not known beforehand, "
            "so it has no single-task experts; run without experts"
        )
    learned = {
        e.task.key: e.task for b in curriculum.fixed if b.kind == "learn" for e in b.exposures
    }
    return {t: expert(curriculum, t) for t in learned.values()}


def until(
    name: str,
    tasks: Sequence[Task],
    *,
    threshold: float,
    measure: str = "success",
    chunk: int = 500,
    unit: str = "steps",
    budget: int = 10_000,
    episodes: int = 10,
) -> Curriculum:
    """Early stopping: learn each task in chunks until its evaluated measure reaches the
    threshold, or its budget is used up; then evaluate all tasks and go on."""
    if chunk < 1 or budget < chunk:
        raise CurriculumError(f"until: need 1 <= chunk <= budget, got {chunk} and {budget}")
    everything = evaluate(*(Exposure(t, episodes) for t in tasks))

    def generate() -> BlockGenerator:
        yield everything
        for task in tasks:
            used = 0
            while used < budget:
                amount = min(chunk, budget - used)
                yield learn(Exposure(task, amount, unit))  # type: ignore[arg-type]
                used += amount
                results: ResultsSoFar = yield evaluate(Exposure(task, episodes))
                if results.mean(measure, task=task.id, block=-1) >= threshold:
                    break
            yield everything

    about = f"Each task until {measure} ≥ {threshold:g} or {budget:,} {unit}"
    return Curriculum(name, generate=generate, tasks=tuple(tasks), about=about)


def agent_chosen(
    name: str,
    tasks: Sequence[Task],
    *,
    choices: int = 10,
    amount: int = 500,
    unit: str = "steps",
    episodes: int = 5,
) -> Curriculum:
    """Active learning: after each evaluation the agent picks which task to learn next."""
    everything = evaluate(*(Exposure(t, episodes) for t in tasks))
    options = tuple(learn(Exposure(t, amount, unit)) for t in tasks)  # type: ignore[arg-type]

    def generate() -> BlockGenerator:
        yield everything
        for _ in range(choices):
            yield BlockChoice(options)
            yield everything

    about = f"The agent picks its next task {choices} times"
    return Curriculum(name, generate=generate, tasks=tuple(tasks), about=about)


MEASURED = Visibility(rewards=True, task_ids=False)
"""What a test task shows: who it is stays hidden, while rewards are what tells."""


@dataclass(frozen=True)
class MetaBudget:
    """How much a meta-learner learns and adapts."""

    steps: int
    """Of each training task."""
    rounds: int = 1
    """Learn blocks that they are divided into; all test tasks are adapted to after each."""
    trial: int = 10
    """Consecutive episodes with the same hidden goal in meta-training."""
    shots: int = 10
    """Episodes to adapt in."""
    episodes: int = 3
    """Episodes that are evaluated before adapting, and after it."""

    def learning(self, name: str, tasks: Sequence[Task]) -> list[Block]:
        """The learn blocks, with all tasks side by side."""
        if not 1 <= self.rounds <= self.steps:
            raise CurriculumError(
                f"{name}: rounds must be from 1 to the number of steps, got {self.rounds}"
            )
        whole, rest = divmod(self.steps, self.rounds)
        return [
            learn(
                *(Exposure(t, whole + (k < rest), "steps", self.trial) for t in tasks),
                parallel=True,
            )
            for k in range(self.rounds)
        ]

    def testing(self, tasks: Sequence[Task]) -> list[Block]:
        """Every test task as the agent is, then an adapt block for each."""
        before = evaluate(*(Exposure(t, self.episodes) for t in tasks), visibility=MEASURED)
        return [before, *(self.adapting(t) for t in tasks)]

    def adapting(self, task: Task) -> Block:
        """Adapt to a task within one trial, then evaluate on the same."""
        return adapt(
            Exposure(task, self.shots, episodes_per_trial=self.shots),
            then=[Exposure(task, self.episodes, episodes_per_trial=self.episodes)],
            visibility=Visibility(task_ids=False),
            then_visibility=MEASURED,
        )


def meta_learning(
    name: str, train: Sequence[Task], test: Sequence[Task], budget: MetaBudget, about: str = ""
) -> Curriculum:
    """Meta-train on some tasks side by side, then adapt to each of the others and forget it again."""
    blocks: list[Block] = []
    for block in budget.learning(name, train):
        blocks += [block, *budget.testing(test)]
    return Curriculum(name, tuple(blocks), about=about)


def online_meta_learning(
    name: str,
    tasks: Sequence[Task],
    budget: MetaBudget,
    *,
    threshold: float,
    measure: str = "success",
    chunk: int = 10_000,
    about: str = "",
) -> Curriculum:
    """Tasks come one by one (Finn et al., 2019), and each should take less than the last.

    A task that has just come is adapted to in ``shots`` episodes and evaluated. If it is not mastered by
    that, its ``measure`` below the threshold, it is learned in chunks of steps, and adapted to again after
    each, until it is or until its ``steps`` are used up. Then the next one comes. All adaptations to a
    task are to the same hidden goal, one that a lifetime draws for the task.
    """
    if not 1 <= chunk <= budget.steps:
        raise CurriculumError(f"{name}: need 1 <= chunk <= steps, got {chunk} and {budget.steps}")

    def generate() -> BlockGenerator:
        for task in tasks:
            used = 0
            while True:
                results: ResultsSoFar = yield budget.adapting(task)
                score = results.mean(measure, task=task.id, block=-1, learning=False)
                if score >= threshold or used >= budget.steps:
                    break
                amount = min(chunk, budget.steps - used)
                yield learn(Exposure(task, amount, "steps", budget.trial))
                used += amount

    return Curriculum(name, generate=generate, tasks=tuple(tasks), about=about)
