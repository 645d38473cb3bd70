"""Every learner and strategy, made small, and a short life of two tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from perdure import registry
from perdure.run.plan import make_agent
from perdure.specs import Spec
from perdure.types import Context, Examples, Setup, Transitions

LEARNERS = {
    "dqn": "batch=4,replay=32,every=2,target=3,hidden=[5]",
    "ppo": "rollout=8,batch=4,epochs=2,hidden=[5]",
    "maml": "shots=1,tasks=2,hidden=[5],inner_lr=0.5",
    "pearl": "tasks=2,batch=4,context=3,embedding=2,start=4,rate=0.5,replay=32,hidden=[5],encoder=[5]",
    "recurrent_ppo": "rollout=8,batch=2,epochs=2,hidden=[5],width=4,sequence=4",
    "rl2": "trials=2,batch=2,epochs=2,hidden=[5],width=4,sequence=4",
    "sac": "batch=4,replay=32,start=4,hidden=[5,5]",
    "soft_modularization": "batch=4,replay=32,start=4,every=4,hidden=[5],embedding=4,width=3",
    "brc": "batch=4,replay=32,start=4,every=4,hidden=[5],width=6,blocks=1,embedding=2,atoms=5",
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
VECTOR = spaces.Box(-1, 1, (3,), np.float32)
IMAGE = spaces.Box(0, 255, (20, 20, 3), np.uint8)
BOTH = spaces.Dict({"camera": IMAGE, "body": VECTOR, "mode": spaces.Discrete(3)})
TASKS = ("t/a", "t/b")
STEPS = 7


def pairs() -> list[str]:
    """Every learner, and every strategy with each learner that it works with."""
    from perdure.agents.strategies.base import works_with

    found = list(LEARNERS)
    for name in sorted(registry.entries("strategies")):
        able, _ = works_with(registry.load("strategies", name))
        found += [f"{name}+{learner}" for learner in able]
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
