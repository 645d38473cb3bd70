"""Curricula of tiny tasks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence

from perdure import curricula
from perdure.errors import CurriculumError
from perdure.seeds import rng_for
from perdure.suites.toy.envs import ARMS
from perdure.suites.toy.families import DIRECTIONS
from perdure.types import (
    Curriculum,
    Exposure,
    Task,
    Unit,
    Visibility,
    adapt,
    evaluate,
    learn,
)


def _corners(corners: Sequence[str] = ("ne", "sw", "nw")) -> list[Task]:
    return [Task("toy", f"goal-{c}") for c in corners]


def compass(steps: int = 3000, episodes: int = 20, repeats: int = 1) -> Curriculum:
    """Three corners in turn, all evaluated before, between and after: forgetting is certain."""
    about = (inspect.getdoc(compass) or "").split("\n")[0]
    return curricula.tasks_in_turn(
        "toy/compass",
        _corners(),
        amount=steps,
        unit="steps",
        episodes=episodes,
        repeats=repeats,
        about=about,
    )


def until(threshold: float = 0.9, chunk: int = 500, budget: int = 5000) -> Curriculum:
    """Early stopping: each corner until success ≥ threshold or its budget is used up."""
    return curricula.until("toy/until", _corners(), threshold=threshold, chunk=chunk, budget=budget)


def chosen(choices: int = 9, steps: int = 500) -> Curriculum:
    """Active learning: the agent picks its next corner."""
    return curricula.agent_chosen("toy/chosen", _corners(), choices=choices, amount=steps)


def parallel(steps: int = 2000, episodes: int = 10) -> Curriculum:
    """Multi-task: three bandits side by side, whose contexts mean different arms."""
    tasks = [Task("toy", "bandit", f"shift{k}", {"shift": k}) for k in range(3)]
    block = learn(*(Exposure(t, steps, "steps") for t in tasks), parallel=True)
    final = evaluate(*(Exposure(t, episodes) for t in tasks), parallel=True)
    return Curriculum("toy/parallel", curricula.interleave([block], final))


def meta(steps: int = 2000, shots: int = 50, episodes: int = 10) -> Curriculum:
    """Meta-testing: learn two corners, then adapt to the third and forget the adaptation."""
    first, second, third = _corners()
    probe = adapt(Exposure(third, shots), then=[Exposure(third, episodes)])
    blocks = [learn(Exposure(t, steps, "steps")) for t in (first, second)]
    return Curriculum("toy/meta", curricula.interleave(blocks, probe))


def drift(steps: int = 2000) -> Curriculum:
    """A continuing task on step budgets: no episode ever ends."""
    task = Task("toy", "drift")
    return Curriculum(
        "toy/drift",
        curricula.interleave(
            [learn(Exposure(task, steps, "steps"))], evaluate(Exposure(task, 500, "steps"))
        ),
    )


def blobs(epochs: int = 5) -> Curriculum:
    """Labelled data: the same classes turned by 0°, 45° and 90°."""
    tasks = [Task("toy", "blobs", f"turn{a}", {"angle": a}) for a in (0, 45, 90)]
    return _labelled("toy/blobs", tasks, epochs)


def islands(islands: int = 2, epochs: int = 20, noise: float = 0.15) -> Curriculum:
    """Labelled data far apart: all of it can be known at once, and who keeps nothing forgets."""
    places = [{"shift": 4.0 * k, "angle": 90.0 * k, "noise": noise} for k in range(islands)]
    tasks = [Task("toy", "blobs", f"island{k}", place) for k, place in enumerate(places)]
    return _labelled("toy/islands", tasks, epochs)


def _labelled(name: str, tasks: Sequence[Task], epochs: int) -> Curriculum:
    blocks = [learn(Exposure(t, epochs, "epochs")) for t in tasks]
    evaluation = evaluate(*(Exposure(t, 1, "epochs") for t in tasks))
    return Curriculum(name, curricula.interleave(blocks, evaluation))


def deployed(before: int = 1000, steps: int = 1000) -> Curriculum:
    """A pre-deployment block on one corner, then a life on the other two."""
    first, second, third = _corners()
    evaluation = evaluate(*(Exposure(t, 10) for t in (first, second, third)))
    blocks = [learn(Exposure(t, steps, "steps")) for t in (second, third)]
    if before < 1:
        raise CurriculumError(f"toy/deployed: 'before' must be at least 1 step, got {before}")
    return Curriculum(
        "toy/deployed",
        curricula.interleave(blocks, evaluation),
        before=(learn(Exposure(first, before, "steps")),),
    )


def check(task: str = "bandit", probe: bool = True) -> Curriculum:
    """A tiny life that visits every kind of block: for conformance checks."""
    one = Task("toy", task)
    data = task == "blobs"
    if data:
        one = Task("toy", task, params={"examples": 64, "batch_size": 8})
    unit: Unit = "batches" if data else "steps"
    some, few = (
        Exposure(one, 5 if data else 40, unit),
        Exposure(one, 3, "batches" if data else "episodes"),
    )
    blocks = [evaluate(few), learn(some), learn(some, Exposure(one, 4 if data else 27, unit))]
    if probe:
        blocks.append(adapt(Exposure(one, 4 if data else 30, unit), then=[few]))
    blocks += [learn(some), evaluate(few)]
    return Curriculum("toy/check", tuple(blocks))


def recall(steps: int = 20_000, episodes: int = 50, delay: int = 3) -> Curriculum:
    """Memory: name the cue seen some steps ago."""
    task = Task("toy", "recall", params={"delay": delay})
    return curricula.tasks_in_turn(
        "toy/recall", [task], amount=steps, unit="steps", episodes=episodes
    )


def trials(steps: int = 30_000, episodes: int = 300) -> Curriculum:
    """Meta-learning: which arm pays is hidden, and stays for the three episodes of a trial. Rewards
    are shown in evaluation too: they are what tells."""
    task, shown = Task("toy", "hidden-goal"), Visibility(rewards=True)
    final = evaluate(Exposure(task, episodes, episodes_per_trial=3), visibility=shown)
    block = learn(Exposure(task, steps, "steps", episodes_per_trial=3))
    return Curriculum("toy/trials", curricula.interleave([block], final))


def meta_navigation(
    steps: int = 200_000, trial: int = 10, shots: int = 10, episodes: int = 3, goals: int = 20
) -> Curriculum:
    """Meta-learning: walk to hidden goals on a circle; held-out ones to adapt to."""
    return _family("navigation", steps, trial, shots, episodes, goals)


def meta_bandit(
    steps: int = 200_000, trial: int = 10, shots: int = 10, episodes: int = 3, goals: int = 20
) -> Curriculum:
    """Meta-learning: find the arm that pays best."""
    return _family("bernoulli", steps, trial, shots, episodes, goals)


def meta_mass(
    steps: int = 200_000, trial: int = 10, shots: int = 10, episodes: int = 3, goals: int = 20
) -> Curriculum:
    """Meta-learning: push a mass whose answer to a push is not known."""
    return _family("mass", steps, trial, shots, episodes, goals)


def online_navigation(
    steps: int = 20_000,
    chunk: int = 2000,
    tasks: int = len(DIRECTIONS),
    trial: int = 10,
    shots: int = 3,
    episodes: int = 1,
    goals: int = 10,
    threshold: float = -8.0,
    seed: int = 0,
) -> Curriculum:
    """Online meta-learning: the eight parts of the circle that hides goals come one by one, each until the
    return after adapting to held-out goals is at least the threshold."""
    title = "toy/online-navigation"
    if not 1 <= tasks <= len(DIRECTIONS):
        raise CurriculumError(f"{title}: tasks must be from 1 to {len(DIRECTIONS)}, got {tasks}")
    came = rng_for(seed, "online").permutation(len(DIRECTIONS))[:tasks]
    names = [f"navigation-{DIRECTIONS[k]}" for k in came]
    budget = curricula.MetaBudget(steps, trial=trial, shots=shots, episodes=episodes)
    return curricula.online_meta_learning(
        title,
        [(Task("toy", name), _held_out(title, name, goals)) for name in names],
        budget,
        threshold=threshold,
        measure="return",
        chunk=chunk,
    )


def _family(name: str, steps: int, trial: int, shots: int, episodes: int, goals: int) -> Curriculum:
    title = f"toy/meta-{'bandit' if name == 'bernoulli' else name}"
    tests = _held_out(title, name, goals)
    budget = curricula.MetaBudget(steps, trial=trial, shots=shots, episodes=episodes)
    return curricula.meta_learning(title, [Task("toy", name)], tests, budget)


def _held_out(title: str, name: str, goals: int) -> list[Task]:
    """Instances of a family to adapt to."""
    if goals < 1:
        raise CurriculumError(f"{title}: goals must be at least 1, got {goals}")
    return [Task("toy", name, f"test{k}", {"instance": k}) for k in range(goals)]


def signed_reach(steps: int = 3000, episodes: int = 5, picture: bool = True) -> Curriculum:
    """Dict observations: a number and a picture say together where to reach."""
    task = Task("toy", "signed-reach", params={"picture": picture})
    return curricula.tasks_in_turn(
        "toy/signed-reach", [task], amount=steps, unit="steps", episodes=episodes
    )


def told(steps: int = 500, episodes: int = 20, ids: bool = False) -> Curriculum:
    """Language: two tasks that only their instruction tells apart; task ids are hidden unless
    ``ids``."""
    tasks = [Task("toy", "told", arm, {"arm": arm}) for arm in ARMS]
    shown = Visibility(task_ids=ids, instructions=True)
    both = [Exposure(t, steps, "steps") for t in tasks]
    final = evaluate(*(Exposure(t, episodes) for t in tasks), visibility=shown)
    blocks = [learn(*both, parallel=True, visibility=shown)]
    return Curriculum("toy/told", curricula.interleave(blocks, final))


def cue(
    observation: str = "Box",
    action: str = "Discrete",
    steps: int = 2000,
    epochs: int = 0,
    episodes: int = 50,
    trial: int = 1,
    length: int = 1,
) -> Curriculum:
    """Any kind of space: name two lights that are seen in one kind of space by actions of another; with
    ``epochs`` from demonstrations."""
    params = {"observation": observation, "action": action, "length": length}
    task = Task("toy", "cue", params=params)
    block = learn(Exposure(task, steps, "steps", episodes_per_trial=trial))
    if epochs:
        block = learn(Exposure(task, epochs, "epochs"))
    return Curriculum("toy/cue", curricula.interleave([block], evaluate(Exposure(task, episodes))))


CURRICULA: Mapping[str, Callable[..., Curriculum]] = {
    "compass": compass,
    "until": until,
    "chosen": chosen,
    "parallel": parallel,
    "meta": meta,
    "drift": drift,
    "blobs": blobs,
    "islands": islands,
    "deployed": deployed,
    "recall": recall,
    "trials": trials,
    "meta-navigation": meta_navigation,
    "meta-bandit": meta_bandit,
    "meta-mass": meta_mass,
    "online-navigation": online_navigation,
    "signed-reach": signed_reach,
    "told": told,
    "cue": cue,
    "check": check,
}
