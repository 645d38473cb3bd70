"""Products of large matrices by the library that uses the whole processor.

On processors of AMD with AVX-512 torch's products of float32 (by MKL) take twice the time that they need: MKL
uses registers of half the width there. Torch has a second library, oneDNN, that uses all of it, and takes it for float32
where it is allowed to round to bfloat16 on the way. What oneDNN does with that leave depends on the processor: only with
AMX does it round, elsewhere it multiplies float32 as it is. So leave is given where this processor
has been seen not to use it, and only for as long as something large is computed: each product costs some ten microseconds
more to begin with.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

ENOUGH = 1 << 23
"""Multiplications of a computation's largest product from which on all of its products gain together; one alone
does from an eighth of that."""
_PROCESSOR = Path("/proc/cpuinfo")
_MATMUL: Any = getattr(torch.backends.mkldnn, "matmul", None)
"""Its ``fp32_precision`` is what torch's products may round to; older versions have none."""
_BEFORE: list[str] = []
"""What it was before each of the computations that are under way."""


@contextmanager
def products(multiplications: float) -> Iterator[None]:
    """Within it, products of matrices are made by the library that is quicker where the largest has so many
    multiplications; small ones by the one that was set before any of these. Within one another the innermost counts.

    What is set counts for the whole process: threads that share a computation work within one of these, and enter
    none themselves."""
    if not onednn_is_quicker() or (multiplications < ENOUGH and not _BEFORE):
        yield
        return
    _BEFORE.append(_MATMUL.fp32_precision)
    _MATMUL.fp32_precision = "bf16" if multiplications >= ENOUGH else _BEFORE[0]
    try:
        yield
    finally:
        _MATMUL.fp32_precision = _BEFORE.pop()


def largest_matrix(net: nn.Module) -> int:
    """Numbers in the largest matrix of weights that rows are multiplied with; kernels of convolutions are
    none."""
    return max((p.numel() for p in net.parameters() if p.dim() in (2, 3)), default=0)


@cache
def onednn_is_quicker() -> bool:
    """Whether oneDNN's products are quicker here and round no more than float32 does."""
    try:
        processor = _PROCESSOR.read_text()
    except OSError:
        return False
    if "AuthenticAMD" not in processor or "avx512f" not in processor or "amx" in processor:
        return False
    return hasattr(_MATMUL, "fp32_precision") and _exact()


def _exact() -> bool:
    """Whether products with leave to round are exact where float32 is: of whole numbers that bfloat16 cannot
    hold, with sums that float32 can."""
    before = _MATMUL.fp32_precision
    _MATMUL.fp32_precision = "bf16"
    try:
        return all(map(_is_product, (32, 64, 256, 1024)))
    finally:
        _MATMUL.fp32_precision = before


def _is_product(rows: int) -> bool:
    left, right = _whole(rows, 48), _whole(48, 96)
    wanted = (left.double() @ right.double()).float()
    found = (
        left @ right,
        left.t().contiguous().t() @ right,
        left @ right.t().contiguous().t(),
        torch.bmm(left.expand(2, -1, -1), right.expand(2, -1, -1))[1],
    )
    return all(torch.equal(f, wanted) for f in found)


def _whole(*shape: int) -> Tensor:
    """Odd numbers below 512 of either sign: nine bits, of which bfloat16 keeps eight."""
    count = torch.arange(prod(shape), dtype=torch.float32, device="cpu")
    return (count * 7919 % 511 - 255).mul_(2).add_(1).view(shape)
