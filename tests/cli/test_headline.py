"""run, measure, compare, leaderboard and report lead with the same: final performance, forgetting and,
where rows tell it, success."""

import json
import re

import pytest
from click.testing import CliRunner

import perdure
from perdure.cli.main import main
from perdure.measure.stats import share_interval
from perdure.show.report import load
from perdure.show.report.headline import chosen

LEADS = ["summary.final", "summary.forgetting"]
EVALUATED = """
from perdure import Curriculum, Exposure, Task, evaluate

def only(episodes: int = 20):
    tasks = [Task("toy", "goal-ne"), Task("toy", "goal-sw")]
    return Curriculum("only", [evaluate(*(Exposure(t, episodes) for t in tasks))])
"""


def told(*args):
    done = CliRunner().invoke(main, list(map(str, args)))
    assert done.exit_code == 0, done.output
    return done.stdout


def columns(text, first):
    """The heads of the first table whose first column is called so."""
    line = next(li for li in text.splitlines() if li.startswith(first))
    return re.split(r"\s{2,}", re.sub(r" [↑↓]", "", line))[1:]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("headline")
    (folder / "only.py").write_text(EVALUATED)
    keys = {"lifetimes": 2, "executor": "serial"}
    perdure.experiment(
        "toy/compass,steps=80,episodes=2", ["q", "random"], out=str(folder / "kept"), **keys
    )
    perdure.experiment(
        "vision/split-digits,tasks=2,epochs=1", ["random"], out=str(folder / "seen"), **keys
    )
    perdure.experiment(
        f"{folder}/only.py:only", ["random"], out=str(folder / "only"), executor="serial"
    )
    return folder


def shown_by(folder):
    """What each verb leads with."""
    from perdure.registry import metrics_named

    study = load([folder], metrics_named(()))
    cells = {m: s for m in LEADS for s in study.scores(m).values() if s.value == s.value}
    return {
        "measure": columns(told("measure", folder), "lifetime"),
        "compare": columns(told("compare", folder), "agent"),
        "leaderboard": [c for c in columns(told("leaderboard", folder), "place") if "." in c],
        "report": [m.name for m in chosen(study) if m.name not in LEADS or m.name in cells],
    }


def test_all_lead_with_the_same(runs):
    for verb, names in shown_by(runs / "kept").items():
        assert names[:2] == LEADS, verb
        assert "summary.success" not in names, f"{verb}: it says the same as the final performance"
        assert not [n for n in names if n.startswith(("cw.", "metaworld.", "libero."))], verb
    ran = told("run", "toy/compass,steps=80,episodes=2", "-a", "q", "-a", "random", "-n", "2",
               "-o", runs / "kept", "--executor", "serial")  # fmt: skip
    heads = [line for line in ran.splitlines() if line.startswith("agent") and "forgetting" in line]
    assert re.search(r"final performance ↑ +forgetting ↓ +before learning", heads[0])
    assert re.search(r"^q (scored|never learned)", ran, re.M) and "next: perdure report" in ran


def test_success_is_left_out_where_there_is_none(runs):
    for verb, names in shown_by(runs / "seen").items():
        # Chance learned nothing, so that it can forget nothing.
        assert names[0] == LEADS[0] and not {"summary.success", LEADS[1]} & {*names}, verb
    assert "success" not in told("measure", runs / "seen")


def test_what_only_was_evaluated_has_its_interval_over_episodes(runs):
    folder = runs / "only"
    for verb, names in shown_by(folder).items():
        assert names[0] == "summary.final" and "summary.success" not in names, verb
    for verb in ("measure", "compare", "leaderboard"):
        (line,) = (
            li for li in told(verb, folder).splitlines() if "random" in li and "episodes" in li
        )
        assert line.count("of 40 episodes") == 1 and line.count("[") == 1, (verb, line)
    told("measure", folder, "--json", runs / "m.json")
    score = json.loads((runs / "m.json").read_text())["lifetimes"]["random/0"]["summary.success"]
    low, high = score["interval"]
    assert low < score["value"] < high and score["episodes"] == 40
    assert "40 episodes" in (told("report", folder) and (folder / "_report.html").read_text())


def test_an_interval_over_episodes_is_wilsons():
    """z² = 3.8415. Half of 100: half-width √(z²/400 + (z²/200)²) / (1 + z²/100) = 0.09617. All of 3: from
    3 / (3 + z²) on."""
    one = share_interval([(0.5, 100)], 1)
    assert (one.low, one.high) == pytest.approx((0.40383, 0.59617), abs=1e-5)
    few = share_interval([(1.0, 3)], 1)
    assert (few.low, few.high) == pytest.approx((0.43850, 1.0), abs=1e-5)
    assert share_interval([(0.5, 50), (0.5, 50)], 1).low == pytest.approx(one.low)
    uneven = share_interval([(0.5, 95), (0.5, 5)], 1)
    assert uneven.low < one.low, "few episodes of one task make the mean over tasks less certain"
    none = share_interval([(0.0, 50)], 1)
    assert none.low == 0 < none.high < 0.1
