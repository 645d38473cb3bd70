"""What a policy looks at: a policy that reads one corner is found out, and attention adds up to one."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn

from perdure.agents.learners.sequence_bc import policy_of
from perdure.agents.networks.gaussian_mixture import GaussianMixtureHead
from perdure.agents.networks.saliency import attention, picture_saliency, word_saliency
from perdure.agents.networks.sequence_policies.base import Reads, SequencePolicy, sizes_of


class Corner(SequencePolicy):
    """Its first action is the red of one pixel, its second the first number of the sentence."""

    def __init__(self):
        super().__init__()
        self.head = GaussianMixtureHead(2, 2, hidden=2, layers=1, modes=1)
        with torch.no_grad():
            for p in self.head.parameters():
                p.zero_()
            self.head.shared[0][0].weight.copy_(torch.eye(2))
            self.head.shared[1].weight.copy_(torch.eye(2))
            self.head.means.weight.copy_(torch.eye(2))

    def tokens(self, seen, language):
        red = seen["front"][:, :, 0, 13, 5]
        return torch.stack([red, language[:, :1].expand_as(red)], -1)

    def through_time(self, tokens):
        return tokens


def test_the_patch_and_the_word_that_decide_are_found():
    rng = np.random.default_rng(0)
    front = torch.tensor(rng.random((2, 3, 3, 16, 16)), dtype=torch.float32)
    front[:, -1, 0, 13, 5] = 1.0
    policy, words = Corner(), torch.tensor([[0.5, 1.0], [0.5, 1.0]])
    found = picture_saliency(policy, {"front": front}, words, "front", patch=4)
    assert found.shape == (2, 4, 4)
    mean = front[:, -1, 0].mean((1, 2))
    torch.testing.assert_close(found[:, 3, 1], np.tanh(1.0) - torch.tanh(mean))
    found[:, 3, 1] = 0
    assert not found.any()
    without = [torch.tensor([[0.5, 0.0]] * 2), torch.tensor([[0.0, 1.0]] * 2)]
    moved = word_saliency(policy, {"front": front}, words, without)
    torch.testing.assert_close(moved, torch.tensor([[0.0, np.tanh(0.5)]] * 2, dtype=torch.float32))


@pytest.mark.parametrize("name", ["resnet_t", "vit_t", "state_transformer"])
def test_attention_is_what_was_read_and_leaves_no_trace(name):
    kind = policy_of(name)
    shapes = {"front": (3, 32, 32), "wrist": (3, 32, 32)} if kind.needs_pictures else {}
    reads = Reads(shapes, {"arm": 3}, 8, 2, 5, lambda: np.random.default_rng(0))
    torch.manual_seed(0)
    policy: nn.Module = kind(reads, sizes_of(kind, "small")).eval()
    seen = {n: torch.rand(2, 5, *s) for n, s in shapes.items()} | {"arm": torch.randn(2, 5, 3)}
    found = attention(policy, seen, torch.randn(2, 8))
    tokens = {"resnet_t": 4, "vit_t": 3, "state_transformer": 2}[name]
    assert found["time"].shape == (2, 5, tokens)
    torch.testing.assert_close(found["time"].sum((1, 2)), torch.ones(2))
    if name == "vit_t":
        # Four patches of each picture and the sentence; the rest of the one went to itself.
        assert found["patches"].shape == (2, 2 * 4 + 1)
        assert (found["patches"].sum(1) < 1).all() and (found["patches"] > 0).all()
    assert all(m.looked_at is None for m in policy.modules() if hasattr(m, "looked_at"))
