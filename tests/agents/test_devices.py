"""Torch agents on another device than the CPU: nothing mixes, and the numbers are the same.

Where there is no GPU the other device is pretended (see ``pretend_device.py``): operations on tensors
of two devices raise there as they do on a GPU.
"""

from __future__ import annotations

import ast
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import perdure.agents
from perdure import registry
from perdure.errors import SpecError
from perdure.registry import Spec
from perdure.run.plan import make_agent
from perdure.types import Context, Examples, Setup, Transitions

torch = pytest.importorskip("torch")

from pretend_device import MixedDevices, pretend_device

from perdure.agents.networks import tensors
from perdure.agents.strategies.base import works_with

LEARNERS = {
    "dqn": "batch=4,replay=32,every=2,target=3,hidden=[5]",
    "ppo": "rollout=8,batch=4,epochs=2,hidden=[5]",
    "maml": "shots=1,tasks=2,hidden=[5],inner_lr=0.5",
    "pearl": "tasks=2,batch=4,context=3,embedding=2,start=4,rate=0.5,replay=32,hidden=[5],encoder=[5]",
    "recurrent_ppo": "rollout=8,batch=2,epochs=2,hidden=[5],width=4,sequence=4",
    "rl2": "trials=2,batch=2,epochs=2,hidden=[5],width=4,sequence=4",
    "sac": "batch=4,replay=32,start=4,hidden=[5,5]",
    "soft_modularization": "batch=4,replay=32,start=4,hidden=[5],embedding=4,width=3",
    "brc": "batch=4,replay=32,start=4,hidden=[5],width=6,blocks=1,embedding=2,atoms=5",
    "te": "rollout=8,batch=4,epochs=1,hidden=[5],embedding=2,window=3",
    "trpo": "rollout=8,hidden=[5],baseline=mlp,epochs=2",
    "bc": "hidden=[5]",
    "sequence_bc": "look_back=1,language=none,size=small",
    "classifier": "hidden=[5]",
}
STRATEGIES = {
    "agem": "quota=8",
    "continual_backprop": "replacement_rate=0.2,maturity=1",
    "dgr": "latent=2,generator=[4]",
    "dgr_distill": "latent=2,generator=[4]",
    "ewc": "samples=8",
    "mas": "samples=8",
    "online_ewc": "samples=8",
    "packnet": "retrain=2,memory=8",
    "redo": "period=2",
    "replay": "memory=8",
    "rtf": "latent=2,decoder=[4]",
    "shrink_perturb": "period=2",
}
KIN = ("soft_modularization", "brc")
"""Of SAC: what strategies do with its loss and optimiser is seen with SAC."""
VECTOR = spaces.Box(-1, 1, (3,), np.float32)
IMAGE = spaces.Box(0, 255, (20, 20, 3), np.uint8)
BOTH = spaces.Dict({"camera": IMAGE, "body": VECTOR, "mode": spaces.Discrete(3)})
TASKS = ("t/a", "t/b")
STEPS = 7


def pairs() -> list[str]:
    """Every learner, and every strategy with each learner that it works with."""
    found = list(LEARNERS)
    for name in sorted(registry.entries("strategies")):
        able, _ = works_with(registry.load("strategies", name))
        found += [f"{name}+{learner}" for learner in able if learner not in KIN or name == "ewc"]
    return found


def make(pair: str, space: Any, more: str = "") -> Any:
    strategy, _, learner = pair.rpartition("+")
    action = VECTOR if learner not in ("dqn", "classifier") else spaces.Discrete(3)
    params = [LEARNERS[learner], STRATEGIES.get(strategy, ""), more]
    if learner == "sequence_bc" and strategy.endswith("ewc"):
        params.append("labels=given")  # Its likelihood is its loss.
    spec = Spec.parse(",".join([pair, *filter(None, params)]))
    return make_agent(spec, Setup(space, action, 2, 0, TASKS))


def sample(space: Any, n: int, rng: np.random.Generator) -> Any:
    match space:
        case spaces.Dict():
            return {name: sample(part, n, rng) for name, part in space.spaces.items()}
        case spaces.Discrete():
            return rng.integers(int(space.n), size=n)
    if space.dtype == np.uint8:
        return rng.integers(256, size=(n, *space.shape)).astype(np.uint8)
    return rng.uniform(-1, 1, (n, *space.shape)).astype(np.float32)


def live(agent: Any, on_data: bool) -> list[Any]:
    """Two tasks and an evaluation of both after each; what it did and measured."""
    rng, out, both = np.random.default_rng(5), [], np.arange(2)
    start = np.zeros(2, bool)
    for block, task in enumerate(TASKS):
        trial = np.zeros(2, bool)
        ctx = Context("learn", True, block, (task, task), both, start, trial_start=trial)
        for event in ("block", "task", "variant"):
            agent.enter(Context("learn", True, block, (task,), both, start, event))
        for k in range(STEPS):
            obs = sample(agent.observation_space, 6 if on_data else 2, rng)
            if on_data:
                targets = sample(agent.action_space, 6, rng)
                out.append(agent.learn(Examples(obs, targets), ctx))
                continue
            # Trials are two episodes of three steps.
            start[:], trial[:] = k % 3 == 0, k % 6 == 0
            if (trial if agent.memory_scope == "trial" else start).any():
                agent.reset_memory(both)
            actions = np.asarray(agent.act(obs, ctx))
            done, rewards = np.full(2, k % 3 == 2), rng.normal(size=2).astype(np.float32)
            later = sample(agent.observation_space, 2, rng)
            measures = agent.learn(Transitions(obs, actions, rewards, done, ~done, later), ctx)
            out += [actions, measures]
        for event in ("variant", "task", "block"):
            agent.leave(Context("learn", True, block, (task,), both, start, event))
        ctx = Context("eval", False, block, TASKS, both, np.ones(2, bool))
        out.append(np.asarray(agent.act(sample(agent.observation_space, 2, rng), ctx)))
    return out


def check_close(one: Any, other: Any) -> None:
    """Equal but for rounding: the optimiser's step is another operation on the CPU."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            a, b = np.asarray(one[name]), np.asarray(other[name])
            assert (a.shape, a.dtype) == (b.shape, b.dtype), name
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4, err_msg=name)
    elif one is None:
        assert other is None
    else:
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-4)


def check_same_on_both(pair: str, space: Any, more: str = "") -> None:
    on_data = pair.endswith(("bc", "classifier"))
    here = make(pair, space, more)
    done = live(here, on_data)
    assert any(isinstance(item, dict) for item in done), "nothing was learned"
    with pretend_device() as device:
        there = make(pair, space, more)
        learner = getattr(there, "learner", there)
        assert learner.device == device
        assert all(p.device == device for p in learner.net.parameters())
        for a, b in zip(done, live(there, on_data), strict=True):
            check_close(a, b)
        state = there.state()
        check_close(dict(here.state()), dict(state))
        # What one device wrote, both go on from.
        again = make(pair, space, more)
        again.load(here.state())
        again.rng.bit_generator.state = here.rng.bit_generator.state
        onwards = live(again, on_data)
    moved = make(pair, space, more)
    moved.load(state)
    moved.rng.bit_generator.state = there.rng.bit_generator.state
    del there, again
    for a, b in zip(onwards, live(moved, on_data), strict=True):
        check_close(a, b)


@pytest.mark.parametrize("pair", pairs())
def test_every_pair_does_on_another_device_what_it_does_here(pair) -> None:
    check_same_on_both(pair, VECTOR)


@pytest.mark.parametrize(
    ("pair", "more"),
    [
        ("dqn", ""),
        ("ppo", ""),
        ("sac", ""),
        ("bc", ""),
        ("classifier", "dropout=0.5"),
        ("ewc+classifier", "convolutions=small"),
        ("joint+classifier", ""),
        ("packnet+sac", ""),
        ("dgr+classifier", ""),
    ],
)
@pytest.mark.parametrize("space", [IMAGE, BOTH], ids=["image", "nested"])
def test_images_and_nested_observations_too(pair, more, space) -> None:
    check_same_on_both(pair, space, more)


@pytest.mark.parametrize("pair", ["sac", "ppo"])
def test_the_linear_baseline_and_heads_too(pair) -> None:
    check_same_on_both(pair, VECTOR, {"sac": "multihead=true", "ppo": "baseline=linear"}[pair])


def test_the_pretended_device_refuses_what_a_gpu_refuses() -> None:
    with pretend_device() as device:
        away, here = torch.zeros(3, device=device), torch.zeros(3)
        for wrong in (
            lambda: away + here,
            lambda: here.mul_(away),
            lambda: torch.cat([away, here]),
            lambda: torch.nn.Linear(3, 2)(away),
        ):
            with pytest.raises(MixedDevices):
                wrong()
        with pytest.raises((RuntimeError, TypeError)):
            away.numpy()
        assert (away + torch.tensor(1.0)).device == device
        here.copy_(away + 2)
    assert here.tolist() == [2.0, 2.0, 2.0]


def test_one_seed_starts_alike_everywhere() -> None:
    here = make("ppo", BOTH).state()
    with pretend_device():
        there = make("ppo", BOTH).state()
    assert all(np.array_equal(here[name], there[name]) for name in here)


def test_names_of_devices(monkeypatch) -> None:
    there = ("cuda:0", "cuda:1", "cpu")
    monkeypatch.setattr(tensors, "available_devices", lambda: there)
    found = {name: str(tensors.resolve_device(name)) for name in ("auto", "cuda", "cuda:1", "cpu")}
    assert found == {"auto": "cuda:0", "cuda": "cuda:0", "cuda:1": "cuda:1", "cpu": "cpu"}
    for name in ("mps", "cuda:2", "gpu", ""):
        with pytest.raises(SpecError, match="cuda:0, cuda:1, cpu"):
            tensors.resolve_device(name)


@pytest.mark.parametrize("pair", [*LEARNERS, "ewc+bc"])
def test_every_learner_takes_a_device(pair) -> None:
    agent = make(pair, VECTOR, "device=cpu")
    assert getattr(agent, "learner", agent).device.type == "cpu"
    with pytest.raises(SpecError, match="cuda:7.*this machine, which has"):
        make(pair, VECTOR, "device=cuda:7")


# One place.

MADE = {"zeros", "ones", "arange", "eye", "empty", "full", "linspace", "randn", "rand", "randperm"}
CONVERTED = {"tensor", "from_numpy", "as_tensor", "asarray"}
READ = {"numpy", "cpu", "cuda", "item"}
LISTS = {
    "networks/column.py": 1,
    "learners/q.py": 3,
    "networks/rollout_buffer.py": 2,
    "networks/trial_replay.py": 5,
    "random.py": 0,
}
"""How often ``tolist`` is called on arrays, in modules that do."""


def own_modules() -> list[Path]:
    root = Path(perdure.agents.__file__).parent
    return [p for p in sorted(root.rglob("*.py")) if "adapters" not in p.relative_to(root).parts]


def test_one_module_converts_and_all_others_name_a_device() -> None:
    root, wrong = Path(perdure.agents.__file__).parent, []
    for path in own_modules():
        name = path.relative_to(root).as_posix()
        if name == "networks/tensors.py":
            continue
        lists = 0
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            called, of = node.func.attr, node.func.value
            from_torch = isinstance(of, ast.Name) and of.id == "torch"
            lists += called == "tolist"
            bad = (
                (from_torch and called in CONVERTED)
                or (not from_torch and called in READ)
                or (
                    from_torch and called in MADE and "device" not in {k.arg for k in node.keywords}
                )
            )
            if bad:
                wrong.append(f"{name}:{node.lineno} {ast.unparse(node)}")
        if lists != LISTS.get(name, 0):
            wrong.append(f"{name}: {lists} calls of tolist(); of arrays? then say so in LISTS")
    assert not wrong, "use networks/tensors.py:\n" + "\n".join(wrong)


FAULTS = """
import resource, torch
from perdure.agents.networks.tensors import keep_freed_memory

keep_freed_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        held = [torch.ones(1 << 20) for _ in range(10)]
        del held
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no mallopt")
def test_large_tensors_come_and_go_without_the_system(monkeypatch) -> None:
    """Pages of 400 MB are asked for once, unless the environment says how memory is to be handled."""

    def count() -> int:
        return int(subprocess.check_output([sys.executable, "-c", FAULTS], text=True))

    for name in [n for n in os.environ if n.startswith("MALLOC_")]:
        monkeypatch.delenv(name)
    assert count() < 1000
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", str(1 << 17))
    assert count() > 50_000
