"""Perdure from Python: what experiment takes, what it says, and what a run can be asked."""

import io
import itertools
import re
import warnings
from functools import partial

import numpy as np
import pytest

import perdure
from perdure.errors import (
    FailedLifetimes,
    MeasureError,
    PartialRun,
    RunFailed,
    SpecError,
    UnknownName,
)  # fmt: skip

WHERE = "toy/compass,steps=20,episodes=1"


class Always(perdure.Agent):
    """Always the same way."""

    def __init__(self, setup, way=1):
        super().__init__(setup)
        self.way = way

    def act(self, obs, ctx):
        return [self.way] * len(obs)


class Unlucky(Always):
    """Breaks down in every other lifetime, or in all."""

    made = itertools.count()

    def __init__(self, setup, every=2):
        super().__init__(setup)
        self.bad = next(self.made) % every == 0

    def act(self, obs, ctx):
        if self.bad:
            raise RuntimeError("\x1b[31mno luck")
        return super().act(obs, ctx)


def compass(steps: int = 20, seed: int = 0):
    goals = [perdure.Task("toy", f"goal-{way}") for way in ("ne", "sw")]
    first = goals if seed % 2 else goals[::-1]
    return perdure.curricula.tasks_in_turn("mine", first, amount=steps, unit="steps", episodes=1)


def test_experiment_takes_objects_of_all_kinds(tmp_path):
    made = partial(Always, way=np.int64(2))
    run = perdure.experiment(
        compass,
        {
            "class": partial(Always, way=1),
            "partial": made,
            "function": lambda s: Always(s, 3),
            "name": "random",
        },
        lifetimes=2,
        out=str(tmp_path / "a"),
    )
    assert {i.status for i in run.lifetimes()} == {"done"} and len(run.lifetimes()) == 8
    assert run.spec["agents"]["class"].endswith("test_api.Always,way=1")
    assert run.spec["agents"]["partial"].endswith("test_api.Always")
    assert repr(run) == f"Run('{tmp_path}/a': compass, class, function, name, partial, 8 lifetimes)"
    orders = {str(i.seed): i.description["fingerprint"] for i in run.lifetimes()}
    assert len(set(orders.values())) == 2  # The function got a seed of its own for each lifetime.
    one = perdure.experiment(compass(), [Always, "random"], out=str(tmp_path / "b"))
    assert [i.agent for i in one.lifetimes()] == ["Always", "random"]
    assert one.spec["curriculum"] == "mine"
    again = perdure.experiment(compass(), Always, out=str(tmp_path / "b")).rows()
    assert again.equals(one.rows())
    with pytest.raises(SpecError, match="holds another run"):
        perdure.experiment(compass(30), Always, out=str(tmp_path / "b"))


def test_what_cannot_be_run_is_refused_with_words(tmp_path):
    keys = {"out": str(tmp_path / "o")}
    for words, call in {
        "unknown keyword of experiment 'lifetime'; did you mean 'lifetimes'": lambda: (
            perdure.experiment(WHERE, "random", lifetime=2)
        ),
        "Always 'wya'; did you mean 'way'": lambda: perdure.experiment(
            WHERE, partial(Always, wya=2), **keys
        ),
        "each lifetime needs a new one": lambda: perdure.experiment(
            WHERE, object.__new__(Always), **keys
        ),
        "expected a name, a class or a function": lambda: perdure.experiment(WHERE, [3], **keys),
        "expected a name, a Curriculum or a function": lambda: perdure.experiment(
            3, "random", **keys
        ),
        "two agents are called 'Always'": lambda: perdure.experiment(
            WHERE, [Always, partial(Always, way=2)], **keys
        ),
        "given as Python objects cannot be sent to other processes": lambda: perdure.experiment(
            compass(), "random", executor="processes", **keys
        ),
        "'toy/compas'; did you mean 'toy/compass'": lambda: perdure.experiment(
            "toy/compas", **keys
        ),
    }.items():
        with pytest.raises((SpecError, UnknownName)) as caught:
            call()
        assert words in str(caught.value)


def test_failures_are_not_silent(tmp_path):
    with pytest.warns(FailedLifetimes, match=r"lifetimes in .* failed \(traceback: ") as caught:
        run = perdure.experiment(WHERE, Unlucky, lifetimes=4, out=str(tmp_path / "some"))
    text = str(caught[0].message)
    assert "no luck" in text and "\x1b" not in text and caught[0].filename == __file__
    assert re.search(r"\d of 4 lifetimes done\)$", repr(run))
    with pytest.raises(RunFailed, match="2 of 2 lifetimes in"):
        perdure.experiment(WHERE, partial(Unlucky, every=1), lifetimes=2, out=str(tmp_path / "all"))
    with pytest.warns(PartialRun, match="the numbers are without these lifetimes"):
        run.measure("gem.acc")
    with pytest.raises(MeasureError, match="nothing could be measured"):
        perdure.Run(tmp_path / "all").measure("gem.acc")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.measure("gem.acc", partial=True)


def test_a_run_is_measured_compared_and_shown(tmp_path):
    run = perdure.experiment(WHERE, ["q", "random"], lifetimes=2, out=str(tmp_path / "one"))
    found = run.measure("gem.acc", "l2m")
    assert {*found.values()["gem.acc"]} == {"q", "random"} and "q: mean of 2" in repr(found)
    assert found.to_json()["mixed_code"] == []
    assert "gem.bwt" in run.measure().values()
    with pytest.raises(UnknownName, match="keyword of report 'titel'; did you mean 'title'"):
        run.report(titel="x")
    with pytest.raises(
        UnknownName, match="keyword of tasks_in_turn 'amout'; did you mean 'amount'"
    ):
        perdure.curricula.tasks_in_turn("x", [], amout=3)
    assert run.measure(metrics=["gem.acc"]).values() == run.measure("gem.acc").values()
    other = perdure.experiment(WHERE, {"best": "q,lr=0.9"}, lifetimes=2, out=str(tmp_path / "two"))
    compared = run.compare(other, metrics="gem.acc", baseline="two/best")
    assert {c["b"] for c in compared.to_json()["comparisons"]} == {"two/best"}
    assert "Holm-corrected" in repr(compared) and "one/q" in repr(compared)
    figures = run.figures(tmp_path / "f", formats=["svg"])
    assert tmp_path / "f/curriculum.svg" in figures and figures._repr_html_().count("<svg") > 2
    assert "figures in" in repr(figures)
    assert run.report().read_text().startswith("<!doctype html>")
    assert run.report(tmp_path / "r.html", title="Mine").read_text().count("Mine")
    for call in (
        lambda: run.measure("gem.ac"), lambda: run.measure(perf_mesure="return"),
        lambda: run.compare(base_line="q"), lambda: run.measure(preset="papr"),
    ):  # fmt: skip
        with pytest.raises(UnknownName, match="did you mean"):
            call()


def test_progress_shows_where_somebody_looks(tmp_path, monkeypatch, capsys):
    class Screen(io.StringIO):
        def isatty(self):
            return True

    screen = Screen()
    monkeypatch.setattr("perdure.show.live.REFRESH", 0.01)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr("sys.stderr", screen)
    perdure.experiment(WHERE, "q", out=str(tmp_path / "a"))
    assert "perdure" in screen.getvalue() and "lifetime" in screen.getvalue()
    monkeypatch.setattr("sys.stderr", quiet := io.StringIO())
    perdure.experiment(WHERE, "q", out=str(tmp_path / "b"))
    perdure.experiment(WHERE, "q", out=str(tmp_path / "b"), progress=False)
    assert not quiet.getvalue()
