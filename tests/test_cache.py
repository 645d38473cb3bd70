"""The one rule for where derived data lives."""

from pathlib import Path

import pytest

from perdure.cache import cache_folder
from perdure.suites.libero import kept as libero
from perdure.suites.metaworld import cache as metaworld
from perdure.suites.openloris import data as openloris


@pytest.mark.parametrize(
    ("own", "xdg", "expected"),
    [
        ("/mine", "/xdg", "/mine"),
        ("~/mine", "/xdg", "/home/someone/mine"),
        (None, "/xdg", "/xdg/perdure"),
        (None, "~/xdg", "/home/someone/xdg/perdure"),
        ("", "", "/home/someone/.cache/perdure"),
        (None, None, "/home/someone/.cache/perdure"),
    ],
)
def test_the_first_that_is_set_decides_for_every_suite(monkeypatch, own, xdg, expected):
    monkeypatch.setenv("HOME", "/home/someone")
    for name, value in (("PERDURE_CACHE", own), ("XDG_CACHE_HOME", xdg)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert cache_folder() == Path(expected)
    assert cache_folder("a", "b") == Path(expected, "a", "b")
    assert metaworld.folder("models") == Path(expected, "metaworld", "models")
    # Its scenes are kept unasked, so never in a home folder that nobody named.
    kept = Path(expected, "libero") if own or xdg else None
    assert libero.kept_in() == kept
    assert openloris.rendered() == Path(expected, "openloris", "rendered")
