"""A gated recurrent unit with a gradient of its own: sequences pass in few operations a step."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class _Recurrence(torch.autograd.Function):
    """h_t from h_{t−1} and the projected inputs, for all steps.

    Autograd would write down some twenty operations for each step, and go through them again. Here
    what a step needs for its gradient is kept in stacks, all that is independent of the gradient is
    computed for all steps at once, and the gradient of the weights is one product.
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
        before, gates, candidates, recurrent, out = [], [], [], [], []
        to_gates, to_candidate = (
            p.unbind(0) for p in torch.split(projected, [2 * width, width], 2)
        )
        for now, new, kept in zip(to_gates, to_candidate, keep.unbind(0), strict=True):
            h = h * kept
            before.append(h)
            from_h, part = torch.split(torch.addmm(bias, h, turned), [2 * width, width], 1)
            gate = (now + from_h).sigmoid_()
            reset, update = gate.chunk(2, 1)
            candidate = torch.addcmul(new, reset, part).tanh_()
            h = torch.lerp(candidate, h, update)
            gates.append(gate)
            candidates.append(candidate)
            recurrent.append(part)
            out.append(h)
        stacks = (torch.stack(s) for s in (before, gates, candidates, recurrent))
        return (torch.stack(out), h, *stacks)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
        """Keep what the gradient needs."""
        _, _, keep, weight, _ = inputs
        ctx.mark_non_differentiable(*output[2:])
        ctx.save_for_backward(keep, weight, *output[2:])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """From the last step to the first."""
        keep, weight, before, gates, candidates, recurrent = ctx.saved_tensors
        seen, last = grads[:2]
        width = weight.shape[1]
        reset, update = gates[..., :width], gates[..., width:]
        to_candidate = (1 - update) * (1 - candidates * candidates)
        to_update = (before - candidates) * update * (1 - update)
        to_reset = to_candidate * recurrent * reset * (1 - reset)
        # What the gradient of h_t is multiplied by for the three parts of the product with h_{t−1}.
        parts = torch.stack([to_reset, to_update, to_candidate * reset], 2)
        arrived, rows, d = [], [], last
        backwards = (s.unbind(0)[::-1] for s in (seen, parts, update, keep))
        for given, part, stays, kept in zip(*backwards, strict=True):
            d = d + given
            row = (d.unsqueeze(1) * part).flatten(1)
            arrived.append(d)
            rows.append(row)
            d = torch.addmm(d * stays, row, weight).mul_(kept)
        inner = torch.stack(rows[::-1])
        flat = inner.flatten(0, 1)
        new = torch.stack(arrived[::-1]) * to_candidate
        projected = torch.cat([inner[..., : 2 * width], new], 2)
        return projected, d, None, flat.t() @ before.flatten(0, 1), flat.sum(0)


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
        projected = self.inputs(x).transpose(0, 1)
        keep = (~start).to(x.dtype).t().unsqueeze(2)
        weight, bias = self.recurrent.weight, self.recurrent.bias
        out, last, *_ = _Recurrence.apply(projected, memory, keep, weight, bias)  # type: ignore[no-untyped-call]
        return out.transpose(0, 1), last
