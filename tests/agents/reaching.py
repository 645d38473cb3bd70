"""One task with a known optimum, for continuous learners."""

from perdure import Curriculum, Exposure, Task, curricula, evaluate, learn


def reach(steps: int = 1500) -> Curriculum:
    """Follow half of what is seen."""
    task = Task("toy", "reach")
    block = learn(Exposure(task, steps, "steps"))
    return Curriculum("reach", curricula.interleave([block], evaluate(Exposure(task, 20))))
