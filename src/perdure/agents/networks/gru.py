"""A gated recurrent unit with a gradient of its own: sequences pass in few operations a step."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from perdure.agents.networks.products import products
from perdure.agents.networks.tensors import CACHE


class _Recurrence(torch.autograd.Function):
    """h_t from h_{t−1} and the projected inputs, for all steps.

    Autograd would write down some twenty operations for each step, and go through them again. Here
    what a step needs for its gradient is kept in stacks, and on the way back all but the gradient of h
    itself is computed for many steps at once: as many as stay in a core's cache.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(
        projected: Tensor, memory: Tensor, keep: Tensor, weight: Tensor, bias: Tensor
    ) -> tuple[Tensor, ...]:
        """Time is the first axis: (steps, sequences, …). The outputs, the last of them, and what the
        gradient needs."""
        width = weight.shape[1]
        turned = weight.t()
        h = memory
        gates, candidates, recurrent, out = [], [], [], []
        to_gates, to_candidate = (
            p.unbind(0) for p in torch.split(projected, [2 * width, width], 2)
        )
        with products(h.shape[0] * weight.numel()):
            for now, new, kept in zip(to_gates, to_candidate, keep.unbind(0), strict=True):
                h = h * kept
                from_h, part = torch.split(torch.addmm(bias, h, turned), [2 * width, width], 1)
                gate = (now + from_h).sigmoid_()
                reset, update = gate.chunk(2, 1)
                candidate = torch.addcmul(new, reset, part).tanh_()
                h = torch.lerp(candidate, h, update)
                gates.append(gate)
                candidates.append(candidate)
                recurrent.append(part)
                out.append(h)
        stacks = (torch.stack(s) for s in (gates, candidates, recurrent))
        return (torch.stack(out), h, *stacks)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
        """Keep what the gradient needs."""
        _, memory, keep, weight, _ = inputs
        ctx.mark_non_differentiable(*output[2:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(memory, keep, weight, output[0], *output[2:])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """From the last step to the first."""
        memory, keep, weight, out, gates, candidates, recurrent = ctx.saved_tensors
        seen, last = grads[:2]
        width = weight.shape[1]
        d = torch.zeros_like(memory) if last is None else last
        before = torch.cat([memory.unsqueeze(0), out[:-1]])
        to_weight, to_bias = torch.zeros_like(weight), weight.new_zeros(len(weight))
        to_projected = []
        at_once = max(1, CACHE // gates[0].numel())
        stacks = (
            s.split(at_once)[::-1] for s in (seen, keep, before, gates, candidates, recurrent)
        )
        for given, kept, h, gate, new, part in zip(*stacks, strict=True):
            h = h * kept
            reset, update = gate[..., :width], gate[..., width:]
            slope = torch.addcmul(gate, gate, gate, value=-1)
            to_new = (1 - new * new).mul_(1 - update)
            to_update = (h - new).mul_(slope[..., width:])
            to_reset = (to_new * part).mul_(slope[..., :width])
            # What the gradient of h_t is multiplied by for the three parts of the product with h_{t−1}.
            parts = torch.stack([to_reset, to_update, to_new * reset], 2)
            arrived = []
            steps = (s.unbind(0)[::-1] for s in (given, parts, update, kept))
            with products(d.shape[0] * weight.numel()):
                for now, by, stays, here in zip(*steps, strict=True):
                    d = d + now
                    arrived.append(d)
                    owing = (d.unsqueeze(1) * by).flatten(1)
                    d = torch.addmm(d * stays, owing, weight).mul_(here)
            came = torch.stack(arrived[::-1])
            owed = (parts * came.unsqueeze(2)).flatten(2)
            flat = owed.flatten(0, 1)
            to_weight = to_weight.addmm(flat.t(), h.flatten(0, 1))
            to_bias = to_bias + flat.sum(0)
            # The candidate's part of the projected inputs is not reset.
            to_projected.append(torch.cat([owed[..., : 2 * width], to_new * came], 2))
        return torch.cat(to_projected[::-1]), d, None, to_weight, to_bias


class GRU(nn.Module):
    """A gated recurrent unit (Cho et al., 2014) in plain operations, which every device has; it
    starts as torch's own does."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.inputs, self.recurrent = nn.Linear(inputs, 3 * width), nn.Linear(width, 3 * width)
        for p in self.parameters():
            nn.init.uniform_(p, -(width**-0.5), width**-0.5)

    def forward(self, x: Tensor, memory: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
        """(sequences, steps, inputs) to (sequences, steps, width), and the memory after the last.
        Memory is zero where a step starts anew."""
        projected = self.inputs(x.transpose(0, 1).contiguous())
        keep = (~start).to(x.dtype).t().unsqueeze(2)
        weight, bias = self.recurrent.weight, self.recurrent.bias
        out, last, *_ = _Recurrence.apply(projected, memory, keep, weight, bias)  # type: ignore[no-untyped-call]
        return out.transpose(0, 1), last
