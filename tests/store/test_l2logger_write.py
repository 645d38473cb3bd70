"""Writing L2Logger directories: the format's rules, names, what is left out, and all or nothing."""

from __future__ import annotations

import csv
import errno
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perdure
from perdure.errors import NameRefused, NoSpaceError, StoreError
from perdure.store import rows
from perdure.store.history import from_table, read_experts, read_run
from perdure.store.l2logger import text
from perdure.store.l2logger.names import l2_names, log_folder
from perdure.store.l2logger.read import find_logs, read_log
from perdure.store.l2logger.view import as_log
from perdure.store.l2logger.write import write_rows, write_run
from perdure.store.run import Run

NAME = re.compile(r"[0-9a-zA-Z]+_[0-9a-zA-Z]+")


def experience(exp, **keys):
    """A row of a lifetime; every field can be given."""
    usual = {
        "exp": exp, "block": 0, "deployed": True, "kind": "learn", "learning": True, "exposure": 0,
        "task": "toy/nav", "variant": "", "params": "", "slot": 0, "episode": exp, "trial": exp,
        "seed": exp, "trial_seed": exp,
        "steps": 5, "learning_steps": 5 * exp, "status": "complete", "terminated": True, "truncated": False,
        "ret": exp / 4, "success": None, "success_end": None, "accuracy": None, "loss": None,
        "more": None,
    }  # fmt: skip
    return rows.Row(**{**usual, **keys})


def table(*experiences):
    return rows.decode(rows.encode(experiences, "q", 0, ""))


def records(log: Path):
    """The lines of a log in order of its blocks, as dicts of text, and the header of each file."""
    found, headers = [], []
    for file in sorted(log.rglob("data-log.tsv"), key=lambda p: int(p.parent.name.split("-")[0])):
        with file.open(newline="") as f:
            lines = csv.DictReader(f, delimiter="\t", strict=True)
            found += lines
            headers.append(tuple(lines.fieldnames))
    return found, headers


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("l2") / "run"
    return perdure.experiment(
        "toy/compass,steps=120,episodes=3", ["q", "random"], lifetimes=2, out=str(out),
        executor="serial", checkpoint=100, experts=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def out(run):
    folder = run.path.parent / "logs"
    write_run(run, folder)
    return folder


# A whole run -------------------------------------------------------------------------------------


def test_folders(run, out):
    found = [str(p.relative_to(out)) for p in find_logs(out)]
    lives = [f"ll_logs/{a}-{s}" for a in ("q", "random") for s in (0, 1)]
    goals = [f"toygoal{g}_default-{s}" for g in ("ne", "nw", "sw") for s in (0, 1)]
    assert found == lives + [f"ste_logs/{a}/{g}" for a in ("q", "random") for g in goals]
    other = run.path.parent / "again"
    assert sorted(write_run(run, other)) == [other / f for f in found]


def test_what_is_read_back_is_what_the_run_holds(run, out):
    held = {e: run.rows(experts=e).to_pandas() for e in (False, True)}
    for info in run.lifetimes():
        name = l2_names([info.expert])[info.expert] if info.expert else ""
        log = read_log(out / log_folder(info.agent, info.seed, name))
        own = held[bool(info.expert)]
        own = own[
            (own.agent == info.agent) & (own.lifetime == info.seed) & (own.expert == info.expert)
        ]
        assert log.exp.tolist() == own.exp.tolist() and log.block.tolist() == own.block.tolist()
        assert log.learning.tolist() == own.learning.tolist()
        assert log.complete.tolist() == (own.status != "incomplete").tolist()
        assert log.steps.tolist() == own.steps.tolist()
        assert np.array_equal(log.values("reward"), own["return"].to_numpy())
        for measure in ("success", "success_end"):
            assert np.array_equal(log.values(measure), own[measure].to_numpy(), equal_nan=True)
        if info.agent == "q":
            assert np.array_equal(log.values("td_error"), own.td_error.to_numpy(), equal_nan=True)


def test_the_history_of_a_run_as_its_log_says_it(run, out):
    experts = read_experts(run.lifetimes())[0]
    for life in read_run(run):
        seen = as_log(replace(life, experts=experts[life.agent]))
        read = read_log(out / "ll_logs" / f"{life.agent}-{life.seed}")
        assert_same_history(seen, read)
        assert set(seen.experts) == {f"toygoal{g}_default" for g in ("ne", "nw", "sw")}
        for task, found in seen.experts.items():
            assert [h.name for h in found] == [f"{task}-1", f"{task}-0"]
            for expert in found:
                folder = out / "ste_logs" / life.agent / expert.name
                assert_same_history(expert, read_log(folder))


def assert_same_history(a, b):
    assert (a.name, a.tasks, a.measure) == (b.name, b.tasks, b.measure)
    for column in (
        "exp",
        "block",
        "task",
        "learning",
        "adapt",
        "sleep",
        "before",
        "complete",
        "steps",
    ):
        assert getattr(a, column).tolist() == getattr(b, column).tolist(), column
    for measure in a.columns:
        assert np.array_equal(a.values(measure), b.values(measure), equal_nan=True), measure
        assert a.info["span"].get(measure) == b.info["span"].get(measure)
    for key in ("complexity", "difficulty", "scenario_type"):
        assert a.info[key] == b.info[key]


def test_what_was_read_from_a_log_stays_as_it_is(out):
    life = read_log(out / "ll_logs" / "q-0")
    expert = read_log(out / "ste_logs" / "q" / "toygoalne_default-0")
    given = replace(life, experts={"toygoalne_default": (expert,)})
    seen = as_log(given)
    assert seen.tasks == life.tasks and seen.experts == given.experts


def test_what_the_files_say_of_the_run(run, out):
    said = json.loads((out / "ll_logs" / "q-1" / "scenario_info.json").read_text())
    assert said["scenario_type"] == "custom" and said["complexity"] == "1-low"
    assert (
        said["curriculum_name"] == "toy/compass" and said["agent_name"] == "q" and said["seed"] == 1
    )
    assert said["perdure_version"] == perdure.__version__ and said["status"] == "done"
    assert said["tasks"]["toygoalne_default"] == "toy/goal-ne"
    said = json.loads((out / "ste_logs/q/toygoalne_default-0/scenario_info.json").read_text())
    assert said["scenario_type"] == "ste" and said["expert"] == "toy/goal-ne"
    said = json.loads((out / "ll_logs" / "q-1" / "logger_info.json").read_text())
    assert said["metrics_columns"] == ["reward", "success", "success_end", "td_error"]
    assert said["log_format_version"] == "1.1" and said["clock"].startswith("synthetic")


def test_levels_are_the_formats_words(run, tmp_path):
    write_run(run, tmp_path / "a", complexity="3-high", difficulty="1-easy")
    (log,) = find_logs(tmp_path / "a" / "ll_logs" / "q-0")
    assert read_log(log).info["complexity"] == "3-high" and read_log(log).notes == ()
    with pytest.raises(StoreError, match="difficulty 'hopeless': expected one of 1-easy, 2-medium"):
        write_run(run, tmp_path / "b", difficulty="hopeless")
    assert not (tmp_path / "b").exists()


def test_unfinished_lifetimes_are_written_and_unfinished_experts_are_not(
    run, tmp_path, monkeypatch
):
    halted = [replace(i, status="interrupted") for i in run.lifetimes()]
    monkeypatch.setattr(Run, "lifetimes", lambda self: halted)
    write_run(run, tmp_path / "out")
    assert len(find_logs(tmp_path / "out" / "ll_logs")) == 4
    assert not (tmp_path / "out" / "ste_logs").exists()
    said = json.loads((tmp_path / "out" / "ll_logs" / "q-0" / "scenario_info.json").read_text())
    assert said["status"] == "interrupted"


def test_a_run_without_rows(run, tmp_path, monkeypatch):
    monkeypatch.setattr(Run, "lifetimes", lambda self: [])
    with pytest.raises(StoreError, match="has no rows to export yet"):
        write_run(run, tmp_path / "out")
    assert not list(tmp_path.iterdir())


# The rules that the format's own logger has for each record ------------------------------------------


def is_count(text):
    return re.fullmatch(r"0|[1-9][0-9]*", text) is not None


def rising(values):
    return values == sorted(values)


RULES = {
    "every record has the same columns": lambda r, h, m: len(set(h)) == 1,
    "the columns the format requires, then the others by name": lambda r, h, m: (
        h[0][:9] == text.STANDARD and list(h[0][9:]) == sorted(h[0][9:])
    ),
    "every metrics column, at least one, each a name": lambda r, h, m: (
        m and all(isinstance(c, str) for c in m) and set(m) <= set(h[0])
    ),
    "no metrics column is one of the format's": lambda r, h, m: not set(m) & set(text.STANDARD),
    "block_num is a whole number ≥ 0": lambda r, h, m: all(is_count(x["block_num"]) for x in r),
    "exp_num is a whole number ≥ 0": lambda r, h, m: all(is_count(x["exp_num"]) for x in r),
    "block_num never falls": lambda r, h, m: rising([float(x["block_num"]) for x in r]),
    "exp_num never falls": lambda r, h, m: rising([float(x["exp_num"]) for x in r]),
    "block_type": lambda r, h, m: {x["block_type"] for x in r} <= {"train", "test"},
    "block_subtype": lambda r, h, m: {x["block_subtype"] for x in r} <= {"wake", "sleep"},
    "exp_status": lambda r, h, m: {x["exp_status"] for x in r} <= {"complete", "incomplete"},
    "worker_id": lambda r, h, m: all(re.fullmatch(r"[0-9a-zA-Z_\-.]+", x["worker_id"]) for x in r),
    "task_params is a JSON object": lambda r, h, m: all(
        isinstance(json.loads(x["task_params"]), dict) for x in r
    ),
    "task_name is <task>_<variant>": lambda r, h, m: all(NAME.fullmatch(x["task_name"]) for x in r),
    "timestamp": lambda r, h, m: (
        all(re.fullmatch(r"\d{8}T\d{6}\.\d{6}", x["timestamp"]) for x in r)
        and rising([x["timestamp"] for x in r])
    ),
    "metrics are numbers or nothing": lambda r, h, m: all(
        x[c] == "" or isinstance(float(x[c]), float) for x in r for c in m
    ),
    "params do not change within a task's block": lambda r, h, m: all(
        len({x["task_params"] for x in r if (x["block_num"], x["task_name"]) == place}) == 1
        for place in {(x["block_num"], x["task_name"]) for x in r}
    ),
}  # fmt: skip


def broken_rules(log):
    found, headers = records(log)
    metrics = json.loads((log / "logger_info.json").read_text())["metrics_columns"]
    return [name for name, holds in RULES.items() if not holds(found, headers, metrics)]


MANY = table(
    experience(0, block=0, deployed=False),
    experience(1, block=1, kind="eval", learning=False, task="toy/nav", variant="A b"),
    experience(2, block=1, kind="eval", learning=False, task="toy/nav", variant="a-b"),
    experience(3, block=2, params='{"size": 5, "note": "a\\tb \\"c\\""}', status="incomplete"),
    experience(4, block=2, params='{"size": 6}', ret=float("nan")),
    experience(5, block=3, kind="adapt", ret=None, more={"only here": 1.0}),
    experience(6, block=3, kind="adapt", learning=False),
    experience(7, block=4, status="window", ret=1e300, more={"reward": 1.0, "timestamp": 2.0}),
    experience(8, block=4, task="toy/pick", success=1.0, loss=-1e-7, more={"a\tb": 1 / 3, "": 4.0}),
    experience(9, block=4, ret=None),
)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    log = tmp_path_factory.mktemp("many") / "life"
    write_rows(MANY, log)
    return log


@pytest.mark.parametrize("rule", RULES)
def test_rules_hold(rule, many, out):
    for log in (many, *find_logs(out)):
        assert rule not in broken_rules(log)


@pytest.mark.parametrize(
    ("rule", "old", "new"),
    [
        ("block_num is a whole number ≥ 0", "\n4\t", "\n4.0\t"),
        ("exp_num never falls", "\n4\t9\t", "\n4\t3\t"),
        ("block_type", "\ttrain\t", "\tlearn\t"),
        ("block_subtype", "\twake\t", "\tnap\t"),
        ("exp_status", "\tcomplete\t", "\twindow\t"),
        ("worker_id", "\tworker-default\t", "\tworker 1\t"),
        ("task_name is <task>_<variant>", "\ttoypick_default\t", "\ttoy/pick\t"),
        ("task_params is a JSON object", "\t{}\t", "\t5\t"),
        ("timestamp", "20000101T", "2000-01-01T"),
        ("params do not change within a task's block", "\t{}\t", '\t"{""a"": 1}"\t'),
    ],
)
def test_the_rules_can_fail(tmp_path, many, rule, old, new):
    shutil.copytree(many, tmp_path / "life")
    file = tmp_path / "life" / "worker-default" / "4-train" / "data-log.tsv"
    changed = file.read_text().replace(old, new, 1)
    assert changed != file.read_text()
    file.write_text(changed)
    assert rule in broken_rules(tmp_path / "life")


def test_what_is_left_out_and_what_becomes_of_the_rest(many):
    found, headers = records(many)
    assert [r["exp_num"] for r in found] == ["1", "2", "3", "4", "7", "8", "9"]
    assert sorted(p.name for p in (many / "worker-default").iterdir()) == [
        "1-test",
        "2-train",
        "4-train",
    ]
    assert [r["exp_status"] for r in found] == ["complete"] * 2 + ["incomplete"] + ["complete"] * 4
    assert [r["reward"] for r in found] == ["0.25", "0.5", "0.75", "nan", "1e+300", "2", ""]
    assert [r["timestamp"][-7:] for r in found][:3] == [".000001", ".000002", ".000003"]
    assert len({r["task_name"].lower() for r in found}) == 4
    assert headers[0][9:] == (
        "_", "a_b", "episode_step_count", "loss", "reward", "reward_", "success", "timestamp_",
    )  # fmt: skip
    params = {"any_of": [{"size": 5, "note": 'a\tb "c"'}, {"size": 6}]}
    assert [json.loads(r["task_params"]) for r in found[2:4]] == [params, params]


def test_side_by_side_is_in_order_of_completion(tmp_path):
    tasks = ("toy/a", "toy/b", "toy/a", "toy/b")
    write_rows(
        table(*(experience(i, task=t, slot=i % 2) for i, t in enumerate(tasks))), tmp_path / "x"
    )
    found, _ = records(tmp_path / "x")
    assert [r["task_name"] for r in found] == ["toya_default", "toyb_default"] * 2


@pytest.mark.parametrize("chunk", [1, 2, 3, 1000])
def test_pieces_of_any_size_give_the_same_text(tmp_path, many, monkeypatch, chunk):
    monkeypatch.setattr(text, "_CHUNK", chunk)
    write_rows(MANY, tmp_path / "life")
    assert records(tmp_path / "life") == records(many)


def test_the_clock_goes_on_over_seconds(tmp_path):
    exps = (999_999, 1_000_000, 86_400_000_001)
    write_rows(table(*(experience(e) for e in exps)), tmp_path / "life")
    found, _ = records(tmp_path / "life")
    assert [r["timestamp"] for r in found] == [
        "20000101T000000.999999", "20000101T000001.000000", "20000102T000000.000001",
    ]  # fmt: skip
    assert [text.clock(e) for e in exps] == [r["timestamp"] for r in found]


def test_rows_that_are_not_one_lifetimes(tmp_path):
    for wrong in ([experience(1), experience(0)], [experience(0, block=1), experience(1)]):
        with pytest.raises(StoreError, match="rows of one lifetime, in order of exp"):
            write_rows(table(*wrong), tmp_path / "life")
    with pytest.raises(StoreError, match="hold no measure"):
        write_rows(table(experience(0, ret=None)), tmp_path / "life")
    with pytest.raises(StoreError, match="pre-deployment or adapt"):
        write_rows(table(experience(0, deployed=False)), tmp_path / "life")
    assert not list(tmp_path.iterdir())


MEASURES = st.one_of(st.none(), st.floats(allow_infinity=False))
ROWS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["toy/a", "toy/A", "toy/b-c", "toy/bc"]),
        st.sampled_from(["", "x", "X", "default"]),
        st.sampled_from(["", '{"k": "v\\"w"}']),
        st.sampled_from(["complete", "incomplete", "window"]),
        MEASURES,
        st.one_of(st.none(), st.dictionaries(st.sampled_from(["m", "reward", "exp_num"]), MEASURES.filter(lambda v: v is not None))),
    ),
    min_size=1, max_size=12,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(made=ROWS)
def test_any_rows_keep_the_rules_and_come_back(tmp_path_factory, made):
    made = sorted(made, key=lambda r: r[0])
    experiences = [
        experience(i, block=b, learning=b % 2 == 1, kind="learn" if b % 2 else "eval", task=t,
                   variant=v, params=p, status=s, ret=value, success=1.0, more=more)
        for i, (b, t, v, p, s, value, more) in enumerate(made)
    ]  # fmt: skip
    found = table(*experiences)
    log = tmp_path_factory.mktemp("any") / "life"
    write_rows(found, log)
    assert broken_rules(log) == []
    read = read_log(log)
    names = l2_names({f"{t}@{v}" if v else t for _, t, v, *_ in made})
    assert [read.tasks[c] for c in read.task] == [
        names[f"{t}@{v}" if v else t].lower() for _, t, v, *_ in made
    ]
    assert_same_history(replace(as_log(from_table(found, "life")), name="life"), read)


# Names -----------------------------------------------------------------------------------------------


def test_names():
    ids = ["minigrid/DoorKey@S5", "minigrid/DoorKey", "toy/goal-ne", "gym/CartPole-v1@long pole"]
    assert l2_names(ids) == {
        "minigrid/DoorKey@S5": "minigridDoorKey_S5",
        "minigrid/DoorKey": "minigridDoorKey_default",
        "toy/goal-ne": "toygoalne_default",
        "gym/CartPole-v1@long pole": "gymCartPolev1_longpole",
    }


@pytest.mark.parametrize(
    "ids",
    [
        ["toy/goal-ne", "toy/goalne"],
        ["toy/Goal", "toy/goal"],
        ["toy/a@X", "toy/a@x"],
        ["toy/a", "toy/a@default"],
        ["a/bc", "ab/c"],
        ["toy/a-b@1", "toy/ab@2"],
        ["toy/" + "a" * 90 + "1", "toy/" + "a" * 90 + "2"],
    ],
)
def test_names_that_would_collide_are_told_apart(ids):
    names = l2_names(ids)
    assert len({n.lower() for n in names.values()}) == len(ids)
    assert all(NAME.fullmatch(n) for n in names.values())
    tasks = {i.split("@")[0] for i in ids}
    assert len({n.split("_")[0].lower() for n in names.values()}) == len(tasks)


def test_a_digest_that_is_taken_is_made_longer():
    taken = l2_names(["toy/a", "toy/A"])["toy/a"].split("_")[0]
    names = l2_names(["toy/a", "toy/A", f"toy/{taken[3:]}"])
    assert len({n.lower() for n in names.values()}) == 3


WORD = st.text("aAbB-._ 12", min_size=1, max_size=4).map(lambda w: "x" + w)
IDS = st.builds(
    lambda s, n, v: f"{s}/{n}@{v}" if v else f"{s}/{n}", WORD, WORD, st.one_of(st.just(""), WORD)
)


@given(ids=st.lists(IDS, max_size=15), order=st.randoms())
def test_names_are_distinct_and_do_not_depend_on_order(ids, order):
    names = l2_names(ids)
    assert set(names) == set(ids) and all(NAME.fullmatch(n) for n in names.values())
    assert len({n.lower() for n in names.values()}) == len(names)
    shuffled = list(ids)
    order.shuffle(shuffled)
    assert l2_names(shuffled) == names


def test_folders_stay_where_they_belong():
    assert log_folder("ewc+bc", 3) == Path("ll_logs/ewc+bc-3")
    assert log_folder("a/b c", 3, "nav_x") == Path("ste_logs/a--b_c/nav_x-3")
    for wrong in ("..", "../x", "/x", "", "a\x00b", "a/../../b", ".hidden"):
        with pytest.raises(NameRefused):
            log_folder(wrong, 0)
        if wrong:
            with pytest.raises(NameRefused):
                log_folder("q", 0, wrong)


# All or nothing ------------------------------------------------------------------------------------


def test_nothing_is_overwritten(run, tmp_path):
    full, file, link = tmp_path / "full", tmp_path / "file", tmp_path / "link"
    full.mkdir()
    (full / "mine").write_text("keep")
    file.write_text("keep")
    link.symlink_to(tmp_path / "elsewhere")
    for taken in (full, file, link):
        with pytest.raises(StoreError, match=f"{taken} exists, .*: remove it or name another"):
            write_run(run, taken)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "full", "link"]
    assert (full / "mine").read_text() == file.read_text() == "keep"


def test_an_empty_folder_is_filled(run, tmp_path):
    (tmp_path / "out").mkdir()
    assert len(write_run(run, tmp_path / "out")) == 16


@pytest.mark.parametrize("wrong", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_a_failure_leaves_nothing_behind(run, tmp_path, monkeypatch, wrong):
    whole, calls = text.write_blocks, []

    def failing(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise wrong
        whole(*arguments)

    monkeypatch.setattr("perdure.store.l2logger.write.write_blocks", failing)
    with pytest.raises(NoSpaceError if isinstance(wrong, OSError) else KeyboardInterrupt):
        write_run(run, tmp_path / "deep" / "out")
    assert not list((tmp_path / "deep").iterdir())


def test_while_it_is_written_it_is_not_there(run, tmp_path, monkeypatch):
    whole, seen = text.write_blocks, []

    def watched(*arguments):
        whole(*arguments)
        seen.append(((tmp_path / "out").exists(), find_logs(tmp_path)))

    monkeypatch.setattr("perdure.store.l2logger.write.write_blocks", watched)
    write_run(run, tmp_path / "out")
    assert len(seen) == 16 and all(s == (False, []) for s in seen)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
