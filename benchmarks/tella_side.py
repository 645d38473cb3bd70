"""TELLA's half of the benchmark: run inside .venv-tella, prints steps per CPU-second."""

import json
import logging
import resource
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
import gym

gym.logger.set_level(50)
logging.disable(logging.CRITICAL)
import numpy as np
import tella
from gym import spaces
from tella.curriculum import AbstractCurriculum, TaskVariant, simple_learn_block
from tella.experiment import run


class NoOp(gym.Env):
    """Does nothing, in episodes of 100 steps."""

    def __init__(self):
        self.observation_space = spaces.Box(-1, 1, (4,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.obs = np.zeros(4, np.float32)

    def seed(self, seed=None):
        return [seed]

    def reset(self):
        self.t = 0
        return self.obs

    def step(self, action):
        self.t += 1
        return self.obs, 0.0, self.t >= 100, {}


class CartPole(gym.Wrapper):
    """CartPole with its time limit."""

    def __init__(self):
        super().__init__(gym.make("CartPole-v1"))


class Curriculum(AbstractCurriculum):
    """One learn block of so many steps."""

    def __init__(self, task, steps):
        super().__init__(0)
        self.task, self.steps = task, steps

    def copy(self):
        return Curriculum(self.task, self.steps)

    def learn_blocks_and_eval_blocks(self):
        yield simple_learn_block([TaskVariant(self.task, rng_seed=0, num_steps=self.steps)])


class Constant(tella.ContinualRLAgent):
    """Always the same action."""

    def choose_actions(self, observations):
        return [None if o is None else 1 for o in observations]

    def receive_transitions(self, transitions):
        pass


def cpu():
    """User and system seconds of this process and its ended children."""
    both = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(u.ru_utime + u.ru_stime for u in both)


if __name__ == "__main__":
    name, n, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    task = {"CartPole": CartPole, "no-op": NoOp}[name]
    env = task()
    agent = Constant(0, env.observation_space, env.action_space, n)
    start = cpu()
    run(agent, Curriculum(task, steps), render=False, log_dir=tempfile.mkdtemp(), num_envs=n)
    print(json.dumps(steps / (cpu() - start)))
