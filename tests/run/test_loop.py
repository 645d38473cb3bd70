"""The loop: budgets, hiding, boundaries, resets, and resuming at any commit."""

import math
import shutil

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from kit import Recorder, live, setting_of
from perdure import registry
from perdure.agent import Agent
from perdure.agents.compose import make_agent
from perdure.curricula.named import curriculum_of
from perdure.errors import AgentFault, CurriculumError
from perdure.run.loop import LifetimeLoop
from perdure.seeds import seed_for
from perdure.specs import Spec
from perdure.store.log import Lifetime, LifetimeLog
from perdure.suite import Suite
from perdure.testing.agents import cut_journal, read_rows
from perdure.types import (
    BlockChoice,
    Curriculum,
    Exposure,
    Task,
    Transitions,
    adapt,
    evaluate,
    learn,
)


def count(length=5, **kw):
    return Task("toy", "count", kw.pop("variant", ""), {"length": length})


def one(*blocks):
    return Curriculum("x", blocks)


@pytest.mark.parametrize("envs", [1, 3, 8])
@pytest.mark.parametrize("episodes", [1, 3, 5])
def test_episode_budgets_are_exact(tmp_path, episodes, envs):
    rows, agent = live(one(learn(Exposure(count(), episodes))), tmp=tmp_path, envs=envs)
    assert sorted(r.episode for r in rows) == list(range(episodes))
    assert all(r.status == "complete" and r.steps == 5 and r.terminated for r in rows)
    assert sum(len(b) for b, _ in agent.batches) == 5 * episodes


@pytest.mark.parametrize("envs", [1, 3, 8])
@pytest.mark.parametrize("steps", [2, 5, 8, 10, 100])
def test_step_budgets_are_exact_and_nothing_is_lost(tmp_path, steps, envs):
    rows, agent = live(one(learn(Exposure(count(), steps, "steps"))), tmp=tmp_path, envs=envs)
    assert sum(len(b) for b, _ in agent.batches) == steps
    assert sum(r.steps for r in rows) == steps
    assert sum(r.ret for r in rows) == steps  # the agent always plays 1
    ends = sum(int(b.terminated.sum()) for b, _ in agent.batches)
    assert [r.status for r in rows].count("complete") == ends
    assert all((r.status == "complete") == (r.steps == 5) for r in rows)
    assert rows[-1].learning_steps == steps


def test_rewards_are_hidden_in_evaluation(tmp_path):
    blocks = (learn(Exposure(count(), 2)), evaluate(Exposure(count(), 2)))
    rows, agent = live(one(*blocks), tmp=tmp_path)
    for batch, ctx in agent.batches:
        assert (batch.rewards is None) == (not ctx.learning)
    assert [r.ret for r in rows] == [5.0] * 4


def test_the_final_observation_is_the_true_one(tmp_path):
    _, agent = live(one(learn(Exposure(count(3), 2))), tmp=tmp_path)
    assert [float(b.next_obs[0, 0]) for b, _ in agent.batches] == [1, 2, 3, 1, 2, 3]
    assert [float(b.obs[0, 0]) for b, _ in agent.batches] == [0, 1, 2, 0, 1, 2]
    assert [f[2] for f in agent.acted] == [[True], [False], [False]] * 2


def test_terminated_and_truncated_are_kept_apart(tmp_path):
    task = Task("toy", "goal-ne", params={"horizon": 4})
    rows, agent = live(one(learn(Exposure(task, 30))), tmp=tmp_path)
    assert {(r.terminated, r.truncated) for r in rows} >= {(False, True), (True, False)}
    for row, last in zip(rows, [b for b, _ in agent.batches if b.terminated[0] or b.truncated[0]]):
        assert (row.terminated, row.truncated) == (last.terminated[0], last.truncated[0])


def test_boundaries_come_in_order_and_once(tmp_path):
    a, b, u = count(variant="a"), count(variant="b"), Task("toy", "count", "c", {"length": 2})
    goal = evaluate(Exposure(a, 1))
    rows, agent = live(
        one(learn(Exposure(a, 1), Exposure(b, 1), Exposure(u, 1)), goal), tmp=tmp_path
    )
    assert [(w, e) for w, e, _, _ in agent.events] == [
        ("enter", "lifetime"),
        ("enter", "block"),
        ("enter", "task"),
        ("enter", "variant"), ("leave", "variant"),
        ("enter", "variant"), ("leave", "variant"),
        ("enter", "variant"), ("leave", "variant"),
        ("leave", "task"),
        ("leave", "block"),
        ("enter", "block"), ("enter", "task"), ("enter", "variant"),
        ("leave", "variant"), ("leave", "task"), ("leave", "block"),
        ("leave", "lifetime"),
    ]  # fmt: skip
    assert agent.events[3][2] == ("toy/count@a",)
    assert [e[3] for e in agent.events if e[1] == "block"] == [True, True, False, False]


def test_task_identity_can_be_hidden(tmp_path):
    curriculum = one(learn(Exposure(count(), 1)))
    _, agent = live(curriculum, tmp=tmp_path, hide_tasks=True)
    assert agent.setup.tasks == () and all(ctx.tasks is None for _, ctx in agent.batches)
    assert all(tasks is None for _, _, tasks, _ in agent.events)
    _, agent = live(curriculum, path=tmp_path / "shown")
    assert agent.setup.tasks == ("toy/count",) and agent.batches[0][1].task == "toy/count"


def test_tasks_side_by_side(tmp_path):
    short, long = count(2, variant="s"), count(5, variant="l")
    block = learn(Exposure(short, 3), Exposure(long, 7, "steps"), parallel=True)
    rows, agent = live(one(block), tmp=tmp_path, envs=2)
    assert agent.setup.slots == 4
    batch, ctx = agent.batches[0]
    assert ctx.tasks == ("toy/count@s",) * 2 + ("toy/count@l",) * 2
    assert ctx.slots.tolist() == [0, 1, 2, 3] and len(batch) == 4
    assert [r.status for r in rows if r.variant == "s"] == ["complete"] * 3
    assert sum(r.steps for r in rows if r.variant == "l") == 7
    assert {r.exposure for r in rows if r.variant == "l"} == {1}


def test_continuing_tasks_write_windows(tmp_path):
    task = Task("toy", "drift", params={"window": 30})
    rows, _ = live(one(learn(Exposure(task, 100, "steps"))), tmp=tmp_path)
    assert [(r.steps, r.status) for r in rows] == [(30, "window")] * 3 + [(10, "incomplete")]
    assert {r.episode for r in rows} == {0}


def test_an_adapt_block_leaves_no_trace(tmp_path):
    probe = adapt(Exposure(count(), 20, "steps"), then=[Exposure(count(), 2)])
    block = learn(Exposure(count(), 20, "steps"))

    class Counter(Agent):
        def __init__(self, setup):
            super().__init__(setup)
            self.seen, self.log = 0, []

        def act(self, obs, ctx):
            return self.rng.integers(2, size=len(obs))

        def learn(self, batch, ctx):
            self.seen += len(batch)

        def leave(self, ctx):
            if ctx.event == "variant":
                self.log.append((ctx.kind, ctx.learning, self.seen))

        def state(self):
            return {"seen": np.array(self.seen)}

        def load(self, state):
            self.seen = int(state["seen"])

    with_probe, agent = live(one(block, probe, block), Counter, tmp=tmp_path)
    assert agent.log == [
        ("learn", True, 20), ("adapt", True, 40), ("adapt", False, 40), ("learn", True, 40),
    ]  # fmt: skip
    # The probe and its draws change nothing about what comes after. (Learning episodes are
    # addressed by block, so the block after it must have the same number.)
    other = evaluate(Exposure(count(), 1))
    without, _ = live(one(block, other, block), Counter, path=tmp_path / "without")
    assert [r.ret for r in with_probe if r.block == 2] == [r.ret for r in without if r.block == 2]


def test_each_adapt_block_draws_for_itself(tmp_path):
    drawn = []

    class Drawing(Recorder):
        def act(self, obs, ctx):
            if ctx.learning:
                drawn.append((ctx.block, float(self.rng.random())))
            return super().act(obs, ctx)

        def state(self):
            return {}

        def load(self, state):
            pass

    probe = adapt(Exposure(count(), 1), then=[Exposure(count(), 1)])
    live(one(probe, probe), Drawing, tmp=tmp_path)
    first, second = ([x for b, x in drawn if b == block] for block in (0, 1))
    assert len(first) == len(second) == 5 and not set(first) & set(second)


def test_evaluation_plays_the_same_episodes_every_time(tmp_path):
    goal = Task("toy", "goal-ne")
    blocks = (evaluate(Exposure(goal, 5)), learn(Exposure(goal, 5)), evaluate(Exposure(goal, 5)))
    rows, _ = live(one(*blocks), tmp=tmp_path, envs=2)
    seeds = [{r.episode: r.seed for r in rows if r.block == b} for b in range(3)]
    assert seeds[0] == seeds[2] and not set(seeds[0].values()) & set(seeds[1].values())
    assert seeds[0][3] == seed_for(0, "eval", goal.key, "episode", 3)


def test_labelled_data(tmp_path):
    from perdure.testing import faulty  # noqa: F401  (agents below need no environment)

    class Means(Agent):
        """Nearest class mean."""

        def __init__(self, setup):
            super().__init__(setup)
            self.sums, self.n = np.zeros((4, 2)), np.zeros(4)

        def act(self, obs, ctx):
            means = self.sums / np.maximum(self.n, 1)[:, None]
            return np.argmin(((obs[:, None] - means) ** 2).sum(-1), axis=1)

        def learn(self, batch, ctx):
            np.add.at(self.sums, batch.targets, batch.inputs)
            np.add.at(self.n, batch.targets, 1)
            return {"loss": 0.5, "seen": self.n.sum()}

        def state(self):
            return {"sums": self.sums, "n": self.n}

        def load(self, state):
            self.sums, self.n = state["sums"].copy(), state["n"].copy()

    curriculum = curriculum_of(Spec.parse("toy/blobs,epochs=2"))
    rows, _ = live(curriculum, Means, tmp=tmp_path)
    learned = [r for r in rows if r.learning and r.block == 1]
    assert len(learned) == 16 and sum(r.steps for r in learned) == 512
    assert learned[0].loss == 0.5 and learned[0].more == {"seen": 32.0}

    def accuracy(block, variant):
        return np.mean([r.accuracy for r in rows if r.block == block and r.variant == variant])

    assert accuracy(0, "turn0") < 0.5 < 0.95 < accuracy(2, "turn0")
    assert accuracy(6, "turn90") < 0.9  # the mean of three turns fits none of them


def test_batches_side_by_side_take_turns(tmp_path):
    tasks = [Task("toy", "blobs", f"t{a}", {"angle": a, "examples": 64}) for a in (0, 45)]
    block = learn(Exposure(tasks[0], 3, "batches"), Exposure(tasks[1], 5, "batches"), parallel=True)
    rows, _ = live(one(block), tmp=tmp_path)
    assert [r.variant for r in rows] == ["t0", "t45"] * 3 + ["t45"] * 2


def test_measures_that_learning_returns_are_averaged_into_the_next_row(tmp_path):
    class Talker(Recorder):
        def learn(self, batch, ctx):
            return {"loss": float(batch.obs[0, 0]), "odd": 1.0}

    rows, _ = live(one(learn(Exposure(count(4), 2))), Talker, tmp=tmp_path)
    assert [r.loss for r in rows] == [1.5, 1.5] and rows[0].more == {"odd": 1.0}


# Generated curricula.


def spec(text):
    return curriculum_of(Spec.parse(text))


def test_early_stopping(tmp_path):
    class Oracle(Agent):
        """Fails its first two evaluations of a task, then walks straight to the corner."""

        def __init__(self, setup):
            super().__init__(setup)
            self.visits = {}

        def enter(self, ctx):
            if ctx.event == "variant" and ctx.learning:
                self.visits[ctx.task] = self.visits.get(ctx.task, 0) + 1

        def act(self, obs, ctx):
            if self.visits.get(ctx.task, 0) < 2:
                return np.ones(len(obs), int)
            at = np.argmax(obs, axis=1)
            x, y = at % 5, at // 5
            gx, gy = {"ne": (4, 0), "sw": (0, 4), "nw": (0, 0)}[ctx.task[-2:]]
            horizontal = np.where(x < gx, 1, 3)
            return np.where(x != gx, horizontal, np.where(y < gy, 2, 0))

        def state(self):
            return {k: np.array(v) for k, v in self.visits.items()}

        def load(self, state):
            self.visits = {k: int(v) for k, v in state.items()}

    rows, _ = live(spec("toy/until,chunk=50,budget=200"), Oracle, tmp=tmp_path)
    learned = {}
    for r in rows:
        if r.learning:
            learned[r.task] = learned.get(r.task, 0) + r.steps
    assert learned == {"toy/goal-ne": 100, "toy/goal-sw": 100, "toy/goal-nw": 100}


class Chooser(Agent):
    """Asks for the task it last scored worst on."""

    def act(self, obs, ctx):
        return self.rng.integers(4, size=len(obs))

    def choose(self, options, results):
        scores = [results.mean("success", task=o.exposures[0].task.id) for o in options]
        assert not any(map(math.isnan, scores))
        return int(np.argmin(scores))


def test_agent_chosen(tmp_path):
    rows, _ = live(spec("toy/chosen,choices=4,steps=40"), Chooser, tmp=tmp_path)
    for block in (1, 3, 5, 7):
        before = [r for r in rows if r.block == block - 1]
        worst = {
            t: np.mean([r.success for r in before if r.task == t]) for t in {r.task for r in before}
        }
        picked = {r.task for r in rows if r.block == block}
        assert worst[picked.pop()] == min(worst.values())


@pytest.mark.parametrize("answer", [-1, 3, 1.0, None, True])
def test_a_choice_outside_the_options_is_refused(tmp_path, answer):
    class Bad(Chooser):
        def choose(self, options, results):
            return answer

    with pytest.raises(AgentFault, match="expected a number from 0 to 2"):
        live(spec("toy/chosen"), Bad, tmp=tmp_path)


def test_what_a_generator_may_yield(tmp_path):
    task = count()

    def curriculum(item):
        def generate():
            yield item

        return Curriculum("gen", generate=generate, tasks=(task,))

    with pytest.raises(CurriculumError, match="expected a Block or a BlockChoice"):
        live(curriculum("soon"), tmp=tmp_path)
    with pytest.raises(CurriculumError, match="not among the curriculum's tasks"):
        live(curriculum(learn(Exposure(count(7), 1))), path=tmp_path / "b")
    wide = learn(Exposure(task, 1), Exposure(task, 1), parallel=True)
    with pytest.raises(CurriculumError, match="width=2"):
        live(curriculum(BlockChoice((wide,))), path=tmp_path / "c")


def test_a_generator_that_goes_wrong_says_where(tmp_path):
    block = learn(Exposure(count(), 1))

    def fails():
        yield block
        raise RuntimeError("boom")

    def refuses():
        yield block
        yield learn(Exposure(count(), 0))

    def nothing():
        yield from ()

    def lives(generate, **keys):
        return Curriculum("gen", generate=generate, tasks=(count(),), **keys)

    for k, (generate, says) in enumerate([
        (fails, "curriculum gen, generated block 1: RuntimeError: boom"),
        (refuses, "curriculum gen, generated block 1: .* amount must be at least 1"),
        (lambda: [block], "curriculum gen, generated block 0: .*yields blocks, got list"),
        (lambda: 1 / 0, "curriculum gen, generated block 0: ZeroDivisionError"),
        (nothing, "curriculum gen is empty"),
    ]):  # fmt: skip
        with pytest.raises(CurriculumError, match=says):
            live(lives(generate), path=tmp_path / str(k))
    rows, _ = live(lives(nothing, before=(block,)), path=tmp_path / "before")
    assert len(rows) == 1


# Resuming.

LIVES = {
    "steps, side by side, adapt": one(
        evaluate(Exposure(Task("toy", "goal-ne"), 3)),
        learn(Exposure(Task("toy", "goal-ne"), 70, "steps"), Exposure(Task("toy", "goal-sw"), 5)),
        learn(
            Exposure(Task("toy", "goal-ne"), 4), Exposure(Task("toy", "goal-nw"), 33, "steps"),
            parallel=True,
        ),
        adapt(Exposure(Task("toy", "goal-se"), 40, "steps"), then=[Exposure(Task("toy", "goal-se"), 3)]),
        evaluate(Exposure(Task("toy", "goal-ne"), 3), Exposure(Task("toy", "goal-sw"), 3), parallel=True),
    ),
    "continuing": one(learn(Exposure(Task("toy", "drift", params={"window": 30}), 200, "steps"))),
    "early stopping": spec("toy/until,chunk=60,budget=120"),
    "agent-chosen": spec("toy/chosen,choices=3,steps=40"),
}  # fmt: skip


@pytest.mark.parametrize("name", LIVES)
def test_resumed_from_any_commit_the_rows_are_the_same(tmp_path, name):
    curriculum = LIVES[name]

    def agent(setup):
        return make_agent(Spec("q"), setup)

    every = 17 if curriculum.generate is None else 131
    whole, _ = live(curriculum, agent, path=tmp_path / "whole", envs=2, checkpoint=every)
    commits = len(Lifetime.read(tmp_path / "whole").commits)
    assert commits > 5
    files = sorted(p.read_bytes() for p in (tmp_path / "whole/rows").iterdir())
    for k in range(0, commits, max(1, commits // 15)):
        path = tmp_path / f"from{k}"
        shutil.copytree(tmp_path / "whole", path)
        cut_journal(path, k)
        config = setting_of(curriculum, envs=2, checkpoint=every)
        with LifetimeLog(path, "test", 0) as log:
            assert len(log.commits) == k
            LifetimeLoop(config, agent(config.setup()), log).run()
        assert read_rows(path) == whole, f"resumed after commit {k}"
        assert sorted(p.read_bytes() for p in (path / "rows").iterdir()) == files


def test_an_environment_that_does_not_repeat_is_found_when_resuming(tmp_path):
    curriculum = LIVES["steps, side by side, adapt"]

    def agent(setup):
        return make_agent(Spec("q"), setup)

    live(curriculum, agent, path=tmp_path / "x", checkpoint=17)
    cut_journal(tmp_path / "x", 4)
    suite = registry.suite("toy")

    class Shifty(type(suite)):
        def env(self, task):
            env = super().env(task)
            env.MOVES = ((1, 0), (0, 1), (-1, 0), (0, -1))
            return env

    from dataclasses import replace

    config = replace(setting_of(curriculum, checkpoint=17), suites={"toy": Shifty()})
    with (
        LifetimeLog(tmp_path / "x", "test", 0) as log,
        pytest.raises(Exception, match="cannot be resumed exactly"),
    ):
        LifetimeLoop(config, agent(config.setup()), log).run()


# Spaces beyond Box and Discrete.


class Odd(gymnasium.Env):
    """Dict observations and tuple actions."""

    observation_space = spaces.Dict(
        {"a": spaces.Box(0, 9, (2,), np.float32), "b": spaces.Discrete(3)}
    )
    action_space = spaces.Tuple((spaces.Discrete(2), spaces.Box(-1, 1, (1,), np.float32)))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self._obs(), {}

    def _obs(self):
        return {"a": np.full(2, self.t, np.float32), "b": self.t % 3}

    def step(self, action):
        self.t += 1
        return self._obs(), float(action[0]) + float(action[1][0]), self.t >= 4, False, {}


class OddSuite(Suite):
    name = "odd"

    def tasks(self):
        return [Task("odd", "odd")]

    def env(self, task):
        return Odd()


def test_structured_spaces(tmp_path):
    class Agent2(Agent):
        def act(self, obs, ctx):
            assert obs["a"].shape == (len(ctx.slots), 2) and obs["b"].shape == (len(ctx.slots),)
            return [(1, np.full(1, 0.5, np.float32))] * len(ctx.slots)

        def learn(self, batch, ctx):
            assert (
                isinstance(batch, Transitions) and batch.next_obs["a"][0, 0] > batch.obs["a"][0, 0]
            )

        def state(self):
            return {}

    from perdure.run.config import LifetimeConfig

    curriculum = Curriculum("x", (learn(Exposure(Task("odd", "odd"), 9, "steps")),))
    config = LifetimeConfig(
        curriculum, {"odd": OddSuite()}, Odd.observation_space, Odd.action_space, 0, 2, checkpoint=4
    )
    for k in (None, 1):
        if k is not None:
            cut_journal(tmp_path / "x", k)
        with LifetimeLog(tmp_path / "x", "test", 0) as log:
            LifetimeLoop(config, Agent2(config.setup()), log).run()
        rows = read_rows(tmp_path / "x")
        assert sum(r.steps for r in rows) == 9 and sum(r.ret for r in rows) == 13.5
