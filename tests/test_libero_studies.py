"""LIBERO's five studies: their curricula and agents can be made at both scales, and their tables add up."""

import sys
from math import sqrt
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mujoco")

from kit import load_program
from perdure import registry
from perdure.curricula.named import curriculum_of
from perdure.specs import Spec, with_preset
from perdure.suites.libero.tasks import settings

ROOT = Path(__file__).parent.parent


@pytest.fixture
def studies():
    return load_program("studies/libero.py")


@pytest.mark.parametrize("scale", ["small", "paper"])
@pytest.mark.parametrize("study", ["t1", "t2", "t3", "t4", "t5"])
def test_every_part_is_a_curriculum_with_agents_that_there_are(studies, study, scale):
    parts = studies.STUDIES[study]("demos", scale == "small")
    assert (
        len({p.name for p in parts})
        == len(parts)
        == {"t1": 4, "t2": 1 if scale == "small" else 4, "t4": 5, "t5": 2}.get(
            study, 2 if scale == "small" else 4
        )
    )
    parts += [studies.with_choices(parts[0], "official", "task-id")]
    for part in parts:
        made = curriculum_of(Spec.parse(part.curriculum))
        learned = {e.task.name for b in made.blocks for e in b.exposures if b.kind == "learn"}
        few = 2 if study == "t2" else studies.FEW
        assert len(learned) == (few if scale == "small" else 10)
        chosen = settings(made.tasks[0])
        assert bool(chosen.cameras) == (scale == "paper" or study == "t2")
        if part.name == "pretrained":
            assert len(made.before[0].exposures) == (5 if scale == "small" else 90)
        for agent in part.agents:
            spec = Spec.parse(agent)
            strategy, learner = spec.parts
            kept, base = registry.load("strategies", strategy), registry.load("agents", learner)
            params = with_preset(agent, spec.params, base, kept)
            assert params.get("policy", "resnet_t") != "state_mlp" or scale == "small"
    if study == "t3":
        assert [a.partition("=")[0] for a in parts[0].agents] == [
            "seql",
            "er",
            "ewc",
            "packnet",
            "mtl",
        ]


def test_orders_are_different_and_published(studies):
    firsts = [studies.curriculum("d", "object", True, k) for k in range(5)]
    assert (
        len(set(firsts)) == 5
        and "tasks=[object-4,object-3,object-1,object-2,object-0]" in firsts[1]
    )


def test_parts_that_there_are_not_are_refused(studies, monkeypatch, capsys):
    given = ["t3", "--demos", "d", "--plan", "--only", "object"]
    monkeypatch.setattr(studies.signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["libero.py", *given])
    studies.main()
    assert capsys.readouterr().out.count("perdure run") == 1
    monkeypatch.setattr(sys, "argv", ["libero.py", *given, "nix"])
    with pytest.raises(SystemExit, match="2"):
        studies.main()
    assert "t3 has no part nix, expected object, spatial" in capsys.readouterr().err


def test_tables_by_hand(studies):
    # Of 0.2, 0.4 and 0.9: mean 0.5, deviation sqrt(0.13), error by the root of three; t(2) is 4.303.
    error = sqrt(0.13) / sqrt(3)
    assert error == pytest.approx(0.2082, abs=1e-4)
    low, high = 0.5 - 4.303 * error, 0.5 + 4.303 * error
    values = [0.2, 0.4, 0.9]
    assert studies.cell_with_error(values, None) == f"0.50 ± 0.21 [{low:.2f}, {high:.2f}]"
    # What is bounded stays there, by Wilson's with 0.25 / error² = 5.77 observations and t² = 18.51.
    assert studies.cell_with_error(values, (0.0, 1.0)) == "0.50 ± 0.21 [0.06, 0.94]"
    assert studies.cell_with_error([0.25], None) == "0.25"
    assert studies.cell_with_error([], None) == "–"
    one = {m: {"er": [0.25, 0.75]} for m in studies.METRICS}
    # FWT and AUC lie between 0 and 1, NBT between -1 and 1.
    wide, signed = "0.50 ± 0.25 [0.01, 0.99]", "0.50 ± 0.25 [-0.92, 0.99]"
    assert f"| er | {wide} | {signed} | {wide} | 2 |" in studies.table("object", one)
    assert studies.table("object", one).count("\n") == 2
    other = {m: {"er": [0.75, 1.0]} for m in studies.METRICS}
    # Means of 0.5 and 0.875 over the orders: a deviation of 0.375 / sqrt(2).
    assert "| er | 0.265 | 0.265 | 0.265 |" in studies.spread({"a": one, "b": other})
