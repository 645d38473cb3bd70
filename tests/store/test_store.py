import importlib
import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import perdure
from perdure.errors import AgentFault, Corrupt, StoreError
from perdure.store import rows, state
from perdure.store.history import read_lifetime
from perdure.store.layout import LifetimeFolder
from perdure.store.log import Lifetime, LifetimeLog
from perdure.store.run import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("store") / "run"
    return perdure.experiment(
        "toy/compass,steps=120,episodes=3", ["q", "random"], lifetimes=2, out=str(out),
        executor="serial", checkpoint=100, experts=True,
    )  # fmt: skip


def test_one_call_gives_the_table(run):
    table = run.rows()
    assert table.num_rows == sum(i.rows for i in run.lifetimes() if not i.expert)
    assert set(table.column("agent").to_pylist()) == {"q", "random"}
    assert set(table.column("expert").to_pylist()) == {""}
    assert set(run.rows(experts=True).column("expert").to_pylist()) == {
        "toy/goal-ne", "toy/goal-sw", "toy/goal-nw",
    }  # fmt: skip
    frame = table.to_pandas()
    assert {"return", "success", "task", "lifetime"} <= set(frame.columns) and "more" not in frame


def test_pandas_polars_and_duckdb_open_a_run_folder_as_it_is(run):
    n = sum(i.rows for i in run.lifetimes())
    assert len(pd.read_parquet(run.path)) == n
    assert len(pl.read_parquet(f"{run.path}/**/*.parquet")) == n
    found = duckdb.sql(f"select count(*) from '{run.path}/**/*.parquet'").fetchall()
    assert found == [(n,)]
    one = duckdb.sql(
        f"select avg(success) from '{run.path}/*/*/rows/*.parquet' where agent = 'random'"
    ).fetchall()
    assert 0 <= one[0][0] <= 1


def test_provenance(run):
    spec = run.spec
    assert spec["curriculum"] == "toy/compass,steps=120,episodes=3" and spec["seed"] == 0
    info = run.lifetimes()[0]
    assert info.description["format"] == rows.FORMAT
    assert len(info.description["curriculum"]["blocks"]) == 7 and info.description["fingerprint"]
    (session,) = LifetimeFolder(info.path).sessions()
    assert {"host", "pid", "python", "platform", "packages", "git", "started"} <= set(session)
    assert session["packages"]["gymnasium"]


def test_rows_hold_no_clock_and_no_host(run):
    import socket

    info = run.lifetimes()[0]
    for segment in (info.path / "rows").iterdir():
        assert (
            socket.gethostname().encode() not in segment.read_bytes()
            or socket.gethostname() in ("", "q")
        )
    assert {"time", "host", "duration"}.isdisjoint(f.name for f in rows.SCHEMA)


def test_a_folder_that_is_no_run(tmp_path):
    with pytest.raises(StoreError, match="not a Perdure run"):
        Run(tmp_path)


def test_a_newer_format_is_refused(run, tmp_path):
    import shutil

    shutil.copytree(run.path, tmp_path / "copy")
    folder = LifetimeFolder(tmp_path / "copy/q/0")
    folder.write_description({**folder.description(), "format": 99})
    newer = next(i for i in Run(tmp_path / "copy").lifetimes() if i.id == "q/0")
    assert newer.status == "damaged" and "format 99" in newer.error
    with pytest.raises(StoreError, match="format 99"):
        Run(tmp_path / "copy").rows()


def test_state_round_trip():
    given = {"a/b": np.arange(6.0).reshape(2, 3), "text": np.array(["x", "yy"]), "n": np.array(3)}
    back = state.decode(state.encode(given), "here")
    assert set(back) == set(given)
    for k, v in given.items():
        assert back[k].dtype == v.dtype and np.array_equal(back[k], v)
    assert state.encode(given) == state.encode(dict(reversed(list(given.items()))))


def test_state_that_is_no_array_is_refused():
    with pytest.raises(AgentFault, match=r"state\(\)\['f'\].*array of numbers"):
        state.checked("MyAgent.state()", {"f": lambda: 0})
    with pytest.raises(AgentFault, match="mapping of names"):
        state.checked("MyAgent", [1, 2])


def test_pickled_payloads_are_refused():
    import io

    buffer = io.BytesIO()
    np.savez(buffer, x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(Corrupt, match="pickle payload, refused"):
        state.decode(buffer.getvalue(), "evil.npz")


def test_rows_round_trip_with_any_measures():
    row = rows.Row(
        0, 1, True, "learn", True, 0, "toy/x", "v", '{"a": 1}', 2, 3, 3, 2**32 - 1, 7, 5, 99, "complete",
        True, False, float("nan"), 1.0, None, None, 0.5, {"entropy": 1.5, "x": 2.0},
    )  # fmt: skip
    other = row._replace(exp=1, seed=None, ret=-0.0, more=None)
    back = rows.to_rows(rows.decode(rows.encode([row, other], "a", 7, "")))
    assert back[1] == other and repr(back[0]) == repr(row)
    flat = rows.flatten(rows.decode(rows.encode([row, other], "a", 7, "")))
    assert flat.column("entropy").to_pylist() == [1.5, None]


def test_a_measure_named_like_a_column_keeps_apart():
    made = rows.Row(
        0, 0, True, "eval", False, 0, "t", "", "", 0, 0, 0, 0, 0, 1, 0, "complete", True, False, 1.0, None,
        None, None, None, {"task": 7.0, "speed": 2.0},
    )  # fmt: skip
    flat = rows.flatten(rows.decode(rows.encode([made], "a", 0, "")))
    assert flat.column("task").to_pylist() == ["t"]
    assert flat.column("task_").to_pylist() == [7.0]
    assert flat.column("speed").to_pylist() == [2.0]


@pytest.mark.parametrize("columns", [None, ["task", "return", "more"], ["steps", "kind"]])
def test_both_ways_to_read_a_segment_give_the_same(run, columns, monkeypatch):
    importlib.import_module("pyarrow.parquet")
    for file in sorted(run.path.rglob("*.parquet"))[:4]:
        data = file.read_bytes()
        quick = rows.decode(data, columns)
        with monkeypatch.context() as m:
            m.setitem(sys.modules, "pyarrow._parquet", None)
            assert rows.decode(data, columns).equals(quick)
        assert columns is None or set(quick.column_names) == set(columns)


WORD = st.sampled_from(["", "eval", "käse ☃", "x" * 5000])
MAYBE = st.sampled_from([None, 0.0, -0.0, 1.5, float("nan")])
SOME_ROW = st.builds(
    rows.Row,
    exp=st.integers(0, 2**62), block=st.sampled_from([0, 7]), deployed=st.booleans(), kind=WORD,
    learning=st.booleans(), exposure=st.just(0), task=WORD, variant=WORD, params=st.just(""),
    slot=st.just(0), episode=st.just(-1), trial=st.just(0),
    seed=st.sampled_from([None, 3]), trial_seed=st.none(), steps=st.just(2**40),
    learning_steps=st.integers(0, 5), status=st.just("complete"), terminated=st.just(True),
    truncated=st.booleans(), ret=MAYBE, success=MAYBE, success_end=st.none(), accuracy=MAYBE,
    loss=st.just(1.0), more=st.none(),
)  # fmt: skip


@given(st.lists(SOME_ROW, max_size=4), st.sets(st.sampled_from(rows.SCHEMA.names), min_size=1))
def test_what_statistics_tell_is_what_the_pages_hold(some, names):
    """Columns of one value and measures without any are not read, and come out the same."""
    data = rows.encode(some, "a", 7, "")
    told = rows.decode(data, sorted(names))
    read = pq.read_table(pa.BufferReader(data), use_threads=False)
    assert len(told) == len(read) or not told.column_names
    for name in names:
        expected = read.column(name).to_pylist()
        if name in told.column_names:
            assert repr(told.column(name).to_pylist()) == repr(expected)
        else:
            assert name in rows.MEASURES and set(expected) <= {None}


def test_statistics_of_one_part_do_not_speak_for_another(monkeypatch):
    write = pq.write_table
    monkeypatch.setattr(pq, "write_table", lambda *a, **k: write(*a, row_group_size=1, **k))
    first = rows.Row(
        0, 0, True, "learn", True, 0, "t", "", "", 0, 0, 0, 0, 0, 1, 0, "complete", True, False, 1.0, None,
        None, None, None, None,
    )  # fmt: skip
    data = rows.encode([first, first._replace(kind="eval", success=1.0)], "a", 0, "")
    assert rows.decode(data, ["kind", "success"]).to_pylist() == [
        {"kind": "learn", "success": None},
        {"kind": "eval", "success": 1.0},
    ]


def test_a_lifetime_joins_segments_that_hold_different_measures(tmp_path):
    made = rows.Row(
        0, 0, True, "learn", True, 0, "t", "", "", 0, 0, 0, 0, 0, 1, 0, "complete", True, False, 1.0, None,
        None, None, None, None,
    )  # fmt: skip
    with LifetimeLog(tmp_path, "a", 0) as log:
        log.commit([made], None, {})
        log.commit([made._replace(exp=1, ret=None, success=1.0)], None, {}, done=True)
    table = Lifetime.read(tmp_path).table(["exp", "return", "success", "loss"])
    assert table.column("return").to_pylist() == [1.0, None]
    assert table.column("success").to_pylist() == [None, 1.0]
    history = read_lifetime(tmp_path, "a/0")
    assert sorted(history.columns) == ["return", "success"]
