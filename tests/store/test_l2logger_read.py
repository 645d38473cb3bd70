"""Reading L2Logger directories: what is accepted, what is refused and with which words."""

from __future__ import annotations

import json
import os
import random
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

from perdure.store.l2logger.check import LogError
from perdure.store.l2logger.read import find_logs, is_log, read_log

COLUMNS = (
    "block_num", "exp_num", "worker_id", "block_type", "block_subtype", "task_name", "task_params",
    "exp_status", "timestamp", "episode_step_count", "reward",
)  # fmt: skip


def row(**cells):
    """One line of a log; every cell can be given."""
    usual = {
        "block_num": 0, "exp_num": 0, "worker_id": "w1", "block_type": "train",
        "block_subtype": "wake", "task_name": "Nav_a", "task_params": "{}",
        "exp_status": "complete", "timestamp": "20260101T000000.000000",
        "episode_step_count": 7, "reward": 1.5,
    }  # fmt: skip
    return {**usual, **cells}


def write(file: Path, rows, columns=COLUMNS):
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [columns, *([str(r[c]) for c in columns] for r in rows)]
    file.write_text("".join("\t".join(line) + "\n" for line in lines))


def make_log(folder: Path, blocks=None, columns=COLUMNS, metrics=("reward",), scenario=None):
    """A log; ``blocks`` maps `worker/block-type` to rows."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "logger_info.json").write_text(json.dumps({"metrics_columns": list(metrics)}))
    usual = {"complexity": "1-low", "difficulty": "2-medium", "scenario_type": "custom"}
    (folder / "scenario_info.json").write_text(json.dumps(usual if scenario is None else scenario))
    for place, rows in (blocks or three_blocks()).items():
        write(folder / place / "data-log.tsv", rows, columns)
    return folder


def three_blocks():
    return {
        "w1/0-test": [row(exp_num=i, block_type="test", task_name=t) for i, t in enumerate("Nav_a Pick_b".split())],
        "w1/1-train": [row(exp_num=2 + i, block_num=1, reward=i / 4) for i in range(5)],
        "w1/2-test": [row(exp_num=7 + i, block_num=2, block_type="test") for i in range(2)],
    }  # fmt: skip


def test_columns(tmp_path):
    life = read_log(make_log(tmp_path / "life"))
    assert life.name == "life" and len(life) == 9
    assert life.tasks == ("nav_a", "pick_b") and life.measure == "reward"
    assert life.exp.tolist() == list(range(9))
    assert life.block.tolist() == [0, 0, 1, 1, 1, 1, 1, 2, 2]
    assert life.task.tolist() == [0, 1, 0, 0, 0, 0, 0, 0, 0]
    assert life.learning.tolist() == [False, False, *[True] * 5, False, False]
    assert life.values().tolist() == [1.5, 1.5, 0, 0.25, 0.5, 0.75, 1, 1.5, 1.5]
    assert life.steps.tolist() == [7] * 9 and life.complete.all() and not life.sleep.any()
    assert life.learned_tasks == ("nav_a",)
    assert life.info["scenario_type"] == "custom" and life.notes == ()


def test_blocks_go_by_number_not_by_name(tmp_path):
    blocks = {f"w1/{b}-train": [row(block_num=b, exp_num=b)] for b in range(12)}
    assert read_log(make_log(tmp_path / "life", blocks)).block.tolist() == list(range(12))


def test_workers_are_put_in_order_of_experience(tmp_path):
    blocks = {
        "w.1/0-train": [row(worker_id="w.1", exp_num=i, reward=i) for i in (0, 2, 4)],
        "w-2/0-train": [row(worker_id="w-2", exp_num=i, reward=i) for i in (1, 3, 4)],
        "w_3/1-test": [row(worker_id="w_3", block_num=1, block_type="test", exp_num=9)],
    }
    life = read_log(make_log(tmp_path / "life", blocks))
    assert life.exp.tolist() == [0, 1, 2, 3, 4, 4, 9]
    assert life.values()[:6].tolist() == [0, 1, 2, 3, 4, 4]


def test_a_tree_of_lifetimes(tmp_path):
    for name in ("b/life1", "a/life2", "a/deep/er/life0"):
        make_log(tmp_path / name)
    make_log(tmp_path / "a" / "life2" / "inner")  # Part of the log that it lies in.
    make_log(tmp_path / "_out.123.tmp" / "ll_logs" / "half")  # An export that was killed.
    (tmp_path / "c").mkdir()
    found = [str(p.relative_to(tmp_path)) for p in find_logs(tmp_path)]
    assert found == ["a/deep/er/life0", "a/life2", "b/life1"]
    assert find_logs(tmp_path / "b" / "life1") == [tmp_path / "b" / "life1"]
    assert find_logs(tmp_path / "c") == [] and not is_log(tmp_path / "c")


def test_names_that_differ_in_case_are_one_task(tmp_path):
    rows = [row(exp_num=i, task_name=t) for i, t in enumerate(("Nav_A", "nav_a", "NAV_a"))]
    life = read_log(make_log(tmp_path / "life", {"w/0-train": rows}))
    assert life.tasks == ("nav_a",) and life.task.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "params",
    ['"{""size"": 5, ""note"": ""a\\tb""}"', "{}", "", '{"n": 1}', "[1, 2]", '"""text"""', "null"],
)
def test_params_in_any_json_or_none(tmp_path, params):
    rows = [row(exp_num=i, task_params=params) for i in range(2)]
    assert len(read_log(make_log(tmp_path / "life", {"w/0-train": rows}))) == 2


def test_quoted_text_in_other_columns(tmp_path):
    rows = [
        row(exp_num=0, note='"two\nlines ""and"" a\ttab"', reward=1),
        row(exp_num=1, note="plain", reward=2),
        row(exp_num=2, note='"one ""word"""', reward=3),
    ]
    life = read_log(
        make_log(tmp_path / "life", {"w/0-train": rows}, (*COLUMNS[:9], "note", "reward"))
    )
    assert life.values().tolist() == [1, 2, 3]


def test_a_quoted_header(tmp_path):
    folder = make_log(tmp_path / "life")
    file = folder / "w1" / "1-train" / "data-log.tsv"
    head, _, rest = file.read_text().partition("\n")
    file.write_text("\t".join(f'"{c}"' for c in head.split("\t")) + "\n" + rest)
    assert len(read_log(folder)) == 9


@pytest.mark.parametrize("gone", ["block_subtype", "exp_status", "timestamp", "episode_step_count"])
def test_optional_columns(tmp_path, gone):
    columns = [c for c in COLUMNS if c != gone]
    life = read_log(make_log(tmp_path / "life", columns=columns))
    assert len(life) == 9 and life.complete.all() and not life.sleep.any()
    assert life.steps.tolist() == ([1] * 9 if gone == "episode_step_count" else [7] * 9)


@pytest.mark.parametrize("gone", ["block_subtype", "exp_status", "timestamp", "episode_step_count"])
def test_optional_columns_of_some_files(tmp_path, gone):
    folder = make_log(tmp_path / "life")
    blocks = {
        "w1/3-train": [row(block_num=3, exp_num=20, block_subtype="sleep", exp_status="incomplete")]
    }
    make_log(folder, blocks)
    columns = [c for c in COLUMNS if c != gone]
    write(folder / "w1" / "0-test" / "data-log.tsv", three_blocks()["w1/0-test"], columns)
    life = read_log(folder)
    assert len(life) == 10 and life.complete[:-1].all() and not life.sleep[:-1].any()
    assert life.sleep[-1] and not life.complete[-1]


def test_columns_in_another_order(tmp_path):
    life = read_log(make_log(tmp_path / "life", columns=sorted(COLUMNS)))
    assert life.values()[3] == 0.25 and life.block[3] == 1


def test_nan_empty_and_incomplete(tmp_path):
    cells = [
        ("nan", "complete"),
        ("", "complete"),
        ("NaN", "incomplete"),
        (2, "incomplete"),
        (3, "complete"),
    ]
    rows = [row(exp_num=i, reward=v, exp_status=s) for i, (v, s) in enumerate(cells)]
    life = read_log(make_log(tmp_path / "life", {"w/0-train": rows}))
    assert np.isnan(life.values()).tolist() == [True, True, True, False, False]
    assert life.complete.tolist() == [True, True, False, False, True]


@pytest.mark.parametrize("steps", ["", "nan", "inf", "7.0", "-3"])
def test_step_counts_of_any_kind_of_number(tmp_path, steps):
    rows = [row(exp_num=i, episode_step_count=steps) for i in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read_log(make_log(tmp_path / "life", {"w/0-train": rows})).steps) == 2


def test_several_measures_and_a_choice_of_them(tmp_path):
    columns = (*COLUMNS, "success")
    rows = [row(exp_num=i, success=i % 2) for i in range(4)]
    metrics = ("success", "reward", "episode_step_count", "success")
    folder = make_log(tmp_path / "life", {"w/0-train": rows}, columns, metrics)
    life = read_log(folder)
    assert life.measure == "reward" and set(life.columns) == set(metrics)
    assert life.values("success").tolist() == [0, 1, 0, 1]
    assert life.values("episode_step_count").tolist() == life.steps.tolist() == [7] * 4
    assert set(read_log(folder, ["success"]).columns) == {"success"}
    assert (
        read_log(make_log(tmp_path / "other", {"w/0-train": rows}, columns, ["success"])).measure
        == "success"
    )


def test_a_file_without_rows_is_nothing(tmp_path):
    folder = make_log(tmp_path / "life")
    write(folder / "w1" / "9-train" / "data-log.tsv", [])
    assert len(read_log(folder)) == 9


def test_scenario_words(tmp_path):
    odd = {"complexity": "1-LOW", "difficulty": "hopeless", "curriculum": "x"}
    life = read_log(make_log(tmp_path / "life", scenario=odd))
    (note,) = life.notes
    assert "difficulty" in note and "hopeless" in note and "2-medium" in note
    assert life.info["scenario_type"] == "" and life.info["curriculum"] == "x"
    (tmp_path / "life" / "scenario_info.json").unlink()
    assert "scenario_info.json is missing" in read_log(tmp_path / "life").notes[0]


# Refusals: which cell of the third line, and what is said ----------------------------------------

BAD_CELLS = [
    ("block_num", -1, "block_num is negative"),
    ("block_num", "", "block_num is empty"),
    ("block_num", "one", "block_num is 'one'"),
    ("block_num", 1.5, "block_num is '1.5'"),
    ("exp_num", -3, "exp_num is negative"),
    ("exp_num", "nan", "exp_num is empty"),
    ("exp_num", "99999999999999999999", "exp_num is '99999999999999999999'"),
    ("block_type", "learn", "block_type is 'learn', expected one of train, test"),
    ("block_type", "", "block_type is ''"),
    ("block_subtype", "nap", "block_subtype is 'nap', expected one of wake, sleep"),
    ("exp_status", "done", "exp_status is 'done', expected one of complete, incomplete"),
    ("worker_id", "w 1", "worker_id is 'w 1', expected letters, digits"),
    ("worker_id", "../w", "worker_id is '../w'"),
    ("worker_id", "", "worker_id is ''"),
    ("task_name", "", "task_name is '', expected a name"),
    ("task_params", "{size: 5}", "task_params is '{size: 5}', expected JSON"),
    ("reward", "high", "reward is 'high', expected a number"),
    ("episode_step_count", "many", "episode_step_count is 'many', expected a number"),
]


@pytest.mark.parametrize(("column", "value", "said"), BAD_CELLS)
def test_a_bad_cell_is_named_with_file_and_line(tmp_path, column, value, said):
    rows = [row(exp_num=i) for i in range(4)]
    rows[1][column] = value
    folder = make_log(tmp_path / "life", {"w1/0-train": rows})
    with pytest.raises(LogError) as e:
        read_log(folder)
    assert f"{folder}/w1/0-train/data-log.tsv, line 3: {said}" in str(e.value)


@pytest.mark.parametrize("change", [-1, -3, 1])
def test_a_line_of_another_length_is_named(tmp_path, change):
    folder = make_log(tmp_path / "life")
    file = folder / "w1" / "1-train" / "data-log.tsv"
    lines = file.read_text().splitlines()
    cells = lines[3].split("\t")
    lines[3] = "\t".join(cells[:change] if change < 0 else [*cells, "more"])
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(LogError) as e:
        read_log(folder)
    assert f"{file}, line 4: {11 + change} columns, expected 11" in str(e.value)


@pytest.mark.parametrize(
    "gone",
    ["block_num", "exp_num", "worker_id", "block_type", "task_name", "task_params", "reward"],
)
def test_a_missing_column_is_named(tmp_path, gone):
    with pytest.raises(LogError, match=f"data-log.tsv, line 1: no column {gone}; it has"):
        read_log(make_log(tmp_path / "life", columns=[c for c in COLUMNS if c != gone]))


def test_lines_are_counted_as_an_editor_does(tmp_path):
    rows = [row(exp_num=i, note="x") for i in range(4)]
    rows[0]["note"], rows[3]["block_type"] = '"two\nlines"', "learn"
    folder = make_log(tmp_path / "life", {"w1/0-train": rows}, (*COLUMNS, "note"))
    file = folder / "w1" / "0-train" / "data-log.tsv"
    lines = file.read_text().split("\n")
    file.write_text("\n".join([*lines[:4], "", *lines[4:]]))
    with pytest.raises(LogError, match=r"data-log.tsv, line 7: block_type is 'learn'"):
        read_log(folder)


def test_long_files_with_line_ends_in_quoted_text(tmp_path, monkeypatch):
    monkeypatch.setattr("perdure.store.l2logger.read._BLOCK", 1 << 12)
    rows = [row(exp_num=i, note=f'"{"a line end" * (i % 7)}\n{i}"', reward=i) for i in range(500)]
    folder = make_log(tmp_path / "life", {"w1/0-train": rows}, (*COLUMNS, "note"))
    assert read_log(folder).values().tolist() == list(range(500))


def test_blocks_must_not_go_back(tmp_path):
    blocks = {
        "w1/0-train": [row(exp_num=i) for i in (0, 5)],
        "w1/1-train": [row(block_num=1, exp_num=i) for i in (1, 6)],
    }
    with pytest.raises(LogError, match=r"block_num falls from 1 \(exp_num 1\) to 0 \(exp_num 5\)"):
        read_log(make_log(tmp_path / "life", blocks))


@pytest.mark.parametrize(
    "text",
    ["{}", '{"metrics_columns": []}', '{"metrics_columns": "reward"}', '{"metrics_columns": [1]}'],
)
def test_metrics_columns_must_be_a_list_of_names(tmp_path, text):
    folder = make_log(tmp_path / "life")
    (folder / "logger_info.json").write_text(text)
    with pytest.raises(LogError, match="logger_info.json: metrics_columns must be a list"):
        read_log(folder)


@pytest.mark.parametrize("name", ["task_name", "worker_id", "timestamp"])
def test_a_measure_cannot_be_a_column_of_words(tmp_path, name):
    with pytest.raises(LogError, match=name):
        read_log(make_log(tmp_path / "life", metrics=["reward", name]))


@pytest.mark.parametrize("name", ["logger_info.json", "scenario_info.json"])
@pytest.mark.parametrize(
    "data", [b"", b"{", b"[1]", b'"x"', b"\xff\xfe{}", b"[" * 100_000, b"1" * 10_000]
)
def test_a_file_that_is_not_a_json_object(tmp_path, name, data):
    folder = make_log(tmp_path / "life")
    (folder / name).write_bytes(data)
    with pytest.raises(LogError, match=name):
        read_log(folder)


def test_nothing_to_read(tmp_path):
    folder = make_log(tmp_path / "life", {"w1/0-train": []})
    with pytest.raises(LogError, match="holds no rows"):
        read_log(folder)
    shutil.rmtree(folder / "w1")
    with pytest.raises(LogError, match="no <worker>/<block>-<type>/data-log.tsv"):
        read_log(folder)
    with pytest.raises(LogError, match="logger_info.json is missing"):
        read_log(tmp_path / "nowhere")


def test_an_empty_file(tmp_path):
    folder = make_log(tmp_path / "life")
    (folder / "w1" / "0-test" / "data-log.tsv").write_bytes(b"")
    with pytest.raises(LogError, match="0-test/data-log.tsv, line 1: no column block_num"):
        read_log(folder)


@pytest.mark.parametrize("line", [1, 3])
def test_not_utf8(tmp_path, line):
    folder = make_log(tmp_path / "life")
    file = folder / "w1" / "1-train" / "data-log.tsv"
    lines = file.read_bytes().split(b"\n")
    lines[line - 1] = lines[line - 1].replace(b"task_name", b"t\xffsk").replace(b"Nav_a", b"N\xffv")
    file.write_bytes(b"\n".join(lines))
    with pytest.raises(LogError, match=f"data-log.tsv, line {line}: .*UTF-8"):
        read_log(folder)


def test_a_folder_where_a_file_should_be(tmp_path):
    folder = make_log(tmp_path / "life")
    (folder / "w1" / "7-train" / "data-log.tsv").mkdir(parents=True)
    with pytest.raises(LogError, match="7-train/data-log.tsv"):
        read_log(folder)


# Damage of every kind ----------------------------------------------------------------------------

GARBAGE = [
    "", "-1", "1.5", "nan", "inf", "1e400", "x", "99999999999999999999", '"', '""', "\t", "\n", "\r",
    "\x00", "é", "{", "[" * 3000, "null", "train", "..", "a" * 5000, "-", "0x1", " 1", "1_000",
]  # fmt: skip


def damage(folder: Path, rng: random.Random) -> str:
    """Damage one file in one way; says which."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    file = rng.choice(files)
    data = file.read_bytes()
    way = rng.choice(
        ["cut", "flip", "cell", "swap", "double", "drop", "insert", "header", "unlink"]
    )
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    cells = lines[at].split(b"\t")
    where = rng.randrange(len(cells))
    if way == "cut":
        data = data[: rng.randrange(len(data) + 1)]
    elif way == "flip":
        i = rng.randrange(max(1, len(data)))
        data = data[:i] + bytes([rng.randrange(256)]) + data[i + 1 :]
    elif way == "cell":
        cells[where] = rng.choice(GARBAGE).encode()
        lines[at] = b"\t".join(cells)
    elif way == "swap":
        other = rng.randrange(len(cells))
        cells[where], cells[other] = cells[other], cells[where]
        lines[at] = b"\t".join(cells)
    elif way == "double":
        lines.insert(at, lines[at])
    elif way == "drop":
        del lines[at]
    elif way == "insert":
        lines.insert(at, rng.choice(GARBAGE).encode())
    elif way == "header":
        lines[0] = lines[0].replace(rng.choice(COLUMNS).encode(), rng.choice(COLUMNS).encode(), 1)
    file.write_bytes(data if way in ("cut", "flip") else b"\n".join(lines))
    if way == "unlink":
        file.unlink()
    return f"{way} {file.relative_to(folder)}"


def test_damaged_logs_are_read_or_refused(tmp_path):
    whole = make_log(tmp_path / "whole")
    (whole / "logger_info.json").write_text(json.dumps({"metrics_columns": ["reward"]}, indent=2))
    read = refused = 0
    for seed in range(400):
        rng = random.Random(seed)
        folder = tmp_path / "damaged"
        shutil.copytree(whole, folder)
        done = [damage(folder, rng) for _ in range(rng.choice([1, 1, 2, 4]))]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                life = read_log(folder)
        except LogError:
            refused += 1
        except BaseException as e:
            raise AssertionError(f"seed {seed}: {done}: {type(e).__name__}: {e}") from e
        else:
            read += 1
            assert len(life) == len(life.values()) == len(life.steps) > 0, (seed, done)
            assert np.all(np.diff(life.exp) >= 0) and np.all(np.diff(life.block) >= 0)
        shutil.rmtree(folder)
    assert read > 40 and refused > 100


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["logger_info.json", "scenario_info.json", "*/*/data-log.tsv"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_files_that_never_end_are_not_read(tmp_path, name, kind):
    """A pipe blocks whoever opens it, and /dev/zero has no end."""
    log = make_log(tmp_path / "log")
    file = sorted(log.glob(name))[0]
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    else:
        file.mkdir()
    if name == "scenario_info.json":
        assert "scenario_info.json is missing" in read_log(log).notes[0]
        return
    with pytest.raises(LogError, match="is not a regular file"):
        read_log(log)


@pytest.mark.timeout(20)
def test_more_tasks_than_can_be_measured(tmp_path):
    rows = [row(exp_num=k, task_name=f"t{k}") for k in range(20_000)]
    log = make_log(tmp_path / "log", {"w/0-train": rows})
    with pytest.raises(LogError, match="20,000 different values of task_name, at most 2,000"):
        read_log(log)
