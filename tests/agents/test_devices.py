"""Torch agents on another device than the CPU: nothing mixes, and the numbers are the same.

Where there is no GPU the other device is pretended (see ``pretend_device.py``): operations on tensors
of two devices raise there as they do on a GPU. What needs no device is in ``test_one_place.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from pretend_device import MixedDevices, NoDoublePrecision, pretend_device
from small_agents import BOTH, IMAGE, VECTOR, live, make, pairs


def check_close(one: Any, other: Any) -> None:
    """Equal but for rounding: the optimiser's step is another operation on the CPU."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            a, b = np.asarray(one[name]), np.asarray(other[name])
            assert (a.shape, a.dtype) == (b.shape, b.dtype), name
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4, err_msg=name)
    elif one is None:
        assert other is None
    else:
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-4)


def check_same_on_both(pair: str, space: Any, more: str = "") -> None:
    on_data = pair.endswith(("bc", "classifier"))
    here = make(pair, space, more)
    done = live(here, on_data)
    assert any(isinstance(item, dict) for item in done), "nothing was learned"
    with pretend_device() as device:
        there = make(pair, space, more)
        learner = getattr(there, "learner", there)
        assert learner.device == device
        assert all(p.device == device for p in learner.net.parameters())
        for a, b in zip(done, live(there, on_data), strict=True):
            check_close(a, b)
        state = there.state()
        check_close(dict(here.state()), dict(state))
        # What one device wrote, both go on from.
        again = make(pair, space, more)
        again.load(here.state())
        again.rng.bit_generator.state = here.rng.bit_generator.state
        onwards = live(again, on_data)
    moved = make(pair, space, more)
    moved.load(state)
    moved.rng.bit_generator.state = there.rng.bit_generator.state
    del there, again
    for a, b in zip(onwards, live(moved, on_data), strict=True):
        check_close(a, b)


@pytest.mark.parametrize("pair", pairs())
def test_every_pair_does_on_another_device_what_it_does_here(pair) -> None:
    check_same_on_both(pair, VECTOR)


@pytest.mark.parametrize(
    ("pair", "more"),
    [
        ("dqn", ""),
        ("ppo", ""),
        ("sac", ""),
        ("bc", ""),
        ("classifier", "dropout=0.5"),
        ("ewc+classifier", "convolutions=small"),
        ("joint+classifier", ""),
        ("packnet+sac", ""),
        ("dgr+classifier", ""),
    ],
)
@pytest.mark.parametrize("space", [IMAGE, BOTH], ids=["image", "nested"])
def test_images_and_nested_observations_too(pair, more, space) -> None:
    check_same_on_both(pair, space, more)


@pytest.mark.parametrize("pair", ["sac", "ppo"])
def test_the_linear_baseline_and_heads_too(pair) -> None:
    check_same_on_both(pair, VECTOR, {"sac": "multihead=true", "ppo": "baseline=linear"}[pair])


@pytest.mark.parametrize("pair", ["bc", "sequence_bc", "ppo", "trpo", "sac", "ewc+classifier"])
def test_plasticity_is_measured_there_as_here(pair) -> None:
    more, on_data = "plasticity=8,trainability=2", pair.endswith(("bc", "classifier"))
    here = make(pair, VECTOR, more)
    live(here, on_data)
    with pretend_device():
        there = make(pair, VECTOR, more)
        live(there, on_data)
        check_close(here.diagnose(), there.diagnose())
        check_close(dict(here.state()), dict(there.state()))


def test_the_pretended_device_refuses_what_a_gpu_refuses() -> None:
    with pretend_device() as device:
        away, here = torch.zeros(3, device=device), torch.zeros(3)
        for wrong in (
            lambda: away + here,
            lambda: here.mul_(away),
            lambda: torch.cat([away, here]),
            lambda: torch.nn.Linear(3, 2)(away),
        ):
            with pytest.raises(MixedDevices):
                wrong()
        with pytest.raises((RuntimeError, TypeError)):
            away.numpy()
        for double in (lambda: away.double(), lambda: torch.zeros(3).double().to(device)):
            with pytest.raises(NoDoublePrecision):
                double()
        assert (away + torch.tensor(1.0)).device == device
        here.copy_(away + 2)
    assert here.tolist() == [2.0, 2.0, 2.0]


def test_one_seed_starts_alike_everywhere() -> None:
    here = make("ppo", BOTH).state()
    with pretend_device():
        there = make("ppo", BOTH).state()
    assert all(np.array_equal(here[name], there[name]) for name in here)
