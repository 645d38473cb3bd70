"""Meta-World (Yu et al., 2019): success rates at the end of life, and on the way of an adaptation.

A task's rate is the mean over the episodes of its last evaluation. An evaluation within an adapt
block counts as one: that is how ML1, ML10 and ML45 measure, after adapting to a test task. So where
a task is evaluated both as the agent is and after adapting, the later of the two counts. Episodes
that the budget cut off do not.

An episode succeeds if the goal was reached at any step, or, more strictly, still is at the last.
"""

from __future__ import annotations

from perdure.measure.benchmark import Benchmark
from perdure.measure.meta import adaptations, by_stage, over_tasks
from perdure.measure.metric import LifetimeData, Score, metric
from perdure.measure.summary import final_rates


@metric(
    "metaworld.success", better="higher", needs=("success",), title="Success", bounds=(0.0, 1.0)
)
def success(life: LifetimeData) -> Score:
    """Share of episodes that succeed at any step, at the last evaluation of each task.

    (1/N) Σ_j s_j, where s_j is the share for task j. This is what the benchmark's tables report.
    """
    return final_rates(life, "success")


@metric("metaworld.success_end", better="higher", bounds=(0.0, 1.0))
def success_end(life: LifetimeData) -> Score:
    """Share of episodes that succeed at their last step, at the last evaluation of each task.

    (1/N) Σ_j e_j, where e_j is the share for task j; never above ``metaworld.success``.
    """
    return final_rates(life, "success_end")


@metric(
    "metaworld.success_before", better="higher", needs=("success",), title="Before adapting",
    bounds=(0.0, 1.0),
)  # fmt: skip
def success_before(life: LifetimeData) -> Score:
    """Share of episodes of test tasks that succeed before the agent has adapted to them.

    (1/N) Σ_j b_j, where b_j is the share for test task j in its last evaluation between learning and
    adaptation. What ``metaworld.success`` says of test tasks is the share after adaptation.
    """
    reason = "no test task was evaluated before it was adapted to"
    return over_tasks(adaptations(life.history, "success"), lambda a: a.before, reason)


@metric(
    "metaworld.adaptation", better="higher", needs=("success",), title="Success while adapting",
    bounds=(0.0, 1.0),
)  # fmt: skip
def adaptation(life: LifetimeData) -> Score:
    """Share of test tasks done before, in each episode of and after adaptation: mean over stages.

    (1/S) Σ_s (1/N) Σ_j v_sj, with the share at each stage s told too.
    """
    return by_stage(adaptations(life.history, "success"))


BENCHMARK = Benchmark(
    "metaworld",
    "Meta-World: success by task",
    leads=("metaworld.success",),
    picture="bars",
    about=(
        "Share of episodes that succeed, at each task’s last evaluation; mean over lifetimes and 95 % "
        "interval, with an arrow where it goes on beyond what success can be."
    ),
    bounds=(0.0, 1.0),
    adapted="metaworld.success",
)
ADAPTATION = Benchmark(
    "metaworld",
    "Meta-World: success while adapting",
    leads=("metaworld.adaptation",),
    picture="stages",
    about=(
        "Share of test tasks’ episodes that succeed: as the agent is, in each adaptation episode, and "
        "after all of them; mean over lifetimes and 95 % interval."
    ),
    bounds=(0.0, 1.0),
)
metrics = (*BENCHMARK.of(success, success_end), *ADAPTATION.of(success_before, adaptation))
