"""The reference preset against what l2metrics 3.1.0 gave: every value, none missing, none too much.

A few scenarios are in ``data``; all of them are in ``shared/oracle`` beside the repository, where
that exists.

Among equal maxima of a smoothed curve, rounding decides which comes first, and OpenBLAS rounds sums
otherwise on processors with AVX-512 than on others. The values were made without it, so they are
compared in a process whose OpenBLAS leaves it alone too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from l2m_tools import count, differences, experts_in, options_of

from perdure.errors import MeasureError
from perdure.measure.l2m.reference import analyse
from perdure.store.l2logger.read import read_log

HERE = Path(__file__).parent
ROUNDING = {"OPENBLAS_CORETYPE": "Haswell"}
SAME_ROUNDING = ROUNDING.items() <= os.environ.items()
HOMES = {"data": HERE / "data", "shared": HERE.parents[2] / "shared" / "oracle"}

# An exact plateau: which of its points is the highest is decided by rounding.
UNDECIDED = {("t01_tella_chain_1env", "no_preprocessing"): {(11, "exp_to_sat")}}


def settings_name(run):
    return run.get("settings_name") or run["id"]


@cache
def expected(folder):
    return json.loads((folder / "expected.json").read_text())["runs"]


@cache
def history(log):
    return read_log(log)


@cache
def experts(folder):
    return experts_in(folder / "ste_logs")


def cases():
    for home, root in HOMES.items():
        found = sorted(p.parent for p in root.glob("*/expected.json"))
        if not found:
            why = f"{root} is not there; the scenarios in {HOMES['data']} are tested"
            yield pytest.param(None, None, id=home, marks=pytest.mark.skip(reason=why))
        for folder in found:
            for name in dict.fromkeys(settings_name(r) for r in expected(folder)):
                yield pytest.param(folder, name, id=f"{home}-{folder.name}-{name}")


def argument(run, flag):
    words = run["cli"].split()
    return words[words.index(flag) + 1]


@pytest.mark.skipif(SAME_ROUNDING, reason="this is that process")
def test_every_value_with_the_oracles_rounding():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(
        command, env={**os.environ, **ROUNDING}, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.parametrize(
    ("folder", "settings"),
    list(cases()) if SAME_ROUNDING else [pytest.param(None, None, id="in a process of its own")],
)
def test_every_value(folder, settings):
    if folder is None:
        pytest.skip("compared in a process of its own, by the test above")
    runs = [r for r in expected(folder) if settings_name(r) == settings]
    assert runs
    for run in runs:
        log = argument(run, "-l")
        life = replace(history(folder / log), experts=experts(folder))
        options = options_of(run["options"], folder, perf_measure=argument(run, "-p"))
        if run["error"]:
            with pytest.raises(MeasureError, match="zzz_1"):
                analyse(life, options)
            continue
        found = analyse(life, options)
        wrong = list(differences(found.metrics, run["metrics"]))
        theirs = [{k: v for k, v in row.items() if k != "task_params"} for row in run["regimes"]]
        ours = found.regimes()
        assert len(ours) == len(theirs)
        for i, key in UNDECIDED.get((folder.name, settings), ()):
            del ours[i][key], theirs[i][key]
        wrong += differences(ours, theirs, ("regimes",))
        assert not wrong, f"{log}, {len(wrong)} of {count(run['metrics'])}: " + "\n".join(
            map(str, wrong[:20])
        )


def test_the_comparison_can_fail():
    assert not list(differences({"a": [1.0, float("nan")]}, {"a": [1.0 + 1e-12, None]}))
    for ours in (
        {},
        {"a": [1.0]},
        {"a": [1.0, 2.0]},
        {"a": [1.1, None]},
        {"a": [1.0, None], "b": 0},
    ):
        assert list(differences(ours, {"a": [1.0, None]}))
