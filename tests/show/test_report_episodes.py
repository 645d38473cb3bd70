"""Single episodes: where they come from, which have videos, and how a reader gets to them."""

import base64

import numpy as np
import pytest
from browser import opened
from report_runs import make_run

from perdure import registry
from perdure.show.report import data, episodes, load, render
from perdure.show.videos import videos
from perdure.store.layout import LifetimeFolder

FIRST, SECOND = b"the first video", b"a video of another lifetime"


def video(folder, exp, task, data, which="before"):
    """One video, as a recorder leaves it."""
    name = f"{task.replace('/', '--')}-{exp:08d}.mp4"
    entry = {"which": which, "task": task, "exp": exp, "block": 0, "steps": 10, "return": 0.0}
    folder.write_video(name, data)
    folder.write_videos({"videos": [{**entry, "file": name, "success": 1.0}]}, {name})
    return name


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = make_run(tmp_path_factory.mktemp("episodes") / "run", seeds=(0, 1))
    # exp 6 is the second episode of toy/b before any learning: 5 of toy/a come first.
    video(LifetimeFolder(path / "good" / "0"), 6, "toy/b", FIRST)
    video(LifetimeFolder(path / "good" / "1"), 6, "toy/b", SECOND)
    return path


@pytest.fixture(scope="module")
def study(run):
    return load([run], list(registry.metrics().values()))


@pytest.fixture(scope="module")
def page(study, tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(render(study, sections=videos(study)), encoding="utf-8")
    return file


def test_every_evaluation_episode_is_there_with_its_place(study):
    found = data.episodes(study)
    assert [x["lifetime"] for x in found["lifetimes"]] == ["good/0", "poor/0", "good/1", "poor/1"]
    # Three tasks, four evaluations, five episodes each.
    rows = [r for r in found["rows"] if r["lifetime"] == "good/0"]
    assert len(rows) == 3 * 4 * 5
    history = study.histories["good/0"]
    evaluated = history.values("success")[~history.learning]
    assert [r["value"] for r in rows] == evaluated.tolist()
    assert [r["episode"] for r in rows[:6]] == [1, 2, 3, 4, 5, 1]
    assert {r["block"]: r["after"] for r in rows} == {
        0: "before learning",
        2: "after learning a",
        4: "after learning b",
        6: "after learning c",
    }
    recorded = [r for r in found["rows"] if r["video"]]
    assert [(r["lifetime"], r["task"], r["episode"]) for r in recorded] == [
        ("good/0", "toy/b", 2),
        ("good/1", "toy/b", 2),
    ]


def test_little_room_holds_some_of_every_agent(study, monkeypatch):
    monkeypatch.setattr(episodes, "ROOM", 60)
    found = data.episodes(study)
    # Half the room for each agent: of 12 evaluations the first two of five episodes.
    assert [x["lifetime"] for x in found["lifetimes"]] == ["good/0", "poor/0"]
    assert len(found["rows"]) == 2 * 12 * 2
    assert max(r["episode"] for r in found["rows"]) == 2


def test_videos_of_other_lifetimes_are_in_the_page_too(page):
    text = page.read_text("utf-8")
    assert text.count(base64.b64encode(FIRST).decode()) == 1
    assert text.count(base64.b64encode(SECOND).decode()) == 1


def found(page):
    return page.locator("#episodes .found").inner_text()


def test_a_matrix_cell_leads_to_its_episodes(page, study):
    with opened(page) as seen:
        matrix = seen.draw("matrix")
        picture = matrix.locator("svg[role=img]").first
        picture.focus()
        for key in ("ArrowDown", "ArrowRight", "Enter"):
            picture.press(key)
        # Row 1 is the evaluation after toy/a, block 2; column 1 is toy/b; the first agent is good.
        values = np.concatenate(
            [
                h.values("success")[~h.learning & (h.block == 2) & (h.task == 1)]
                for n, h in study.histories.items()
                if n.startswith("good")
            ]
        )
        assert len(values) == 10
        won = int(values.sum())
        assert found(seen.page) == (
            f"10 episodes of 2 lifetimes: {won} succeeded ({values.mean():.2f})."
        )
        seen.settles(
            "Math.abs(document.getElementById('episodes').getBoundingClientRect().top) < 100"
        )
        assert "agent=good&task=toy%2Fb&block=2" in seen.page.url
        seen.page.go_back()
        assert "agent=" not in seen.page.url
        seen.well(page)


def test_episodes_are_chosen_and_played(page):
    address = page.resolve().as_uri()
    with opened(page) as seen:
        seen.page.goto(f"{address}#episodes?agent=good&task=toy/b&block=0")
        seen.page.reload()
        section = seen.page.locator("#episodes")
        section.locator(".found").wait_for()
        assert found(seen.page).endswith("; 2 with a video.")
        # What has a video is shown at once; the other by its button.
        video = section.locator("video")
        assert video.get_attribute("src").endswith(base64.b64encode(FIRST).decode())
        section.locator("button.play").nth(1).click()
        assert video.get_attribute("src").endswith(base64.b64encode(SECOND).decode())
        assert section.locator("tr.playing td").nth(1).inner_text() == "1"
        section.get_by_label("Outcome").select_option("lost")
        rows = section.locator("tbody tr").all_inner_texts()
        assert rows and all("no success" in r for r in rows)
        section.get_by_label("Agent").select_option("poor")
        assert "good" not in section.locator("tbody").inner_text()


def test_a_point_of_a_curve_leads_to_its_episodes(page):
    with opened(page) as seen:
        curves = seen.draw("curves")
        seen.page.wait_for_timeout(300)
        # The first row is good with its three tasks; the last evaluation of toy/c is its last mark.
        picture = curves.locator("svg[role=img]").first
        place = picture.evaluate(
            """svg => { const marks = [...svg.querySelectorAll("path")].filter(p => p.getAttribute("d").includes("a3.8"));
            const d = marks[marks.length - 1].getAttribute("d").split("M").pop().split("a")[0].split(" ").map(Number);
            const r = svg.getBoundingClientRect(), w = svg.viewBox.baseVal.width;
            return [r.left + (d[0] + 3.8) * r.width / w, r.top + d[1] * r.width / w]; }"""
        )
        seen.page.mouse.move(*place)
        assert "click or Enter" in seen.tip()
        seen.page.mouse.click(*place)
        assert found(seen.page).startswith("10 episodes of 2 lifetimes")
        assert "agent=good&task=toy%2Fc&block=6" in seen.page.url
