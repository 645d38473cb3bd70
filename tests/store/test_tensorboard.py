"""Event files, read back by TensorBoard itself; and the Weights & Biases example."""

import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import perdure
from kit import live
from perdure.errors import MissingExtra, StoreError
from perdure.store.log import Lifetime
from perdure.store.tensorboard import FILE, points, write_tensorboard
from perdure.types import Curriculum, Exposure, Task, adapt, evaluate, learn

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return perdure.experiment(
        "toy/compass,steps=60,episodes=3", ["q", "random"], lifetimes=2, experts=True,
        checkpoint=50, executor="serial", out=str(tmp_path_factory.mktemp("tb") / "run"),
    )  # fmt: skip


def read(folder):
    found = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    return {tag: [(e.step, e.value) for e in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def close(found, expected):
    """Equal steps and values; TensorBoard keeps single precision."""
    assert [s for s, _ in found] == [s for s, _ in expected]
    assert [v for _, v in found] == pytest.approx([v for _, v in expected], rel=1e-6)


def test_tensorboard_reads_every_lifetime(run, tmp_path):
    folders = write_tensorboard(run, tmp_path / "tb")
    ids = {i.id for i in run.lifetimes()}
    assert {str(f.relative_to(tmp_path / "tb")) for f in folders} == ids and len(ids) == 16
    rows = run.rows().to_pylist()
    for agent, seed in (("q", 0), ("random", 1)):
        mine = [r for r in rows if (r["agent"], r["lifetime"]) == (agent, seed)]
        whole = [r for r in mine if r["status"] == "complete"]
        assert len(whole) < len(mine)  # Some were cut off by the budget.
        found = read(tmp_path / "tb" / agent / str(seed))
        for measure in ("return", "success", "success_end", "steps"):
            for task in ("toy/goal-ne", "toy/goal-sw", "toy/goal-nw"):
                own = [r for r in whole if r["task"] == task]
                close(found[f"learn_{measure}/{task}"],
                      [(r["learning_steps"], r[measure]) for r in own if r["learning"]])  # fmt: skip
                means = []
                for block, at in ((0, 0), (2, 60), (4, 120), (6, 180)):
                    here = [r for r in own if r["block"] == block and r["kind"] == "eval"]
                    assert len(here) == 3 and {r["learning_steps"] for r in here} == {at}
                    means.append((at, sum(r[measure] for r in here) / 3))
                close(found[f"eval_{measure}/{task}"], means)
    expert = read(tmp_path / "tb/q/experts/toy--goal-nw/1")
    assert "learn_return/toy/goal-nw" in expert and "learn_return/toy/goal-ne" not in expert


def test_exporting_twice_gives_the_same_bytes(run, tmp_path):
    for name in "ab":
        write_tensorboard(run, tmp_path / name)
    files = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob(FILE))
    assert len(files) == 16
    assert all(
        (tmp_path / "a" / f).read_bytes() == (tmp_path / "b" / f).read_bytes() for f in files
    )


def test_adapt_blocks_variants_and_further_measures(tmp_path):
    from perdure.agent import Agent

    class Losing(Agent):
        def act(self, obs, ctx):
            return [1] * len(obs)

        def learn(self, batch, ctx):
            return {"loss": 0.5, "entropy": 2.0}

        def state(self):
            return {}

        def load(self, state):
            pass

    task = Task("toy", "count", "two", {"length": 2})
    one, few = Exposure(task, 1), Exposure(task, 2)
    life = Curriculum("x", (evaluate(few), learn(one), adapt(one, then=[few]), evaluate(one)))
    live(life, Losing, path=tmp_path / "life")
    name, lengths = "toy/count@two", {"return": 2.0, "steps": 2.0}

    def tags(head, measures):
        return {f"{head}_{m}/{name}": v for m, v in measures.items()}

    learned = {**lengths, "loss": 0.5, "entropy": 2.0}
    found = [
        (step, {k: v for k, v in at.items()})
        for step, at in points(Lifetime.read(tmp_path / "life"))
    ]
    assert found == [
        (0, tags("eval", lengths)),
        (2, tags("learn", learned)),
        (4, tags("adapt_learn", learned)),
        (4, tags("adapt", lengths)),
        (4, tags("eval", lengths)),
    ]


def test_nothing_is_overwritten_and_nothing_half_written(run, tmp_path, monkeypatch):
    (tmp_path / "there/mine").mkdir(parents=True)
    with pytest.raises(StoreError, match="exists"):
        write_tensorboard(run, tmp_path / "there")
    import perdure.store.tensorboard as module

    def broken(path):
        yield 0, {"x": 1.0}
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "points", broken)
    with pytest.raises(StoreError, match="no space left"):
        write_tensorboard(run, tmp_path / "new")
    assert [p.name for p in tmp_path.iterdir()] == ["there"]


def test_a_run_without_rows_and_a_missing_extra(tmp_path, run, monkeypatch):
    folder = tmp_path / "empty/_meta"
    folder.mkdir(parents=True)
    (folder / "spec.json").write_text("{}")
    with pytest.raises(StoreError, match="no committed rows"):
        write_tensorboard(perdure.Run(tmp_path / "empty"), tmp_path / "x")
    monkeypatch.setitem(sys.modules, "tensorboard.summary.writer.record_writer", None)
    with pytest.raises(MissingExtra, match=r"\.\[tensorboard\]"):
        write_tensorboard(run, tmp_path / "x")


def test_the_wandb_example_of_the_docs_runs_offline(tmp_path):
    """Five lines, no network; what they logged is in wandb's own file."""
    text = (ROOT / "docs/tracking.md").read_text()
    (snippet,) = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(snippet.splitlines()) == 5
    run = perdure.experiment(
        "toy/compass,steps=60,episodes=3", ["q"], executor="serial", out=str(tmp_path / "runs/demo")
    )
    env = {k: v for k, v in os.environ.items() if not k.startswith("WANDB")}
    env |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "HOME": str(tmp_path),
            "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", snippet], cwd=tmp_path, env=env, capture_output=True, text=True,
        timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "wandb").glob("offline-run-*/*.wandb")
    logged = history(file)
    expected = {}
    for step, scalars in points(Lifetime.read(run.path / "q/0")):
        expected.setdefault(step, {}).update(scalars)
    assert {row["_step"]: {k: v for k, v in row.items() if "/" in k} for row in logged} == expected


def history(file):
    """What an offline run of wandb's logged: its file is LevelDB's log format after 7 bytes."""
    from wandb.proto import wandb_internal_pb2

    data, at, part, rows = file.read_bytes(), 7, b"", []
    assert data[:4] == b":W&B"
    while at < len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        part += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # A whole record, or the last part of one.
            record = wandb_internal_pb2.Record()
            record.ParseFromString(part)
            part = b""
            if record.WhichOneof("record_type") == "history":
                found = {(i.key or i.nested_key[0]): json.loads(i.value_json)
                         for i in record.history.item}  # fmt: skip
                rows.append({"_step": record.history.step.num, **found})
    return rows
