"""measure, compare, export and ls metrics as scripts use them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_cli import perdure

import perdure as package

DATA = Path(__file__).parents[1] / "oracles" / "data"
KEYS = {
    "perf_recovery", "avg_train_perf", "avg_eval_perf", "perf_maintenance_mrlep",
    "forward_transfer_ratio", "backward_transfer_ratio", "ste_rel_perf", "sample_efficiency",
    "run_id", "complexity", "difficulty", "scenario_type", "metrics_column", "min", "max", "num_lx",
    "num_ex", "runtime", "normalization_data_range", "task_metrics",
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("measure") / "run"
    package.experiment(
        "toy/compass,steps=150,episodes=3", ["q", "random"], lifetimes=3, out=str(out),
        executor="serial", experts=True,
    )  # fmt: skip
    return out


def strict(path):
    def refuse(name):
        raise AssertionError(f"bare {name} in JSON")

    return json.loads(path.read_text(), parse_constant=refuse)


def logs():
    """A small scenario of the oracle that is part of the project."""
    return next(
        p.parent for p in sorted(DATA.glob("*/expected.json")) if (p.parent / "ste_logs").exists()
    )


def test_measure_a_run(run, tmp_path):
    file = tmp_path / "m.json"
    done = perdure("measure", str(run), "--json", str(file))
    assert done.returncode == 0, done.stderr
    assert "preset paper, n = 6 lifetimes" in done.stdout and "l2m.pm" in done.stdout
    found = strict(file)
    assert found["preset"] == "paper" and found["n"] == 6 and found["failed"] == {}
    assert set(found["lifetimes"]) == {f"{a}/{s}" for a in ("q", "random") for s in (0, 1, 2)}
    scores = found["lifetimes"]["q/0"]
    assert {"l2m.pm", "l2m.se", "libero.nbt", "gem.acc", "openloris.overall"} <= set(scores)
    assert all("value" in s and (s["value"] is not None or s["reason"]) for s in scores.values())
    assert set(scores["l2m.rp"]["per_task"]) == {"toy/goal-ne", "toy/goal-sw", "toy/goal-nw"}


@pytest.mark.parametrize("verb", ["measure", "compare"])
def test_tables_for_programs_are_made_without_rich(run, verb):
    command = [sys.executable, "-X", "importtime", "-m", "perdure", verb, str(run)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {"measure": "q/0", "compare": "No difference"}[verb] in done.stdout
    assert "perdure.cli.measuring" in done.stderr and "rich" not in done.stderr


def test_reference_has_the_references_keys(run, tmp_path):
    file = tmp_path / "m.json"
    done = perdure("measure", str(run), "--preset", "reference", "--json", str(file))
    assert done.returncode == 0, done.stderr
    assert all(set(v) == KEYS for v in strict(file)["lifetimes"].values())


def test_reference_options_by_their_long_names(tmp_path):
    folder, file = logs(), tmp_path / "m.json"
    done = perdure(
        "measure", str(folder / "ll_logs"), "--ste", str(folder / "ste_logs"), "--preset",
        "reference", "--smoothing-method", "none", "--normalization-method", "none",
        "--maintenance-method", "both", "--transfer-method", "both", "--json", str(file),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    expected = json.loads((folder / "expected.json").read_text())["runs"]
    options = ["-m", "both", "-t", "both", "-g", "none", "-n", "none"]
    compared = 0
    for wanted in (r for r in expected if r["options"] == options):
        name = Path(wanted.get("log_dir", "ll_logs/x")).name
        mine = strict(file)["lifetimes"][name]
        for key, value in wanted["metrics"].items():
            if isinstance(value, float):
                assert mine[key] == pytest.approx(value, rel=1e-9, abs=1e-9), key
                compared += 1
    assert compared > 10


def test_reference_options_are_refused_by_the_paper_preset(run):
    done = perdure("measure", str(run), "--variant-mode", "agnostic")
    assert done.returncode == 2 and "--variant-mode belongs to preset reference" in done.stderr


def test_a_broken_lifetime_is_reported_and_the_rest_measured(tmp_path):
    folder = tmp_path / "logs"
    shutil.copytree(logs(), folder)
    lives = sorted((folder / "ll_logs").iterdir())
    broken = sorted(lives[0].rglob("data-log.tsv"))[0]
    lines = broken.read_text().splitlines()
    lines[3] = lines[3].replace("\t", "\tx", 1)
    broken.write_text("\n".join(lines) + "\n")
    file = tmp_path / "m.json"
    done = perdure("measure", str(folder / "ll_logs"), "--preset", "reference", "--json", str(file))
    assert done.returncode == 1
    assert f"not measured: {lives[0].name}" in done.stderr and "line 4" in done.stderr
    found = strict(file)
    assert list(found["failed"]) == [lives[0].name]
    assert set(found["lifetimes"]) == {p.name for p in lives[1:]}


def test_many_lifetimes_show_progress(tmp_path):
    one = next((logs() / "ll_logs").iterdir())
    for i in range(48):
        shutil.copytree(one, tmp_path / "many" / f"life-{i}")
    done = perdure("measure", str(tmp_path / "many"), "--preset", "reference")
    assert done.returncode == 0 and "measured 48/48" in done.stderr
    assert "mean of 48" in done.stdout


def test_nothing_to_measure(tmp_path):
    done = perdure("measure", str(tmp_path))
    assert done.returncode == 2 and "neither a Perdure run" in done.stderr
    done = perdure("measure", str(tmp_path / "no"))
    assert done.returncode == 2 and "is not a folder" in done.stderr


def test_a_metric_of_ones_own(run, tmp_path):
    text = (
        "from perdure.measure.metric import metric\n\n"
        "@metric('mine.worst', better='higher', needs=('final',))\n"
        "def worst(life):\n"
        "    'Score on the worst task at the end of life.'\n"
        "    return min(life.matrix.last().values())\n"
    )
    (tmp_path / "mine.py").write_text(text)
    (tmp_path / "broken.py").write_text(text.replace("'final',", ""))
    done = perdure("measure", str(run), "--metric", "mine.py:worst", cwd=tmp_path)
    assert done.returncode == 0 and "mine.worst" in done.stdout, done.stderr
    done = perdure("check", "mine.py:worst", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = perdure("check", "broken.py:worst", cwd=tmp_path)
    assert done.returncode == 1 and "on one without learning: raised ValueError" in done.stderr


def test_unknown_metric_gets_a_hint(run):
    done = perdure("measure", str(run), "--metric", "l2m.pn")
    assert done.returncode == 2 and "or 'l2m.pm'?" in done.stderr


def test_compare(run, tmp_path):
    file = tmp_path / "c.json"
    done = perdure("compare", str(run), "--metric", "gem.acc", "--json", str(file))
    assert done.returncode == 0, done.stderr
    assert "gem.acc ↑" in done.stdout and "n=3" in done.stdout and "Holm" in done.stdout
    found = strict(file)
    assert {s["agent"] for s in found["summaries"]} == {"q", "random"}
    (pair,) = found["comparisons"]
    assert pair["difference"]["paired"] is True and pair["difference"]["n_a"] == 3


def test_compare_says_when_there_are_too_few(run, tmp_path):
    few = tmp_path / "few"
    shutil.copytree(run, few, ignore=shutil.ignore_patterns("2"))
    done = perdure("compare", str(few), "--metric", "gem.acc")
    assert "No difference can be told: too few lifetimes" in done.stdout
    assert "too few to tell" not in done.stdout
    assert "too few to tell" in perdure("compare", str(few), "--metric", "gem.acc", "--all").stdout


def test_runs_of_different_curricula_do_not_compare(run, tmp_path):
    other = tmp_path / "other"
    package.experiment(
        "toy/compass,steps=60,episodes=2", ["random"], out=str(other), executor="serial"
    )
    done = perdure("compare", str(run), str(other))
    assert done.returncode == 2 and "different curricula" in done.stderr
    done = perdure("compare", str(run), str(other), "--anyway", "--metric", "gem.acc")
    assert done.returncode == 0, done.stderr


def test_the_same_agent_in_two_runs_stays_two(run, tmp_path):
    again, file = tmp_path / "again", tmp_path / "c.json"
    shutil.copytree(run, again)
    done = perdure("compare", str(run), str(again), "--metric", "gem.acc", "--json", str(file))
    assert done.returncode == 0, done.stderr
    found = strict(file)
    agents = {s["agent"] for s in found["summaries"]}
    # Where there are two others, chance is a reference and no contestant.
    assert agents == {"run/q", "again/q"} and "again/random (reference)" in done.stdout
    same = next(c for c in found["comparisons"] if {c["a"], c["b"]} == {"run/q", "again/q"})
    assert "identical in every lifetime" in same["verdict"]


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_export_rows(run, tmp_path, kind):
    import pandas as pd

    out = tmp_path / f"rows.{kind}"
    done = perdure("export", str(run), "--format", kind, "--out", str(out))
    assert done.returncode == 0, done.stderr
    read = {"csv": pd.read_csv, "json": pd.read_json, "parquet": pd.read_parquet}[kind]
    frame = read(out)
    assert len(frame) == len(pd.read_parquet(run)) and {"task", "return", "expert"} <= set(frame)


def test_export_l2logger_measures_the_same(run, tmp_path):
    out = tmp_path / "logs"
    done = perdure("export", str(run), "--format", "l2logger", "--out", str(out))
    assert done.returncode == 0, done.stderr
    direct, through = tmp_path / "a.json", tmp_path / "b.json"
    perdure("measure", str(run), "--preset", "reference", "--json", str(direct))
    done = perdure(
        "measure", str(out / "ll_logs"), "--ste", str(out / "ste_logs" / "q"), "--preset",
        "reference", "--json", str(through),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    mine, theirs = strict(direct)["lifetimes"]["q/1"], strict(through)["lifetimes"]["q-1"]
    for key in KEYS - {"run_id", "task_metrics", "normalization_data_range"}:
        assert mine[key] == (
            pytest.approx(theirs[key]) if isinstance(theirs[key], float) else theirs[key]
        )


def test_ls_metrics(run):
    found = json.loads(perdure("ls", "metrics", "--json").stdout)
    names = {m["name"] for m in found}
    assert {"l2m.pm", "l2m.ft", "l2m.bt", "l2m.rp", "l2m.se", "l2m.pr", "l2m.cg", "l2m.lb"} <= names
    assert {
        "libero.fwt",
        "openloris.overall",
        "gem.bwt",
        "cw.transfer",
        "metaworld.success",
    } <= names
    assert all(m["about"] and m["better"] for m in found)
