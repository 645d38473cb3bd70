"""Rings and reservoirs: rows as they were written, in chunks that stand for what they held."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch

from perdure.agents.networks import column
from perdure.agents.networks.column import Column, GrowingColumn
from perdure.agents.networks.learner import new_rows
from perdure.agents.networks.ring import Ring
from perdure.agents.strategies.row_memory import Reservoir
from perdure.arrays import ChunkedArray

ROWS = 40
"""Of a ring whose wide column has stretches of 8 rows and whose narrow one of 32."""


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch):
    monkeypatch.setattr(column, "STRETCH", 128)


@pytest.fixture
def ring():
    return Ring(ROWS, {"wide": ((2,), np.float64), "narrow": ((), np.float32)})


def add(ring, rows, value=None):
    """Rows that count up, or all of one value."""
    numbers = (
        np.arange(ring.written, ring.written + rows) if value is None else np.full(rows, value)
    )
    ring.add(rows, wide=np.stack([numbers, -numbers], 1), narrow=numbers)


def plain(state):
    return {name: np.asarray(value).copy() for name, value in state.items()}


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


def contents(state, name="r.wide"):
    return state[name].contents


def test_a_state_is_the_rows_in_stretches(ring):
    assert ring._columns["wide"].stretch == 8 and ring._columns["narrow"].stretch == 32
    assert len(ring.state("r")["r.wide"].chunks) == 0
    add(ring, 19)
    state = ring.state("r")
    assert [len(c) for c in state["r.wide"].chunks] == [8, 8, 3]
    assert state["r.wide"].shape == (19, 2) and state["r.narrow"].dtype == np.float32
    assert np.array_equal(np.asarray(state["r.wide"])[:, 0], np.arange(19))
    assert int(state["r.written"]) == 19


def test_nothing_is_copied_and_nothing_written_means_the_same_contents(ring):
    add(ring, 20)
    first, second = ring.state("r"), ring.state("r")
    assert contents(first) == contents(second)
    for chunk in first["r.wide"].chunks:
        assert np.shares_memory(chunk.array, ring["wide"]) and not chunk.array.flags.writeable
    del first, second
    gc.collect()
    third = ring.state("r")
    held = contents(third)
    del third
    assert contents(ring.state("r")) == held, "contents outlive the chunks that had them"


def test_what_is_held_keeps_its_rows_when_they_are_overwritten(ring):
    add(ring, ROWS)
    state = ring.state("r")
    before, held = plain(state), contents(state)
    add(ring, 10)  # Wraps around: the first two stretches give way.
    assert same(plain(state), before)
    after = contents(ring.state("r"))
    assert [a is b for a, b in zip(held, after, strict=True)] == [False, False, True, True, True]
    free = [np.shares_memory(c.array, ring["wide"]) for c in state["r.wide"].chunks]
    assert free == [False, False, True, True, True], "only what was overwritten has been copied"
    assert np.array_equal(ring["wide"][:10, 0], np.arange(ROWS, ROWS + 10))


def test_a_stretch_that_grows_is_another(ring):
    add(ring, 5)
    state = ring.state("r")
    add(ring, 1)
    assert contents(ring.state("r")) != contents(state)
    add(ring, ROWS)
    assert np.array_equal(np.asarray(state["r.wide"])[:, 0], np.arange(5))


def test_one_add_that_is_larger_than_the_ring(ring):
    add(ring, 7)
    state = ring.state("r")
    before = plain(state)
    add(ring, 2 * ROWS + 3)
    assert same(plain(state), before)
    assert sorted(ring["narrow"]) == list(range(ROWS + 10, 2 * ROWS + 10))


def test_clear_forgets_rows_but_not_what_others_hold(ring):
    add(ring, 20)
    state = ring.state("r")
    before = plain(state)
    ring.clear()
    assert ring.state("r")["r.wide"].shape == (0, 2)
    add(ring, 20, value=7)
    assert same(plain(state), before) and not same(plain(ring.state("r")), before)


def test_restoring_a_snapshot_costs_what_changed(ring):
    add(ring, 30)
    snapshot = ring.state("r")
    before, held = plain(snapshot), contents(snapshot)
    add(ring, 25, value=7)
    ring.load("r", snapshot)
    assert same(plain(ring.state("r")), before) and contents(ring.state("r")) == held
    # And again: what was loaded is the ring's own once more.
    add(ring, 25, value=8)
    assert same(plain(snapshot), before)
    ring.load("r", snapshot)
    assert same(plain(ring.state("r")), before)


def test_another_ring_takes_the_chunks_over(ring):
    add(ring, 33)
    state = ring.state("r")
    other = Ring(ROWS, {"wide": ((2,), np.float64), "narrow": ((), np.float32)})
    add(other, 11, value=3)
    other.load("r", state)
    assert contents(other.state("r")) == contents(state), "nothing to save again after a resume"
    add(other, ROWS, value=3)
    assert np.array_equal(ring["narrow"], np.arange(33)) and same(
        plain(state), plain(ring.state("r"))
    )


def test_plain_arrays_and_other_chunks_load_too(ring):
    add(ring, 33)
    state = ring.state("r")
    column.STRETCH = 48  # Three rows: chunks of another size.
    for given in (plain(state), state):
        other = Ring(ROWS, {"wide": ((2,), np.float64), "narrow": ((), np.float32)})
        other.load("r", given)
        assert same(plain(other.state("r")), plain(state))
        add(other, 5)
        assert np.array_equal(other["wide"][33:38, 0], np.arange(33, 38))
    with pytest.raises(ValueError, match="expected 12 rows, got 33"):
        ring.load("r", {**plain(state), "r.written": np.array(12)})


def test_rows_cannot_be_written_but_by_add(ring):
    add(ring, 12)
    state = ring.state("r")
    for array in (ring["wide"], ring.columns["wide"], state["r.wide"].chunks[0].array):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert ring.take(np.array([1, 2]))["wide"].flags.writeable, "what is taken is a copy"


def test_random_writes_snapshots_and_restores(ring):
    """Against a ring that is copied whole."""
    rng = np.random.default_rng(3)
    held: list[tuple[dict, dict]] = []
    for _ in range(400):
        what = rng.integers(6)
        if what < 3:
            add(ring, int(rng.integers(0, 15)), value=rng.random())
        elif what == 3:
            state = ring.state("r")
            held.append((state, plain(state)))
        elif held and what == 4:
            state, copy = held[rng.integers(len(held))]
            ring.load("r", state)
            assert same(plain(ring.state("r")), copy)
        elif held:
            held.pop(int(rng.integers(len(held))))
        for state, copy in held:
            assert same(plain(state), copy)
        by_content: dict[object, np.ndarray] = {}
        for state, _ in held:
            for chunk in state["r.wide"].chunks:
                rows = by_content.setdefault(chunk.content, chunk.array)
                assert np.array_equal(rows, chunk.array), "the same content, other rows"
                fresh = ChunkedArray([type(chunk)(chunk.array)], (2,), float)
                assert fresh.chunks[0].digest == chunk.digest, "a digest that is out of date"


def test_a_reservoir_writes_anywhere_and_its_chunks_keep_their_rows():
    rng, memory = np.random.default_rng(0), Reservoir(50)
    batch = {"x": torch.arange(60.0).reshape(30, 2), "y": torch.arange(30)}
    memory.offer(new_rows(batch), rng)
    state = memory.state("m")
    before = plain(state)
    for _ in range(5):
        memory.offer(new_rows(batch), rng)
        assert same(plain(state), before)
    assert not same(plain(memory.state("m")), before)
    other = Reservoir(50)
    other.load("m", state)
    memory.load("m", state)
    for loaded in (memory, other):
        assert same(plain(loaded.state("m")), before)
        assert loaded.state("m")["m.x"].contents == state["m.x"].contents


def test_a_column_of_rows_larger_than_a_stretch():
    wide = Column(5, (100,), np.float64)
    assert wide.stretch == 1
    wide.write(slice(0, 3), np.ones((3, 100)))
    state = wide.state(3)
    wide.write(np.array([1]), np.zeros((1, 100)))
    assert np.asarray(state).sum() == 300 and np.asarray(wide.state(3)).sum() == 200


def test_rows_that_are_appended_are_saved_once():
    grown = GrowingColumn((2,), np.float64)
    rows = np.arange(400.0).reshape(200, 2)
    grown.append(rows[:60])
    first = grown.state()
    grown.append(rows[60:])  # More than there was room for.
    second = grown.state()
    assert np.array_equal(grown.rows, rows) and np.array_equal(np.asarray(second), rows)
    assert np.array_equal(np.asarray(first), rows[:60])
    whole = 60 // 8
    assert second.contents[:whole] == first.contents[:whole], "nothing to save again"
    other = GrowingColumn((2,), np.float64)
    other.load(second)
    assert other.state().contents == second.contents
    other.load(first)
    other.append(rows[60:])
    assert np.array_equal(other.rows, rows)
