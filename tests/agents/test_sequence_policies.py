"""Sequence policies: sizes as published, parts against independent computations, memory as sequences."""

import colorsys
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn

from perdure.agents.learners.sequence_bc import policy_of
from perdure.agents.networks.augmentation import PADDING, augment, jitter, shift, turn_hue
from perdure.agents.networks.film_resnet import FiLM, SpatialSoftmax
from perdure.agents.networks.gaussian_mixture import GaussianMixtureHead
from perdure.agents.networks.sequence_policies.base import Reads, sizes_of
from perdure.agents.networks.transformer import (
    Transformer,
    TransformerSizes,
    causal_mask,
    time_code,
)
from perdure.errors import SpecError, UnknownName

NUMBERS = {"gripper": 2, "joints": 7}
POLICIES = ("resnet_rnn", "resnet_t", "vit_t", "state_mlp", "state_transformer")


def made(name, size="paper", pixels=128, language=768):
    kind = policy_of(name)
    shapes = {"front": (3, pixels, pixels), "wrist": (3, pixels, pixels)}
    reads = Reads(
        shapes if kind.needs_pictures else {}, NUMBERS, language, 7, 10,
        lambda: np.random.default_rng(0),
    )  # fmt: skip
    torch.manual_seed(0)
    return kind(reads, sizes_of(kind, size)).eval()


def seen_by(policy, rows=2, steps=10, pixels=64):
    rng = np.random.default_rng(1)
    out = {
        n: torch.tensor(rng.standard_normal((rows, steps, k)), dtype=torch.float32)
        for n, k in NUMBERS.items()
    }
    for name in getattr(policy, "pictures", ()):
        out[name] = torch.tensor(rng.random((rows, steps, 3, pixels, pixels)), dtype=torch.float32)
    return out


def count(net):
    return sum(p.numel() for p in net.parameters())


# Sizes, counted by hand from the published dimensions.
def gmm(e):
    return e * 1024 + 1024 + 2 * (1024 * 1024 + 1024) + 1024 * 75 + 75


def block(e, inner, mlp):
    return e * 3 * inner + inner * e + e + 2 * e * mlp + mlp + e + 4 * e


STAGE1 = 4 * 64 * 64 * 9 + 4 * 128
STAGE2 = 64 * 128 * 9 + 3 * 128 * 128 * 9 + 64 * 128 + 5 * 256
CAMERA = (
    3 * 64 * 49 + 128 + STAGE1 + STAGE2
    + 768 * (2 * 128 + 2 * 256) + 2 * 128 + 2 * 256  # FiLM of each block
    + 128 * 32 + 32 + 64 * 64 + 64  # keypoints and their projection
)  # fmt: skip
PATCHES = 3 * 64 * 49 + 128 + 64 * 128 * 64 + 128 + 256
PUBLISHED = {
    "resnet_t": 2 * CAMERA + 768 * 64 + 64 + 9 * 64 + 128 + 4 * block(64, 384, 256) + gmm(64),
    "resnet_rnn": 2 * CAMERA + 768 * 32 + 32
    + 4 * 1024 * (169 + 1024) + 8 * 1024 + 4 * 1024 * 2048 + 8 * 1024 + gmm(1024),
    "vit_t": 2 * PATCHES + 128 * (128 + 3 + 1) + 768 * 128 + 128 + 7 * block(128, 960, 256)
    + 128 * 64 + 64 + 768 * 64 + 64 + 9 * 64 + 128 + 4 * block(64, 384, 256) + gmm(64),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_default_has_the_published_number_of_parameters(name):
    assert count(made(name)) == PUBLISHED[name]
    if name == "resnet_t":  # As a re-implementation from the paper counted it.
        assert round(PUBLISHED[name] / 1e6, 1) == 5.4


@pytest.mark.parametrize("name", POLICIES)
def test_small_is_small_and_gives_a_mixture_for_each_step(name):
    policy = made(name, "small", 64, 384)
    assert count(policy) < 450_000
    language = torch.randn(2, 384)
    with torch.inference_mode():
        assert policy(seen_by(policy), language).shape == (2, 10, 75)


@pytest.mark.parametrize("name", POLICIES)
def test_the_sentence_and_the_past_decide_and_the_future_does_not(name):
    policy = made(name, "small", 64, 384)
    seen, language = seen_by(policy), torch.randn(2, 384)
    later = {n: torch.cat([v[:, :6], v[:, 6:].flip(1) + 1], 1) for n, v in seen.items()}
    earlier = {n: torch.cat([v[:, :1] + 1, v[:, 1:]], 1) for n, v in seen.items()}
    with torch.inference_mode():
        base = policy(seen, language)
        torch.testing.assert_close(policy(later, language)[:, :6], base[:, :6])
        assert (policy(seen, -language) - base).abs().max() > 1e-4
        moved = (policy(earlier, language)[:, 5] - base[:, 5]).abs().max()
    assert moved == 0 if name == "state_mlp" else moved > 1e-6


@pytest.mark.parametrize("name", POLICIES)
def test_step_by_step_is_as_the_whole_sequence_and_beyond_it_the_last_ten(name):
    policy = made(name, "small", 64, 384)
    seen, language = seen_by(policy, steps=14), torch.randn(2, 384)
    carried = {n: torch.zeros(2, *s) for n, s in policy.carried_shapes().items()}
    carried["steps"] = torch.zeros(2, dtype=torch.int64)
    found = []
    with torch.inference_mode():
        tokens = policy.tokens(seen, language)
        for t in range(14):
            found.append(policy.next_features(tokens[:, t : t + 1], carried))
            carried["steps"] += 1
        found = torch.stack(found, 1)
        torch.testing.assert_close(found[:, :10], policy.through_time(tokens[:, :10]))
        # An LSTM begins anew after ten steps; a queue drops the oldest.
        begin = 10 if name == "resnet_rnn" else 4
        whole = policy.through_time(tokens[:, begin:14])
        torch.testing.assert_close(found[:, 13], whole[:, -1])


def test_the_likelihood_is_that_of_torchs_mixture():
    head = GaussianMixtureHead(8, 3, hidden=16, modes=4)
    outputs, actions = head(torch.randn(5, 6, 8)), torch.rand(5, 6, 3) * 2 - 1
    mean, std, log_weight = head.split(outputs)
    D = torch.distributions
    mixture = D.MixtureSameFamily(
        D.Categorical(logits=log_weight), D.Independent(D.Normal(mean, std), 1)
    )
    torch.testing.assert_close(head.log_prob(outputs, actions), mixture.log_prob(actions))
    assert mean.abs().max() <= 1 and std.min() > 1e-4
    # By hand: one mode at 0 with deviation 1 in three numbers.
    hand = GaussianMixtureHead(1, 3, hidden=1, modes=1)
    raw = torch.tensor([[0.0] * 3 + [math.log(math.e - 1)] * 3 + [0.0]])
    zero = hand.log_prob(raw, torch.zeros(1, 3))
    assert float(zero) == pytest.approx(-1.5 * math.log(2 * math.pi), abs=1e-3)


def test_draws_are_spread_as_the_mixture_says():
    head = GaussianMixtureHead(1, 1, hidden=1, modes=2)
    spread = math.log(math.expm1(0.1))
    raw = torch.tensor([[-2.0, 2.0, spread, spread, math.log(0.25), math.log(0.75)]]).expand(
        4000, -1
    )
    drawn = head.sample(raw, np.random.default_rng(0))[:, 0]
    right = drawn > 0
    assert right.mean() == pytest.approx(0.75, abs=0.03)
    assert drawn[right].mean() == pytest.approx(math.tanh(2), abs=0.01)
    assert drawn[right].std() == pytest.approx(0.1, abs=0.01)
    assert head.sample(raw, np.random.default_rng(0), low_noise=True)[right, 0].std() < 1e-3


def test_attention_is_torchs_own_with_copied_weights():
    sizes = TransformerSizes(1, 4, 8, 16, 0.0)
    ours = Transformer(32, sizes, lambda: np.random.default_rng(0)).eval()
    theirs = nn.TransformerEncoderLayer(
        32, 4, 16, 0.0, "gelu", batch_first=True, norm_first=True
    ).eval()
    block = ours.blocks[0]
    with torch.no_grad():
        theirs.self_attn.in_proj_weight.copy_(block.attention.qkv.weight)
        theirs.self_attn.in_proj_bias.zero_()
        theirs.self_attn.out_proj.load_state_dict(block.attention.out.state_dict())
        theirs.linear1.load_state_dict(block.feed_forward[0].state_dict())
        theirs.linear2.load_state_dict(block.feed_forward[3].state_dict())
        x, mask = torch.randn(2, 6, 32), causal_mask(3, 2, torch.device("cpu"))
        torch.testing.assert_close(ours(x, mask), theirs(x, src_mask=~mask), atol=1e-5, rtol=1e-4)
    assert mask[:2].tolist() == [[True, True, False, False, False, False]] * 2


def test_time_is_told_by_sines_of_base_ten():
    code = time_code(3, 4, torch.device("cpu"))
    slow = 10**-0.5
    wanted = [[math.sin(t), math.sin(t * slow), math.cos(t), math.cos(t * slow)] for t in range(3)]
    np.testing.assert_allclose(code.numpy(), wanted, atol=1e-6)


def test_film_scales_and_shifts_and_keypoints_say_where():
    film = FiLM(2, 1)
    with torch.no_grad():
        film.linear.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 2.0]]))
        film.linear.bias.zero_()
        out = film(torch.full((1, 1, 2, 2), 3.0), torch.tensor([[0.5, 0.25]]))
        assert torch.equal(out, torch.full((1, 1, 2, 2), 1.5 * 3 + 0.5))
        where = SpatialSoftmax(1, 1)
        where.conv.weight.fill_(100.0)
        picture = torch.zeros(1, 1, 3, 5)
        picture[0, 0, 2, 1] = 1.0
        torch.testing.assert_close(where(picture), torch.tensor([[-0.5, 1.0]]))


def test_hues_turn_as_the_standard_library_turns_them():
    rng = np.random.default_rng(0)
    picture = rng.random((1, 1, 3, 2, 3)).astype(np.float32)
    turned = turn_hue(torch.tensor(picture), torch.tensor([0.2]).view(1, 1, 1, 1)).numpy()
    for y in range(2):
        for x in range(3):
            h, s, v = colorsys.rgb_to_hsv(*map(float, picture[0, 0, :, y, x]))
            wanted = colorsys.hsv_to_rgb((h + 0.2) % 1, s, v)
            assert turned[0, 0, :, y, x] == pytest.approx(wanted, abs=1e-5)


def test_pictures_keep_their_colours_and_place_where_nothing_is_drawn():
    views = [torch.rand(2, 3, 3, 12, 12), torch.rand(2, 3, 3, 12, 12)]
    one, none = torch.ones(2, 1, 1, 1, 1), torch.zeros(2)
    for before, after in zip(views, jitter(views, one, one, one, none), strict=True):
        torch.testing.assert_close(after, before, atol=1e-5, rtol=1e-4)
    still = torch.full((2, 2), PADDING)
    assert torch.equal(shift(views[0], still), views[0])
    moved = shift(views[0], still + torch.tensor([1, -2]))
    assert torch.equal(moved[..., :-1, 2:], views[0][..., 1:, :-2])
    assert torch.equal(moved[..., -1, 2:], views[0][..., -1, :-2])  # The edge is repeated.
    a, b = augment(views, np.random.default_rng(3)), augment(views, np.random.default_rng(3))
    assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
    assert all(0 <= v.min() and v.max() <= 1 and v.shape == views[0].shape for v in a)
    # One draw for all views and moments of a row.
    same = augment([views[0], views[0]], np.random.default_rng(4))
    assert torch.equal(same[0], same[1]) and not torch.equal(same[0], views[0])


def test_sizes_can_be_changed_one_by_one_and_mistakes_are_named():
    kind = policy_of("resnet_t")
    assert sizes_of(kind, {"width": 32, "temporal": {"layers": 2}}).temporal.layers == 2
    assert sizes_of(kind, {"width": 32}).head == 1024
    with pytest.raises(UnknownName, match="size 'widht'"):
        sizes_of(kind, {"widht": 3})
    with pytest.raises(SpecError, match="temporal must be as"):
        sizes_of(kind, {"temporal": 3})
    with pytest.raises(UnknownName, match="smal"):
        sizes_of(kind, "smal")
    with pytest.raises(SpecError, match="a patch takes 16"):
        made("vit_t", "small", pixels=8)
