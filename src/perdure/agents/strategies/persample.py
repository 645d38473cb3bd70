"""Gradients of single samples, squared or in absolute value, and summed up.

In a linear layer the gradient of sample n is the outer product of what came in, x_n, and of what the
loss sends back, δ_n. So the sum over samples of its squares is one product of matrices, of δ² and x²::

    Σ_n (δ_no x_ni)² = Σ_n δ_no² x_ni²

and likewise for absolute values: all samples together cost little more than a step of learning. In a
convolution it takes a small gradient for each sample, in a batch norm by fixed statistics and in a
group norm a sum over places. A network of other parts goes the long way, a gradient for each sample by ``vmap``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from perdure.agents.networks.inputs import channels_last
from perdure.agents.networks.learner import Minibatch, TorchLearner
from perdure.agents.networks.norms import FrozenBatchNorm
from perdure.agents.networks.tensors import CACHE, to_float
from perdure.agents.strategies.row_memory import rows_of

Score: TypeAlias = Callable[[Minibatch], Tensor]
"""The mean over rows of a number for each row."""
Of: TypeAlias = Callable[[Tensor], Tensor]
"""What is summed: square or absolute value, so that of(ab) = of(a) of(b)."""
CHUNK, ROOM, PROBE = 64, 1 << 24, 8
"""Rows at once: at most so many, and at most so many numbers of their gradients (64 MB). Rows that
show whether a network's layers are known."""


@contextmanager
def evaluating(net: nn.Module) -> Iterator[None]:
    """The network in evaluation mode: no dropout, norms by their running statistics."""
    training = net.training
    net.eval()
    try:
        yield
    finally:
        net.train(training)


def mean_gradients(
    learner: TorchLearner, rows: Minibatch, score: Score, of: Of, group: int = 1
) -> Tensor:
    """Mean of ``of``(the gradient of a sample's score), as one flat vector in the order of the
    optimiser; the network is in evaluation mode.

    Each sample has a gradient of its own. ``group`` rows may share one, that of their mean score:
    squaring it is another, smaller thing. Rows that fill no group are left out.
    """
    n = rows_of(rows)
    rows = {**rows, "obs": channels_last(rows["obs"])}
    with evaluating(learner.net):
        if group > 1:
            group = min(group, n)
            parts = [_part(rows, k * group, group) for k in range(n // group)]
            return summed(of(_flat(learner, score(p))) for p in parts) / len(parts)
        parts = chunks(rows)
        # A few rows tell: the sums are linear in them.
        known = _is_layers(learner, _part(rows, 0, PROBE), score)
        way = by_layers if known else by_vmap
        return summed(way(learner, p, score, of) for p in parts) / n


def by_layers(learner: TorchLearner, rows: Minibatch, score: Score, of: Of) -> Tensor:
    """The sum over samples, as far as it comes by layers that are known."""
    passed: list[tuple[nn.Module, Tensor, Tensor]] = []

    def keep(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor | None:
        if not output.requires_grad:
            return None
        passed.append((layer, inputs[0].detach(), output))
        return output.clone()  # An activation may work in place.

    layers = [m for m in learner.net.modules() if type(m) in RULES and _plain(m)]
    handles = [layer.register_forward_hook(keep) for layer in layers]
    try:
        total = score(rows) * rows_of(rows)
    finally:
        for handle in handles:
            handle.remove()
    flat = torch.zeros_like(learner.optimizer.weights)
    if not passed:
        return flat  # No layer is known.
    # Back to the outputs of layers only: nobody needs the gradient of the parameters themselves.
    sent = torch.autograd.grad(
        total, [o for _, _, o in passed], allow_unused=True, materialize_grads=True
    )
    sums: dict[int, Tensor] = {}
    for (layer, x, _), back in zip(passed, sent, strict=True):
        weight, bias = RULES[type(layer)](layer, x, back, of)
        for p, found in ((layer.weight, weight), (layer.bias, bias)):
            if p is not None:
                sums[id(p)] = found
    start = 0
    for p in learner.optimizer.parameters:
        if id(p) in sums:
            flat[start : start + p.numel()] = sums[id(p)].reshape(-1)
        start += p.numel()
    return flat


def by_vmap(learner: TorchLearner, rows: Minibatch, score: Score, of: Of) -> Tensor:
    """The sum over samples, whatever the network is made of."""
    named = learner.parameters()
    weights = {f"net.{name}": p.detach() for name, p in named.items()}
    scored = _Scored(learner.net, score)

    def one(values: dict[str, Tensor], row: Minibatch) -> Tensor:
        found: Tensor = functional_call(scored, values, (row,))
        return found

    each = vmap(grad(one), in_dims=(None, 0))
    single = {name: v.unsqueeze(1) for name, v in rows.items()}
    total = torch.zeros_like(learner.optimizer.weights)
    size = max(1, min(CHUNK, ROOM // len(total)))
    for start in range(0, rows_of(rows), size):
        found = each(weights, _part(single, start, size))
        total += torch.cat([of(found[f"net.{k}"]).sum(0).reshape(-1) for k in named]).detach()
    return total


class _Scored(nn.Module):
    """A learner's network with a function of some rows, so that its parameters can be swapped."""

    def __init__(self, net: nn.Module, score: Score) -> None:
        super().__init__()
        self.net, self.score = net, score

    def forward(self, rows: Minibatch) -> Tensor:
        """The score of the rows."""
        return self.score(rows)


def chunks(rows: Minibatch) -> list[Minibatch]:
    """The rows in parts that a pass through the network takes at once."""
    return [_part(rows, start, CHUNK) for start in range(0, rows_of(rows), CHUNK)]


def _part(rows: Minibatch, start: int, size: int) -> Minibatch:
    return {name: v[start : start + size] for name, v in rows.items()}


def summed(vectors: Iterator[Tensor]) -> Tensor:
    """Their sum, in place of the first."""
    total = next(vectors)
    for v in vectors:
        total += v
    return total


def _flat(learner: TorchLearner, loss: Tensor) -> Tensor:
    """The gradient of a loss as one vector."""
    parameters = learner.optimizer.parameters
    found = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
    return torch.cat([g.reshape(-1) for g in found])


# A layer at a time.


def _is_layers(learner: TorchLearner, rows: Minibatch, score: Score) -> bool:
    """Whether all the gradient there is comes by layers that are known, each used once: their sums
    over samples are compared with the gradient itself."""
    sums = by_layers(learner, rows, score, lambda gradient: gradient)
    whole = _flat(learner, score(rows) * rows_of(rows))
    # As torch.allclose, with a tolerance that stays on the device.
    allowed = 1e-4 * whole.abs().max() + 1e-3 * whole.abs()
    return to_float(((sums - whole).abs() > allowed).sum()) == 0


def _plain(layer: nn.Module) -> bool:
    """Whether a layer is of the kind that its rule knows."""
    if isinstance(layer, nn.Conv2d):
        zeros = layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
        return zeros and layer.groups == 1
    if isinstance(layer, nn.modules.batchnorm._BatchNorm):
        return layer.running_mean is not None
    return True


def _linear(layer: nn.Module, x: Tensor, back: Tensor, of: Of) -> tuple[Tensor, Tensor]:
    if x.dim() == 2:
        return of(back).T @ of(x), of(back).sum(0)
    # Several places share the weights: a sample's gradient is their sum.
    x, back = x.flatten(1, -2), back.flatten(1, -2)
    return of(back.transpose(1, 2) @ x).sum(0), of(back.sum(1)).sum(0)


def _convolution(layer: nn.Module, x: Tensor, back: Tensor, of: Of) -> tuple[Tensor, Tensor]:
    assert isinstance(layer, nn.Conv2d) and not isinstance(layer.padding, str)
    outputs, channels, high, wide = layer.weight.shape
    (down, right), (by, along), (apart, aside) = layer.padding, layer.stride, layer.dilation
    tall, broad = back.shape[2:]
    x = nn.functional.pad(x, (right, right, down, down))
    # Numbers are copied in runs: along the channels, or along the picture if those are few.
    few = channels < broad
    x = x.contiguous() if few else channels_last(x)
    sample, channel, row, column = x.stride()
    under = x.as_strided(  # What lies under each weight of the kernel, at each place.
        (len(x), high, wide, channels, tall, broad),
        (sample, row * apart, column * aside, channel, row * by, column * along),
    )
    places, weights = tall * broad, high * wide * channels
    back = back.permute(0, 2, 3, 1).flatten(1, 2)
    total = torch.zeros(outputs, weights, device=x.device)
    size = max(1, CACHE // (places * weights + total.numel()))
    for start in range(0, len(x), size):
        some = under[start : start + size]
        if few:
            patches = some.reshape(-1, weights, places).transpose(1, 2)
        else:
            patches = some.permute(0, 4, 5, 1, 2, 3).reshape(-1, places, weights)
        total += of(back[start : start + size].transpose(1, 2) @ patches).sum(0)
    weight = total.view(outputs, high, wide, channels).permute(0, 3, 1, 2)
    return weight, of(back.sum(1)).sum(0)


def _batch_norm(layer: nn.Module, x: Tensor, back: Tensor, of: Of) -> tuple[Tensor, Tensor]:
    assert isinstance(layer, nn.modules.batchnorm._BatchNorm)
    assert layer.running_mean is not None and layer.running_var is not None
    scaled = x * back
    if x.dim() > 2:
        places = tuple(range(2, x.dim()))
        scaled, back = scaled.sum(places), back.sum(places)
    # The sum over places of what came in, normalised, times what is sent back.
    scaled = (scaled - layer.running_mean * back) * (layer.running_var + layer.eps).rsqrt()
    return of(scaled).sum(0), of(back).sum(0)


def _group_norm(layer: nn.Module, x: Tensor, back: Tensor, of: Of) -> tuple[Tensor, Tensor]:
    assert isinstance(layer, nn.GroupNorm)
    places = tuple(range(2, x.dim()))
    scaled = nn.functional.group_norm(x, layer.num_groups, eps=layer.eps) * back
    if places:
        scaled, back = scaled.sum(places), back.sum(places)
    return of(scaled).sum(0), of(back).sum(0)


RULES: dict[type, Callable[[nn.Module, Tensor, Tensor, Of], tuple[Tensor, Tensor]]] = {
    nn.Linear: _linear,
    nn.Conv2d: _convolution,
    nn.BatchNorm1d: _batch_norm,
    nn.BatchNorm2d: _batch_norm,
    FrozenBatchNorm: _batch_norm,
    nn.GroupNorm: _group_norm,
}
"""For each kind of layer: the sums over samples for its weight and its bias, given what came in and
what the loss sends back."""
