"""Every learner with every kind of space: it learns, or is refused with advice that holds."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import perdure
from perdure.agents.networks.joint_actions import JointActions
from perdure.errors import SpecError
from perdure.registry import entries
from perdure.run.plan import make_agent, make_plan
from perdure.run.spec import RunSpec
from perdure.spaces import action_kind, differences, observation_kinds
from perdure.specs import Spec
from perdure.suites.toy.cue import ACTIONS, OBSERVATIONS, Cue, CueData
from perdure.types import Context, Setup, Transitions

torch = pytest.importorskip("torch")

from perdure.agents.networks.policies import MultiCategorical

LEARNERS = {
    "q": "",
    "dqn": "hidden=[4],batch=4,every=4",
    "ppo": "hidden=[4],rollout=8,batch=4,epochs=1",
    "trpo": "hidden=[4],rollout=8,epochs=1",
    "recurrent_ppo": "hidden=[4],width=4,rollout=8,sequence=4,batch=2,epochs=1",
    "te": "hidden=[4],rollout=8,batch=4,epochs=1,window=2",
    "sac": "hidden=[4],batch=4,start=4,every=4",
    "soft_modularization": "hidden=[4],embedding=4,width=4,batch=4,start=4,every=4",
    "brc": "hidden=[4],width=4,blocks=1,embedding=2,atoms=5,batch=4,start=4,every=4",
    "maml": "hidden=[4],tasks=1,shots=1",
    "rl2": "hidden=[4],width=4,trials=1,sequence=4,batch=2,epochs=1",
    "pearl": "hidden=[4],encoder=[4],tasks=1,batch=4,context=4,start=4,rate=0.25",
    "bc": "hidden=[4]",
    "sequence_bc": "look_back=1,language=none,size=small",
    "classifier": "hidden=[4]",
}
TASK = "toy/cue"
TRIAL, STEPS = 4, 20
LENGTHS = {"maml": 6}
"""Of an episode, else 1. MAML needs more rows than its linear baseline has coefficients."""


def setup_of(seen: Any, done: Any) -> Setup:
    return Setup(seen, done, 1, 0, (TASK,))


def made(text: str, seen: Any, done: Any) -> Any:
    return make_agent(Spec.parse(text.rstrip(",")), setup_of(seen, done))


def batch_of(space: Any, obs: Any) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: np.asarray(obs[key])[None] for key in space}
    if isinstance(space, spaces.Tuple):
        return tuple(np.asarray(part)[None] for part in obs)
    return np.asarray(obs)[None]


def context(learning: bool, task: str = TASK, **keys: Any) -> Context:
    kind = "learn" if learning else "eval"
    return Context(kind, learning, 0, (task,), np.zeros(1, int), **keys)  # type: ignore[arg-type]


def play(agent: Any, env: Cue, steps: int, task: str = TASK) -> list[Any]:
    """Episodes in trials; what learning told each time."""
    told, obs = [], None
    for k in range(steps):
        begins = k % env.length == 0
        trial = k % (TRIAL * env.length) == 0
        if trial if agent.memory_scope == "trial" else begins:
            agent.reset_memory(np.zeros(1, int))
        if begins:
            obs = env.reset(seed=k)[0]
        ctx = context(True, task, episode_start=np.array([begins]), trial_start=np.array([trial]))
        action = agent.act(batch_of(env.observation_space, obs), ctx)
        assert env.action_space.contains(np.asarray(action)[0])
        after, reward, over, cut, _ = env.step(action[0])
        moves = Transitions(
            batch_of(env.observation_space, obs), action, np.array([reward]), np.array([over]),
            np.array([cut]), batch_of(env.observation_space, after),
        )  # fmt: skip
        told.append(agent.learn(moves, ctx))
        obs = after
    return told


def study(agent: Any, data: CueData, batches: int, task: str = TASK) -> list[Any]:
    """Minibatches of demonstrations."""
    told = []
    for k in range(batches):
        where = np.arange(16) + 16 * (k % 4)
        ctx = Context("learn", True, 0, (task,) * 16, np.arange(16), np.zeros(16, bool))
        told.append(agent.learn(data.batch(where), ctx))
    return told


@functools.cache
def outcome(learner: str, observation: str, action: str) -> str:
    """The refusal of a cell of the table; empty if the agent learned there, twice at least."""
    env = Cue(observation, action, LENGTHS.get(learner, 1))
    try:
        agent = made(f"{learner},{LEARNERS[learner]}", env.observation_space, env.action_space)
    except SpecError as e:
        return str(e)
    before = {name: np.array(v) for name, v in agent.state().items()}
    if "data" in agent.learns_from:
        told = study(agent, CueData(True, observation, action), 2)
    else:
        for event in ("lifetime", "block", "task", "variant"):
            agent.enter(context(True, episode_start=np.ones(1, bool), event=event))
        told = play(agent, env, STEPS * env.length)
    updates = [t for t in told if t is not None]
    assert len(updates) >= 2
    assert all(np.isfinite(v) for measures in updates for v in measures.values())
    after = agent.state()
    weights = [n for n in before if n.startswith("net.")] or ["table"]
    assert any(not np.array_equal(before[n], after[n]) for n in weights)
    return ""


@functools.cache
def by_default(learner: str, observation: str, action: str) -> None:
    """An agent as a user who follows advice would name it."""
    made(learner, OBSERVATIONS[observation][0], ACTIONS[action][0])


def test_no_learner_is_left_out() -> None:
    known = {n for n, e in entries("agents").items() if ".learners." in e.source}
    assert known == set(LEARNERS)


@pytest.mark.parametrize("observation", OBSERVATIONS)
@pytest.mark.parametrize("learner", LEARNERS)
def test_every_cell_learns_or_is_refused_with_advice_that_holds(learner, observation) -> None:
    for action in ACTIONS:
        refused = outcome(learner, observation, action)
        if not refused:
            continue
        found = re.fullmatch(rf"{learner} .*; agents that take these spaces: ([\w, ]+)", refused)
        assert found, refused
        for advised in found[1].split(", "):
            assert outcome(advised, observation, action) == ""
            by_default(advised, observation, action)


def test_the_table_in_the_docs_is_what_happens() -> None:
    page = (Path(__file__).parents[2] / "docs/spaces.md").read_text()
    head, _, *rows = [line.strip("|").split("|") for line in page.splitlines() if line[:1] == "|"]
    names = [name.strip() for name in head]
    reads = names[2 : 2 + len(OBSERVATIONS)]
    acts = [name.removeprefix("acts in ") for name in names[2 + len(OBSERVATIONS) :]]
    assert set(reads) == set(OBSERVATIONS) and acts == list(ACTIONS)
    assert [row[0].strip(" `") for row in rows] == list(LEARNERS)
    for row in rows:
        learner, ticks = row[0].strip(" `"), [cell.strip() == "✓" for cell in row[2:]]
        read = {kind for kind, tick in zip(reads, ticks, strict=False) if tick}
        act = {kind for kind, tick in zip(acts, ticks[len(reads) :], strict=True) if tick}
        for observation, (space, _) in OBSERVATIONS.items():
            for action in ACTIONS:
                told = observation_kinds(space) <= read and action in act
                assert (outcome(learner, observation, action) == "") == told, (learner, action)


def test_who_needs_trials_is_advised_where_there_are_some() -> None:
    for trial, advised in ((3, "maml, rl2"), (1, "rl2")):
        with pytest.raises(SpecError, match=rf"pearl acts in .*take these spaces: {advised}$"):
            make_plan(RunSpec(f"toy/meta-bandit,steps=60,trial={trial},shots=2", ("pearl",)))


def test_what_nobody_takes_is_said() -> None:
    box = OBSERVATIONS["Box"][0]
    nobody = "no agent here takes these spaces: change them by wrappers"
    with pytest.raises(SpecError, match=f"ppo acts in .* not in Tuple.*; {nobody}"):
        made("ppo", box, spaces.Tuple((spaces.Discrete(2), spaces.Discrete(2))))
    with pytest.raises(SpecError, match=f"ppo reads .*, not Text as in Dict.*; {nobody}"):
        made("ppo", spaces.Dict({"a": box, "words": spaces.Text(3)}), spaces.Discrete(2))
    with pytest.raises(SpecError, match=f"whole numbers.*; {nobody}"):
        made("sac", box, spaces.Box(0, 5, (2,), np.int64))
    # Too many combinations for a value each, but not for a policy.
    many = spaces.MultiDiscrete([20, 20, 20])
    with pytest.raises(
        SpecError, match=r"dqn .*4,096 joint.* spaces: ppo, recurrent_ppo, te, trpo$"
    ):
        made("dqn", box, many)
    assert made("ppo", box, many).policy.outputs == 60
    unbounded = spaces.Box(-np.inf, np.inf, (2,))
    with pytest.raises(SpecError, match=r"sac .*unbounded.* ppo, recurrent_ppo, te, trpo$"):
        made("sac", box, unbounded)
    # te must be told tasks, so it is no advice where they are hidden.
    with pytest.raises(SpecError, match=r"spaces: ppo, recurrent_ppo, trpo$"):
        make_agent(Spec.parse("sac"), Setup(box, unbounded, 1, 0))


def test_kinds() -> None:
    seen = spaces.Dict({"a": OBSERVATIONS["Tuple"][0], "b": OBSERVATIONS["image"][0]})
    assert observation_kinds(seen) == {"Dict", "Tuple", "Discrete", "Box", "image"}
    assert observation_kinds(spaces.Box(0, 10, (7, 7, 3), np.uint8)) == {"Box"}
    for shape in ((7, 7, 3), (1, 84, 84), (84, 84), (4, 84, 84, 3)):
        assert observation_kinds(spaces.Box(0, 255, shape, np.uint8)) == {"image"}
    assert [action_kind(space) for space, _ in ACTIONS.values()] == list(ACTIONS)


def test_differences_name_the_parts_alone() -> None:
    def seen(**parts: Any) -> Any:
        return spaces.Dict({"arm": spaces.Box(-1, 1, (7,)), **parts})

    whole = seen(
        milk=spaces.Box(-1, 1, (3,)), soup=spaces.Box(-1, 1, (3,)), hand=spaces.Box(-1, 1, (3,))
    )
    part = seen(milk=spaces.Box(-1, 1, (3,)), hand=spaces.Box(-1, 1, (2,)), door=spaces.Discrete(2))
    assert differences(whole, whole) == ""
    assert differences(part, whole) == (
        "it lacks soup; it has besides door; hand is Box(-1.0, 1.0, (2,), float32), not Box(-1.0, 1.0, (3,), float32)"
    )
    many = seen(**{f"p{k}": spaces.Discrete(2) for k in range(9)})
    assert differences(seen(), many) == "it lacks p0, p1, p2, p3, p4, p5 and 3 more"
    assert (
        differences(spaces.Discrete(2), spaces.Discrete(3)) == "it is Discrete(2), not Discrete(3)"
    )


def test_joint_actions_and_choices_go_to_their_space_and_back() -> None:
    rng = np.random.default_rng(0)
    for space in (
        spaces.Discrete(5, start=3),
        spaces.MultiDiscrete([[2, 3], [4, 1]], start=[[0, 1], [2, 3]]),
        spaces.MultiDiscrete([3, 2], dtype=np.int32),
        spaces.MultiBinary((2, 2)),
    ):
        joint = JointActions(space)
        every = joint.to_space(np.arange(joint.count))
        assert len({np.asarray(a).tobytes() for a in every}) == joint.count
        assert all(space.contains(np.asarray(a)[()] if not space.shape else a) for a in every)
        assert joint.numbers(every).tolist() == list(range(joint.count))
        if isinstance(space, spaces.Discrete):
            continue
        policy = MultiCategorical(space)
        logits = torch.tensor(rng.normal(size=(joint.count, policy.outputs)), dtype=torch.float32)
        sampled = policy.sample(logits, rng)
        assert all(space.contains(a) for a in policy.to_space(sampled))
        assert np.array_equal(policy.from_space(policy.to_space(sampled)), sampled)
        # The probabilities of all joint actions of one row are those of its choices, and sum to 1.
        same = logits[:1].expand(joint.count, -1)
        logs, entropy = policy.log_prob(same, torch.tensor(policy.from_space(every)))
        assert float(logs.exp().sum()) == pytest.approx(1, abs=1e-5)
        assert float(entropy[0]) == pytest.approx(float(-(logs.exp() * logs).sum()), abs=1e-5)
        best = policy.sample(same[:1], None)
        assert joint.numbers(policy.to_space(best))[0] == int(logs.argmax())
        terms = policy.terms(logits)
        assert torch.allclose(policy.divergence(terms, terms), torch.zeros(1))
        assert policy.as_inputs(sampled).sum(1).tolist() == [sampled.shape[1]] * len(sampled)


@pytest.mark.parametrize("learner", ["q", "dqn", "ppo", "trpo", "recurrent_ppo", "te", "rl2"])
def test_a_saved_learner_goes_on_alike(learner) -> None:
    text = f"{learner},{LEARNERS[learner]}"
    env = Cue("Tuple", "MultiDiscrete")
    one, other = (made(text, env.observation_space, env.action_space) for _ in range(2))
    play(one, env, 10)
    other.load({name: np.array(value) for name, value in one.state().items()})
    other.load_memory({name: np.array(value) for name, value in one.memory().items()})
    other.rng.bit_generator.state = one.rng.bit_generator.state
    assert play(one, env, 10) == play(other, env, 10)
    again = other.state()
    assert all(np.array_equal(value, again[name]) for name, value in one.state().items())


@pytest.mark.parametrize(
    "strategy", ["ewc", "online_ewc", "si", "mas", "lwf", "packnet", "agem", "replay"]
)
@pytest.mark.parametrize("learner", ["ppo", "dqn", "bc"])
def test_strategies_keep_several_choices(strategy, learner) -> None:
    if learner == "ppo" and strategy in ("agem", "replay"):
        pytest.skip("PPO's loss means nothing on rows of the past")
    more = ",retrain=2,memory=16" if strategy == "packnet" else ""
    env = Cue("Tuple", "MultiDiscrete")
    text = f"{strategy}+{learner},{LEARNERS[learner]}{more}"
    agent = make_agent(
        Spec.parse(text), Setup(env.observation_space, env.action_space, 1, 0, (TASK, "t/b"))
    )
    for task in (TASK, "t/b"):
        for event in ("lifetime", "block", "task", "variant"):
            agent.enter(context(True, task, episode_start=np.ones(1, bool), event=event))
        if learner == "bc":
            told = study(agent, CueData(True, "Tuple", "MultiDiscrete"), 2, task)
        else:
            told = play(agent, env, STEPS, task)
        for event in ("variant", "task", "block", "lifetime"):
            agent.leave(context(True, task, episode_start=np.ones(1, bool), event=event))
        losses = [measures["loss"] for measures in told if measures]
        assert len(losses) >= 2 and np.isfinite(losses).all()


# Known optimum: every answer right returns 1.


@pytest.mark.parametrize(
    ("agent", "kinds"),
    [
        ("ppo,preset=quick,hidden=[32],rollout=64,lr=5e-3", "action=MultiDiscrete,steps=1500"),
        ("dqn,preset=quick,hidden=[32],explore=400", "action=MultiDiscrete,steps=1000"),
        ("bc,hidden=[32],lr=3e-3", "observation=image,action=Box,epochs=20"),
        ("bc,hidden=[32],lr=3e-3", "observation=image,action=MultiBinary,epochs=20"),
    ],
    ids=["ppo", "dqn", "bc", "bc-choices"],
)  # fmt: skip
def test_it_is_learned_to_its_optimum(agent, kinds, tmp_path) -> None:
    run = perdure.experiment(
        f"toy/cue,{kinds}", [f"x={agent}"], out=str(tmp_path / "run"), executor="serial"
    )
    rows = [r for r in run.rows().to_pylist() if r["kind"] == "eval"]
    last = max(r["block"] for r in rows)
    first, after = (
        np.mean([r["return"] for r in rows if r["block"] == block]) for block in (0, last)
    )
    assert after > 0.93 and after > first + 0.1, (first, after)
