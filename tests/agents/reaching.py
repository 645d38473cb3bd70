"""Tasks with a known optimum, for continuous learners."""

from perdure import Curriculum, Exposure, Task, curricula, evaluate, learn


def reach(steps: int = 1500, task: str = "reach") -> Curriculum:
    """Follow half of what is seen; or another task of the toys."""
    one = Task("toy", task)
    block = learn(Exposure(one, steps, "steps"))
    return Curriculum("reach", curricula.interleave([block], evaluate(Exposure(one, 20))))


def turn(steps: int = 60, episodes: int = 2) -> Curriculum:
    """One after the other: follow half of what is seen, then go against it."""
    return curricula.tasks_in_turn(
        "turn", _twins(), amount=steps, unit="steps", episodes=episodes, about=""
    )


def _twins() -> list[Task]:
    gains = {"with": 0.5, "against": -0.5}
    return [Task("toy", "reach", name, {"gain": gain}) for name, gain in gains.items()]


def twins(steps: int = 4000, episodes: int = 20) -> Curriculum:
    """Two tasks side by side that look the same: follow half of what is seen, or go against it. Who
    does not know which task it is in can do no better than stand still."""
    tasks = _twins()
    block = learn(*(Exposure(t, steps, "steps") for t in tasks), parallel=True)
    final = evaluate(*(Exposure(t, episodes) for t in tasks))
    return Curriculum("twins", curricula.interleave([block], final))
