"""The page in a real browser: it opens, draws, answers, and asks for nothing."""

import re
import time

import pytest
import report_runs as made
from browser import opened
from test_benchmarks import shown as own_benchmark

from perdure import registry
from perdure.show.report import write_page, write_report


def write(folder, run, **keys):
    metrics = list(registry.metrics().values())
    return write_report([run], folder / "report.html", metrics, **keys)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return write(folder, made.make_run(folder / "run", seeds=range(4), experts=True))


PARTS = (
    "curves",
    "experts",
    "matrix",
    "transfer",
    "forgetting",
    "spread",
    "profiles",
    "improvement",
)


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (1400, True), (390, False)])
def test_every_section_is_drawn_without_a_word_or_a_request(report, width, dark):
    with opened(report, width, dark=dark) as seen:
        for part in PARTS:
            box = seen.draw(part).bounding_box()
            assert box["height"] > 100
        wide = seen.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width
        assert "null" not in seen.page.locator("main").inner_text().split()
        assert "NaN" not in seen.page.locator("main").inner_text()
        seen.well(report)


def colour_of(seen, selector, name="background-color"):
    style = f"getComputedStyle(document.querySelector('{selector}')).getPropertyValue('{name}')"
    return seen.page.evaluate(style)


def test_light_and_dark(report):
    with opened(report) as seen:
        light, ink = colour_of(seen, "body"), colour_of(seen, ".block.learn")
        seen.page.locator("#theme").click()
        assert colour_of(seen, "body") != light and colour_of(seen, ".block.learn") != ink
        dark = colour_of(seen, "body")
        seen.page.locator("#theme").click()
        assert colour_of(seen, "body") == light
    with opened(report, dark=True) as seen:
        assert colour_of(seen, "body") == dark
        seen.page.locator("#theme").click()
        assert colour_of(seen, "body") == light
        seen.page.emulate_media(media="print")
        assert colour_of(seen, "body") == "rgb(255, 255, 255)"


def test_a_task_has_one_colour_everywhere(report):
    with opened(report) as seen:
        for part in ("curves", "experts", "forgetting"):
            seen.draw(part)
        swatch = seen.page.locator(".legend li", has_text="b").locator(".swatch")
        colour = swatch.evaluate("n => getComputedStyle(n).backgroundColor")
        strip = seen.page.locator(".block.learn", has_text="b")
        assert strip.evaluate("n => getComputedStyle(n).backgroundColor") == colour
        strokes = "n => [...new Set([...n.querySelectorAll('[stroke], [fill]')].flatMap(p => [getComputedStyle(p).stroke, getComputedStyle(p).fill]))]"
        for part in ("curves", "experts", "forgetting"):
            assert colour in seen.page.locator(f"#{part}").evaluate(strokes)


def test_curves_answer_to_pointer_keys_and_toggles(report):
    with opened(report) as seen:
        part = seen.draw("curves")
        chart = part.locator("svg[role=img]").first
        box = chart.bounding_box()
        seen.page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + box["height"] / 2)
        assert re.search(r"Block 1, learning · \d+ steps", seen.tip())
        assert re.search(r"a\s+\d\.\d+ \[.*\] n=4", seen.tip())
        seen.page.mouse.move(box["x"] + box["width"] * 0.98, box["y"] + 60)
        assert "Block 6, evaluation" in seen.tip() and seen.tip().count("n=4") == 3
        seen.page.mouse.move(0, 0)
        assert seen.tip() == ""
        # The keyboard reads the same values.
        chart.focus()
        seen.page.keyboard.press("ArrowRight")
        assert "Block 0, evaluation" in seen.tip()
        seen.page.keyboard.press("Escape")
        assert seen.tip() == ""
        # A toggled task is gone from the picture and from the tooltip.
        before = part.locator("svg[role=img] path").count()
        button = part.locator(".toggle", has_text="b")
        button.click()
        assert button.get_attribute("aria-pressed") == "false"
        assert part.locator("svg[role=img] path").count() < before
        chart = part.locator("svg[role=img]").first
        box = chart.bounding_box()
        seen.page.mouse.move(box["x"] + box["width"] * 0.98, box["y"] + 60)
        assert seen.tip().count("n=4") == 2
        part.get_by_role("button", name="none").click()
        assert part.locator("svg[role=img] path").count() == 0
        part.get_by_role("button", name="all").click()
        assert part.locator("svg[role=img] path").count() == before
        seen.well(report)


def ticks(part):
    return part.locator("svg[role=img]").first.locator("text").all_text_contents()


def test_curves_zoom_together(report):
    with opened(report) as seen:
        part = seen.draw("curves")
        whole = ticks(part)
        box = part.locator("svg[role=img]").first.bounding_box()
        y = box["y"] + box["height"] / 2
        seen.page.mouse.move(box["x"] + box["width"] * 0.4, y)
        seen.page.mouse.down()
        seen.page.mouse.move(box["x"] + box["width"] * 0.6, y, steps=4)
        seen.page.mouse.up()
        near = ticks(part)
        assert near != whole
        other = part.locator("svg[role=img]").nth(1).locator("text").all_text_contents()
        assert [t for t in other if t in near and t not in whole]
        part.get_by_role("button", name="Reset").click()
        assert ticks(part) == whole
        part.locator("svg[role=img]").first.focus()
        seen.page.keyboard.press("+")
        assert ticks(part) != whole
        seen.page.keyboard.press("0")
        assert ticks(part) == whole


def test_single_lifetimes_on_demand(report):
    with opened(report) as seen:
        part = seen.draw("curves")
        select = part.locator("select")
        assert select.locator("option").all_inner_texts()[2:] == [
            "Every lifetime", "Seed 0", "Seed 1", "Seed 2", "Seed 3",
        ]  # fmt: skip
        means = part.locator("svg[role=img] path").count()
        select.select_option("all")
        assert part.locator("svg[role=img] path").count() > means
        select.select_option("2")
        assert "success, seed 2" in part.inner_text()
        assert "highest single experience" in part.inner_text()
        seen.well(report)


def test_the_matrix_steps_through_time(report):
    with opened(report) as seen:
        part = seen.draw("matrix")
        faded = "n => [...n.querySelectorAll('rect[opacity]')].filter(r => r.getAttribute('opacity') < 0.5).length"
        assert part.evaluate(faded) == 0
        slider = part.locator("input[type=range]")
        slider.fill("0")
        assert part.evaluate(faded) > 0 and "evaluation 1 of 4, block 0" in part.inner_text()
        part.get_by_role("button", name="Play").click()
        part.get_by_text("evaluation 4 of 4").wait_for(timeout=8000)
        part.locator("svg[role=img]").first.focus()
        seen.page.keyboard.press("ArrowDown")
        assert "Evaluation 2, block 2, after learning a" in seen.tip() and "n=4" in seen.tip()


def test_the_table_sorts(report):
    with opened(report) as seen:
        table = seen.page.locator("#results table.sortable")

        def names():
            return table.locator("tbody th .name").all_inner_texts()

        head = table.locator("thead th", has_text="Forgetting")
        assert names() == ["good", "poor"] and head.get_attribute("aria-sort") == "none"
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == "ascending" and names() == ["good", "poor"]
        head.locator("button").press("Enter")
        assert head.get_attribute("aria-sort") == "descending" and names() == ["poor", "good"]
        other = table.locator("thead th", has_text="Final performance")
        other.locator("button").click()
        # What is better comes first.
        assert other.get_attribute("aria-sort") == "descending" and names() == ["good", "poor"]
        assert head.get_attribute("aria-sort") == "none"


def test_undefined_values_say_why_on_hover_and_focus(tmp_path):
    report = write(tmp_path, made.make_run(tmp_path / "run", seeds=(0, 1)))
    with opened(report) as seen:
        # A column for what no lifetime has would say nothing: it is among all metrics.
        seen.page.locator("#results summary", has_text="metrics").click()
        dash = seen.page.locator("#results tr", has_text="l2m.rp").locator(".undefined").first
        dash.hover()
        assert "no single-task expert" in seen.tip()
        seen.page.mouse.move(0, 0)
        assert seen.tip() == ""
        while "no single-task expert" not in seen.tip():
            seen.page.keyboard.press("Tab")
            assert seen.page.evaluate("document.activeElement !== document.body")
        assert "undefined: no single-task expert" in dash.inner_text()


def test_the_strip_is_read_with_arrow_keys(report):
    with opened(report) as seen:
        seen.page.locator(".strip").focus()
        seen.page.keyboard.press("ArrowRight")
        seen.page.keyboard.press("ArrowRight")
        assert seen.tip() == "Block 1: learn toy/a × 60 episodes"
        seen.page.keyboard.press("ArrowRight")
        assert seen.tip().startswith("Block 2: evaluate toy/a × 5 episodes")


def test_the_numbers_behind_a_chart(report):
    with opened(report) as seen:
        part = seen.draw("forgetting")
        _, rows = seen.numbers(part)
        assert len(rows) == 4  # Two agents, three tasks: the last one cannot be forgotten.
        assert "summary.forgetting" in part.locator(".data").inner_text()


def test_hostile_names_do_nothing(tmp_path):
    run = made.make_run(tmp_path / "run", made.HOSTILE, seeds=(0, 1), experts=True)
    report = write(tmp_path, run, title="<img src=x onerror=alert(1)>")
    with opened(report) as seen:
        for part in PARTS:
            seen.draw(part).locator("svg[role=img]").first.hover()
            seen.tip()
        for details in seen.page.locator("details").all():
            details.evaluate("d => { d.open = true }")
        for numbers in seen.page.locator("details.data").all():
            numbers.locator("table").wait_for()
        assert seen.page.evaluate("window.hacked") is None
        assert seen.page.locator("img").count() == 0 and seen.page.locator("b").count() == 0
        assert seen.page.evaluate("document.scripts.length") == 3
        # A long name is cut short, and whole on hover.
        name = seen.page.locator(".legend .name").nth(4)
        assert name.evaluate("n => n.scrollWidth > n.clientWidth")
        name.hover()
        assert seen.tip() == made.HOSTILE[4]
        seen.well(report)


@pytest.mark.parametrize("suite", ["openloris", "metaworld", "libero"])
def test_benchmarks_own_pictures(tmp_path, suite):
    measure = "accuracy" if suite == "openloris" else "success"
    tasks = [f"{suite}/{name}" for name in ("one", "two", "three")]
    report = write(tmp_path, made.make_run(tmp_path / "run", tasks, measure=measure))
    with opened(report) as seen:
        part = seen.page.locator("#benchmarks")
        part.scroll_into_view_if_needed()
        if suite == "libero":
            rows = part.locator("tbody tr").all_inner_texts()
            assert len(rows) == 2 and re.search(r"0\.\d\d ± 0\.\d\d\s+n=3", rows[0])
        else:
            seen.draw("benchmarks")
            words = {"openloris": "Over-all accuracy", "metaworld": "three"}[suite]
            assert words in part.locator("svg[role=img]").first.text_content()
        seen.well(report)


def test_many_agents_are_spokes_of_the_spider(tmp_path):
    agents = [(name, 0.1 * k + 0.2) for k, name in enumerate("abcde")]
    tasks = ["openloris/one", "openloris/two"]
    report = write(tmp_path, made.make_run(tmp_path / "run", tasks, agents, measure="accuracy"))
    with opened(report) as seen:
        seen.draw("benchmarks")
        picture = seen.page.locator("#benchmarks svg[role=img]").first
        assert picture.locator("text.strong").all_text_contents() == list("abcde")
        assert seen.page.locator("#benchmarks .marks").first.locator("span").count() == 4
        seen.page.locator("#benchmarks svg[role=img] [aria-label^='e, Accuracy']").hover()
        assert "Accuracy" in seen.tip()
        seen.well(report)


@pytest.mark.parametrize("picture", ["spider", "bars", "stages"])
def test_a_made_up_benchmark_is_drawn_on_its_own_scale(tmp_path, picture):
    report = write_page(own_benchmark(tmp_path, picture), tmp_path / "page.html")
    with opened(report) as seen:
        seen.page.locator("#benchmarks").scroll_into_view_if_needed()
        seen.draw("benchmarks")
        part = seen.page.locator("#benchmarks")
        assert "My own benchmark" in part.inner_text() and "Lost" in part.inner_text()
        words = part.locator("svg[role=img]").first.text_content()
        assert "40" in words and ("−5.0102540" in words if picture == "spider" else "−20" in words)
        assert ("before" in words and "after" in words) == (picture == "stages")
        seen.well(report)


@pytest.mark.slow
def test_a_hundred_lifetimes_of_fifty_tasks_open_in_time(tmp_path):
    tasks = [f"toy/task-{i:02d}" for i in range(50)]
    agents = [("one", 0.5), ("two", 0.9)]
    run = made.make_run(tmp_path / "run", tasks, agents, range(50), amount=20, episodes=1)
    report = write(tmp_path, run)
    assert report.stat().st_size < 5_000_000
    began = time.monotonic()
    with opened(report) as seen:
        paint = "performance.getEntriesByName('first-contentful-paint')[0]"
        # A busy machine notes it after the page has loaded. Asked again and again from here: the page's
        # own policy forbids what wait_for_function does when it has to wait.
        for _ in range(600):
            if seen.page.evaluate(f"!!({paint})"):
                break
            seen.page.wait_for_timeout(100)
        first = seen.page.evaluate(f"{paint}.startTime")
        ready = seen.page.evaluate(
            "performance.timing.loadEventEnd - performance.timing.navigationStart"
        )
        assert first < 4000 and ready < 4000, (first, ready, time.monotonic() - began)
        for part in ("curves", "matrix", "transfer", "forgetting", "spread", "profiles"):
            seen.draw(part)
        seen.well(report)


def test_paper_shows_everything(report):
    with opened(report, 800) as seen:
        # A page that has been open for a while has drawn all of them anyway, while nothing else was to be done.
        seen.page.add_init_script("window.requestIdleCallback = () => 0")
        seen.page.reload()
        charts = seen.page.locator("[data-chart]")
        assert seen.page.locator("[data-chart][data-drawn]").count() < charts.count()
        seen.page.pdf(path=str(report.parent / "report.pdf"))
        assert seen.page.locator("[data-chart][data-drawn]").count() == charts.count() == 9
        empty = "n => [...n.querySelectorAll('.plot')].filter(p => !p.firstChild).length"
        assert seen.page.locator("main").evaluate(empty) == 0
