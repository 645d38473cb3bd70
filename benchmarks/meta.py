"""Updates of the meta-learners per CPU-second, beside straightforward torch loops of the same methods,
and where the time of whole meta-training goes.

The loops beside ours are those one would write first: for MAML a network for each task in turn, its inner step
by autograd, torch.optim; for RL² a GRU cell step by step through time. They get the same data and must come
to the same weights. One thread each, sides in turn, the least of all rounds. Where matrices are large, most of MAML's
time are products of matrices that no program of the same mathematics can leave out: they are timed alone, by the
library that our side takes for them.

    make bench            writes benchmarks/results/meta.md
"""

from __future__ import annotations

import platform
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from gymnasium import spaces
from meta_loops import STEPS, table
from publish import publish
from torch import nn
from torch.distributions import Normal
from torch.func import functional_call

from perdure.agents.learners.maml import MAMLAgent, MAMLSettings
from perdure.agents.learners.rl2 import RL2Agent
from perdure.agents.networks.products import ENOUGH, onednn_is_quicker, products
from perdure.types import Setup

# benchmarks/metaworld.py would hide the package of that name.
sys.path[:] = [p for p in sys.path if Path(p).resolve() != Path(__file__).parent]
ROUNDS = 5
ASKED = 2.0
"""Times the plain loop's pace."""
LIBRARY = {
    True: "Large products of ours are made by oneDNN, which on this processor takes half the time of MKL, torch's default and the plain loops', and rounds no more (`agents/networks/products.py`).",
    False: "Both sides have torch's default library for products: this processor is none on which another is known to be quicker. Where one is (of AMD, with AVX-512), MAML's update at ML1's size and RL²'s were 2.1 times as quick as the plain loop's; with the default 1.5 and 1.9.",
}
"""What the page says of products, by whether there is a quicker library here."""
SEEN, ACTIONS = 39, 4


@dataclass(frozen=True)
class Size:
    """Of what is learned at a time."""

    name: str
    tasks: int
    episodes: int
    steps: int
    hidden: tuple[int, ...]
    width: int
    sequence: int
    batch: int


SIZES = (
    Size("toy families", 20, 5, 20, (32, 32), 32, 60, 8),
    Size("ML1, episodes of 100 steps", 20, 10, 100, (100, 100), 64, 250, 32),
)


def setup(slots):
    box = spaces.Box(-1, 1, (ACTIONS,), np.float32)
    return Setup(spaces.Box(-np.inf, np.inf, (SEEN,), np.float32), box, slots, 0)


# MAML.


def trials(size):
    """For each task the steps before and after its adaptation."""
    rng = np.random.default_rng(0)
    n = size.episodes * size.steps
    ended = np.tile(np.arange(size.steps) == size.steps - 1, 2 * size.episodes)
    return [
        {
            "obs": rng.normal(size=(2 * n, SEEN)).astype(np.float32),
            "sampled": rng.normal(size=(2 * n, ACTIONS)).astype(np.float32),
            "log_prob": rng.normal(-6, 0.1, 2 * n).astype(np.float32),
            "rewards": rng.normal(size=2 * n).astype(np.float32),
            "ended": ended,
            "stage": np.repeat([0, 1], n),
        }
        for _ in range(size.tasks)
    ]


class OurMAML:
    """Perdure's outer update, the tasks' weights as one batch."""

    def __init__(self, size):
        self.agent = MAMLAgent(setup(1), hidden=size.hidden, tasks=size.tasks, shots=size.episodes)
        self.start = self.weights()
        stages = [[{n: c[t["stage"] == k] for n, c in t.items()} for t in trials(size)] for k in (0, 1)]  # fmt: skip
        self.stages = [self.agent.stage_data(part) for part in stages]

    def weights(self):
        return [w.detach().clone() for w in self.agent.weights]

    def update(self):
        """The epochs of one outer update, advantages at hand."""
        for _ in range(self.agent.settings.epochs):
            self.agent.optimizer.advance(0.0)
            self.agent.climb(self.stages)


class PlainMAML:
    """A loop over tasks."""

    def __init__(self, ours):
        s = self.settings = ours.agent.settings
        sizes = [SEEN, *s.hidden, ACTIONS]
        layers = []
        for a, b in pairwise(sizes):
            layers += [nn.Linear(a, b), nn.Tanh()]
        self.net = nn.Sequential(*layers[:-1])
        self.net.register_parameter("log_std", nn.Parameter(torch.zeros(ACTIONS)))
        self.parameters = dict(self.net.named_parameters())
        with torch.no_grad():
            for p, w in zip(self.parameters.values(), ours.start, strict=True):
                p.copy_(w)
        self.optimizer = torch.optim.Adam(self.net.parameters(), s.lr, eps=1e-5)
        self.stages = ours.stages

    def log_prob(self, weights, obs, sampled):
        mean = functional_call(self.net, weights, (obs,))
        return Normal(mean, weights["log_std"].exp()).log_prob(sampled).sum(-1)

    def ratio(self, weights, k, task):
        data = {n: v[task] for n, v in self.stages[k].items()}
        return torch.exp(
            self.log_prob(weights, data["obs"], data["sampled"]) - data["log_prob"]
        ), data

    def update(self):
        s, tasks = self.settings, len(self.stages[0]["obs"])
        for _ in range(s.epochs):
            total = 0.0
            for task in range(tasks):
                ratio, data = self.ratio(self.parameters, 0, task)
                gain = (ratio * data["advantages"]).sum()
                grads = torch.autograd.grad(gain, list(self.parameters.values()), create_graph=True)
                named = zip(self.parameters.items(), grads, strict=True)
                fast = {n: p + s.inner_lr * g for (n, p), g in named}
                ratio, data = self.ratio(fast, 1, task)
                clipped = ratio.clamp(1 - s.clip, 1 + s.clip)
                total = total + torch.min(ratio * data["advantages"], clipped * data["advantages"]).sum()  # fmt: skip
            self.optimizer.zero_grad()
            (-total / tasks).backward()
            self.optimizer.step()

    def weights(self):
        return [p.detach().clone() for p in self.parameters.values()]


# RL².


class OurRL2:
    """Perdure's steps down the loss of minibatches of sequences."""

    def __init__(self, size):
        self.agent = RL2Agent(
            setup(size.tasks),
            hidden=size.hidden[:1],
            width=size.width,
            batch=size.batch,
            sequence=size.sequence,
            baseline="linear",
        )
        rng = np.random.default_rng(1)
        shape = (size.batch, size.sequence)
        start = np.zeros(shape, bool)
        start[:, 0] = True
        wide = self.agent.net.flat + self.agent.extras.shape[1]

        def as_float(*shape):
            return torch.tensor(rng.normal(size=shape), dtype=torch.float32)

        self.batch = {
            "obs": as_float(*shape, wide),
            "hidden": torch.zeros(size.batch, size.width),
            "start": torch.tensor(start),
            "mask": torch.ones(shape, dtype=torch.bool),
            "sampled": as_float(*shape, ACTIONS),
            "log_prob": as_float(*shape) * 0.1 - 6,
            "advantages": as_float(*shape),
            "returns": as_float(*shape),
        }
        self.start = {n: p.detach().clone() for n, p in self.agent.net.named_parameters()}

    def update(self):
        self.agent.descend(self.batch)

    def weights(self):
        return [p.detach().clone() for p in self.agent.net.parameters()]


class PlainRL2:
    """torch's GRU cell through time."""

    def __init__(self, ours, size):
        agent = ours.agent
        self.settings, self.batch = agent.settings, ours.batch
        self.flat = agent.net.flat
        features = size.hidden[0] + agent.extras.shape[1]
        self.encoder = nn.Sequential(nn.Linear(SEEN, size.hidden[0]), nn.Tanh())
        self.cell = nn.GRUCell(features, size.width)
        self.actor = nn.Linear(size.width, ACTIONS)
        self.log_std = nn.Parameter(torch.zeros(ACTIONS))
        start = ours.start
        pairs = {"encoder": self.encoder[0], "actor": self.actor}
        with torch.no_grad():
            for name, layer in pairs.items():
                weight = next(
                    v for n, v in start.items() if n.startswith(name) and n.endswith("weight")
                )
                bias = next(
                    v for n, v in start.items() if n.startswith(name) and n.endswith("bias")
                )
                layer.weight.copy_(weight)
                layer.bias.copy_(bias)
            self.cell.weight_ih.copy_(start["gru.inputs.weight"])
            self.cell.bias_ih.copy_(start["gru.inputs.bias"])
            self.cell.weight_hh.copy_(start["gru.recurrent.weight"])
            self.cell.bias_hh.copy_(start["gru.recurrent.bias"])
            self.log_std.copy_(start["policy.log_std"])
        modules = (self.encoder, self.cell, self.actor)
        self.optimizer = torch.optim.Adam(
            [*(p for m in modules for p in m.parameters()), self.log_std],
            self.settings.lr,
            eps=1e-5,
        )

    def update(self):
        s, b = self.settings, self.batch
        h, means = b["hidden"], []
        for t in range(b["obs"].shape[1]):
            seen = torch.cat(
                [self.encoder(b["obs"][:, t, : self.flat]), b["obs"][:, t, self.flat :]], 1
            )
            h = self.cell(seen, torch.where(b["start"][:, t, None], 0.0, h))
            means.append(self.actor(h))
        policy = Normal(torch.stack(means, 1), self.log_std.exp())
        ratio = torch.exp(policy.log_prob(b["sampled"]).sum(-1) - b["log_prob"])
        advantages = (b["advantages"] - b["advantages"].mean()) / (b["advantages"].std(unbiased=False) + 1e-8)  # fmt: skip
        clipped = ratio.clamp(1 - s.clip, 1 + s.clip)
        loss = -torch.min(ratio * advantages, clipped * advantages).mean()
        loss = loss - s.entropy * policy.entropy().sum(-1).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def gru(self):
        return self.cell.weight_hh.detach()


def least(sides, count, rounds):
    """CPU seconds of an update of each side."""
    best = dict.fromkeys(sides, np.inf)
    for _ in range(rounds):
        for name, side in sides.items():
            began = time.process_time()
            for _ in range(count):
                side.update()
            best[name] = min(best[name], (time.process_time() - began) / count)
    return best


class Mathematics:
    """What no MAML update can do without: its products of matrices, one by one at their shapes, and its
    hyperbolic tangents at the price of the cheapest way to them. Nothing else: no ratios, no optimiser."""

    def __init__(self, size):
        self.tasks, rows = size.tasks * MAMLSettings.epochs, size.episodes * size.steps
        sizes = [SEEN, *size.hidden, ACTIONS]
        self.products = []
        for k, (a, b) in enumerate(pairwise(sizes)):
            below, above, w = torch.randn(rows, a), torch.randn(rows, b), torch.randn(b, a)
            forth, back, wide = torch.empty(rows, b), torch.empty(rows, a), torch.empty(b, a)
            # Two passes, and the second derivatives: of what a layer gets both parts move, but for the first.
            twice = 3 if k == 0 else 4
            self.products += [(below, w.t(), forth)] * twice
            self.products += [(above.t(), below, wide)] * twice
            self.products += [(above, w, back)] * (0 if k == 0 else 4)
        self.hidden = [torch.randn(rows, h) for h in size.hidden for _ in range(2)]

    def update(self):
        with torch.no_grad(), products(ENOUGH):
            for _ in range(self.tasks):
                for left, right, out in self.products:
                    torch.mm(left, right, out=out)
                for x in self.hidden:
                    torch.sigmoid(x, out=x)


def compare(rounds):
    """CPU seconds of ours and the plain loop, for each method and size; of MAML also what its mathematics alone
    take."""
    found = []
    for size in SIZES:
        ours = OurMAML(size)
        plain = PlainMAML(ours)
        torch.set_num_threads(1)
        ours.update()
        plain.update()
        apart = max(float((a - b).abs().max()) for a, b in zip(ours.weights(), plain.weights(), strict=True))  # fmt: skip
        assert apart < 1e-4, f"MAML: the sides end {apart} apart"
        sides = {"ours": ours, "plain": plain, "mathematics": Mathematics(size)}
        found.append(("MAML", size, least(sides, 3, rounds)))
        ours2 = OurRL2(size)
        plain2 = PlainRL2(ours2, size)
        ours2.update()
        plain2.update()
        apart = float((ours2.agent.net.gru.recurrent.weight.detach() - plain2.gru()).abs().max())
        assert apart < 1e-4, f"RL²: the sides end {apart} apart"
        found.append(("RL²", size, least({"ours": ours2, "plain": plain2}, 5, rounds)))
        print(found[-2:], flush=True)
    return found


def ratio_of(best):
    """Ours to the plain loop."""
    return best["plain"] / best["ours"]


def bound_of(method, size, best):
    """What the mathematics alone would be, where the products are too large to cost less together."""
    if method != "MAML" or size is not SIZES[-1]:
        return "–"
    return f"{best['plain'] / best['mathematics']:.2f}"


def goal(method, size, best):
    """Twice the plain loop's pace."""
    found = ratio_of(best)
    return f"{method}'s update, {size.name}", found, f"at least {ASKED:g} × the plain loop's", found >= ASKED  # fmt: skip


def main(rounds):
    compared, loops = compare(rounds), table()
    lines = [
        "# Meta-learners: updates and whole meta-training",
        "",
        f"`python benchmarks/meta.py`, {platform.processor() or platform.machine()}, torch {torch.__version__}, one thread. Ours and the plain loops are given the same data and end within 1e-4 of each other. *Mathematics alone* is what would be left of a MAML update at ML1's size that did nothing but its products of matrices, each timed at its shape, and its tanh by the cheapest way (sigmoid): it is what this processor allows, and no update that computes the same in the same precision is quicker. At the toy sizes it is no bound: there small products cost less when they are done together. {LIBRARY[onednn_is_quicker()]}",
        "",
        f"| method | size | ours, updates a CPU-second | plain loop | ratio | mathematics alone | {ASKED:g} × |",
        "|---|---|---:|---:|---:|---:|---|",
        *(
            f"| {method} | {size.name} | {1 / best['ours']:.1f} | {1 / best['plain']:.1f} | {ratio_of(best):.2f} | {bound_of(method, size, best)} | {'yes' if ratio_of(best) >= ASKED else '**no**'} |"
            for method, size, best in compared
        ),
        "",
        f"One lifetime on ML1's reach: {STEPS:,} steps of 8 environments in learn blocks, and then 10 test goals, which one environment steps: episodes before adapting, to adapt in and after it. The second core is there for physics, and for torch in PEARL (`threads=2`); `perdure run` lives two lifetimes side by side, each on one. Shares are of meta-training's time:",
        "",
        *loops,
    ]
    # What no update reaches by torch's default library, by much or by little.
    known = [f for f in compared if f[1] is SIZES[-1] and not onednn_is_quicker()]
    asked = [f for f in compared if f not in known]
    return publish("meta", lines, [goal(*f) for f in asked], [goal(*f) for f in known])


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS))
