"""Builders for any suite: interleave evaluations, repeat, permute, stop early, let the agent
choose, meta-train and meta-test, and derive single-task experts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from perdure.errors import CurriculumError
from perdure.names import plain_task_id
from perdure.seeds import rng_for
from perdure.specs import checks_keywords
from perdure.types import (
    SHOWN,
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


def about_of(builder: Callable[..., Curriculum]) -> str:
    """What a curriculum is about: the first words of its builder's description."""
    return (inspect.getdoc(builder) or "").split("\n\n")[0].replace("\n", " ")


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


@checks_keywords
def tasks_in_turn(
    name: str,
    tasks: Sequence[Task],
    *,
    amount: int,
    unit: str = "episodes",
    episodes: int = 10,
    repeats: int = 1,
    trial: int = 1,
    about: str = "",
) -> Curriculum:
    """The commonest lifetime: each task in turn, all tasks evaluated before, between and after. ``trial`` is
    for meta-learners: so many learning episodes make a trial."""
    blocks = [
        learn(Exposure(t, amount, unit, episodes_per_trial=trial))  # type: ignore[arg-type]
        for t in tasks
    ]
    evaluation = evaluate(*(Exposure(t, episodes) for t in tasks))
    return Curriculum(name, interleave(repeat(blocks, repeats), evaluation), about=about)


def one_task(
    task: Task,
    has_env: bool = True,
    *,
    steps: int | None = None,
    epochs: int | None = None,
    rounds: int | None = None,
    episodes: int = 10,
    **params: Any,
) -> Curriculum:
    """One task alone: ``steps`` in its environment (20,000) or ``epochs`` of its data, in ``rounds``
    learn blocks (ten, but none of fewer than a thousand steps: what learns from rollouts drops those
    that a block's end cuts short); evaluated before, between and after in ``episodes``, or on its
    held-out data where it has no environment. What else is given are the task's own parameters."""
    task = replace(task, params={**task.params, **params})
    if steps is not None and epochs is not None:
        raise CurriculumError(f"{task.id}: give steps or epochs, not both")
    if steps is None and epochs is None:
        steps, epochs = (20_000, None) if has_env else (None, 10)
    total, unit = (steps, "steps") if steps is not None else (epochs, "epochs")
    assert total is not None
    if rounds is None:
        rounds = min(10, max(total // 1000, 1)) if unit == "steps" else 10
    if rounds < 1:
        raise CurriculumError(f"{task.id}: rounds must be at least 1, got {rounds}")
    rounds = max(min(rounds, total), 1)
    amounts = [total // rounds + (k < total % rounds) for k in range(rounds)]
    blocks = [learn(Exposure(task, n, unit)) for n in amounts]  # type: ignore[arg-type]
    evaluation = Exposure(task, episodes) if has_env else Exposure(task, 1, "epochs")
    about = f"{task.id} alone, {total:,} {unit} in {rounds} round{'s' * (rounds != 1)}"
    name = plain_task_id(task.id)
    return Curriculum(name, interleave(blocks, evaluate(evaluation)), about=about)


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


UNNAMED = Visibility(task_ids=False)
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

    def learning(
        self, name: str, tasks: Sequence[Task], visibility: Visibility = SHOWN
    ) -> list[Block]:
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
                visibility=visibility,
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
            visibility=UNNAMED,
            then_visibility=MEASURED,
        )


def meta_learning(
    name: str, train: Sequence[Task], test: Sequence[Task], budget: MetaBudget, about: str = ""
) -> Curriculum:
    """Meta-train on some tasks side by side, then adapt to each of the others and forget it again. No task
    says who it is: what episodes have in common is that they are of one trial."""
    blocks: list[Block] = []
    for block in budget.learning(name, train, UNNAMED):
        blocks += [block, *budget.testing(test)]
    return Curriculum(name, tuple(blocks), about=about)


def online_meta_learning(
    name: str,
    tasks: Sequence[tuple[Task, Sequence[Task]]],
    budget: MetaBudget,
    *,
    threshold: float,
    measure: str = "success",
    chunk: int = 10_000,
    about: str = "",
) -> Curriculum:
    """Tasks come one by one (Finn et al., 2019), and each should take less than the last.

    Beside each task are its tests: goals of it that are held out, each a variant. A task that has just come
    is tested: each of these goals is adapted to in ``shots`` episodes, evaluated and forgotten again. If
    the task is not mastered by that, the mean ``measure`` over goals below the threshold, it is learned in
    chunks of steps, and tested again after each, until it is or until its ``steps`` are used up. Then the
    next one comes. No task says who it is, neither where it is learned nor where it is tested.
    """
    if not 1 <= chunk <= budget.steps:
        raise CurriculumError(f"{name}: need 1 <= chunk <= steps, got {chunk} and {budget.steps}")

    def generate() -> BlockGenerator:
        for task, tests in tasks:
            used = 0
            while True:
                scores = []
                for test in tests:
                    results: ResultsSoFar = yield budget.adapting(test)
                    scores.append(results.mean(measure, task=test.id, block=-1, learning=False))
                if fmean(scores) >= threshold or used >= budget.steps:
                    break
                amount = min(chunk, budget.steps - used)
                exposure = Exposure(task, amount, "steps", budget.trial)
                yield learn(exposure, visibility=UNNAMED)
                used += amount

    return Curriculum(
        name,
        generate=generate,
        tasks=tuple(t for task, tests in tasks for t in (task, *tests)),
        shown=(),  # None is known before it comes.
        least_trial=budget.trial,
        least_shots=budget.shots,
        about=about,
    )
