"""report, leaderboard, view and --video as scripts use them."""

import json
import re
import signal
import subprocess
import sys
import urllib.request

import pytest
from test_cli import perdure


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    out = tmp_path_factory.mktemp("report") / "run"
    done = perdure(
        "run", "toy/compass,steps=100,episodes=3", "--agent", "q", "--lifetimes", "2", "--out",
        str(out), "--executor", "serial", "--video", "--quiet",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return out


def test_report_with_videos_and_figures(recorded, tmp_path):
    page, figures = tmp_path / "r.html", tmp_path / "figures"
    done = perdure("report", str(recorded), "--out", str(page), "--figures", str(figures))
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert f"report: {page}" in done.stdout and "toy/compass" in text
    index = json.loads((recorded / "q/0/_video/index.json").read_text())
    # First, best and worst of three tasks, and each before, right after learning, later and at the end.
    whiches = [video["which"] for video in index["videos"]]
    assert [whiches.count(w) for w in ("first", "best", "worst")] == [3, 3, 3]
    assert [whiches.count(w) for w in ("before", "learned", "later", "end")] == [3, 3, 0, 2]
    # An episode that is the first and the best is there once.
    files = {video["file"] for video in index["videos"]}
    assert text.count('src="data:video/mp4;base64,') == len(files)
    assert "http://" not in re.sub(r"http://www\.w3\.org\S*", "", text) and "https://" not in text
    assert {p.suffix for p in figures.iterdir()} == {".pdf", ".svg", ".png", ".csv"}


def test_the_report_lies_in_the_run_unless_told_otherwise(recorded):
    done = perdure("report", str(recorded))
    assert done.returncode == 0 and (recorded / "_report.html").is_file()
    assert perdure("check", str(recorded)).returncode == 0


def test_videos_beside_the_index_alone(recorded, tmp_path):
    """An index that names a file elsewhere gets nothing from there."""
    import shutil

    run = tmp_path / "copy"
    shutil.copytree(recorded, run)
    index = run / "q/0/_video/index.json"
    found = json.loads(index.read_text())
    found["videos"][0]["file"] = "../../../_meta/spec.json"
    index.write_text(json.dumps(found))
    assert perdure("report", str(run)).returncode == 0
    files = {video["file"] for video in found["videos"][1:]}
    assert (run / "_report.html").read_text().count('src="data:video/mp4;base64,') == len(files)


def test_leaderboard(recorded, tmp_path):
    page = tmp_path / "board.html"
    done = perdure("leaderboard", str(recorded.parent), "--html", str(page))
    assert done.returncode == 0, done.stderr
    assert "summary.final" in done.stdout and "<table" in page.read_text()


def test_tensorboard(recorded, tmp_path):
    done = perdure(
        "export", str(recorded), "--format", "tensorboard", "--out", str(tmp_path / "tb")
    )
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "tb").rglob("*tfevents*"))


def test_view_serves_until_stopped(recorded):
    server = subprocess.Popen(
        [sys.executable, "-m", "perdure", "view", str(recorded)], stdout=subprocess.PIPE, text=True
    )
    try:
        url = server.stdout.readline().split()[0]
        with urllib.request.urlopen(url, timeout=60) as answer:
            assert answer.status == 200
    finally:
        server.send_signal(signal.SIGINT)
    assert server.wait(timeout=30) == 0
