"""Pictures kept with a run are part of its report, whatever they are called and whatever happened to them."""

import base64
import io

import matplotlib
import numpy as np
import pytest
from browser import opened
from report_runs import make_run

matplotlib.use("agg")
import matplotlib.image

from perdure import Run
from perdure.errors import NameRefused
from perdure.store.layout import RunFolder


def png(red):
    """A small picture."""
    stream = io.BytesIO()
    matplotlib.image.imsave(stream, np.full((4, 6, 3), [red, 0.5, 0.5]), format="png")
    return stream.getvalue()


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run", seeds=(0, 1))


def test_a_run_without_pictures_has_no_such_section(run, tmp_path):
    assert RunFolder(run).pictures() == []
    page = Run(run).report(tmp_path / "page.html").read_text()
    assert 'id="pictures"' not in page


def test_what_is_kept_is_shown_once_with_what_is_said_of_it(run, tmp_path):
    folder = RunFolder(run)
    folder.write_picture("a", png(0.1), "what it looks at", "bright is where it looks")
    file = folder.write_picture("b", png(0.2), "</script><b>", "& more")
    assert file.read_bytes() == png(0.2) and file.parent.name == "_pictures"
    folder.write_picture("a", png(0.3), "what it looks at now", "")
    assert [(p.name, p.png) for p in folder.pictures()] == [("a", png(0.3)), ("b", png(0.2))]
    page = Run(run).report(tmp_path / "page.html").read_text()
    for red, there in ((0.1, 0), (0.2, 1), (0.3, 1)):
        assert page.count(base64.b64encode(png(red)).decode()) == there
    assert "what it looks at now" in page and "&lt;/script&gt;&lt;b&gt;" in page
    # Rows and lifetimes are as they were.
    assert Run(run).path == run and len(list(folder.lifetimes())) == 4


def test_what_is_damaged_is_left_out(run, tmp_path):
    folder = RunFolder(run)
    folder.write_picture("good", png(0.1), "good", "")
    folder.write_picture("bad", b"no picture", "bad", "")
    folder.write_picture("lost", png(0.2), "lost", "").unlink()
    assert [p.name for p in folder.pictures()] == ["good"]
    (run / "_pictures" / "index.json").write_text('{"../../spec": {"title": "x"}, "good": 3}')
    assert folder.pictures() == []
    Run(run).report(tmp_path / "page.html")
    with pytest.raises(NameRefused):
        folder.write_picture("../outside", png(0.1), "", "")


def test_a_browser_shows_them(run, tmp_path):
    RunFolder(run).write_picture("a", png(0.1), "what it looks at", "bright")
    with opened(Run(run).report(tmp_path / "page.html")) as seen:
        size = seen.page.evaluate(
            "() => {const i = document.querySelector('#pictures img'); i.scrollIntoView();"
            " return i.decode().then(() => [i.naturalWidth, i.naturalHeight])}"
        )
        assert size == [6, 4]
        assert seen.page.locator("nav a[href='#pictures']").count() == 1
