"""The notebooks of the docs run, as they stand, in a kernel of their own."""

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import perdure

NOTEBOOKS = Path(__file__).parents[1] / "docs/notebooks"


def executed(path, folder):
    """The notebook with the outputs that it has here."""
    notebook = nbformat.read(path, 4)
    source = str(Path(perdure.__file__).parents[1])
    paths = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))
    where = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=200, kernel_name="python3", resources=where)
    client.execute(env={**os.environ, "PYTHONPATH": paths})
    return notebook


def texts(notebook):
    """For each cell of code that shows anything: its text, and which kinds of it there are."""
    found = []
    for cell in notebook.cells:
        outputs = cell.get("outputs", [])
        text = "".join(o.get("text") or o.get("data", {}).get("text/plain", "") for o in outputs)
        found.append((text, {kind for o in outputs for kind in o.get("data", {})}))
    return [(text, kinds) for text, kinds in found if text]


@pytest.mark.slow
def test_first_steps(tmp_path):
    shown = texts(executed(NOTEBOOKS / "first-steps.ipynb", tmp_path))
    progress = next(text for text, _ in shown if "9 done   100%" in text)
    assert progress.count("perdure runs/coins") == 1 and "\x1b" not in progress
    assert "Run('runs/coins': coins, quick, random, slow, 9 lifetimes)" in progress
    every = "\n".join(text for text, _ in shown)
    for words in (
        "quick: mean of 3", "Holm-corrected", "_report.html", "did you mean 'lifetimes'?",
        "__main__.Gambler changed since slow/0", "slow (mixed code)",
        "note: mixed code: lifetimes of slow ran with different __main__.Gambler",
    ):  # fmt: skip
        assert words in every, words
    assert any(
        "text/html" in kinds and "figures in runs/coins/_figures: " in text and "curriculum" in text
        for text, kinds in shown
    )
    assert (tmp_path / "runs/coins/_report.html").is_file()


def test_notebooks_are_kept_small():
    for path in NOTEBOOKS.glob("*.ipynb"):
        assert path.stat().st_size < 50_000, f"{path}: keep text outputs alone"
        assert not any("\x1b" in text for text, _ in texts(nbformat.read(path, 4)))
