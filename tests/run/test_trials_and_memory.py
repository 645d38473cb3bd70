"""Trials, memory, what is shown, instructions: as the loop tells them, and after any commit."""

import shutil
from collections import defaultdict

import numpy as np
import pytest

from kit import Recorder, live, setting_of
from perdure.agent import Agent
from perdure.curricula.named import curriculum_of
from perdure.errors import AgentFault, CurriculumError
from perdure.run.loop import LifetimeLoop
from perdure.specs import Spec
from perdure.store.log import LifetimeLog
from perdure.testing.agents import cut_journal, read_rows
from perdure.types import (
    BlockChoice,
    Curriculum,
    Exposure,
    Task,
    Visibility,
    adapt,
    evaluate,
    learn,
)

GOAL = Task("toy", "hidden-goal")
COUNT = Task("toy", "count", params={"length": 3})
REWARDS = Visibility(rewards=True)


def one(*blocks, **keys):
    return Curriculum("x", blocks, **keys)


def trials(amount, unit="episodes", per=3, task=GOAL):
    return Exposure(task, amount, unit, episodes_per_trial=per)


class Saved(Recorder):
    """A recorder that can be saved: it learns nothing."""

    def state(self):
        return {}


# Trials.


@pytest.mark.parametrize("envs", [1, 2, 4])
def test_the_episodes_of_a_trial_share_its_goal_and_stay_in_its_slot(tmp_path, envs):
    rows, agent = live(one(learn(trials(24))), tmp=tmp_path, envs=envs)
    by_trial = defaultdict(list)
    for r in rows:
        by_trial[r.trial].append(r)
    assert sorted(r.episode for r in rows) == list(range(24)) and sorted(by_trial) == list(range(8))
    for trial, mine in by_trial.items():
        assert [r.episode for r in mine] == [3 * trial, 3 * trial + 1, 3 * trial + 2]
        assert len({r.trial_seed for r in mine}) == len({r.slot for r in mine}) == 1
        assert len({r.seed for r in mine}) == 3, "episodes differ in what they may differ in"
        # The goal does not change: always pulling arm 1 pays always or never.
        assert len({r.ret for r in mine}) == 1
    assert len({r.trial_seed for r in rows}) == 8 and len({r.ret for r in rows}) == 2
    starts = [
        (ctx.episode_start[ctx.slots], ctx.trial_start[ctx.slots]) for _, ctx in agent.batches
    ]
    assert all(not np.any(trial & ~episode) for episode, trial in starts)


def test_where_trials_begin(tmp_path):
    class Watching(Recorder):
        def act(self, obs, ctx):
            self.acted.append(bool(ctx.trial_start[0]))
            assert ctx.episode_start[0]
            return [1]

    _, agent = live(one(learn(trials(6))), Watching, tmp=tmp_path)
    assert agent.acted == [True, False, False] * 2


def test_a_trial_is_one_episode_by_default(tmp_path):
    rows, _ = live(one(learn(Exposure(GOAL, 4)), evaluate(Exposure(GOAL, 4))), tmp=tmp_path)
    assert all(r.trial == r.episode and r.trial_seed == r.seed for r in rows)


def test_step_budgets_end_in_the_middle_of_a_trial(tmp_path):
    rows, _ = live(one(learn(trials(8, "steps"))), tmp=tmp_path, envs=2)
    assert sum(r.steps for r in rows) == 8
    assert [(r.trial, r.episode) for r in rows] == [
        (0, 0), (1, 3), (0, 1), (1, 4), (0, 2), (1, 5), (2, 6), (3, 9)
    ]  # fmt: skip


def test_trials_side_by_side(tmp_path):
    other = Task("toy", "hidden-goal", "again")
    block = learn(trials(6), trials(4, per=2, task=other), parallel=True)
    rows, _ = live(one(block), tmp=tmp_path, envs=2)
    for task, per, count in (("", 3, 6), ("again", 2, 4)):
        mine = [r for r in rows if r.variant == task]
        assert len(mine) == count and all(r.trial == r.episode // per for r in mine)
        for trial in {r.trial for r in mine}:
            assert len({(r.trial_seed, r.ret, r.slot) for r in mine if r.trial == trial}) == 1


def test_adapting_and_its_evaluation_play_the_same_trial(tmp_path):
    block = adapt(trials(3), then=[trials(2, per=2)])
    rows, _ = live(one(block, block), Saved, tmp=tmp_path, envs=1)
    assert len({r.trial_seed for r in rows}) == 1, "the same goal in both phases, at every probe"
    assert len({r.seed for r in rows if r.learning}) == 6


@pytest.mark.parametrize(
    ("exposure", "words"),
    [
        (lambda: trials(4), "4 episodes are not whole trials of 3"),
        (lambda: trials(3, per=0), "at least 1"),
        (lambda: Exposure(Task("toy", "blobs"), 2, "epochs", 2), "data has no episodes"),
    ],
)
def test_trials_that_cannot_be(exposure, words):
    with pytest.raises(CurriculumError, match=words):
        exposure()


def test_outlines_come_back(tmp_path):
    curriculum = one(
        learn(trials(6), Exposure(COUNT, 5, "steps"), parallel=True),
        adapt(trials(3), then=[trials(3)], visibility=Visibility(task_ids=False), then_visibility=REWARDS),
        before=(evaluate(Exposure(COUNT, 1), visibility=Visibility(False, True, True)),),
    )  # fmt: skip
    back = Curriculum.from_json(curriculum.to_json())
    assert back == curriculum and back.fingerprint == curriculum.fingerprint
    assert curriculum.fingerprint != one(*curriculum.blocks).fingerprint


# Memory.


class Counting(Agent):
    """Counts its steps in memory, for each slot; and what it learned, in its state."""

    def __init__(self, setup, scope="episode"):
        super().__init__(setup)
        self.memory_scope = scope
        self.steps = np.zeros(setup.slots, np.int64)
        self.learned = 0
        self.seen = []

    def act(self, obs, ctx):
        self.seen.append((ctx.kind, ctx.learning, self.steps[ctx.slots].tolist()))
        self.steps[ctx.slots] += 1
        return np.ones(len(obs), int)

    def learn(self, batch, ctx):
        self.learned += len(batch)
        return {"carried": float(self.steps[ctx.slots].sum())}

    def reset_memory(self, slots):
        self.steps[slots] = 0

    def memory(self):
        return {"steps": self.steps}

    def load_memory(self, memory):
        if memory:
            self.steps = np.array(memory["steps"])

    def state(self):
        return {"learned": np.array(self.learned)}

    def load(self, state):
        self.learned = int(state["learned"])


@pytest.mark.parametrize(
    ("scope", "longest"), [("episode", [0, 1, 2]), ("trial", range(6)), ("block", range(12))]
)
def test_memory_lives_as_long_as_it_says(tmp_path, scope, longest):
    blocks = (learn(trials(4, per=2, task=COUNT)), evaluate(trials(4, per=2, task=COUNT)))
    _, agent = live(one(*blocks), lambda s: Counting(s, scope), tmp=tmp_path)
    for kind in ("learn", "eval"):
        carried = [steps[0] for k, _, steps in agent.seen if k == kind]
        assert len(carried) == 12 and sorted(set(carried)) == list(longest)
        assert carried[0] == 0, "nothing is carried from block to block"


@pytest.mark.parametrize(("scope", "first"), [("episode", 0), ("trial", 6), ("block", 6)])
def test_what_was_adapted_to_is_remembered_in_its_evaluation(tmp_path, scope, first):
    block = adapt(trials(2, per=2, task=COUNT), then=[trials(2, per=2, task=COUNT)])
    _, agent = live(one(block, block), lambda s: Counting(s, scope), tmp=tmp_path)
    evaluated = [steps[0] for _, learning, steps in agent.seen if not learning]
    assert evaluated[0] == evaluated[6] == first
    assert agent.learned == 0, "learning was taken back"


class Searching(Agent):
    """Pulls one arm after another until one pays, and that one from then on."""

    memory_scope = "trial"

    def __init__(self, setup):
        super().__init__(setup)
        self.arm, self.found = np.zeros(setup.slots, np.int64), np.zeros(setup.slots, bool)

    def act(self, obs, ctx):
        return self.arm[ctx.slots] % 3

    def learn(self, batch, ctx):
        self.found[ctx.slots] |= batch.rewards > 0
        self.arm[ctx.slots] += ~self.found[ctx.slots]

    observe = learn

    def reset_memory(self, slots):
        self.arm[slots], self.found[slots] = 0, False

    def memory(self):
        return {"arm": self.arm, "found": self.found}

    def load_memory(self, memory):
        self.arm, self.found = memory["arm"], memory["found"]

    def state(self):
        return {}


GOALS = [Task("toy", "hidden-goal", v, {"arms": 3}) for v in "ab"]


def measured(*exposures, then, **keys):
    return adapt(*exposures, then=then, then_visibility=REWARDS, **keys)


def firsts(rows):
    """Of each first trial of ``then`` that a slot plays of a task: variant, slot, trial's seed, and whether
    every one of its episodes succeeded."""
    found = {}
    for r in rows:
        if not r.learning:
            mine = found.setdefault((r.variant, r.slot), [])
            mine += [r] if not mine or mine[0].trial == r.trial else []
    return {at: (mine[0].trial_seed, all(r.ret == 1 for r in mine)) for at, mine in found.items()}


def lasts(rows, block):
    """The seed of the last trial that each slot adapted to, by variant and slot."""
    return {(r.variant, r.slot): r.trial_seed for r in rows if r.learning and r.block == block}


@pytest.mark.parametrize(
    "amount", [(3, "episodes"), (6, "episodes"), (9, "episodes"), (12, "steps")]
)
@pytest.mark.parametrize("envs", [1, 2])
def test_the_first_trial_evaluated_is_the_last_one_adapted_to(tmp_path, amount, envs):
    block = measured(trials(*amount), then=[trials(9)])
    for seed in range(4):
        rows, _ = live(one(block), Searching, path=tmp_path / f"{seed}", envs=envs, seed=seed)
        adapted, evaluated = lasts(rows, 0), firsts(rows)
        for at, trial_seed in adapted.items():
            assert evaluated[at] == (trial_seed, True), "what was found is still known"
        assert len({r.trial_seed for r in rows if not r.learning}) == 3, "no trial twice"
        if amount == (9, "episodes"):
            assert {r.trial_seed for r in rows if r.learning} == {
                r.trial_seed for r in rows if not r.learning
            }, "what was adapted to is what is evaluated"


def test_a_slot_whose_budget_ends_before_it_acts_remembers_the_trial_before(tmp_path):
    rows, _ = live(
        one(measured(trials(7, "steps"), then=[trials(6)])), Searching, tmp=tmp_path, envs=2
    )
    assert [(r.slot, r.trial) for r in rows if r.learning][-1] == (0, 2)
    seed = next(r.trial_seed for r in rows if r.slot == 1)
    assert firsts(rows)["", 1] == (seed, True)


@pytest.mark.parametrize("parallel", [False, True])
def test_of_several_tasks_each_is_evaluated_with_its_own_memory_or_none(tmp_path, parallel):
    both = [trials(3, task=goal) for goal in GOALS]
    for k, (then, knows) in enumerate(
        (((0, 1), "ab" if parallel else "b"), ((0,), "a" if parallel else ""), ((1, 0), "b"))
    ):
        exposures = [both[j] for j in then]
        if parallel and k == 2:
            with pytest.raises(CurriculumError, match="toy/hidden-goal@b in other slots"):
                measured(*both, then=exposures, parallel=True)
            continue
        block = measured(*both, then=exposures, parallel=parallel)
        knew = {"a": [], "b": []}
        for seed in range(6):
            folder = tmp_path / f"{k}-{seed}"
            rows, _ = live(one(block), Searching, path=folder, seed=seed)
            slots = {r.variant: r.slot for r in rows if r.learning}
            for (variant, slot), (trial_seed, right) in firsts(rows).items():
                assert slot == slots[variant]
                assert trial_seed == lasts(rows, 0)[variant, slot], "the goal that was adapted to"
                knew[variant].append(right)
        for j in then:
            assert all(knew["ab"[j]]) == ("ab"[j] in knows), (then, knew)


def test_who_adapted_to_nothing_here_remembers_nothing_of_before(tmp_path):
    def first(seed, *before):
        blocks = (*before, measured(trials(3), then=[trials(6)]))
        folder = tmp_path / f"{seed}-{len(before)}"
        rows, _ = live(one(*blocks), Searching, path=folder, envs=2, seed=seed)
        return [r.ret for r in rows if not r.learning and r.slot == 1]

    for seed in range(4):
        assert first(seed) == first(seed, learn(trials(6)))


def test_adapting_to_several_trials_resumes_from_any_commit(tmp_path):
    a, b = GOALS
    blocks = (
        learn(trials(6)),
        measured(
            trials(7, "steps", task=a),
            trials(6, task=b),
            then=[trials(6, per=2, task=a), trials(6, per=2, task=b)],
        ),
        measured(trials(9, task=a), trials(6, task=b), then=[trials(6, task=a)], parallel=True),
        learn(trials(3)),
    )
    config = setting_of(one(*blocks), envs=2, checkpoint=2)
    expected = lifetime(config, Searching(config.setup()), tmp_path / "whole")
    with LifetimeLog(tmp_path / "whole", "test", 0) as log:
        commits = len(log.commits)
    assert commits > 20
    for k in range(1, commits, 3):
        shutil.copytree(tmp_path / "whole", tmp_path / f"{k}")
        cut_journal(tmp_path / f"{k}", k)
        assert lifetime(config, Searching(config.setup()), tmp_path / f"{k}") == expected, k


def test_slots_forget_one_by_one(tmp_path):
    short, long = (Task("toy", "count", f"n{n}", {"length": n}) for n in (2, 3))
    block = learn(Exposure(short, 3), Exposure(long, 2), parallel=True)
    _, agent = live(one(block), Counting, tmp=tmp_path)
    assert [steps for _, _, steps in agent.seen] == [[0, 0], [1, 1], [0, 2], [1, 0], [0, 1], [1, 2]]


def lifetime(config, agent, folder):
    with LifetimeLog(folder, "test", config.seed) as log:
        LifetimeLoop(config, agent, log).run()
    return read_rows(folder)


@pytest.mark.parametrize("scope", ["episode", "trial", "block"])
def test_memory_and_trials_resume_from_any_commit(tmp_path, scope):
    blocks = (
        learn(trials(12, per=3, task=COUNT)),
        evaluate(trials(6, per=3, task=COUNT)),
        adapt(trials(4, per=2, task=COUNT), then=[trials(4, per=2, task=COUNT)]),
        learn(Exposure(COUNT, 5)),
    )
    config = setting_of(one(*blocks), envs=2, checkpoint=7)
    make = lambda: Counting(config.setup(), scope)  # noqa: E731
    expected = lifetime(config, make(), tmp_path / "whole")
    with LifetimeLog(tmp_path / "whole", "test", 0) as log:
        commits = len(log.commits)
    assert commits > 6
    for k in range(1, commits):
        shutil.copytree(tmp_path / "whole", tmp_path / f"{k}")
        cut_journal(tmp_path / f"{k}", k)
        assert lifetime(config, make(), tmp_path / f"{k}") == expected, k


def test_memory_in_state_is_refused_with_advice(tmp_path):
    class Confused(Counting):
        def state(self):
            return {"learned": np.array(self.learned), "steps": self.steps}

    with pytest.raises(AgentFault, match=r"'steps'.*belongs into memory\(\)"):
        live(one(evaluate(Exposure(COUNT, 1))), Confused, tmp=tmp_path)


def test_a_mistyped_scope_is_refused(tmp_path):
    with pytest.raises(AgentFault, match="memory_scope 'trials'; did you mean 'trial'"):
        live(one(learn(Exposure(COUNT, 1))), lambda s: Counting(s, "trials"), tmp=tmp_path)


def test_a_memory_that_is_no_array_is_refused(tmp_path):
    class Odd(Counting):
        def memory(self):
            return {"steps": lambda: 0}

    with pytest.raises(AgentFault, match=r"Odd.memory\(\)\['steps'\] must be an array"):
        live(one(learn(Exposure(COUNT, 4))), Odd, tmp=tmp_path, checkpoint=5)


# What is shown.


def test_rewards_and_identity_are_shown_by_block_and_phase(tmp_path):
    test = Task("toy", "count", "test", {"length": 3})
    hidden = Visibility(task_ids=False)
    blocks = (
        learn(Exposure(COUNT, 1)),
        evaluate(Exposure(COUNT, 1), visibility=REWARDS),
        adapt(Exposure(test, 1), then=[Exposure(test, 1)], visibility=hidden,
              then_visibility=Visibility(rewards=True, task_ids=False)),
        evaluate(Exposure(test, 1), visibility=hidden),
    )  # fmt: skip
    rows, agent = live(one(*blocks), Saved, tmp=tmp_path)
    assert agent.setup.tasks == ("toy/count",), "a test task is not listed"
    seen = [(ctx.block, ctx.learning, ctx.tasks, b.rewards is not None) for b, ctx in agent.batches]
    shown = ("toy/count",)
    assert list(dict.fromkeys(seen)) == [
        (0, True, shown, True),
        (1, False, shown, True),
        (2, True, None, True),
        (2, False, None, True),
        (3, False, None, False),
    ]
    told = {tasks for _, event, tasks, _ in agent.events if event != "lifetime"}
    assert told == {shown, None}, "boundaries hide what their block hides"
    assert {r.variant for r in rows} == {"", "test"}, "the log knows all the same"


def test_a_generated_curriculum_says_what_is_shown(tmp_path):
    hidden = Visibility(task_ids=False)

    def generate():
        yield learn(Exposure(TOLD[0], 1), visibility=hidden)

    def setup(**keys):
        return setting_of(Curriculum("x", generate=generate, tasks=TOLD, **keys)).setup()

    assert setup().tasks == tuple(t.id for t in TOLD) and len(setup().instructions) == 2
    assert setup(shown=()).tasks == () and setup(shown=()).instructions == {}
    assert setup(shown=TOLD[1:]).tasks == (TOLD[1].id,)
    with pytest.raises(CurriculumError, match="shown toy/count is not among its tasks"):
        setup(shown=[COUNT])
    with pytest.raises(CurriculumError, match="only a generated one"):
        one(learn(Exposure(COUNT, 1)), shown=())
    online = curriculum_of(Spec.parse("toy/online-navigation"))
    assert online.shown_tasks == (), "tasks that come one by one are not known before"


def test_generated_blocks_show_what_their_curriculum_said(tmp_path):
    """Who learns its tasks' names when it is made meets these, and is told of no other by that."""
    left, right = (Exposure(t, 1) for t in TOLD)
    hidden = Visibility(task_ids=False)
    probe = adapt(left, then=[right], then_visibility=hidden)

    def lives(block, **keys):
        return Curriculum("x", generate=lambda: (b for b in [block]), tasks=TOLD, width=2, **keys)

    for k, (block, shown, says) in enumerate([
        (learn(left, visibility=hidden), None, r"generated block 0 hides .*say shown=\(\)"),
        (probe, None, "hides which task it is"),
        (learn(left), (), "shows toy/told@left, of which .*add it to shown="),
        (learn(left, right, parallel=True), TOLD[:1], "shows toy/told@right"),
    ]):  # fmt: skip
        with pytest.raises(CurriculumError, match=says):
            live(lives(block, shown=shown), Saved, tmp=tmp_path / str(k))
        rows, agent = live(
            lives(block, shown=shown), Saved, tmp=tmp_path / f"{k}h", hide_tasks=True
        )
        assert rows and agent.setup.tasks == (), "a run that hides all tasks tells of none"
    rows, agent = live(lives(probe, shown=TOLD[:1]), Saved, tmp=tmp_path / "right")
    assert rows and agent.setup.tasks == (TOLD[0].id,)
    with pytest.raises(CurriculumError, match=r"block 0 \(learn\) shows toy/told@right"):
        lives(learn(left), shown=TOLD[:1], before=(learn(right),))


@pytest.mark.parametrize("visibility", [None, Visibility(task_ids=False)])
def test_nobody_chooses_among_tasks_whose_ids_are_hidden(tmp_path, visibility):
    def generate():
        yield BlockChoice(
            [learn(Exposure(t, 1), visibility=visibility or Visibility()) for t in TOLD]
        )

    curriculum = Curriculum("x", generate=generate, tasks=TOLD)
    with pytest.raises(
        CurriculumError, match="generated block 0: the agent is to choose among tasks"
    ):
        live(curriculum, tmp=tmp_path, hide_tasks=visibility is None)


# Language.


TOLD = [Task("toy", "told", arm, {"arm": arm}) for arm in ("left", "right")]


class Listener(Recorder):
    """Does what it is told."""

    def act(self, obs, ctx):
        self.acted.append((ctx.tasks, ctx.instructions))
        return np.array(["right" in words for words in ctx.instructions], int)


def test_instructions_come_with_every_row_also_where_ids_are_hidden(tmp_path):
    shown = Visibility(task_ids=False, instructions=True)
    block = learn(*(Exposure(t, 20) for t in TOLD), parallel=True, visibility=shown)
    rows, agent = live(one(block), Listener, tmp=tmp_path)
    assert all(r.success == 1.0 for r in rows), "only who reads can know"
    assert agent.setup.tasks == () and agent.setup.instructions == {}
    phrasings = {words for _, said in agent.acted for words in said}
    assert phrasings == {
        "pull the left arm", "the left one, please", "pull the right arm", "the right one, please"
    }  # fmt: skip
    assert {tasks for tasks, _ in agent.acted} == {None}


def test_instructions_of_known_tasks_are_told_at_birth_and_can_be_hidden(tmp_path):
    curriculum = one(learn(Exposure(TOLD[0], 1)))
    _, agent = live(curriculum, Listener, tmp=tmp_path)
    assert agent.setup.instructions == {
        "toy/told@left": ("pull the left arm", "the left one, please")
    }
    mute = one(learn(Exposure(TOLD[0], 1), visibility=Visibility(instructions=False)))
    _, agent = live(mute, Recorder, path=tmp_path / "mute")
    assert agent.acted[0][1].instructions is None and agent.setup.instructions == {}
    # The one names the task, the other says what to do: which sentence is whose is told nowhere.
    blind = evaluate(Exposure(TOLD[0], 1), visibility=Visibility(task_ids=False, instructions=True))
    _, agent = live(one(*mute.blocks, blind), Recorder, path=tmp_path / "apart")
    assert agent.setup.tasks == (TOLD[0].id,) and agent.setup.instructions == {}
    _, agent = live(one(learn(Exposure(COUNT, 1))), Recorder, path=tmp_path / "none")
    assert agent.acted[0][1].instructions is None and agent.setup.instructions == {}


def test_a_phrasing_belongs_to_its_episode(tmp_path):
    """The same episode is told in the same words, in every block and after a resume."""
    _, agent = live(one(*[evaluate(Exposure(TOLD[0], 8))] * 2), Listener, tmp=tmp_path)
    said = [words for _, words in agent.acted]
    assert said[:8] == said[8:] and len(set(said)) == 2


# Progress.


@pytest.mark.parametrize(("amount", "unit", "length"), [(6, "steps", 6), (2, "episodes", None)])
def test_a_context_tells_how_far_the_exposure_is(tmp_path, amount, unit, length):
    class Watching(Recorder):
        def learn(self, batch, ctx):
            assert ctx.length == length
            self.batches.append(ctx.progress)

    _, agent = live(one(learn(Exposure(COUNT, amount, unit))), Watching, tmp=tmp_path)
    steps = [k / 6 for k in range(6)] if unit == "steps" else [0, 0, 0, 0.5, 0.5, 0.5]
    assert agent.batches == pytest.approx(steps)
