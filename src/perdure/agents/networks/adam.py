"""Adam on one flat vector.

A small network has a dozen small tensors, and torch.optim spends more time going through them than
computing; its first use also imports a second of compiler. Here all parameters are views of one
vector, and so are their gradients: a step is one operation, whatever the network.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor, nn

from perdure.errors import AgentFault
from perdure.types import Array, State


class Adam:
    """Kingma and Ba's Adam. It owns the memory of the parameters it is given.

    A parameter that a loss does not use has a gradient of zero, not None. Gradients are forgotten
    with :meth:`zero_grad` here, not with that of the network, which would cut the views.
    """

    betas = (0.9, 0.999)
    eps = 1e-5

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float) -> None:
        self.lr = lr
        self.steps = 0
        self.parameters = kept = list(parameters)
        self.weights: Tensor = torch.cat([p.detach().reshape(-1) for p in kept])
        self.grads, self.mean, self.square = (torch.zeros_like(self.weights) for _ in range(3))
        start = 0
        for p in kept:
            end = start + p.numel()
            p.data = self.weights[start:end].view_as(p)
            p.grad = self.grads[start:end].view_as(p)
            start = end

    def zero_grad(self) -> None:
        """Forget the gradients; backward() adds to what is there."""
        self.grads.zero_()

    @torch.no_grad()
    def clip(self, norm: float) -> None:
        """Shorten the gradient to this length if it is longer."""
        length = torch.linalg.vector_norm(self.grads)
        self.grads.mul_((norm / (length + 1e-6)).clamp_(max=1.0))

    @torch.no_grad()
    def step(self) -> None:
        """Move the parameters by what the gradients of this and former steps say."""
        grad = self.parameters[0].grad
        if grad is None or grad.data_ptr() != self.grads.data_ptr():
            raise AgentFault(
                "Adam: the gradients are no longer its own; forget them with optimizer.zero_grad(), "
                "not with net.zero_grad(), and change them in place"
            )
        self.steps += 1
        # What torch.optim.Adam(fused=True) comes down to: one pass over the vectors, where single
        # operations would take seven.
        torch._fused_adam_(
            [self.weights],
            [self.grads],
            [self.mean],
            [self.square],
            [],
            [torch.tensor(float(self.steps))],
            lr=self.lr,
            beta1=self.betas[0],
            beta2=self.betas[1],
            weight_decay=0.0,
            eps=self.eps,
            amsgrad=False,
            maximize=False,
        )

    def state(self, prefix: str) -> dict[str, Array]:
        """Copies of the moments; the parameters themselves belong to their network."""
        return {
            f"{prefix}.mean": self.mean.numpy().copy(),
            f"{prefix}.square": self.square.numpy().copy(),
            f"{prefix}.steps": np.array(self.steps),
        }

    def load(self, prefix: str, state: State) -> None:
        """Take over moments that :meth:`state` gave."""
        self.mean.copy_(torch.tensor(np.asarray(state[f"{prefix}.mean"])))
        self.square.copy_(torch.tensor(np.asarray(state[f"{prefix}.square"])))
        self.steps = int(state[f"{prefix}.steps"])
