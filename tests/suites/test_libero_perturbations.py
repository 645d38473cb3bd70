"""Tasks changed along an axis: each changes what it says, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("mujoco")

from kit import live
from perdure.agents.expert import SuiteExpert
from perdure.errors import CurriculumError, SpecError
from perdure.registry import suite
from perdure.suites.libero.env import Libero
from perdure.suites.libero.experts import solve
from perdure.suites.libero.generation.goal_states import check_goal_can_hold
from perdure.suites.libero.lifelong import perturbed, robustness
from perdure.suites.libero.perturbations import (
    NotChanged,
    with_distractors,
    with_other_goal,
    with_other_places,
)
from perdure.suites.libero.problems import problem_of
from perdure.suites.libero.scene import build
from perdure.suites.libero.simulation import Simulation
from perdure.suites.libero.tasks import find, officials
from perdure.types import Curriculum, Setup, Task, evaluate

LIBERO: Any = suite("libero")
PLAIN = {"cameras": [], "solves": 1, "initial_states": "numbered", "objects": True, "horizon": 300}
SOUP, BASKET = "alphabet_soup_1", "basket_1"


def made(name: str = "object-0", **changes: Any) -> tuple[Task, Libero]:
    task = Task("libero", name, params={**PLAIN, **changes})
    return task, LIBERO.env(task)


def places(env: Libero, number: int = 3) -> dict[str, np.ndarray]:
    """Where each object stands after the reset of a number."""
    env.reset(seed=7, options={"episode": number, "instance": number})
    assert env.simulation is not None
    data = env.simulation.data
    return {n: data.body(b.root).xpos.copy() for n, b in env.simulation.objects.items()}


def moved(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> set[str]:
    """Those that stand more than two centimetres elsewhere."""
    return {n for n in before if np.linalg.norm(before[n][:2] - after[n][:2]) > 0.02}


@pytest.mark.parametrize("count", [1, 3])
def test_distractors_stand_there_besides_and_all_else_is_as_it_was(count: int) -> None:
    task, env = made()
    other, fuller = made(distractors=count)
    before, after = places(env), places(fuller)
    # The solver has more to solve: all comes to rest where it did, to a hundredth of a millimetre.
    assert max(np.abs(before[n] - after[n]).max() for n in before) < 1e-5
    new = after.keys() - before.keys()
    assert len(new) == count
    apart = [np.linalg.norm(after[n][:2] - after[o][:2]) for n in new for o in after if o != n]
    assert min(apart) > 0.05
    assert fuller.problem.goal == env.problem.goal
    assert LIBERO.instructions(other) == LIBERO.instructions(task)
    # What is observed is the same, by name and length.
    assert fuller.observation_space == env.observation_space
    assert LIBERO.spaces(other) == LIBERO.spaces(task)


def test_more_distractors_are_the_fewer_and_others() -> None:
    problem = problem_of(find("object-3"))
    fewer, more = with_distractors(problem, 1), with_distractors(problem, 3)
    assert more.objects[: len(fewer.objects)] == fewer.objects


@pytest.mark.parametrize("level", [1, 2, 3])
def test_rearranged_moves_more_and_more_and_keeps_the_task(level: int) -> None:
    task, env = made()
    other, elsewhere = made(rearranged=level)
    before, after = places(env), places(elsewhere)
    assert before.keys() == after.keys()
    found = moved(before, after)
    bystanders = before.keys() - {SOUP, BASKET}
    if level == 1:
        assert len(found) == 1 and found < bystanders
    else:
        assert found == (bystanders if level == 2 else bystanders | {SOUP})
    assert elsewhere.problem.goal == env.problem.goal
    assert elsewhere.problem.objects == env.problem.objects
    assert LIBERO.instructions(other) == LIBERO.instructions(task)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_another_goal_is_asked_for_in_the_very_same_scene(level: int) -> None:
    task, env = made()
    other, asked = made(other_goal=level)
    before, after = places(env), places(asked)
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[n], after[n]) for n in before)
    ((old,), (new,)) = env.problem.goal, asked.problem.goal
    assert (old.names[0] != new.names[0]) is (level in (1, 3))
    assert (old.names[1] != new.names[1]) is (level in (2, 3))
    (said,) = LIBERO.instructions(other)
    assert said != LIBERO.instructions(task)[0] and said.startswith("pick up the ")
    assert ("alphabet soup" in said) is (level == 2) and ("in the basket" in said) is (level == 1)
    polite = Task("libero", "object-0", params={**other.params, "instruction": "polite"})
    assert LIBERO.instructions(polite) == (f"could you please {said}",)


@pytest.mark.parametrize(
    "change", [{"distractors": 3}, {"rearranged": 3}, {"other_goal": 1}], ids=str
)
def test_an_expert_solves_what_was_changed(change: dict[str, int]) -> None:
    _, env = made(**change)
    assert solve(env, 0, {"episode": 0, "instance": 0}).success


def test_the_expert_of_a_run_plays_what_was_changed(tmp_path) -> None:
    """It plans in the scene with what stands there besides, and for the goal that is asked for."""
    (block,) = robustness(
        ["object-0"], "small", axes=["objects", "goals"], episodes=1, horizon=300,
        privileged=True, objects=False,
    ).blocks  # fmt: skip
    played = [e for e in block.exposures if e.task.variant in ("objects-3", "goals-1")]
    rows, _ = live(Curriculum("changed", (evaluate(*played),)), SuiteExpert, tmp=tmp_path)
    assert [r.success for r in rows] == [1.0, 1.0]


def test_the_expert_must_be_told_what_it_plays() -> None:
    task, env = made(privileged=True)
    with pytest.raises(SpecError, match="must be told what libero/object-0 is"):
        SuiteExpert(Setup(env.observation_space, env.action_space, 1, 0, (task.id,)))


@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize("name", ["object-0", "goal-2"])
def test_another_goal_can_be_reached(name: str, level: int) -> None:
    scene = build(with_other_goal(problem_of(find(name)), level), "primitive")
    simulation = Simulation(scene, solves=1)
    simulation.reset(0)
    assert not simulation.success()
    check_goal_can_hold(scene, simulation)


def test_what_a_sentence_tells_by_its_place_stays_there() -> None:
    # "the black bowl on the cookie box": the ramekin alone may move.
    problem = problem_of(find("spatial-3"))
    (relation,) = set(with_other_places(problem, 1).init) - set(problem.init)
    assert relation.names[0] == "glazed_rim_porcelain_ramekin_1"
    for level in (2, 3):
        with pytest.raises(NotChanged):
            with_other_places(problem, level)
    # Of two bowls none is named by its kind alone.
    assert all("bowl" not in str(r) for r in with_other_goal(problem, 1).goal)


def test_most_tasks_can_be_changed_along_each_axis() -> None:
    count = {"objects": 0, "relations": 0, "goals": 0}
    for name in officials():
        found = {v.variant.split("-")[0] for v in perturbed(Task("libero", name), ())}
        for axis in count:
            count[axis] += axis in found
    assert count["objects"] > 120 and count["relations"] > 100 and count["goals"] > 120


def test_levels_that_a_task_does_not_have_are_left_out() -> None:
    task = Task("libero", "spatial-3", params={"initial_states": "official"})
    found = perturbed(task, ["relations", "goals"])
    assert [v.variant for v in found] == ["relations-1", "goals-1", "goals-3"]
    # Official states know nothing of what stands elsewhere, and all of a scene that is the same.
    assert [v.params["initial_states"] for v in found] == ["numbered", "official", "official"]
    with pytest.raises(CurriculumError, match="initial_states to numbered"):
        LIBERO.env(Task("libero", "object-0", params={**task.params, "rearranged": 1}))
    with pytest.raises(CurriculumError, match="rearranged must be one of"):
        LIBERO.env(Task("libero", "object-0", params={"rearranged": 4}))
    fixed = next(
        n for n in officials() if not [v for v in perturbed(Task("libero", n), ()) if "rel" in v.id]
    )
    with pytest.raises(CurriculumError, match="along relations"):
        perturbed(Task("libero", fixed), ["relations"])


def test_a_curriculum_has_them_beside_the_others() -> None:
    (block,) = robustness(["object-0"], "small", axes=["words", "objects", "goals"]).blocks
    names = [e.task.variant for e in block.exposures]
    assert names == ["", *(f"{a}-{k}" for a in ("words", "objects", "goals") for k in (1, 2, 3))]
