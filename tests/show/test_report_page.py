"""The page as text: complete, escaped, and closed to the network."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
import report_runs as made
from markupsafe import Markup

from perdure import registry
from perdure.errors import MeasureError
from perdure.show.report import PageSection, load, render, write_report
from perdure.show.report.page import SCRIPTS, TEMPLATES


class Tags(HTMLParser):
    """Every tag with its attributes, and the text of scripts."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found, self.scripts, self.text, self._in = [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self._in = tag
        if tag == "script":
            self.scripts.append([dict(attrs), ""])

    def handle_endtag(self, tag):
        self._in = None

    def handle_data(self, data):
        if self._in == "script":
            self.scripts[-1][1] += data
        elif self._in != "style":
            self.text.append(data)


def metrics():
    return list(registry.metrics().values())


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    run = made.make_run(
        tmp_path_factory.mktemp("runs") / "run\u202e<i>", made.HOSTILE, seeds=(0, 1), experts=True
    )
    return render(load([run], metrics()), title="</title><script>alert(1)</script>")


def test_hostile_names_stay_text(hostile):
    tags = Tags(hostile)
    kinds = {tag for tag, _ in tags.found}
    assert not kinds & {"img", "iframe", "object", "link", "base", "form"}
    assert len(tags.scripts) == 3
    for _, attrs in tags.found:
        assert not any(name.startswith("on") for name in attrs)
        assert not any("javascript:" in (value or "") for value in attrs.values())
    assert {v for _, a in tags.found for k, v in a.items() if k in ("href", "src")} <= {
        f"#{part}"
        for part in (
            "kept",
            "results",
            "curves",
            "experts",
            "matrix",
            "spread",
            "episodes",
            "method",
        )
    }
    # What is neither seen nor harmless is spelt out.
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u2028-\u202e\u2066-\u2069]", hostile)
    shown = "".join(tags.text)
    assert "[U+202E]gnitirw tfel ot thgir" in shown and "[U+001B][31mred" in shown
    assert "<script>window.hacked=1</script>" in shown and "{{ 7 * 7 }}" in shown


def test_the_data_is_json_with_every_name(hostile):
    (_, data), (_, cells), (attrs, script) = Tags(hostile).scripts
    assert attrs == {} and script
    names = [t["name"] for t in json.loads(data)["tasks"]]
    assert names[0] == made.HOSTILE[0] and names[4] == made.HOSTILE[4]
    assert json.loads(cells)["metrics"][0]["metric"] == "summary.final"
    assert not set("<>") & set(data)


def test_the_policy_allows_this_script_alone(hostile):
    tags = Tags(hostile)
    policy = next(a["content"] for t, a in tags.found if a.get("http-equiv"))
    digest = hashlib.sha256(tags.scripts[2][1].encode()).digest()
    assert f"script-src 'sha256-{base64.b64encode(digest).decode()}';" in policy
    assert policy.startswith("default-src 'none'") and "connect-src" not in policy


def test_every_number_has_its_n_and_every_dash_its_reason(tmp_path):
    run = made.make_run(tmp_path / "run", seeds=(0, 1, 2))
    tags = Tags(render(load([run], metrics())))
    dashes = [a for t, a in tags.found if a.get("class") == "undefined"]
    assert dashes and all(a["title"] for a in dashes)
    assert any("no single-task expert" in a["title"] for a in dashes)
    text = "".join(tags.text)
    assert "n=3" in text and "Holm" in text and "preset paper" in text
    assert "undefined: no single-task expert" in text  # For those who hear the page.
    assert not re.search(r"\d\.\d{8,}", text)


def test_failed_lifetimes_are_listed(tmp_path):
    run = made.make_run(tmp_path / "run", seeds=(0, 1))
    made.write_lifetime(run / "good/9", [], "good", 9, done=False, error="ValueError: <b>no</b>")
    text = render(load([run], metrics()))
    assert "ValueError: &lt;b&gt;no&lt;/b&gt;" in text and 'id="unmeasured"' in text
    assert 'id="unmeasured"' not in render(load([made.make_run(tmp_path / "well")], metrics()))


def test_a_run_that_has_not_begun(tmp_path):
    text = render(load([made.start_run(tmp_path / "run", "toy/x")], metrics()))
    assert "No lifetime has been measured yet" in text and "toy/x" in text


def test_metrics_of_ones_own_are_all_shown(tmp_path):
    run = made.make_run(tmp_path / "run", seeds=(0, 1))
    few = [m for m in metrics() if m.name in ("gem.acc", "gem.bwt")]
    text = render(load([run], few))
    assert "gem.acc" in text and "l2m.pm" not in Tags(text).text and "All 2 metrics" not in text


def test_the_same_runs_give_the_same_bytes(tmp_path):
    run = made.make_run(tmp_path / "run", seeds=(0, 1))
    first = write_report([run], tmp_path / "new/folder/a.html", metrics())
    second = write_report([run], tmp_path / "b.html", metrics())
    assert first.read_bytes() == second.read_bytes()
    assert len(first.read_bytes()) < 400_000


def test_other_curricula_need_a_word(tmp_path):
    a = made.make_run(tmp_path / "a", ("toy/a", "toy/b"), seeds=(0, 1))
    b = made.make_run(tmp_path / "b", ("toy/b", "toy/a"), seeds=(0, 1))
    out = tmp_path / "report.html"
    with pytest.raises(MeasureError, match="different curricula"):
        write_report([a, b], out, metrics())
    assert not out.exists()
    text = write_report([a, b], out, metrics(), anyway=True, title="Both").read_text()
    assert "These runs have different curricula" in text and "<bdi>Both</bdi>" in text
    assert 'id="orders"' in text


def test_sections_made_elsewhere(tmp_path):
    run = made.make_run(tmp_path / "run", seeds=(0, 1))
    part = PageSection("videos", "Vide<os", "First & best", Markup("<p id='mine'>here</p>"))
    out = write_report([run], tmp_path / "r.html", metrics(), more=lambda study: [part])
    text = out.read_text()
    assert "<p id='mine'>here</p>" in text and "Vide&lt;os" in text and "First &amp; best" in text


def test_blocks_in_great_number_are_drawn_together(tmp_path):
    run = made.start_run(tmp_path / "run")
    rows, block = [], 0
    for _ in range(500):
        rows.append(made.row(len(rows), block, "toy/a", True, 1.0))
        rows.append(made.row(len(rows), block + 1, "toy/a", False, 1.0))
        block += 2
    made.write_lifetime(run / "q/0", rows, "q", 0)
    tags = Tags(render(load([run], metrics())))
    blocks = [a for t, a in tags.found if "block " in a.get("class", "")]
    assert 200 < len(blocks) <= 400


def test_scripts_are_plain():
    """Names must not be able to become code: no string is turned into markup or code."""
    for name in SCRIPTS:
        text = (TEMPLATES / f"{name}.js").read_text()
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "new Function",
                     "document.write", "</script", "fetch(", "XMLHttpRequest", "localStorage"):  # fmt: skip
            assert word not in text, (name, word)
