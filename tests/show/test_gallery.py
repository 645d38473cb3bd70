"""Galleries: pictures of tasks, in order, as a page that needs nothing else and as a contact sheet."""

import io
import re

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from perdure.cli.main import main
from perdure.pools import worker_pool
from perdure.registry import suite
from perdure.run.pictures import draw_tasks
from perdure.show.gallery import CELL, LINE, Captioned, _lines, contact_sheet, page


def jpeg(colour, size=(64, 48)):
    stream = io.BytesIO()
    Image.new("RGB", size, colour).save(stream, "JPEG")
    return stream.getvalue()


CELLS = [
    Captioned("toy/a", "do <b>this</b>", jpeg("red")),
    Captioned("toy/b", "and that", jpeg("blue")),
    Captioned("toy/c", "", b"", "it has no eyes"),
]


def test_a_page_needs_nothing_else_and_escapes():
    text = page("a & b", "three", CELLS)
    assert text.count("data:image/jpeg;base64,") == 2
    assert not re.search(r'(src|href)="(?!data:)', text)
    assert "do &lt;b&gt;this&lt;/b&gt;" in text and "<b>this" not in text
    assert "it has no eyes" in text and "default-src &#39;none&#39;" in text
    assert text.index("toy/a") < text.index("toy/b") < text.index("toy/c")


def test_a_contact_sheet_has_pictures_in_order():
    sheet = np.asarray(Image.open(io.BytesIO(contact_sheet(CELLS))))
    first, second, third = (sheet[CELL // 3, k * (CELL + 4) + CELL // 2] for k in range(3))
    assert first[0] > 200 > 100 > first[2] and second[2] > 200 > 100 > second[0]
    assert third.min() > 240, "nothing is drawn where there is no picture"


def test_a_long_caption_stands_on_the_sheet_in_whole():
    words = (
        "turn on the stove and put the frying pan on it, then open the top drawer of the cabinet "
    )
    long = Captioned("libero/goal-s3-004 (unsolved)", words * 2, jpeg("red"))
    lines = _lines(long)
    assert " ".join(lines) == f"{long.name} {words * 2}".strip() and len(lines) > 4
    assert _lines(Captioned("toy/c", words * 20))[-1] == "..."
    tall, short = (
        np.asarray(Image.open(io.BytesIO(contact_sheet(c)))) for c in ([long], CELLS[:1])
    )
    assert len(tall) - len(short) == LINE * (len(lines) - 2)
    assert tall[-2 * LINE : -8].min() < 100, "its last line is drawn"


def test_tasks_are_drawn_in_order_here_and_in_processes():
    tasks = [t for t in suite("toy").tasks() if suite("toy").has_env(t)]
    assert len(tasks) > 6
    done = []
    here = draw_tasks(tasks, workers=1, report=lambda k, n: done.append((k, n)))
    assert done == [(k + 1, len(tasks)) for k in range(len(tasks))]
    assert [p.task for p in here] == [t.id for t in tasks]
    assert draw_tasks(tasks, workers=2) == here
    drawn = [p for p in here if p.jpeg]
    assert drawn, here
    for picture in drawn:
        assert Image.open(io.BytesIO(picture.jpeg)).width > 8
    assert all(p.problem for p in here if not p.jpeg)


def test_the_verb(tmp_path):
    for name, start in (("toys.html", b"<!doctype html>"), ("toys.png", b"\x89PNG")):
        result = CliRunner().invoke(main, ["gallery", "toy/check", str(tmp_path / name)])
        assert "toys" in result.output, result.output
        assert (tmp_path / name).read_bytes().startswith(start)
    result = CliRunner().invoke(main, ["gallery", "toy", str(tmp_path / "toys.gif")])
    assert result.exit_code == 2 and "ends in .html or .png" in result.stderr
    result = CliRunner().invoke(main, ["gallery", str(tmp_path)])
    asked = f"libero/eval-folder,folder={tmp_path}"
    assert result.exit_code == 2 and asked in result.stderr.replace("\n", ""), result.stderr
    result = CliRunner().invoke(main, ["generate", "toy", str(tmp_path / "new")])
    assert result.exit_code == 2 and "cannot generate tasks" in result.stderr
    assert not (tmp_path / "new").exists()


def test_a_pool_is_left_at_once_by_an_error():
    with pytest.raises(KeyError), worker_pool(1) as pool:
        assert pool.submit(len, (1, 2)).result() == 2
        raise KeyError("mine")
