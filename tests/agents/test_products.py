"""Large products of matrices go to the quicker library, and to no other precision."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from perdure.agents.learners.bc import BCAgent
from perdure.agents.networks import products as module
from perdure.agents.networks.products import (
    ENOUGH,
    largest_matrix,
    onednn_is_quicker,
    products,
)
from perdure.types import Setup

pytestmark = pytest.mark.skipif(
    not hasattr(torch.backends.mkldnn, "matmul"), reason="this torch has one library for products"
)


@pytest.fixture
def fresh(monkeypatch):
    """The question is asked anew, and forgotten afterwards; what is set is set back."""
    onednn_is_quicker.cache_clear()
    before = precision()
    yield monkeypatch
    torch.backends.mkldnn.matmul.fp32_precision = before
    monkeypatch.undo()
    onednn_is_quicker.cache_clear()


def precision():
    return torch.backends.mkldnn.matmul.fp32_precision


@pytest.mark.parametrize("rows", [1, 7, 128, 1000])
def test_products_round_no_more_than_float32(rows):
    rng = np.random.default_rng(rows)
    # Nine bits and a sign: bfloat16 has eight. Sums stay below 2 ** 24, so float32 is exact.
    left, right = (
        torch.tensor(rng.integers(-511, 512, s)).float() for s in ((rows, 60), (60, 100))
    )
    with products(ENOUGH):
        assert torch.equal(left @ right, (left.double() @ right.double()).float())
        a, b = torch.randn(rows, 100), torch.randn(100, 100)
        apart = (a @ b).double() - a.double() @ b.double()
    assert apart.abs().max() < 1e-4


@pytest.mark.parametrize("before", ["none", "ieee"])
def test_leave_lasts_as_long_as_something_large_is_computed(fresh, before):
    fresh.setattr(module, "onednn_is_quicker", lambda: True)
    torch.backends.mkldnn.matmul.fp32_precision = before
    with products(ENOUGH - 1):
        assert precision() == before, "what was set by others is theirs"
    with products(ENOUGH):
        assert precision() == "bf16"
        with products(ENOUGH - 1):
            assert precision() == before
        assert precision() == "bf16"
    assert precision() == before
    with pytest.raises(ValueError, match="wrong"), products(ENOUGH):
        raise ValueError("wrong")
    assert precision() == before


@pytest.mark.parametrize(
    ("processor", "asked"),
    [
        ("vendor_id : AuthenticAMD\nflags : avx2 avx512f", True),
        ("vendor_id : AuthenticAMD\nflags : avx2 avx512f amx_bf16", False),
        ("vendor_id : AuthenticAMD\nflags : avx2", False),
        ("vendor_id : GenuineIntel\nflags : avx512f amx_bf16", False),
    ],
)
def test_leave_is_given_only_where_it_is_seen_not_to_be_used(fresh, tmp_path, processor, asked):
    (tmp_path / "cpuinfo").write_text(processor)
    fresh.setattr(module, "_PROCESSOR", tmp_path / "cpuinfo")
    for exact in (True, False):
        fresh.setattr(module, "_exact", lambda exact=exact: exact)
        onednn_is_quicker.cache_clear()
        assert onednn_is_quicker() is (asked and exact)


def test_no_list_of_processors_means_no_leave(fresh, tmp_path):
    fresh.setattr(module, "_PROCESSOR", tmp_path / "missing")
    assert not onednn_is_quicker()


def test_rounding_to_bfloat16_is_seen(fresh):
    as_ever = torch.matmul
    fresh.setattr(
        torch.Tensor, "__matmul__", lambda a, b: as_ever(a.bfloat16(), b.bfloat16()).float()
    )
    assert not module._is_product(64)


@pytest.mark.parametrize(("width", "leave"), [(16, "none"), (1024, "bf16")])
def test_a_learner_decides_by_the_rows_and_its_largest_matrix(fresh, width, leave):
    fresh.setattr(module, "onednn_is_quicker", lambda: True)
    box = spaces.Box(-1, 1, (3,), np.float32)
    agent = BCAgent(Setup(box, box, 1, 0), hidden=[width, width])
    assert largest_matrix(agent.net) == max(width * width, 3 * width)
    seen, rows = [], {"obs": torch.zeros(16, 3), "targets": torch.zeros(16, 3)}
    loss = agent.loss
    fresh.setattr(agent, "loss", lambda batch: (seen.append(precision()), loss(batch))[1])
    agent.descend(rows)
    assert seen == [leave]
