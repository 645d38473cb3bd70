"""A second device in software, for machines that have none: it computes on the CPU, and refuses what
a GPU refuses.

A tensor "on" it holds one of the CPU and says that it lies elsewhere. An operation that meets tensors
of both places raises, as CUDA does; numpy cannot read it; it has no float64, as MPS has none. Unlike torch's fake tensors it has real
numbers, so that a whole lifetime can be compared with one on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map

try:
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend
except ImportError:
    pytest.skip("this torch cannot have a device in Python", allow_module_level=True)

_setup_privateuseone_for_python_backend("pretend")
DEVICE = torch.device("pretend:0")
MOVES = {"aten::to", "aten::_to_copy", "aten::copy_"}
"""Operations that go from one device to another."""


class MixedDevices(RuntimeError):
    """An operation met tensors of both devices."""


class NoDoublePrecision(TypeError):
    """A float64 tensor was to lie on the device."""


class PretendTensor(torch.Tensor):
    """Says that it lies on the pretended device; ``raw`` is where it does."""

    raw: torch.Tensor

    @staticmethod
    def __new__(cls, raw: torch.Tensor) -> PretendTensor:
        if raw.dtype in (torch.float64, torch.complex128):
            raise NoDoublePrecision(f"{raw.dtype} on {DEVICE}, as MPS has none")
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            raw.shape,
            strides=raw.stride(),
            storage_offset=raw.storage_offset(),
            dtype=raw.dtype,
            device=DEVICE,
        )
        made.raw = raw
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made: Any = PretendTensor(self.raw.clone())
        if isinstance(self, torch.nn.Parameter):
            made = torch.nn.Parameter(made, self.requires_grad)
        memo[id(self)] = made
        return made

    def __repr__(self) -> str:
        return f"PretendTensor({self.raw})"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func == torch.Tensor.data.__set__:
            args[0].raw = args[1].raw
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})


def compute(func: Any, args: Any, kwargs: Any) -> Any:
    """Run an operation on the CPU in the name of the device that it belongs to."""
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
    there = [isinstance(x, PretendTensor) for x in tensors]
    name = func._schema.name
    if any(there) and name not in MOVES:
        for x, away in zip(tensors, there, strict=True):
            if not away and x.dim():  # A number may come from the CPU, as on a GPU.
                raise MixedDevices(f"{name} of tensors on {DEVICE} and {x.device}")
    asked = kwargs.get("device")
    here = any(there) if asked is None else torch.device(asked).type == DEVICE.type
    if name == "aten::copy_":
        here = there[0]
    if asked is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    bare_args, bare_kwargs = tree_map(
        lambda x: x.raw if isinstance(x, PretendTensor) else x, (args, kwargs)
    )
    out = func(*bare_args, **bare_kwargs)
    if not here:
        return out
    out = tree_map(lambda x: PretendTensor(x) if isinstance(x, torch.Tensor) else x, out)
    crossed = name != "aten::copy_" and name in MOVES
    return out if crossed else return_and_correct_aliasing(func, args, kwargs, out)


class _Factories(TorchDispatchMode):
    """New tensors on the device: no argument tells that they are to be pretended."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})


@contextmanager
def pretend_device() -> Iterator[torch.device]:
    """The machine has the device, and ``auto`` takes it."""
    from perdure.agents.networks import tensors

    with pytest.MonkeyPatch.context() as patch, _Factories():
        # Tensors of a Python device cannot be viewed in inference mode.
        patch.setattr(torch, "inference_mode", torch.no_grad)
        patch.setattr(tensors, "available_devices", lambda: (str(DEVICE), "cpu"))
        yield DEVICE
