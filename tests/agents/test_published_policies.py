"""LIBERO's architectures at their published size against a second writing of them, with copied weights."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import reference_policies as reference

from perdure.agents.learners.sequence_bc import policy_of
from perdure.agents.networks.sequence_policies.base import Reads, sizes_of

PIXELS, ROWS, STEPS = 64, 2, 3


def made(name):
    """A policy at its published size. Its weights are so large that inputs show in what it answers, and
    none is 0 or 1 as some begin."""
    shapes = dict.fromkeys(reference.CAMERAS, (3, PIXELS, PIXELS))
    rng = np.random.default_rng(0)
    reads = Reads(shapes, {"gripper": 2, "joints": 7}, 768, 7, 10, lambda: rng)
    kind = policy_of(name)
    torch.manual_seed(0)
    policy = kind(reads, sizes_of(kind, "paper")).eval().double()
    with torch.no_grad():
        for key, value in policy.state_dict().items():
            if key.endswith("running_var"):
                value.uniform_(0.5, 1.5)
            elif value.dim() == 1:
                value.add_(0.1 * torch.randn_like(value))
            elif value.dim() > 1:
                value.mul_(2.0)
    return policy


@pytest.mark.parametrize("name", ["resnet_rnn", "resnet_t", "vit_t"])
def test_a_forward_pass_is_as_published(name):
    policy = made(name)
    seen = {
        "gripper": torch.randn(ROWS, STEPS, 2).double(),
        "joints": torch.randn(ROWS, STEPS, 7).double(),
        **{c: torch.rand(ROWS, STEPS, 3, PIXELS, PIXELS).double() for c in reference.CAMERAS},
    }
    sentence = torch.randn(ROWS, 768).double()
    weights = reference.Weights(policy.state_dict())
    with torch.inference_mode():
        wanted = getattr(reference, name)(weights, seen, sentence)
        mean, std, log_weight = policy.head.split(policy(seen, sentence))
    assert weights.unread() == set()
    for found, part in zip((mean, std, log_weight.exp()), wanted, strict=True):
        torch.testing.assert_close(found, part, atol=1e-5, rtol=0)
    # What is compared differs from row to row and step to step.
    assert min(float(mean.std(0).mean()), float(mean.std(1).mean())) > 1e-3
