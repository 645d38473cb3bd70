"""The docs run (every command and every snippet of the tutorial and of the pages on trained agents and on extending, in
order, in one folder) and hang
together (`make docs` builds them, and is as strict about references in docstrings)."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import perdure

ROOT = Path(__file__).parents[1]
INDEX = ROOT / "docs/index.rst"
FENCE = re.compile(r"```(console|python|toml)\n(.*?)```", re.S)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "least"),
    [
        ("tutorial", 9),
        ("tutorial-rl", 5),
        ("tutorial-vision", 4),
        ("tutorial-imitation", 3),
        ("extending", 9),
        ("spaces", 5),
        ("trained", 9),
        ("policies", 5),
        ("scale", 3),
        ("generation", 1),
        ("libero", 2),
    ],
)
def test_the_page_runs(page, least, tmp_path):
    """Files are written, packages installed, commands and snippets run, in the order of the page."""
    blocks = FENCE.findall((ROOT / f"docs/{page}.md").read_text())
    assert len(blocks) >= least
    for kind, text in blocks:
        if kind == "console":
            for line in text.splitlines():
                assert line.startswith("$ perdure ")
                run([sys.executable, "-m", "perdure", *line.split()[2:]], tmp_path)
        elif kind == "toml":
            install(tomllib.loads(text)["project"], tmp_path)
        elif text.startswith("# "):
            (tmp_path / text.split()[1]).write_text(text)
        else:
            run([sys.executable, "-c", text], tmp_path)


def install(project, folder):
    """What pip leaves of an editable install: the distribution's entry points."""
    info = folder / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    about = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(about)
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def run(command, folder):
    paths = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=250,
        env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def test_the_readmes_agent_passes_the_check(tmp_path):
    text = (ROOT / "README.md").read_text()
    snippet = next(t for k, t in FENCE.findall(text) if k == "python")
    (tmp_path / "mine.py").write_text(snippet)
    run([sys.executable, "-m", "perdure", "check", "mine.py:Mine"], tmp_path)
    assert len(text.splitlines()) < 60
    for command in ("make demo", "make test"):
        assert command in text


def navigation():
    """The pages that the toctrees of docs/index.rst name, as paths without suffix."""
    trees = re.findall(r"\.\. toctree::\n((?:   :.*\n)*)\n((?:   \S.*\n)+)", INDEX.read_text())
    return [(ROOT / "docs" / page).resolve() for _, pages in trees for page in pages.split()]


def test_every_page_is_in_the_navigation():
    pages = [p for s in (".md", ".rst", ".ipynb") for p in (ROOT / "docs").rglob(f"*{s}")]
    pages += (ROOT / "benchmarks/results").glob("*.md")
    pages += [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
    # The index is the page above all others, and it includes the README.
    written = {p.with_suffix("") for p in pages} - {ROOT / "docs/index", ROOT / "docs/README"}
    listed = navigation()
    assert len(listed) == len(set(listed))
    assert set(listed) == written


def anchors(page):
    """What the headings of a page are linked by."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def test_internal_links_resolve():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    pages += (ROOT / "benchmarks/results").glob("*.md")
    seen, broken = 0, []
    for page in pages:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if target.startswith(("http:", "https:", "mailto:")):
                continue
            seen += 1
            path, _, anchor = target.partition("#")
            found = page.parent / path if path else page
            if not found.is_file() or (anchor and anchor not in anchors(found)):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert seen > 40
    assert not broken, "\n".join(broken)


def test_the_api_reference_covers_what_is_public():
    pages = "".join(p.read_text() for p in (ROOT / "docs/api").glob("*.rst"))
    covered = set(re.findall(r"\.\. automodule:: (\S+)", pages))
    homes = {getattr(getattr(perdure, name), "__module__", "perdure") for name in perdure.__all__}
    assert homes <= covered
    for name in ("curricula", "testing", "errors", "seeds", "run.executors", "measure.metric"):
        assert f"perdure.{name}" in covered


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == perdure.__version__
    assert f"\nversion: {perdure.__version__}\n" in (ROOT / "CITATION.cff").read_text()
