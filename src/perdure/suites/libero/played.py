"""What is played of a task: its file, with the changes that its parameters ask for."""

from __future__ import annotations

from perdure.suites.libero.perturbations import changed
from perdure.suites.libero.problem import Problem
from perdure.suites.libero.problems import problem_of
from perdure.suites.libero.tasks import located, settings
from perdure.types import Task


def problem_played(task: Task) -> Problem:
    """The task's problem: that of its file, or that with other things, places or goals."""
    problem, chosen = problem_of(located(task)), settings(task)
    changes = chosen.distractors, chosen.rearranged, chosen.other_goal
    return changed(problem, *changes) if any(changes) else problem
