"""The strategies once more, each in a few lines of plain torch, to compare with.

They share nothing with the package but the data. One network and one loop; ``Plain`` learns without
a strategy, a subclass changes what its method changes.
"""

import copy

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy, log_softmax, softmax

SAMPLES = 256


class Plain:
    """Fine-tuning: the loop, and the hooks of the others."""

    def __init__(self, seed, classes, heads=1, lr=1e-3, width=256):
        torch.manual_seed(seed)
        self.rng = np.random.default_rng(seed)
        self.classes, self.heads = classes, heads
        self.net = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width),
                                 nn.ReLU(), nn.Linear(width, classes * heads))  # fmt: skip
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr)
        self.task, self.seen = 0, []

    def logits(self, net, x, head):
        if self.heads == 1:
            return net(x)
        return net(x).view(len(x), self.heads, self.classes)[torch.arange(len(x)), head]

    def loss(self, x, y, head):
        return cross_entropy(self.logits(self.net, x, head), y)

    def step(self, x, y, head):
        self.optimizer.zero_grad()
        self.loss(x, y, head).backward()
        self.optimizer.step()

    def learn(self, x, y, epochs, batch=32):
        head = torch.full((len(y),), self.task if self.heads > 1 else 0)
        for _ in range(epochs):
            for rows in torch.from_numpy(self.rng.permutation(len(y))).split(batch):
                self.step(x[rows], y[rows], head[rows])
        self.seen.append((x, y, head))
        some = torch.from_numpy(self.rng.choice(len(y), min(SAMPLES, len(y)), replace=False))
        self.end(x[some], y[some], head[some])
        self.task += 1

    def end(self, x, y, head):
        pass

    def accuracy(self, x, y, task):
        head = torch.full((len(y),), task if self.heads > 1 else 0)
        return float((self.logits(self.net, x, head).argmax(1) == y).float().mean())

    def weights(self):
        return torch.cat([p.detach().reshape(-1) for p in self.net.parameters()])

    def vector(self):
        return torch.cat([p.reshape(-1) for p in self.net.parameters()])

    def each(self, score, x, head, y):
        """The gradient of each sample's score as the rows of a matrix."""
        named = dict(self.net.named_parameters())

        def one(values, x, y, head):
            return score(functional_call(self.net, values, (x[None],))[0], y, head)

        found = vmap(grad(one), (None, 0, 0, 0))(
            {k: v.detach() for k, v in named.items()}, x, y, head
        )
        return torch.cat([found[k].flatten(1) for k in named], 1)

    def of_head(self, out, head):
        if self.heads == 1:
            return out
        hot = (torch.arange(self.heads) == head).float()
        return (out.view(self.heads, self.classes) * hot[:, None]).sum(0)


class EWC(Plain):
    strength = 100.0

    def __init__(self, *args, **keys):
        super().__init__(*args, **keys)
        self.penalties = []

    def loss(self, x, y, head):
        now = self.vector()
        springs = [(f * (now - a) ** 2).sum() for f, a in self.penalties]
        return super().loss(x, y, head) + self.strength / 2 * sum(springs)

    def fisher(self, x, head):
        with torch.no_grad():
            best = self.logits(self.net, x, head).argmax(1)

        def score(out, y, head):
            return log_softmax(self.of_head(out, head), 0)[None].gather(1, y[None, None])[0, 0]

        return self.each(score, x, head, best).square().mean(0)

    def end(self, x, y, head):
        self.penalties.append((self.fisher(x, head), self.weights()))


class OnlineEWC(EWC):
    def end(self, x, y, head):
        old = self.penalties[0][0] if self.penalties else 0
        self.penalties = [(self.fisher(x, head) + old, self.weights())]


class MAS(EWC):
    strength = 2 * 0.03

    def end(self, x, y, head):
        found = self.each(lambda out, y, h: self.of_head(out, h).square().sum(), x, head, y)
        old = self.penalties[0][0] if self.penalties else 0
        self.penalties = [(found.abs().mean(0) + old, self.weights())]


class SI(EWC):
    strength = 2 * 3.0

    def step(self, x, y, head):
        if not hasattr(self, "start"):
            self.start, self.path = self.weights(), 0
        before = self.weights()
        super().step(x, y, head)
        gradient = torch.cat([p.grad.reshape(-1) for p in self.net.parameters()])
        self.path = self.path + gradient * (before - self.weights())

    def end(self, x, y, head):
        now = self.weights()
        found = self.path / ((now - self.start) ** 2 + 0.2)
        old = self.penalties[0][0] if self.penalties else 0
        self.penalties = [(found + old, now)]
        self.start, self.path = now, 0


class LwF(Plain):
    old = None

    def loss(self, x, y, head):
        loss = super().loss(x, y, head)
        if self.old is None:
            return loss
        now, before = self.net(x), self.old(x).detach()
        for k in range(self.task) if self.heads > 1 else (0,):
            part = slice(k * self.classes, (k + 1) * self.classes)
            target = softmax(before[:, part] / 2, 1)
            loss = loss - 4 * (target * log_softmax(now[:, part] / 2, 1)).sum(1).mean()
        return loss

    def end(self, x, y, head):
        self.old = copy.deepcopy(self.net)


class Replay(Plain):
    """With a fixed number of rows of each task."""

    def step(self, x, y, head):
        if self.seen:
            rows = [self.seen[k] for k in self.rng.integers(len(self.seen), size=len(y))]
            kept = [self.rng.integers(min(250, len(r[1]))) for r in rows]
            parts = [[column[i] for column in r] for r, i in zip(rows, kept, strict=True)]
            old = [torch.stack(column) for column in zip(*parts, strict=True)]
            x, y, head = (torch.cat(p) for p in zip((x, y, head), old, strict=True))
        super().step(x, y, head)


class Joint(Plain):
    def step(self, x, y, head):
        if self.seen:
            x, y, head = x.clone(), y.clone(), head.clone()
            for i, k in enumerate(self.rng.integers(len(self.seen) + 1, size=len(y))):
                if k < len(self.seen):
                    row = self.rng.integers(len(self.seen[k][1]))
                    x[i], y[i], head[i] = (column[row] for column in self.seen[k])
        super().step(x, y, head)


class AGEM(Plain):
    def step(self, x, y, head):
        if not self.seen:
            return super().step(x, y, head)
        rows = [self.seen[k] for k in self.rng.integers(len(self.seen), size=len(y))]
        kept = [self.rng.integers(min(SAMPLES, len(r[1]))) for r in rows]
        old = [torch.stack([r[c][i] for r, i in zip(rows, kept, strict=True)]) for c in range(3)]
        parameters = list(self.net.parameters())
        past = torch.autograd.grad(self.loss(*old), parameters)
        now = torch.autograd.grad(self.loss(x, y, head), parameters)
        dot = sum((a * b).sum() for a, b in zip(now, past, strict=True))
        size = sum((b * b).sum() for b in past)
        for p, a, b in zip(parameters, now, past, strict=True):
            p.grad = a - dot / size * b if dot < 0 else a
        self.optimizer.step()


class PackNet(Plain):
    """Hidden layers are shared out; each head is its own task's. Weights are asked for by task."""

    def __init__(self, *args, **keys):
        super().__init__(*args, **keys)
        self.hidden = [self.net[0].weight, self.net[2].weight]
        self.owner = [torch.zeros_like(w, dtype=torch.long) for w in self.hidden]
        self.retraining = False

    def step(self, x, y, head):
        frozen = [p.detach().clone() for p in self.net.parameters()]
        super().step(x, y, head)
        with torch.no_grad():
            for w, owner in zip(self.hidden, self.owner, strict=True):
                old = next(f for f, p in zip(frozen, self.net.parameters(), strict=True) if p is w)
                mine = owner == self.task + 1 if self.retraining else owner == 0
                w.copy_(torch.where(mine, w, old))
            if self.task:
                self.net[0].bias.copy_(frozen[1])
                self.net[2].bias.copy_(frozen[3])
            for p, old in ((self.net[4].weight, frozen[4]), (self.net[4].bias, frozen[5])):
                mine = slice(self.task * self.classes, (self.task + 1) * self.classes)
                now = p[mine].clone()
                p.copy_(old)
                p[mine] = now

    def end(self, x, y, head):
        with torch.no_grad():
            for w, owner in zip(self.hidden, self.owner, strict=True):
                free = owner == 0
                size = torch.where(free, w.abs(), -1.0).reshape(-1)
                owner.view(-1)[size.topk(round(0.25 * int(free.sum()))).indices] = self.task + 1
                w.mul_(owner > 0)
        self.retraining = True
        for _ in range(200):
            rows = torch.from_numpy(self.rng.integers(len(y), size=32))
            self.step(x[rows], y[rows], head[rows])
        self.retraining = False

    def accuracy(self, x, y, task):
        whole = [w.detach().clone() for w in self.hidden]
        with torch.no_grad():
            for w, owner in zip(self.hidden, self.owner, strict=True):
                w.mul_((owner > 0) & (owner <= task + 1))
        found = super().accuracy(x, y, task)
        with torch.no_grad():
            for w, old in zip(self.hidden, whole, strict=True):
                w.copy_(old)
        return found


METHODS = {"finetune": Plain, "ewc": EWC, "online_ewc": OnlineEWC, "mas": MAS, "si": SI, "lwf": LwF,
           "replay": Replay, "joint": Joint, "agem": AGEM, "packnet": PackNet}  # fmt: skip


def matrix(method, train, test, seed, classes, heads, epochs, lr):
    """Accuracy on task j after i tasks, of a lifetime."""
    learner = METHODS[method](seed, classes, heads, lr)
    found = [[learner.accuracy(*data, k) for k, data in enumerate(test)]]
    for data in train:
        learner.learn(*data, epochs)
        found.append([learner.accuracy(*data, k) for k, data in enumerate(test)])
    return np.array(found)
