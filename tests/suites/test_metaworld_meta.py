"""Meta-learners through Meta-World's own protocols, at a tiny budget: rows, metrics and report."""

import json

import numpy as np
import pytest

import perdure
from perdure import registry
from perdure.curricula.named import curriculum_of as curriculum
from perdure.run.plan import make_plan
from perdure.run.spec import RunSpec
from perdure.show.report import data, load
from perdure.show.report.matrices import per_task
from perdure.show.summary import by_task
from perdure.specs import Spec
from perdure.store.run import Run

pytest.importorskip("torch")
pytest.importorskip("metaworld")

AGENTS = {
    "rl2": "rl2,trials=4,epochs=1,hidden=[8],width=8,sequence=20",
    "maml": "maml,shots=1,tasks=4,hidden=[8]",
    "pearl": "pearl,tasks=2,batch=8,start=10,rate=0.05,replay=2000,hidden=[8],encoder=[8]",
    "sac": "sac,batch=8,start=10,every=10,hidden=[8]",
}


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "tests"), [("ml10", 5), ("ml45", 5), ("ml1", 1)])
def test_protocols_from_end_to_end(tmp_path, protocol, tests):
    """Every agent adapts to every test task: those that learn to adapt, and SAC that just goes on."""
    agents = [f"{name}={spec}" for name, spec in AGENTS.items()]
    if protocol == "ml45":
        agents = agents[:1]
    curriculum = f"metaworld/{protocol},horizon=6,steps=24,trial=2,shots=2,episodes=2,goals=1"
    made = perdure.experiment(curriculum, agents, executor="serial", out=str(tmp_path / "run"))
    rows = made.rows().to_pylist()
    assert {r["agent"] for r in rows} == {spec.split("=")[0] for spec in agents}
    for agent in {r["agent"] for r in rows}:
        own = [r for r in rows if r["agent"] == agent]
        adapted = [r for r in own if r["kind"] == "adapt"]
        assert len({(r["task"], r["variant"]) for r in adapted}) == tests
        assert sum(r["learning"] for r in adapted) == sum(not r["learning"] for r in adapted)
    study = load([tmp_path / "run"], list(registry.metrics().values()))
    (found,) = [b for b in data.benchmarks(study) if b["picture"] == "stages"]
    assert found["title"] == "Meta-World: success while adapting"
    stages = ["before", "episode 1", "episode 2", "after"]
    parts = 1 if tests == 1 else 1 + tests  # The mean over test tasks, then each of them.
    assert [r["stage"] for r in found["rows"]] == stages * len(agents) * parts
    assert all(0 <= r["value"] <= 1 for r in found["rows"])
    # Of metrics with the same values, as they are after so little learning, the table shows one.
    head = study.results.headline
    assert "metaworld.success" in head and "metaworld.adaptation" in head
    json.dumps(data.page_data(study)["benchmarks"], allow_nan=False)


def test_online_meta_learning_stops_where_a_task_is_mastered(tmp_path):
    """With a threshold that is reached at once a task costs its adaptation alone; with one beyond reach,
    its whole budget, adaptations included. More goals make no dearer task."""
    curriculum = "toy/online-navigation,tasks=4,steps=120,chunk=60,trial=2,shots=2"
    for threshold, goals, steps in ((-1e9, 3, 30), (0.1, 1, 120 + 3 * 30)):
        made = perdure.experiment(
            f"{curriculum},threshold={threshold},goals={goals}", ["random"], lifetimes=2,
            executor="serial", out=str(tmp_path / f"{steps}"),
        )  # fmt: skip
        study = load([tmp_path / f"{steps}"], list(registry.metrics().values()))
        for score in study.scores("online.steps").values():
            assert list(score.per_task.values()) == [steps] * 4
        assert all(s.value == 1.0 for s in study.scores("online.speedup").values())
        orders = [tuple(s.per_task) for s in study.scores("online.steps").values()]
        assert len(set(orders)) == 2, "another order in each lifetime"
        rows = made.rows().to_pylist()
        assert np.isfinite([r["return"] for r in rows]).all()
    assert study.results.headline[:2] == ("online.steps", "online.speedup")


class Low:
    """Results with which no task is ever mastered."""

    def mean(self, *_, **__):
        return -1e9


def blocks_of(spec, count):
    """The first blocks of a curriculum, the tasks of which are not mastered."""
    made = curriculum(Spec.parse(spec))
    if made.generate is None:
        return made.blocks
    going = made.generate()
    return [next(going), *(going.send(Low()) for _ in range(count - 1))]


def test_mastery_is_of_several_goals_that_are_held_out():
    """Each of a task's test goals is adapted to in a block of its own; none is another's."""
    tests = [b.exposures[0].task for b in blocks_of("toy/online-navigation,goals=5", 5)]
    goals = []
    for task in tests:
        env = registry.suite("toy").env(task)
        env.reset(seed=0)
        goals.append(tuple(env.goal))
    assert len(set(goals)) == 5 and len({t.name for t in tests}) == 1
    middle = np.mean(goals, 0)
    assert np.linalg.norm(np.array(goals) - middle, axis=1).max() < 0.8, "in one direction"


def test_meta_and_online_show_the_same_where_they_learn_and_where_they_adapt():
    """What goes by a task's name or number would learn as one task and be tested as another."""
    for spec in ("toy/online-navigation", "metaworld/online", "metaworld/ml10", "toy/meta-mass"):
        blocks = blocks_of(spec, 25)
        kinds = {b.kind for b in blocks}
        assert {"learn", "adapt"} <= kinds
        assert not any(b.visibility.task_ids for b in blocks), spec


def test_metaworlds_online_tests_are_held_out():
    """ML1's: goals to learn on and others to test on, ten of them, an episode each."""
    blocks = blocks_of("metaworld/online,tasks=['reach'],goals=3,shots=2", 4)
    assert [b.kind for b in blocks] == ["adapt"] * 3 + ["learn"]
    told = [
        (e.task.params["benchmark"], e.task.params.get("goal")) for b in blocks for e in b.exposures
    ]
    assert told == [("ML1-test", 0), ("ML1-test", 1), ("ML1-test", 2), ("ML1-train", None)]


@pytest.mark.parametrize("name", ["ml1", "ml1,preset=paper", "ml10"])
def test_the_papers_defaults_run_together(name, tmp_path):
    for agent in ("maml", "rl2", "pearl"):
        make_plan(RunSpec(f"metaworld/{name}", (agent,), out=str(tmp_path)))


def test_meta_learners_through_tasks_in_turn(tmp_path):
    """Meta-learners and SAC live the same lifetime of tasks, in trials, and have the same metrics of it."""
    agents = [f"{name}={spec}" for name, spec in AGENTS.items()]
    curriculum = "metaworld/sequence,tasks=['reach','push'],steps=24,episodes=1,horizon=6,trial=2"
    made = perdure.experiment(curriculum, agents, executor="serial", out=str(tmp_path / "run"))
    rows = [r for r in made.rows().to_pylist() if r["kind"] == "learn"]
    trials = {(r["agent"], r["task"], r["trial"]) for r in rows}
    assert 2 * len(trials) == len(rows) == 4 * len(agents) * 2
    study = load([tmp_path / "run"], list(registry.metrics().values()))
    for life in study.results.lifetimes:
        defined = {name for name, score in life.scores.items() if not np.isnan(score.value)}
        assert {"l2m.bt", "cw.forgetting"} <= defined, (life.agent, sorted(defined))


def test_goals_are_shown_as_the_task_they_are_of(tmp_path):
    """However many of them are adapted to: a hundred panels would show none. Metrics read each of them."""
    curriculum = (
        "toy/online-navigation,tasks=2,steps=60,chunk=60,trial=2,shots=1,goals=5,threshold=0"
    )
    perdure.experiment(curriculum, ["random"], executor="serial", out=str(tmp_path / "run"))
    study = load([tmp_path / "run"], list(registry.metrics().values()))
    (scores,) = study.scores("meta.after").values()
    assert len(scores.per_task) == 2 * 5 and len(study.tasks) == 2
    shown = {r["task"]: r["value"] for r in per_task(study, "meta.after")}
    assert set(shown) == set(study.tasks)
    for task, value in shown.items():
        own = [v for goal, v in scores.per_task.items() if goal.startswith(f"{task}@")]
        assert len(own) == 5 and value == pytest.approx(np.mean(own))
    sheet = by_task(Run(tmp_path / "run"))
    assert sheet.head == ["agent", "task 1", "task 2"]
