"""The page as it is read: links, labels, numbers, intervals, paper."""

import pytest
import report_runs as made
from browser import opened

from perdure import registry
from perdure.show.report import write_report


def write(folder, run):
    return write_report([run], folder / "report.html", list(registry.metrics().values()))


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Variants with long names, in two lifetimes, whose intervals are wide."""
    folder = tmp_path_factory.mktemp("report")
    tasks = ("toy/Obstructed-Passage-Distance@R2", "toy/Obstructed-Passage-Distance@R3", "toy/c")
    agents = [("an-agent-with-quite-a-long-name-of-its-own", 0.9), ("poor", 0.4)]
    return write(folder, made.make_run(folder / "run", tasks, agents, seeds=(0, 1), experts=True))


def test_links_reach_their_section_though_charts_above_were_not_drawn(report):
    with opened(report) as seen:
        for link in ("Matrix", "Spread", "Method"):
            seen.page.goto(report.resolve().as_uri())
            seen.page.locator("nav a", has_text=link).click()
            # At the top, below the bar, unless the page ends first.
            seen.settles(
                "(() => { const target = document.querySelector(location.hash || 'nothing');"
                " const top = target ? target.getBoundingClientRect().top : -1;"
                " const left = document.documentElement.scrollHeight - innerHeight - scrollY;"
                " return Math.abs(top - 64) < 3 || (left < 3 && 0 < top && top < 500) })()"
            )
        assert not seen.complaints


def test_an_address_with_a_section_opens_there(report):
    with opened(report) as seen:
        seen.page.goto(report.resolve().as_uri() + "#matrix")
        seen.page.reload()
        seen.settles(
            "Math.abs(document.querySelector('#matrix').getBoundingClientRect().top - 64) < 120"
        )


def test_intervals_that_go_on_beyond_the_picture_end_in_an_arrow(report):
    with opened(report) as seen:
        part = seen.draw("forgetting")
        arrows = part.locator("svg .goes-on")
        words, rows = seen.numbers(part)
        low, high = words.index("low"), words.index("high")
        beyond = [v for r in rows for v in (r[low], r[high]) if abs(_plain(v)) > 1]
        assert arrows.count() == len(beyond)


def _plain(text):
    return float(text.replace("−", "-").replace(",", ""))


def test_names_of_columns_can_be_told_apart(report):
    with opened(report) as seen:
        for part in ("matrix", "transfer"):
            words = seen.draw(part).locator("svg[role=img]").first.locator("text[transform]")
            names = words.all_text_contents()
            assert len(names) == len(set(names)) >= 2 and any(n.endswith("@R3") for n in names)
            # No name leaves its panel.
            outside = "n => n.getBoundingClientRect().right - n.closest('.panel').getBoundingClientRect().right"
            assert max(w.evaluate(outside) for w in words.all()) < 2
        n = seen.page.locator("#matrix .panel header .n").first
        assert n.bounding_box()["height"] < 30


def test_many_columns_have_names_too(tmp_path):
    tasks = [f"toy/task-number-{i:02d}" for i in range(20)]
    run = made.make_run(tmp_path / "run", tasks, [("q", 0.5)], (0,), amount=4, episodes=1)
    with opened(write(tmp_path, run)) as seen:
        words = seen.draw("matrix").locator("text[transform]").all_text_contents()
        assert words == [t.removeprefix("toy/") for t in tasks]
        # A name that does not fit its block is left to the legend.
        assert seen.page.locator(".block bdi.cut").count() == 20


def test_the_numbers_of_curves_are_in_steps(report):
    with opened(report) as seen:
        part = seen.draw("curves")
        names, rows = seen.numbers(part)
        assert "x" not in names and "schedule" not in names and "finished" not in names
        at = {name: i for i, name in enumerate(names)}
        evaluations = [r for r in rows if r[at["what"]] == "evaluation"]
        assert {r[at["learned"]] for r in evaluations} == {"0", "600", "1,200", "1,800"}
        assert {r[at["n"]] for r in rows} == {"2"} and {r[at["unit"]] for r in rows} == {"steps"}
        learned = [_plain(r[at["learned"]]) for r in rows if r[at["what"]] == "learning"]
        assert 0 < min(learned) and max(learned) < 1800
        # What rounding leaves of nothing is written as nothing.
        found = seen.page.evaluate("[number(-1.1e-16), cellText(-1.1e-16, 1), cellText(-2e-4, 1)]")
        assert found == ["0", "0", "0.00"]


def test_the_chosen_one_stands_out_in_both_themes(report):
    for dark in (False, True):
        with opened(report, dark=dark) as seen:
            seen.draw("transfer")
            colours = seen.page.evaluate(
                "[...document.querySelectorAll('#transfer .segments, #transfer .segments label:has(:checked)')]"
                ".map(n => getComputedStyle(n).backgroundColor.match(/\\d+/g).map(Number))"
            )
            ground, chosen = colours
            assert max(abs(a - b) for a, b in zip(ground, chosen, strict=True)) > 15


def test_paper_is_drawn_for_its_width_and_says_what_was_chosen(report):
    with opened(report) as seen:
        part = seen.draw("experts")
        part.locator(".segments input").nth(1).check(force=True)
        seen.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        wide = seen.page.evaluate(
            "[...document.querySelectorAll('#curves svg[role=img]')].map(s => s.viewBox.baseVal.width)"
        )
        assert wide and max(wide) <= 700
        seen.page.emulate_media(media="print")
        assert part.locator(".printed").inner_text() == "Agent: poor"
        assert not part.locator(".segments").is_visible()
        seen.page.emulate_media(media="screen")
        seen.page.evaluate("dispatchEvent(new Event('afterprint'))")
        seen.settles("document.querySelector('#curves svg[role=img]').viewBox.baseVal.width > 1000")


@pytest.mark.parametrize("part", ["transfer", "spread", "improvement"])
def test_a_jump_ends_where_it_was_to_end(report, part):
    """Slowly, past charts that nobody has seen yet."""
    with opened(report, 1200, 700, motion=True) as seen:
        for _ in range(60):  # A machine at leisure has drawn all by now.
            if seen.page.evaluate("pending.size === 0"):
                break
            seen.page.wait_for_timeout(250)
        seen.page.evaluate(f"document.getElementById('{part}').scrollIntoView()")
        seen.settles(
            "(() => { const y = scrollY, moved = y !== window.before; window.before = y;"
            " return y > 0 && !moved })()"
        )
        top = seen.page.evaluate(f"document.getElementById('{part}').getBoundingClientRect().top")
        assert abs(top - 64) < 4
