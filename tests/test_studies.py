"""The pages under docs/results are filled from runs by studies/pages.py."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kit import load_program
from perdure import registry
from perdure.errors import StoreError
from perdure.run.spec import RunSpec
from perdure.specs import Spec
from perdure.store.layout import runs_below
from perdure.store.run import Run
from show.report_runs import row, start_run, write_lifetime

ROOT = Path(__file__).parent.parent
STUDIES = sorted((ROOT / "studies").glob("*.toml"))
PAGES = sorted((ROOT / "docs/results").glob("*.md"))


@pytest.fixture
def program(monkeypatch):
    """The program as it is."""
    monkeypatch.syspath_prepend(ROOT / "studies")
    return importlib.import_module("pages")


@pytest.fixture
def pages(program, tmp_path, monkeypatch):
    """The program, with runs and pages of its own."""
    monkeypatch.setattr(program, "ROOT", tmp_path)
    monkeypatch.setattr(program, "PAGES", tmp_path)
    monkeypatch.setattr(program, "PACKED", tmp_path / "runs")
    monkeypatch.setattr(program, "REPORTS", tmp_path / "reports")
    return program


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
        ("ewc-tuned", 0): [[0.9, 0.1], [0.7, 0.8]],
        ("agem", 0): [[0.6, 0.1], [0.4, 0.2]],
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
    # A tuned one stands below it, and has nothing published to be compared with, nor a spoke.
    assert re.findall(r"^\| (\S+) \|", text, re.M) == [
        "algorithm",
        "naive",
        "ewc",
        "ewc-tuned",
        "agem",
    ]
    assert "| ewc-tuned | 0.80 | 0.70 | 0.10 | 0.62 | 1 |" in text
    chart = (tmp_path / "page-tiny.svg").read_text()
    assert chart.lstrip().startswith("<?xml")
    assert "<!-- ewc -->" in chart and "<!-- ewc-tuned -->" not in chart
    assert text.startswith("Before.\n") and text.endswith("After.\n") and "old" not in text


def test_tables_of_metrics_and_tasks(pages, run, tmp_path):
    text = filled(pages, tmp_path, "table tiny openloris.accuracy gem.acc")
    assert "| agent | openloris.accuracy | gem.acc | lifetimes |" in text
    assert re.search(r"\| ewc \| 0\.43 \| 0\.40 \| 1 \|", text)
    # Of 0.4 and 0.2 (t is 12.7), an interval that stays between 0 and 1.
    text = filled(pages, tmp_path, "errors tiny openloris.bwt")
    assert "| naive | 0.30 ± 0.10 [0.01, 0.94] | 2 |" in text
    assert "| ewc | 0.50 | 1 |" in text
    # A lifetime that learned nothing has nothing to forget, so its agent's mean is of one lifetime fewer.
    write_lifetime(run / "naive/2", turns([[0.0, 0.0], [0.0, 0.0]]), "naive", 2)
    text = filled(pages, tmp_path, "table tiny gem.acc summary.forgetting")
    assert re.search(
        r"\| naive \| [^(|]+ \| [^|]+ \(n = 2\) \| 3 \|\n\| ewc \| [^(|]+\| [^(|]+\|", text
    )
    text = filled(pages, tmp_path, "ends tiny accuracy")
    assert "| agent | a | b | mean |" in text
    assert "| ewc | 0.50 → 0.50 | 0.30 | 0.40 |" in text


def test_stages_of_an_adaptation(pages, tmp_path):
    root = start_run(tmp_path / "runs/meta")
    for seed, values in enumerate([(0.0, 0.2, 0.6, 1.0), (0.2, 0.4, 0.6, 0.8)]):
        before, first, second, after = values
        rows = [
            row(0, 0, "toy/a", True, 0.5),
            row(1, 1, "toy/b", False, before),
            row(2, 2, "toy/b", True, first, kind="adapt"),
            row(3, 2, "toy/b", True, second, kind="adapt"),
            row(4, 2, "toy/b", False, after, kind="adapt"),
        ]
        write_lifetime(root / "mine" / str(seed), rows, "mine", seed)
    text = filled(pages, tmp_path, "stages meta metaworld.adaptation")
    assert "| agent | before | 1 | 2 | after |" in text
    assert "| mine | 0.10 | 0.30 | 0.60 | 0.90 |" in text


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


def test_where_the_report_is_and_curves_beside_the_page(pages, run, tmp_path):
    text = filled(pages, tmp_path, "report tiny")
    assert "`build/results/tiny.html`" in text
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
    assert f"no {tmp_path / 'runs/none'}; left as they are: table" in capsys.readouterr().out


def test_the_readme_shows_who_kept_what_once_the_run_is_there(pages, run, tmp_path, capsys):
    front = tmp_path / "README.md"
    front.write_text(
        "<!-- kept tiny -->\nold\n<!-- end -->\n<!-- kept none -->\nas it is\n<!-- end -->\n"
    )
    pages.fill(front)
    text = front.read_text()
    # Of two tasks in turn, ewc-tuned had learned to (0.9 + 0.8) / 2, and kept (0.7 + 0.8) / 2.
    said = "ewc-tuned scored 0.85 right after learning each of two tasks and 0.75 at the end"
    assert said in text and "as it is" in text
    assert "](docs/images/tiny-kept.svg)" in text
    assert (tmp_path / "docs/images/tiny-kept.svg").read_bytes().startswith(b"<?xml")


def test_a_finished_run_is_taken_over_and_makes_its_page(pages, tmp_path, monkeypatch, capsys):
    from perdure import experiment

    out = tmp_path / "fresh/tiny"
    experiment("toy/compass,steps=60,episodes=2", "q", lifetimes=2, out=str(out), executor="serial")
    monkeypatch.setattr(pages, "PACKED", tmp_path / "packed")
    page = tmp_path / "page.md"
    page.write_text("<!-- cost tiny -->\n<!-- end -->\n<!-- table tiny gem.acc -->\n<!-- end -->\n")
    monkeypatch.setattr(pages, "ROOT", tmp_path / "nowhere")
    monkeypatch.setattr(sys, "argv", ["pages.py", "--pack", "tiny"])
    with pytest.raises(StoreError, match="not a Perdure run"):
        pages.main()
    out.parent.rename(tmp_path / "runs")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    for _ in range(2):  # The second takes the place of the first.
        pages.main()
        assert re.search(r"tiny: \d+ kB", capsys.readouterr().out)
    assert [p.name for p in (tmp_path / "packed").iterdir()] == ["tiny"]
    text = page.read_text()
    assert "studies/tiny.toml`: 1 agent × 2 lifetimes (seeds 0 to 1); " in text
    assert re.search(r"\| q \| -?\d\.\d\d ± \d+\.\d\d \| 2 \|", text)
    assert "toy/compass" in (tmp_path / "reports/tiny.html").read_text()


def test_a_figure_is_the_same_bytes_in_every_process(run, tmp_path):
    (tmp_path / "a.md").write_text("<!-- curves tiny accuracy -->\n<!-- end -->\n")
    (tmp_path / "b.md").write_text("<!-- openloris tiny clutter -->\n<!-- end -->\n")
    code = (
        "import hashlib, pathlib, pages; pages.PACKED = pathlib.Path('runs')\n"
        "for name in ('a.md', 'b.md'):\n"
        "    made = pages.made(pathlib.Path(name))\n"
        "    [figure] = made.figures.values()\n"
        "    print(made.text, hashlib.sha256(figure).hexdigest())\n"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONHASHSEED": seed,
                "TZ": zone,
                "PYTHONPATH": os.pathsep.join([str(ROOT / "studies"), str(ROOT / "src")]),
            },
        ).stdout
        for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    ]
    assert said[0] == said[1]
    assert len(re.findall(r"[0-9a-f]{64}", said[0])) == 2


def numbers_and_rest(svg):
    """What a figure shows, without the names that matplotlib makes up for its parts."""
    text = re.sub(r"\b[A-Za-z][0-9a-f]{10}\b", "id", svg.decode())
    number = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
    return [float(n) for n in number.findall(text)], number.sub("0", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_pages_are_what_their_runs_make_of_them(program, page):
    """`make results` changes nothing. Figures may differ in digits that nobody sees, between machines."""
    made = program.made(page)
    assert made.text == page.read_text(encoding="utf-8"), "run make results"
    for name, data in made.figures.items():
        numbers, rest = numbers_and_rest(data)
        there, their_rest = numbers_and_rest((page.parent / name).read_bytes())
        assert rest == their_rest, f"{name}: run make results"
        assert numbers == pytest.approx(there, abs=0.01), f"{name}: run make results"


LIBERO = re.compile(r"libero-(t\d)-(.+)")
"""A part of one of LIBERO's studies."""


def planned(name, spec):
    """Curriculum, agents and lifetimes of a study, or of a part of LIBERO's with demonstrations and lifetimes as the
    run has them."""
    curriculum = spec["curriculum"]
    part = LIBERO.fullmatch(name)
    if part is None:
        study = RunSpec.from_toml(ROOT / "studies" / f"{name}.toml")
        return study.curriculum, study.agents, study.lifetimes
    demos = Spec.parse(curriculum).params["demos"]
    parts = load_program("studies/libero.py").STUDIES[part[1]](demos, True)
    (found,) = [p for p in parts if p.name == part[2]]
    return found.curriculum, found.agents, spec["lifetimes"]


def test_packed_runs_are_whole_small_and_those_of_their_studies(program):
    found = list(runs_below(program.PACKED))
    assert found
    for path in found:
        assert Run(path).verify() == []
        own = Run(path).spec
        curriculum, agents, lifetimes = planned(path.name, own)
        assert own["curriculum"] == curriculum
        assert set(Run(path).spec["agents"]) == {Spec.parse(a).short for a in agents}
        lives = [i for i in Run(path).lifetimes() if not i.expert]
        assert len(lives) == len(agents) * lifetimes
        assert sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) < 2_500_000, path


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
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for kind, rest in pages.SLOT.findall(text):
            assert kind in pages.KINDS, f"{page.name}: {kind}"
            name = rest.split()[0]
            there = (ROOT / "studies" / f"{name}.toml").exists()
            assert there or LIBERO.fullmatch(name), f"{page.name}: {rest}"
        assert text.count("<!-- end -->") == len(pages.SLOT.findall(text)), page.name


@pytest.mark.parametrize("study", STUDIES, ids=lambda p: p.stem)
def test_studies_name_agents_that_exist_and_write_where_pages_look(study):
    spec = RunSpec.from_toml(study)
    assert spec.out == f"runs/{study.stem}"
    for text in spec.agents:
        agent = Spec.parse(text)
        known = {*registry.entries("agents"), *registry.entries("strategies")}
        assert set(agent.name.split("+")) <= known, text


@pytest.mark.parametrize("study", STUDIES, ids=lambda p: p.stem)
def test_studies_say_how_they_are_run_and_what_they_cost(study):
    text = study.read_text()
    head = " ".join(line.removeprefix("# ") for line in text.splitlines() if line.startswith("#"))
    assert f"perdure run studies/{study.name}" in head
    assert re.search(r"Cost: .*(CPU|core)", head)
    spec = RunSpec.from_toml(study)
    last = spec.seed + spec.lifetimes - 1
    assert (f"Seeds {spec.seed} to {last}" if last > spec.seed else f"Seed {last}") in head
    page = re.search(r"Results: (docs/results/\S+\.md)\.", head)
    if page is None:
        assert "On no page yet." in head
        assert not any(f"<!-- table {study.stem} " in p.read_text() for p in PAGES)
    else:
        assert f"<!-- cost {study.stem} -->" in (ROOT / page[1]).read_text()


def test_looks_at_what_a_run_left(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from perdure import experiment

    monkeypatch.syspath_prepend(ROOT / "tests/suites")
    from test_openloris import archives

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


def test_curves_of_what_was_not_measured_while_learning_are_refused(pages, tmp_path):
    root = start_run(tmp_path / "runs/data")
    rows = [r._replace(accuracy=None) if r.learning else r for r in turns([[0.8, 0.2], [0.4, 0.6]])]
    write_lifetime(root / "naive/0", rows, "naive", 0)
    with pytest.raises(SystemExit, match="no accuracy while data learned"):
        filled(pages, tmp_path, "curves data accuracy")
