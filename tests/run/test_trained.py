"""A trained agent lives on: loaded, played, evaluated elsewhere, trained further, exported."""

import shutil
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from click.testing import CliRunner

from perdure import Context, Examples, Run, experiment
from perdure.agents.compose import make_agent, pinned
from perdure.cli.main import main
from perdure.errors import PerdureError, SpecError, StoreError
from perdure.run.plan import make_plan
from perdure.run.spec import RunSpec
from perdure.specs import Spec
from perdure.testing import check_agent
from perdure.types import Setup

CORNERS = "toy/compass,steps=150,episodes=3"


def command(*args):
    return CliRunner().invoke(main, [str(a) for a in args])


@pytest.fixture(scope="module")
def corners(tmp_path_factory):
    """A run on environments."""
    out = tmp_path_factory.mktemp("trained") / "corners"
    agents = ["q", "ppo,rollout=64", "random"]
    return experiment(CORNERS, agents, out=str(out), executor="serial", lifetimes=2, checkpoint=200)


@pytest.fixture(scope="module")
def blobs(tmp_path_factory):
    """A run on data."""
    out = tmp_path_factory.mktemp("trained") / "blobs"
    agents = ["classifier", "replay+classifier", "classifier,multihead=true"]
    return experiment("toy/blobs,epochs=1", agents, out=str(out), executor="serial")


def setup_for(curriculum, **keys):
    plan = make_plan(RunSpec(curriculum, ("random",), **keys))
    return plan.config(plan.jobs[0]).setup()


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


def test_the_agent_of_any_commit_in_one_call(corners):
    last, first = corners.agent("q", seed=1), corners.agent("q", seed=1, commit=0)
    assert len(first.state()["table"]) < len(last.state()["table"])
    assert not same(last.state(), corners.agent("q", seed=0).state())
    seen = np.stack([last.observation_space.sample() for _ in range(3)])
    context = Context.evaluation(3, task="toy/goal-ne")
    assert np.array_equal(last.act(seen, context), corners.agent("q", 1).act(seen, context))
    for wrong, words in (
        ({"label": "qq"}, "did you mean 'q'"),
        ({"label": ""}, "name an agent"),
        ({"label": "q", "seed": 7}, r"there: 0, 1"),
        ({"label": "q", "commit": 99}, "commit"),
        ({"label": "q", "expert": "toy/goal-ne"}, "expert of toy/goal-ne"),
    ):
        with pytest.raises(PerdureError, match=words):
            corners.agent(**wrong)


def test_play_gives_the_score_of_the_last_evaluation_and_a_video(corners, tmp_path):
    table = corners.rows().to_pandas()
    mine = table[(table.agent == "q") & (table.lifetime == 0) & (table.task == "toy/goal-nw")]
    last = mine[mine.block == mine.block.max()]["return"].mean()
    video = tmp_path / "video.mp4"
    done = command("play", corners.path, "-a", "q", "-t", "toy/goal-nw", "-n", 3, "-o", video)
    assert done.exit_code == 0 and "episode 2: return" in done.output, done.output
    assert f"return {last:.6g}, success" in done.output
    assert video.read_bytes()[4:8] == b"ftyp"
    done = command("play", corners.path, "-a", "q", "--no-video")
    assert done.exit_code == 2 and "toy/goal-ne, toy/goal-sw, toy/goal-nw" in done.output
    done = command("play", corners.path, "-a", "q", "-t", "toy/reach", "--no-video")
    assert done.exit_code == 2 and "observation space" in done.output


def test_play_of_a_task_that_is_data(blobs):
    done = command("play", blobs.path, "-a", "classifier", "-t", "toy/blobs@turn90")
    assert done.exit_code == 0, done.output
    table = blobs.rows().to_pandas()
    mine = table[(table.agent == "classifier") & (table.variant == "turn90") & ~table.learning]
    mine = mine[mine.block == mine.block.max()]
    expected = (mine.accuracy * mine.steps).sum() / mine.steps.sum()
    assert f"accuracy {expected:.6g} (" in done.output


def test_frozen_on_another_curriculum_it_is_as_it_was(corners, tmp_path):
    agent = f"from_run,run={corners.path},agent=q,frozen=true"
    run = experiment(CORNERS, {"then": agent}, out=str(tmp_path / "o"), executor="serial")
    table, before = run.rows().to_pandas(), corners.rows().to_pandas()
    before = before[(before.agent == "q") & (before.lifetime == 0)]
    keys = ["task", "episode", "return", "steps"]
    expected = before[before.block == before.block.max()][keys].values.tolist()
    for block in table[~table.learning].block.unique():
        assert table[table.block == block][keys].values.tolist() == expected


def test_it_goes_on_learning_and_resumes_exactly(corners, blobs):
    left = check_agent(f"from_run,run={corners.path},agent=ppo-rollout-64", (CORNERS,))
    left += check_agent(
        f"from_run,run={blobs.path},agent=replay+classifier", ("toy/islands,epochs=1",)
    )
    assert not left


def test_it_starts_with_what_it_had_learned_in_any_number_of_slots(corners, blobs):
    for envs in (1, 3):  # It was trained in one.
        made = make_agent(
            Spec.parse(f"from_run,run={corners.path},agent=ppo-rollout-64"),
            setup_for(CORNERS, envs=envs),
        )
        learned = corners.agent("ppo-rollout-64").state()
        state = made.state()
        assert all(np.array_equal(state[k], learned[k]) for k in learned if k.startswith("net."))
        assert state["time"].shape == (made.setup.slots,)
    setup = setup_for("toy/islands")
    spec = f"ewc+from_run,run={blobs.path},agent=classifier,strength=3"
    made = make_agent(Spec.parse(spec), setup)
    assert made.strategy.strength == 3
    assert same(made.learner.state(), blobs.agent("classifier").state())


def test_references_into_data_go_on_to_mean_the_same(blobs):
    setup = setup_for("toy/islands")
    made = make_agent(Spec.parse(f"from_run,run={blobs.path},agent=replay+classifier"), setup)
    then = setup_for("toy/blobs").examples
    examples, some = made.setup.examples, np.arange(4)
    for source in range(3):
        assert np.array_equal(examples(source, some).inputs, then(source, some).inputs)
    for source in range(2):
        assert np.array_equal(
            examples(3 + source, some).inputs, setup.examples(source, some).inputs
        )
        assert examples(3 + source, some).source == 3 + source
    seen = []
    made.inner.learn = lambda batch, ctx: seen.append(batch.source)
    made.learn(Examples(np.zeros((1, 2)), np.zeros(1), 1, some[:1]), Context.evaluation())
    assert seen == [4]


def test_what_cannot_be_taken_up_is_refused_with_the_reason(blobs, corners):
    multi = f"from_run,run={blobs.path},agent=classifier-multihead-true"
    make_agent(Spec.parse(multi), setup_for("toy/blobs"))
    with pytest.raises(
        SpecError, match="keeps something for each of its tasks .*toy/blobs@island0"
    ):
        make_agent(Spec.parse(multi), setup_for("toy/islands"))
    with pytest.raises(
        SpecError, match=r"observation space here.*: it is .*, not Box.*agent's run, toy/blobs"
    ):
        make_agent(Spec.parse(multi), setup_for(CORNERS))
    with pytest.raises(SpecError, match="closed box|strategy"):
        spec = f"ewc+from_run,run={blobs.path},agent=replay+classifier"
        make_agent(Spec.parse(spec), setup_for("toy/blobs"))


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ("agent=q", "name the run"),
        ("run=5", "5 is not a Perdure run"),
        ("run={path},agent=5", "unknown agent"),
        ("run={path},agent=q,seed=one", "whole numbers"),
        ("run={path},agent=q,frozn=true", "did you mean 'frozen'"),
    ],
)
def test_a_specification_that_means_no_agent_is_refused(corners, tmp_path, params, words):
    asked = f"x=from_run,{params.format(path=corners.path)}"
    done = command("run", CORNERS, "-a", asked, "-o", tmp_path / "o")
    assert done.exit_code == 2 and words in done.output, done.output


def test_the_specification_says_which_agent_it_is(corners, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(corners.path, source)
    asked = f"from_run,run={source},agent=q"
    run = experiment(CORNERS, {"x": asked}, out=str(tmp_path / "o"), executor="serial")
    spec = Spec.parse(run.spec["agents"]["x"])
    assert spec.params["seed"] == 0 and len(spec.params["weights"]) == 16
    assert pinned(spec) == spec == pinned(Spec.parse(asked))
    # The same place in the run, but another agent is there: the first lifetime has become another.
    shutil.rmtree(source)
    other = {"q": "q,lr=0.9"}
    experiment(CORNERS, other, out=str(source), executor="serial", checkpoint=200)
    with pytest.raises(SpecError, match="not the agent that this run was planned with"):
        make_agent(spec, setup_for(CORNERS))
    with pytest.raises(SpecError, match=r"-.*weights=\w+\"(.|\n)*\+.*weights="):
        experiment(CORNERS, {"x": asked}, out=str(tmp_path / "o"), executor="serial")


ACT = """
import numpy as np
import torch
net = torch.nn.Linear(25, 4)
def act(obs):
    return int(obs.argmax()) % 4
def side_by_side(obs, ctx):
    return obs.argmax(1) % len(ctx.slots + 3)
class Counts:
    def __init__(self):
        self.n = np.zeros(1)
    def __call__(self, obs):
        return int(self.n[0]) % 4
    def state_dict(self):
        return {"n": self.n}
    def load_state_dict(self, state):
        self.n[:] = state["n"]
counts = Counts()
def learn(batch, ctx):
    counts.n += len(batch)
def reset(batch, ctx):
    counts.n += len(batch)
class Logits(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(25, 4)
        torch.nn.init.ones_(self.layer.weight)
    def forward(self, x):
        return self.layer(x).argmax(-1)
logits = Logits()
def text(obs):
    return "left"
"""


def test_any_callable_is_a_policy(tmp_path, monkeypatch):
    (tmp_path / "acting.py").write_text(ACT)
    monkeypatch.chdir(tmp_path)
    agents = [
        "policy,fn=acting.py:act",
        "policy,fn=acting.py:side_by_side,batched=true",
        "policy,fn=acting.py:logits",
        "policy,fn=acting.py:text",
        "policy,fn=acting.py:counts,learn=acting.py:learn",
    ]
    run = experiment("toy/compass,steps=40,episodes=1", agents, out="o", executor="serial")
    status = {i.agent: (i.status, i.error) for i in run.lifetimes()}
    refused = status.pop("policy-fn-acting.py-text")
    assert refused[0] == "failed" and "ActionRefused" in refused[1]
    assert all(s == ("done", "") for s in status.values()), status
    assert run.agent("policy-fn-acting.py-counts-learn-acting.py-learn").state()["n"] == 120
    assert run.agent("policy-fn-acting.py-act").state() == {}
    with pytest.raises(SpecError, match="is a class"):
        make_agent(Spec.parse("policy,fn=acting.py:Logits"), setup_for(CORNERS))
    with pytest.raises(SpecError, match="must be a function"):
        make_agent(Spec.parse("policy,fn=act"), setup_for(CORNERS))


def test_a_model_that_stable_baselines_saved(tmp_path, monkeypatch):
    sb3 = pytest.importorskip("stable_baselines3")
    monkeypatch.chdir(tmp_path)
    env = gymnasium.make("CartPole-v1")
    small = {"n_steps": 32, "batch_size": 16, "gamma": 0.9, "policy_kwargs": {"net_arch": [8]}}
    model = sb3.PPO("MlpPolicy", env, device="cpu", seed=1, **small).learn(64)
    model.save("ppo")
    sb3.SAC("MlpPolicy", "Pendulum-v1", device="cpu", seed=1, learning_starts=5).learn(10).save(
        "sac"
    )

    def refuse(*args, **keys):
        raise AssertionError("unpickled")

    monkeypatch.setattr("cloudpickle.loads", refuse)
    monkeypatch.setattr("pickle.loads", refuse)
    setup = Setup(env.observation_space, env.action_space, 2, 0)
    spec = pinned(Spec.parse("sb3,load=ppo.zip"))
    made = make_agent(spec, setup)
    assert (made.model.gamma, made.model.n_steps) == (0.9, 32)
    seen = np.stack([env.reset(seed=s)[0] for s in range(8)])
    expected = model.predict(seen, deterministic=True)[0]
    assert np.array_equal(made.act(seen[:2], Context.evaluation(2)), expected[:2])
    pendulum = gymnasium.make("Pendulum-v1")
    continuous = Setup(pendulum.observation_space, pendulum.action_space, 1, 0)
    make_agent(Spec.parse("sb3,algo=SAC,load=sac.zip"), continuous)
    for wrong in ("sb3,algo=DQN,load=ppo.zip", "sb3,load=ppo.zip,policy_kwargs={net_arch=[9]}"):
        with pytest.raises(SpecError, match="say what it was trained with"):
            make_agent(Spec.parse(wrong), setup)
    with pytest.raises(SpecError, match="no such file"):
        make_agent(Spec.parse("sb3,load=gone.zip"), setup)
    agents = {"on": "sb3,load=ppo.zip", "still": "sb3,load=ppo.zip,frozen=true"}
    run = experiment("gym/cartpole,learn=3", agents, out="o", executor="serial")
    table = run.rows().to_pandas()
    still = table[(table.agent == "still") & ~table.learning]["return"]
    assert still.nunique() == 1
    weights = {a: run.agent(a).model.policy.state_dict() for a in agents}
    first = model.policy.state_dict()
    assert all((first[k] == v).all() for k, v in weights["still"].items())
    assert not all((first[k] == v).all() for k, v in weights["on"].items())
    model.learn(32).save("ppo")
    with pytest.raises(SpecError, match="not the file that this run was planned with"):
        make_agent(spec, setup)


def test_weights_as_safetensors(corners, tmp_path):
    pytest.importorskip("safetensors")
    from safetensors import safe_open
    from safetensors.torch import load_file

    run = corners
    done = command("export", run.path, "-f", "safetensors", "-o", tmp_path / "w")
    assert done.exit_code == 0 and "4 agents" in done.output, done.output
    assert "random/0: the agent has learned nothing" in done.output
    ppo = run.agent("ppo-rollout-64")
    ppo.net.load_state_dict(load_file(tmp_path / "w/ppo-rollout-64-0.safetensors"))
    assert same(ppo.state(), run.agent("ppo-rollout-64").state())
    with safe_open(tmp_path / "w/q-1.safetensors", "np") as file:
        assert np.array_equal(file.get_tensor("table"), run.agent("q", 1).state()["table"])
        assert file.metadata()["agent"] == "q" and file.metadata()["seed"] == "1"
    done = command("export", run.path, "-f", "safetensors", "-o", tmp_path / "w")
    assert done.exit_code == 2 and "nothing is overwritten" in done.output


def test_a_run_without_checkpoints_says_so(corners, tmp_path):
    assert command("export", corners.path, "-f", "compact", "-o", tmp_path / "c").exit_code == 0
    with pytest.raises(StoreError, match="compact copy has no checkpoints"):
        Run(tmp_path / "c").agent("q")


def test_the_code_of_the_agent_inside_counts(tmp_path, monkeypatch):
    """A trained agent's own file is executed again, so a changed one is not mixed in silence."""
    monkeypatch.chdir(tmp_path)
    mine = "from perdure.agents.learners.q import QAgent\n\nclass Mine(QAgent):\n    pass\n"
    (tmp_path / "mine.py").write_text(mine)
    trained = ("run", CORNERS, "-a", "mine=mine.py:Mine", "-o", "trained", "-q")
    asked = ("run", CORNERS, "-a", "x=from_run,run=trained,agent=mine", "-o", "o", "-q")
    for args in (trained, asked):
        done = subprocess.run(
            [sys.executable, "-m", "perdure", *args], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    (tmp_path / "mine.py").write_text(mine + "    changed = True\n")
    command_line = [sys.executable, "-m", "perdure", *asked, "-n", "2"]
    done = subprocess.run(command_line, capture_output=True, text=True)
    assert done.returncode == 2 and "mine.py changed since x/0 ran" in done.stderr, done.stderr
