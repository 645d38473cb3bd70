"""The docs run: every command and every snippet of the tutorial, in order, in one folder."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"```(console|python)\n(.*?)```", re.S)


@pytest.mark.slow
def test_the_tutorial_runs(tmp_path):
    blocks = FENCE.findall((ROOT / "docs/tutorial.md").read_text())
    assert len(blocks) > 8
    for kind, text in blocks:
        if kind == "console":
            for line in text.splitlines():
                assert line.startswith("$ perdure ")
                run([sys.executable, "-m", "perdure", *line.split()[2:]], tmp_path)
        elif text.startswith("# "):
            (tmp_path / text.split()[1]).write_text(text)
        else:
            run([sys.executable, "-c", text], tmp_path)


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def test_the_readmes_agent_passes_the_check(tmp_path):
    text = (ROOT / "README.md").read_text()
    snippet = next(t for k, t in FENCE.findall(text) if k == "python")
    (tmp_path / "mine.py").write_text(snippet)
    run([sys.executable, "-m", "perdure", "check", "mine.py:Mine"], tmp_path)
    assert len(text.splitlines()) < 60
    for command in ("make demo", "make test"):
        assert command in text
