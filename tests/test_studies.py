"""The pages under docs/results are filled from runs by studies/pages.py."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from perdure import registry
from perdure.run.spec import RunSpec
from perdure.specs import Spec
from show.report_runs import row, start_run, write_lifetime

ROOT = Path(__file__).parent.parent
STUDIES = sorted((ROOT / "studies").glob("*.toml"))


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """The program, with runs and pages of its own."""
    found = importlib.util.spec_from_file_location("pages", ROOT / "studies/pages.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


def turns(accuracies):
    """A lifetime of two tasks in turn; accuracies of both after each."""
    rows = []
    for block, (task, after) in enumerate(zip("ab", accuracies, strict=True)):
        rows.append(
            row(len(rows), 2 * block, f"toy/{task}", True, after[block], measure="accuracy")
        )
        for k, other in enumerate("ab"):
            rows.append(
                row(len(rows), 2 * block + 1, f"toy/{other}", False, after[k], measure="accuracy")
            )
    return rows


@pytest.fixture
def run(tmp_path):
    """Two agents; naive's accuracies are written out, two lifetimes of them."""
    root = start_run(tmp_path / "runs/tiny")
    lives = {
        ("naive", 0): [[0.8, 0.2], [0.4, 0.6]],
        ("naive", 1): [[1.0, 0.4], [0.2, 0.8]],
        ("ewc", 0): [[0.5, 0.1], [0.5, 0.3]],
    }
    for (agent, seed), accuracies in lives.items():
        write_lifetime(root / agent / str(seed), turns(accuracies), agent, seed)
    return root


def filled(pages, tmp_path, slot):
    page = tmp_path / "page.md"
    page.write_text(f"Before.\n\n<!-- {slot} -->\nold\n<!-- end -->\n\nAfter.\n")
    pages.fill(page)
    return page.read_text()


def test_the_papers_four_averages_with_the_published_ones_beside(pages, run, tmp_path):
    text = filled(pages, tmp_path, "openloris tiny illumination")
    # Of naive's matrices: accuracy (.8 + .4 + .6) / 3 and (1 + .2 + .8) / 3; below and above the
    # diagonal .4 and .2, .2 and .4; over all (.8 + .2 + .4 + .6) / 4 and (1 + .4 + .2 + .8) / 4.
    line = next(line for line in text.splitlines() if line.startswith("| naive"))
    cells = [c.strip() for c in line.strip("|").split("|")]
    means = [float(c.split(" ")[0]) for c in cells[1:5]]
    assert means == pytest.approx([0.63, 0.30, 0.30, 0.55], abs=0.006)
    assert [re.search(r"\((.+)\)", c).group(1) for c in cells[1:5]] == [
        "0.62", "0.53", "0.36", "0.51",
    ]  # fmt: skip
    assert cells[5] == "2"
    assert "| ewc | 0.43 (0.58) | 0.50 |" in text  # No BWT of it could be read off the figure.
    assert (tmp_path / "page-tiny.svg").read_text().lstrip().startswith("<?xml")
    assert text.startswith("Before.\n") and text.endswith("After.\n") and "old" not in text


def test_tables_of_metrics_and_tasks(pages, run, tmp_path):
    text = filled(pages, tmp_path, "table tiny openloris.accuracy gem.acc")
    assert "| agent | openloris.accuracy | gem.acc | lifetimes |" in text
    assert re.search(r"\| ewc \| 0\.43 \| 0\.40 \| 1 \|", text)
    text = filled(pages, tmp_path, "ends tiny accuracy")
    assert "| agent | a | b | mean |" in text
    assert "| ewc | 0.50 → 0.50 | 0.30 | 0.40 |" in text


def test_evaluations_of_a_single_task_by_steps(pages, tmp_path):
    root = start_run(tmp_path / "runs/one")
    values = [
        (False, 0.0),
        (True, 0.3),
        (True, 0.5),
        (False, 0.8),
        (False, 0.6),
        (True, 0.9),
        (False, 1.0),
    ]
    blocks = [0, 1, 1, 2, 2, 3, 4]
    rows = [
        row(k, block, "toy/a", learning, value)
        for k, (block, (learning, value)) in enumerate(zip(blocks, values, strict=True))
    ]
    write_lifetime(root / "sac/4", rows, "sac", 4)
    text = filled(pages, tmp_path, "rounds one success")
    assert "| lifetime | 0 steps | 20 steps | 30 steps |" in text
    assert "| sac/4 | 0.00 | 0.70 | 1.00 |" in text


def test_a_report_and_curves_beside_the_page(pages, run, tmp_path):
    text = filled(pages, tmp_path, "report tiny")
    assert "(tiny.html)" in text and "naive" in (tmp_path / "tiny.html").read_text()
    text = filled(pages, tmp_path, "curves tiny accuracy")
    assert "(page-tiny.svg)" in text and "<svg" in (tmp_path / "page-tiny.svg").read_text()


def test_filling_again_changes_nothing_and_a_missing_run_is_left(pages, run, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- table tiny gem.acc -->\n<!-- end -->\n<!-- table none gem.acc -->\nkept\n<!-- end -->\n"
    )
    pages.fill(page)
    once = page.read_text()
    pages.fill(page)
    assert page.read_text() == once and "kept" in once
    assert "no " in capsys.readouterr().out


def test_published_averages_add_up(pages):
    # Over-all is the mean of the whole matrix; the facts of each figure are read off to ± 0.01.
    for factor, found in pages.PUBLISHED.items():
        n = 12 if factor == "sequential" else 9
        lower = n * (n + 1) // 2
        for name in pages.NAMES.values():
            accuracy, fwt, overall = (found[k][name] for k in ("Accuracy", "FWT", "Overall"))
            if None not in (accuracy, fwt, overall):
                mean = (lower * accuracy + (n * n - lower) * fwt) / n**2
                assert overall == pytest.approx(mean, abs=0.006), (factor, name)


def test_pages_of_results_name_slots_that_exist(pages):
    for page in sorted((ROOT / "docs/results").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for kind, rest in pages.SLOT.findall(text):
            assert kind in pages.KINDS, f"{page.name}: {kind}"
            assert (ROOT / "studies" / f"{rest.split()[0]}.toml").exists(), f"{page.name}: {rest}"
        assert text.count("<!-- end -->") == len(pages.SLOT.findall(text)), page.name


@pytest.mark.parametrize("study", STUDIES, ids=lambda p: p.stem)
def test_studies_name_agents_that_exist_and_write_where_pages_look(study):
    spec = RunSpec.from_toml(study)
    assert spec.out == f"runs/{study.stem}"
    for text in spec.agents:
        agent = Spec.parse(text)
        known = {*registry.entries("agents"), *registry.entries("strategies")}
        assert set(agent.name.split("+")) <= known, text


def test_looks_at_what_a_run_left(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from perdure import experiment
    from suites.test_openloris import archives

    monkeypatch.setenv("PERDURE_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(ROOT / "studies")
    import openloris_looks

    root = archives(tmp_path / "frames")
    run = tmp_path / "run"
    agents = [
        "naive=classifier,preset=openloris-small",
        "dgr=dgr+classifier,preset=openloris-small",
    ]
    curriculum = f"openloris/single-factor,factor=illumination,root={root},batches=20"
    experiment(curriculum, agents, out=str(run), executor="serial")
    plan = openloris_looks.load_plan(run)
    monkeypatch.setattr(openloris_looks, "PICTURE", tmp_path / "samples.png")
    _, _, naive, generative = openloris_looks.norms(plan)
    assert generative.startswith("| dgr |")
    assert re.fullmatch(r"\| naive( \| [01]\.\d\d → [01]\.\d\d){3} \|", naive), naive
    _, _, dgr = openloris_looks.samples(plan)
    different, sure = re.search(r"(\d+) \| (\d\.\d\d)", dgr).groups()
    assert 1 <= int(different) <= 121 and 0 < float(sure) <= 1
    assert (tmp_path / "samples.png").stat().st_size > 100


def test_renewed_norms_bring_back_what_the_weights_know(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(ROOT / "studies")
    import openloris_looks

    class Learner:
        """Tells bright from dark, if its norm knows what is in between."""

        net = torch.nn.Sequential(
            torch.nn.BatchNorm2d(1), torch.nn.Flatten(), torch.nn.Linear(1, 2)
        )
        inputs = staticmethod(torch.tensor)

    with torch.no_grad():
        Learner.net[2].weight[:] = torch.tensor([[-1.0], [1.0]])
        Learner.net[2].bias.zero_()
    rows = [[[[3.0]]], [[[5.0]]]] * 4
    labels = [0, 1] * 4
    assert openloris_looks.accuracy(Learner, rows, labels) == 0.5
    openloris_looks.renewed(Learner, rows)
    assert openloris_looks.accuracy(Learner, rows, labels) == 1.0
    assert Learner.net[0].running_mean.item() == pytest.approx(4.0)
