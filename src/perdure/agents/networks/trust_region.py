"""Natural gradient steps of bounded length (Schulman et al., 2015), for any objective."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector

from perdure.agents.networks.tensors import to_float

DAMPING, CONJUGATE_STEPS = 1e-5, 10
SHRINK, TRIES = 0.8, 15

Aim = Callable[[], Tensor]
"""A number that depends on the weights as they are now."""


def natural_step(
    surrogate: Aim, divergence: Aim, weights: Sequence[Tensor], bound: float
) -> tuple[float, float, float]:
    """Step along the natural gradient of the surrogate, so far that to second order the divergence is
    ``bound``, and shortened until it truly is within it and the surrogate has improved. The gain, the
    divergence and the part of the length."""
    gradient = flat_gradient(surrogate(), weights)
    product = fisher_product(divergence, weights)

    def damped(v: Tensor) -> Tensor:
        return product(v) + DAMPING * v

    direction = conjugate_gradients(damped, gradient, CONJUGATE_STEPS)
    curvature = to_float(direction @ damped(direction))
    length = math.sqrt(2 * bound / curvature) if curvature > 0 else 0.0
    return line_search(surrogate, divergence, weights, bound, length * direction)


def fisher_product(divergence: Aim, weights: Sequence[Tensor]) -> Callable[[Tensor], Tensor]:
    """v ↦ F v, where F is the Fisher information: the Hessian of the divergence at its least."""
    gradient = flat_gradient(divergence(), weights, create_graph=True)

    def product(v: Tensor) -> Tensor:
        return flat_gradient(gradient @ v, weights, retain_graph=True)

    return product


@torch.no_grad()
def line_search(
    surrogate: Aim, divergence: Aim, weights: Sequence[Tensor], bound: float, step: Tensor
) -> tuple[float, float, float]:
    """Go the longest part of a step that improves the surrogate within the bound; the gain, the
    divergence and the part, all 0 if there is none."""
    start, before = parameters_to_vector(weights), to_float(surrogate())
    part = 1.0
    for _ in range(TRIES):
        assign(weights, start + part * step)
        gained, apart = to_float(surrogate()) - before, to_float(divergence())
        if gained > 0 and apart <= bound:
            return gained, apart, part
        part *= SHRINK
    assign(weights, start)
    return 0.0, 0.0, 0.0


def flat_gradient(
    value: Tensor,
    parameters: Sequence[Tensor],
    create_graph: bool = False,
    retain_graph: bool | None = None,
) -> Tensor:
    """The gradient of a number as one vector."""
    found = torch.autograd.grad(
        value,
        parameters,
        create_graph=create_graph,
        retain_graph=retain_graph,
        materialize_grads=True,
    )
    return torch.cat([g.reshape(-1) for g in found])


def assign(parameters: Sequence[Tensor], values: Tensor) -> None:
    """Write one vector into parameters, where they lie: views of the vector would be aligned
    otherwise than those of a resumed life, and round otherwise."""
    start = 0
    for p in parameters:
        p.copy_(values[start : start + p.numel()].view_as(p))
        start += p.numel()


def conjugate_gradients(
    product: Callable[[Tensor], Tensor], target: Tensor, steps: int, tolerance: float = 1e-10
) -> Tensor:
    """x with product(x) ≈ target, for a product with a symmetric positive definite matrix."""
    x = torch.zeros_like(target)
    residual = target.clone()
    direction, square = residual.clone(), to_float(residual @ residual)
    for _ in range(steps):
        if square < tolerance:
            break
        turned = product(direction)
        far = square / to_float(direction @ turned)
        x += far * direction
        residual -= far * turned
        before, square = square, to_float(residual @ residual)
        direction = residual + (square / before) * direction
    return x
