"""Plasticity: can the agent still learn?

What torch learners measure of their networks at evaluations (``ppo,plasticity=512``; the definitions are
in :mod:`perdure.agents.networks.plasticity`), at the end of the lifetime; and by behaviour, how well
later tasks are learned beside earlier ones.
"""

from __future__ import annotations

from math import nan

import numpy as np

from perdure.measure.metric import Better, LifetimeData, Metric, Moment, Score, metric

PREFIX = "plasticity."
MEASURED: dict[str, tuple[Better, str, str, str]] = {
    "dormant_redo": (
        "lower", "Dormant units (ReDo)",
        "Part of units that give at most 0.025 of their layer's mean; mean over layers.",
        "Unit i of a layer is dormant if mean|h_i| ≤ 0.025 · mean_j(mean|h_j|) (Sokar et al., 2023).",
    ),
    "dormant_dohare": (
        "lower", "Dormant units (Dohare)", "Part of all units that are active on under 1 % of inputs.",
        "Units of all layers with h ≠ 0 on less than 1 % of inputs / all units (Dohare et al., 2024).",
    ),
    "effective_rank": (
        "higher", "Effective rank", "Of the features: exp of the entropy of their singular values.",
        "exp(−Σ p log p) with p = σ / Σσ, of what the last hidden layer gives (Roy and Vetterli, 2007).",
    ),
    "stable_rank": (
        "higher", "Stable rank", "Of the features: their squared Frobenius norm over the spectral one.",
        "‖A‖²_F / ‖A‖²_2 of what the last hidden layer gives.",
    ),
    "srank": (
        "higher", "srank", "Of the features: how many singular values make 99 % of their sum.",
        "The least k with Σ_{i≤k} σ_i ≥ 0.99 Σσ, of what the last hidden layer gives (Kumar et al., 2021).",
    ),
    "weight_norm": (
        "lower", "Weight norm", "Length of all weights.", "√Σ θ², over everything that is learned.",
    ),
    "weight_distance": (
        "lower", "Weight distance", "Root mean square of how far weights are from where they started.",
        "√mean (θ − θ_initial)², over everything that is learned.",
    ),
    "gradient_norm": (
        "higher", "Gradient norm", "Length of the loss's gradient on the probe's rows.",
        "‖∇_θ ℓ‖ on the first rows that were learned from.",
    ),
    "trainability": (
        "higher", "Trainability",
        "Loss left of random answers learned from the initial weights, over that from the present ones.",
        "ℓ(initial) / ℓ(now), each after the same steps of the learner's optimiser; 1 is as well as ever.",
    ),
}  # fmt: skip
"""By measure: which way is better, what people call it, what it is, and its formula."""


def measured_over_time(life: LifetimeData, name: str) -> tuple[Moment, ...]:
    """What the agent measured of itself, evaluation by evaluation."""
    history = life.history
    if PREFIX + name not in history.columns:
        return ()
    values = history.values(PREFIX + name)
    there = np.flatnonzero(~np.isnan(values) & ~history.learning)
    return tuple(
        Moment(int(history.block[k]), history.tasks[history.task[k]], float(values[k]))
        for k in there
    )


def _at_the_end(name: str) -> Metric:
    better, title, about, formula = MEASURED[name]

    def last(life: LifetimeData) -> Score:
        moments = measured_over_time(life, name)
        if not moments:
            asked = "trainability=100 as well" if name == "trainability" else "plasticity=512"
            return Score(nan, reason=f"not measured: give a torch learner {asked}")
        return Score(moments[-1].value, over_time=moments)

    last.__doc__ = f"{about}\n\n{formula} At the last evaluation."
    return metric(PREFIX + name, better=better, title=title)(last)


@metric("plasticity.acquired_change", better="higher", needs=("final",), title="Still learns")
def acquired_change(life: LifetimeData) -> Score:
    """How much better the last third of the tasks is learned than the first third.

    The score of a task at the first evaluation after it was learned; the mean over the last ⌊T/3⌋ of T
    tasks in the order they came, minus that over the first ⌊T/3⌋. Below 0, learning got harder; which it
    also does if the later tasks are the harder ones.
    """
    acquired = life.matrix.acquired_by_task()
    scores = [acquired[t] for t in life.history.learned_tasks if t in acquired]
    scores = [s for s in scores if not np.isnan(s)]
    third = len(scores) // 3
    if third < 1:
        return Score(nan, reason="fewer than three tasks were learned and evaluated")
    return Score(float(np.mean(scores[-third:]) - np.mean(scores[:third])))


metrics = (*map(_at_the_end, MEASURED), acquired_change)
