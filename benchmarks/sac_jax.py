"""The JAX side of the SAC benchmark: a minimal soft actor-critic, jitted, many updates to a call.

Reads lines of JSON ``[size, updates]`` and answers each with CPU seconds per update. It runs in an
environment of its own (jax_env.sh) and shares sac_parts.py with the other sides.
"""

from __future__ import annotations

import os

# One thread, as everywhere here; XLA reads it when it is imported.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import json
import sys
import time
from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sac_parts import ACTIONS, GAMMA, LR, SIZES, TAU, rows, widths

SCAN = 20


def layers(key, sizes, copies):
    """Weights and biases of ``copies`` networks of the same shape."""
    out = []
    for k, (a, b) in enumerate(pairwise(sizes)):
        bound = np.sqrt(6 / a) if k < len(sizes) - 2 else 3e-3
        key, own = jax.random.split(key)
        out.append((jax.random.uniform(own, (copies, a, b), minval=-bound, maxval=bound),
                    jnp.zeros((copies, 1, b))))  # fmt: skip
    return out


def through(net, x):
    """(rows, inputs) to (copies, rows, outputs)."""
    for k, (w, b) in enumerate(net):
        x = x @ w + b
        if k < len(net) - 1:
            x = jax.nn.relu(x)
    return x


def policy(actor, obs, noise):
    """Actions in (-1, 1) and their log-probabilities."""
    mean, log_std = jnp.split(through(actor, obs)[0], 2, axis=1)
    log_std = jnp.clip(log_std, -20, 2)
    raw = mean + jnp.exp(log_std) * noise
    gauss = -0.5 * noise**2 - log_std - 0.5 * np.log(2 * np.pi)
    squash = 2 * (np.log(2) - raw - jax.nn.softplus(-2 * raw))
    return jnp.tanh(raw), (gauss - squash).sum(1)


def worth(critics, obs, actions):
    """What both critics say, (2, rows)."""
    return through(critics, jnp.concatenate([obs, actions], 1))[:, :, 0]


def loss(learned, target, batch):
    """Critics, policy and temperatures in one sum; what a part must not move is held constant."""
    actor, critics, log_alpha = learned
    heat = log_alpha[batch["task"]]
    alpha = jax.lax.stop_gradient(jnp.exp(heat))
    after, log_after = policy(actor, batch["next_obs"], batch["next_noise"])
    future = worth(target, batch["next_obs"], after).min(0) - alpha * log_after
    goal = jax.lax.stop_gradient(batch["rewards"] + GAMMA * batch["alive"] * future)
    critic = ((worth(critics, batch["obs"], batch["actions"]) - goal) ** 2).mean(1).sum()
    chosen, log_prob = policy(actor, batch["obs"], batch["noise"])
    fixed = jax.lax.stop_gradient(critics)
    moved = (alpha * log_prob - worth(fixed, batch["obs"], chosen).min(0)).mean()
    entropy = -(heat * (jax.lax.stop_gradient(log_prob) - ACTIONS)).mean()
    return critic + moved + entropy


@partial(jax.jit, donate_argnums=(0,))
def updates(state, batches):
    """As many updates as there are batches."""

    def one(state, batch):
        learned, target, moments = state
        grads = jax.grad(loss)(learned, target, batch)
        steps, moments = optax.adam(LR, eps=1e-5).update(grads, moments)
        learned = optax.apply_updates(learned, steps)
        target = jax.tree.map(lambda t, p: t + TAU * (p - t), target, learned[1])
        return (learned, target, moments), None

    return jax.lax.scan(one, state, batches)[0]


class Side:
    """Networks and replay of a size."""

    def __init__(self, size):
        self.size = SIZES[size]
        self.rng = np.random.default_rng(0)
        self.replay = rows(self.size)
        inputs, hidden = widths(self.size)
        first, second = jax.random.split(jax.random.PRNGKey(0))
        critics = layers(second, [inputs + ACTIONS, *hidden, 1], 2)
        learned = (
            layers(first, [inputs, *hidden, 2 * ACTIONS], 1),
            critics,
            jnp.zeros(self.size.tasks),
        )
        target = jax.tree.map(jnp.copy, critics)
        self.state = (learned, target, optax.adam(LR, eps=1e-5).init(learned))
        self.run(SCAN)  # Compiles.

    def run(self, count):
        """CPU seconds per update."""
        start = time.process_time()
        for _ in range(count // SCAN):
            self.state = updates(self.state, self.sample())
        jax.block_until_ready(self.state)
        return (time.process_time() - start) / count

    def sample(self):
        """Minibatches for one call: as many rows of each task."""
        each, tasks = self.size.batch // self.size.tasks, self.size.tasks
        picked = self.rng.integers(len(self.replay[0]["rewards"]), size=(SCAN, tasks, each))
        out = {
            name: np.concatenate([r[name][picked[:, k]] for k, r in enumerate(self.replay)], axis=1)
            for name in self.replay[0]
        }
        out["alive"] = 1.0 - out.pop("terminated").astype(np.float32)
        shape = out["actions"].shape
        out["noise"], out["next_noise"] = self.rng.standard_normal((2, *shape), np.float32)
        out["task"] = np.broadcast_to(np.repeat(np.arange(tasks), each), shape[:2])
        return out


if __name__ == "__main__":
    sides = {size: Side(size) for size in SIZES}
    print(jax.__version__, flush=True)
    for line in sys.stdin:
        size, count = json.loads(line)
        print(sides[size].run(count), flush=True)
