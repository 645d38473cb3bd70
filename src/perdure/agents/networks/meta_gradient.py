"""The gradient of MAML's outer objective, written out for tanh networks with a Gaussian policy.

What autograd finds by going back through an inner step of recorded gradients is the gradient v of the outer
objective in the adapted weights, and the inner objective's second derivatives times v, by Pearlmutter's R
operator: how the inner gradient changes where the weights move along v. Written out, both are the fewest products of
matrices that there are, with a pass or two over each layer between them. Tasks are the first axis of
everything but the weights that they start from: log standard deviations, then matrix and bias of each layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, pi

import torch
from torch import Tensor

from perdure.agents.networks.adaptable import Weights
from perdure.agents.networks.learner import Minibatch

_HALF_LOG_2PI = 0.5 * log(2 * pi)
_TANH_BACKWARD = torch.ops.aten.tanh_backward.grad_input


def outer_gradient(
    weights: Weights, stages: Sequence[Minibatch], inner_lr: float, clip: float
) -> tuple[Tensor, list[Tensor]]:
    """The sum over tasks of PPO's clipped objective after one step of adaptation, and its gradient in the
    weights that all tasks start from."""
    inner, outer = stages
    tasks = len(inner["obs"])
    start = [w.detach().unsqueeze(0).expand(tasks, *w.shape) for w in weights]
    first = _Pass(start, inner)
    gain = first.ratio * inner["advantages"]
    gradient = first.gradient(gain)
    adapted = [torch.add(w, g, alpha=inner_lr) for w, g in zip(start, gradient, strict=True)]
    second = _Pass(adapted, outer)
    gains = second.ratio * outer["advantages"]
    clipped = second.ratio.clamp(1 - clip, 1 + clip) * outer["advantages"]
    along = second.gradient(torch.where(gains <= clipped, gains, 0.0))
    found = first.gradient_moved(gain, along)
    total = [torch.add(v, h, alpha=inner_lr).sum(0) for v, h in zip(along, found, strict=True)]
    return torch.minimum(gains, clipped).sum(), total


class _Pass:
    """A forward pass of all tasks, each by weights of its own, and what can be derived from it."""

    def __init__(self, weights: Weights, data: Minibatch) -> None:
        self.log_std, self.matrices, self.biases = _parts(weights)
        # Into hidden layers 2a in place of a, which costs nothing there: tanh a = 2 sigmoid 2a − 1, and sigmoid
        # takes a sixth of the time of torch.tanh.
        self.layers = [data["obs"]]
        last = len(self.matrices) - 1
        for k, (w, b) in enumerate(zip(self.matrices, self.biases, strict=True)):
            by = 1 if k == last else 2
            x = torch.baddbmm(b.unsqueeze(1), self.layers[-1], w.mT, beta=by, alpha=by)
            self.layers.append(x if k == last else x.sigmoid_().mul_(2).sub_(1))
        self.precision = torch.exp(-self.log_std).unsqueeze(1)
        self.z = (data["sampled"] - self.layers.pop()).mul_(self.precision)
        log_prob = self.z.square().sum(2).mul_(-0.5) - self.log_std.sum(1, keepdim=True)
        log_prob -= self.z.shape[2] * _HALF_LOG_2PI
        self.ratio = log_prob.sub_(data["log_prob"]).exp_()
        self.ones = self.z.new_ones(1, 1, 1).expand(len(self.z), 1, self.z.shape[1])
        self.deltas: list[Tensor] = []
        """For each layer the gradient in what comes into it."""

    def gradient(self, gain: Tensor) -> list[Tensor]:
        """Of the sum of ``gain``, which is the ratio times a number for each row, in the weights."""
        gain = gain.unsqueeze(2)
        deltas = [self.z * self.precision * gain]
        for w, h in zip(self.matrices[:0:-1], self.layers[:0:-1], strict=True):
            above = torch.bmm(deltas[-1], w)
            deltas.append(_TANH_BACKWARD(above, h, grad_input=above))
        self.deltas = deltas[::-1]
        spread = (self.z.square().sub_(1) * gain).sum(1)
        found = [torch.bmm(d.mT, h) for d, h in zip(self.deltas, self.layers, strict=True)]
        return self._flat(spread, found, self.deltas)

    def gradient_moved(self, gain: Tensor, along: Weights) -> list[Tensor]:
        """How :meth:`gradient` changes where the weights move along a direction: second derivatives times it."""
        log_std, matrices, biases = _parts(along)
        moves: list[Tensor] = []
        into: list[Tensor] = []
        for k, (w, v, b) in enumerate(zip(self.matrices, matrices, biases, strict=True)):
            a = torch.baddbmm(b.unsqueeze(1), self.layers[k], v.mT)
            if moves:
                a.baddbmm_(moves[-1], w.mT)
            into.append(a)
            if k < len(matrices) - 1:
                moves.append(torch.ops.aten.tanh_backward(a, self.layers[k + 1]))
        gain, log_std, z = gain.unsqueeze(2), log_std.unsqueeze(1), self.z
        turned = (into.pop() * self.precision).neg_().addcmul_(z, log_std, value=-1)
        log_prob = -(z * turned).sum(2, keepdim=True) - log_std.sum(2, keepdim=True)
        gained = gain * log_prob
        spread = (gained * (z.square() - 1) + 2 * gain * z * turned).sum(1)
        deltas = [(gained * z + gain * (turned - z * log_std)).mul_(self.precision)]
        for k in range(len(matrices) - 1, 0, -1):
            above = torch.bmm(deltas[-1], self.matrices[k]).baddbmm_(self.deltas[k], matrices[k])
            h = self.layers[k]
            bent = into.pop().mul_(self.deltas[k - 1])
            deltas.append(_TANH_BACKWARD(above, h, grad_input=above).addcmul_(bent, h, value=-2))
        deltas.reverse()
        found = [torch.bmm(d.mT, h) for d, h in zip(deltas, self.layers, strict=True)]
        for w, d, move in zip(found[1:], self.deltas[1:], moves, strict=True):
            w.baddbmm_(d.mT, move)
        return self._flat(spread, found, deltas)

    def _flat(self, spread: Tensor, matrices: Weights, deltas: Weights) -> list[Tensor]:
        """Gradients in the order of the weights. A product with ones is quicker than a sum over rows."""
        out = [spread]
        for matrix, delta in zip(matrices, deltas, strict=True):
            out += [matrix, torch.bmm(self.ones, delta).squeeze(1)]
        return out


def _parts(weights: Weights) -> tuple[Tensor, Weights, Weights]:
    return weights[0], weights[1::2], weights[2::2]
