"""A policy behind a server, trained between blocks by a command: forgetting is measured as of any agent.

The trainer is a small one that stands for a large one (small_trainer.py)."""

import sys
from pathlib import Path

import numpy as np
import pytest
from points import WAYS

from perdure import Run, experiment
from perdure.errors import RunFailed, SpecError

HERE = Path(__file__).parent
CURRICULUM = f"{HERE}/points.py:turn"


def finetuned(work):
    trainer = f"{sys.executable} {HERE}/small_trainer.py {{data}} '{{checkpoint}}' {{out}}"
    server = f"{sys.executable} {HERE}/small_server.py '{{checkpoint}}' {{port}} {work}"
    return f'finetuned,trainer="{trainer}",server="{server}",work="{work}"'


def lived(spec, out, curriculum=CURRICULUM):
    return experiment(curriculum, {"vla": spec}, out=str(out), checkpoint=4, executor="serial")


def shares(run):
    rows = [r for r in run.rows(partial=True).to_pylist() if not r["learning"]]
    blocks = sorted({r["block"] for r in rows})
    return [[np.mean([r["success"] for r in rows if r["block"] == b and r["task"] == f"points/{t}"])
             for t in WAYS] for b in blocks]  # fmt: skip


def test_forgetting_of_a_served_policy_is_measured_and_a_stopped_trainer_resumes(tmp_path):
    run = lived(finetuned(tmp_path / "work"), tmp_path / "whole")
    assert shares(run) == [[0, 0], [1, 0], [0, 1]]
    from perdure.measure.summary import forgetting
    from perdure.show.summary import _lives

    (life,) = _lives(Run(str(tmp_path / "whole")))[1]["vla"]
    assert forgetting(life).per_task == {"points/east": 1.0}
    # A trainer that fails in the second block: what was learned before is there, and it goes on.
    other = finetuned(tmp_path / "other")
    (tmp_path / "other").mkdir()
    seed_folder = next((tmp_path / "work").iterdir()).name
    (tmp_path / "other" / seed_folder).mkdir()
    (tmp_path / "other" / seed_folder / "fail").touch()
    with pytest.raises(RunFailed, match="out of memory"):
        lived(other, tmp_path / "run")
    assert shares(Run(str(tmp_path / "run"))) == [[0, 0], [1, 0]]
    (tmp_path / "other" / seed_folder / "fail").unlink()
    assert shares(lived(other, tmp_path / "run")) == [[0, 0], [1, 0], [0, 1]]


def test_an_adapt_block_is_trained_before_it_is_evaluated_and_taken_back(tmp_path):
    run = lived(finetuned(tmp_path / "work"), tmp_path / "run", f"{HERE}/points.py:probed")
    assert shares(run) == [[0, 1], [0, 0], [0, 1], [1, 0]]


def test_commands_without_their_places_are_refused(tmp_path):
    with pytest.raises(SpecError, match="trainer must have"):
        experiment(CURRICULUM, "finetuned,trainer=x,server=y,work=z", out=str(tmp_path / "r"))
