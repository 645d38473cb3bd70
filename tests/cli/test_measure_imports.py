"""Measuring stays light: what it would import takes longer than what it does."""

import subprocess
import sys

import pytest

import perdure

PROGRAM = """
import sys
from perdure.cli.main import main
try:
    main(["measure", sys.argv[1], "--preset", sys.argv[2]])
except SystemExit as done:
    assert not done.code
print(sorted({m.split(".")[0] for m in sys.modules} & {"pandas", "torch", "matplotlib", "mujoco"}))
"""


@pytest.mark.parametrize("preset", ["paper", "reference"])
def test_measure_imports_neither_pandas_nor_what_learns_or_draws(tmp_path, preset):
    """With columns that have holes, and measures without a column of their own."""
    run = perdure.experiment(
        "toy/compass,steps=200,episodes=2", ["dqn,preset=quick"], out=str(tmp_path / "run"),
        executor="serial",
    )  # fmt: skip
    rows = run.rows().to_pylist()
    assert any(r["loss"] is not None for r in rows) and any(r["loss"] is None for r in rows)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "run"), preset],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]", done.stdout
