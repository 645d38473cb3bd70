"""Tidy tables for other tools, and strict JSON."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import perdure
from perdure.errors import NoSpaceError, StoreError
from perdure.store import export
from perdure.store.export import export_rows, history_table
from perdure.store.history import read_experts, read_run
from perdure.store.l2logger.read import read_log
from perdure.store.l2logger.write import write_run
from perdure.store.plain import strict_json


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("export") / "run"
    return perdure.experiment(
        "toy/compass,steps=100,episodes=2", ["q", "random"], lifetimes=2, out=str(out),
        executor="serial", checkpoint=60, experts=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def frame(run):
    """What the run holds, lifelong agents first."""
    tables = [run.rows().to_pandas(), run.rows(experts=True).to_pandas()]
    return pd.concat(tables, ignore_index=True)


def strict(text):
    """JSON by the letter of its standard."""

    def refuse(word):
        raise AssertionError(f"bare {word}")

    return json.loads(text, parse_constant=refuse)


READERS = {
    "csv": lambda p: pd.read_csv(p, keep_default_na=False, na_values={c: [""] for c in MAYBE}),
    "json": lambda p: pd.DataFrame(strict(p.read_text())),
    "parquet": pd.read_parquet,
}
MAYBE = ("return", "success", "success_end", "accuracy", "loss", "td_error", "seed")


@pytest.mark.parametrize("format", export.FORMATS)
def test_every_row_and_every_measure(run, frame, tmp_path, format):
    path = export_rows(run, tmp_path / f"rows.{format}")
    found = READERS[format](path)
    assert list(found.columns) == list(frame.columns) and len(found) == len(frame)
    assert set(found.expert) == {"", "toy/goal-ne", "toy/goal-nw", "toy/goal-sw"}
    assert "td_error" in found and "more" not in found
    for column in frame:
        if column in MAYBE:
            ours = found[column].to_numpy(float)
            assert np.array_equal(ours, frame[column].to_numpy(float), equal_nan=True), column
        else:
            assert found[column].tolist() == frame[column].tolist(), column


def test_polars_reads_them_too(run, tmp_path):
    n = {len(pl.read_csv(export_rows(run, tmp_path / "a.csv"))),
         len(pl.read_json(export_rows(run, tmp_path / "a.json"))),
         len(pl.read_parquet(export_rows(run, tmp_path / "a.parquet")))}  # fmt: skip
    assert n == {sum(i.rows for i in run.lifetimes())}


def test_histories_with_their_experts(run, tmp_path):
    experts = read_experts(run.lifetimes())[0]
    lives = [replace(h, experts=experts[h.agent]) for h in read_run(run)]
    found = pd.read_parquet(export_rows(lives, tmp_path / "rows.parquet"))
    one = found[(found.lifetime == "q/0")]
    assert len(one) == len(lives[0]) and set(one.expert) == {""}
    assert one["return"].tolist() == lives[0].values("return").tolist()
    assert one.task.tolist() == [lives[0].tasks[t] for t in lives[0].task]
    assert one.learning.tolist() == lives[0].learning.tolist()
    taught = found[found.expert == "toy/goal-ne"]
    assert set(taught.agent) == {"q", "random"} and set(taught.task) == {"toy/goal-ne"}


def test_logs_of_other_tools(run, tmp_path):
    write_run(run, tmp_path / "logs")
    logs = [read_log(tmp_path / "logs" / "ll_logs" / f"{a}-0") for a in ("q", "random")]
    found = strict(export_rows(logs, tmp_path / "rows.json").read_text())
    assert len(found) == sum(map(len, logs)) and found[0]["seed"] == 0
    assert {r["lifetime"] for r in found} == {"q-0", "random-0"}
    # Only one of the agents has this measure.
    assert {r["td_error"] for r in found if r["lifetime"] == "random-0"} == {None}


def test_a_measure_named_like_a_column(run):
    life = read_run(run)[0]
    odd = replace(life, columns={"task": life.columns["return"], **life.columns})
    table = history_table([odd])
    assert table.column("task_").to_pylist() == table.column("return").to_pylist()


def test_json_has_no_bare_nan(run, tmp_path):
    life = read_run(run)[0]
    values = life.values("return")
    values[:3] = [np.nan, np.inf, -np.inf]
    odd = replace(life, columns={"return": pa.chunked_array([values])})
    found = strict(export_rows([odd], tmp_path / "rows.json").read_text())
    assert [r["return"] for r in found[:4]] == [None, None, None, values[3]]


def test_no_rows(tmp_path, run, monkeypatch):
    monkeypatch.setattr(type(run), "lifetimes", lambda self: [])
    assert strict(export_rows(run, tmp_path / "rows.json").read_text()) == []
    assert len(pd.read_csv(export_rows(run, tmp_path / "rows.csv"))) == 0
    with pytest.raises(StoreError, match="no lifetime"):
        export_rows([], tmp_path / "other.json")


@pytest.mark.parametrize("name", ["rows.xlsx", "rows"])
def test_an_unknown_format(run, tmp_path, name):
    with pytest.raises(StoreError, match="expected one of csv, json, parquet"):
        export_rows(run, tmp_path / name)
    assert export_rows(run, tmp_path / name, "csv").read_text().startswith('"agent"')


def test_nothing_is_overwritten(run, tmp_path):
    (tmp_path / "rows.csv").write_text("mine")
    (tmp_path / "link.csv").symlink_to(tmp_path / "elsewhere")
    for name in ("rows.csv", "link.csv"):
        with pytest.raises(StoreError, match=f"{name} exists, .*: remove it or name another"):
            export_rows(run, tmp_path / name)
    assert (tmp_path / "rows.csv").read_text() == "mine"
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("format", export.FORMATS)
def test_a_full_disk_leaves_nothing_behind(run, tmp_path, monkeypatch, format):
    def full(table, sink):
        sink.write(b"half")
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setitem(export._WRITERS, format, full)
    with pytest.raises(NoSpaceError):
        export_rows(run, tmp_path / f"rows.{format}")
    assert not list(tmp_path.iterdir())


# Strict JSON -----------------------------------------------------------------------------------------


def test_strict_json():
    value = {
        "nan": float("nan"), "inf": [float("inf"), -np.inf], "numpy": np.float32(0.5),
        "count": np.int64(3), "flag": np.bool_(True), "array": np.array([[1.0, np.nan]]),
        "tuple": (1, None, "é"), "path": Path("a/b"), "set": {2, 1}, 3: {np.int64(4): 1},
        "text": "NaN",
    }  # fmt: skip
    assert strict(strict_json(value)) == {
        "nan": None, "inf": [None, None], "numpy": 0.5, "count": 3, "flag": True,
        "array": [[1.0, None]], "tuple": [1, None, "é"], "path": "a/b", "set": [1, 2],
        "3": {"4": 1}, "text": "NaN",
    }  # fmt: skip
    assert strict_json(float("nan")) == "null" and strict_json({"a": 1}, indent=None) == '{"a": 1}'
    with pytest.raises(TypeError, match="object"):
        strict_json({"a": object()})


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
)


@given(value=VALUES)
def test_strict_json_is_json_with_null_for_what_is_not_finite(value):
    def expected(v):
        if isinstance(v, dict):
            return {k: expected(x) for k, x in v.items()}
        if isinstance(v, list):
            return [expected(x) for x in v]
        return None if isinstance(v, float) and not np.isfinite(v) else v

    assert strict(strict_json(value)) == expected(value)
