"""A real browser for the tests of pages, and what it saw."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")


@dataclass
class Seen:
    """An open page with everything it asked for and complained about."""

    page: Any
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def draw(self, part: str) -> Any:
        """Scroll a section into view and wait until its chart is there."""
        chart = self.page.locator(f"#{part} svg[role=img]").first
        for _ in range(20):
            self.page.locator(f"#{part}").scroll_into_view_if_needed()
            self.page.wait_for_timeout(200)
            if chart.is_visible():
                break  # What is drawn above it on the way may have pushed it out of view.
        chart.wait_for()
        return self.page.locator(f"#{part}")

    def numbers(self, part: Any) -> tuple[list[str], list[list[str]]]:
        """Open the numbers behind a chart and read them: names of columns, rows."""
        part.locator("summary", has_text="Numbers").click()
        part.locator(".data table").wait_for()
        rows = part.locator(".data tbody tr").all()
        return (
            part.locator(".data thead th").all_inner_texts(),
            [row.locator("td").all_inner_texts() for row in rows],
        )

    def settles(self, holds: str, pause: int = 300) -> None:
        """Wait until an expression holds at two looks with a pause in milliseconds between."""
        before = False
        for _ in range(100):
            now = self.page.evaluate(holds)
            if before and now:
                return
            before = now
            self.page.wait_for_timeout(pause)
        raise AssertionError(f"never for long: {holds}")

    def tip(self) -> str:
        """What the tooltip says; empty when it is hidden."""
        return self.page.evaluate(
            "(() => { const t = document.getElementById('tip'); return t.hidden ? '' : t.innerText })()"
        )

    def well(self, file: Path) -> None:
        """Fail on any complaint, and on any request but that for the file."""
        assert not self.complaints
        assert self.requests == [file.resolve().as_uri()]


@contextmanager
def opened(
    file: Path, width: int = 1400, height: int = 900, dark: bool = False, motion: bool = False
) -> Iterator[Seen]:
    """The file in headless Chromium, as a person would open it; with or without ``motion``."""
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with sync.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if dark else "light",
                reduced_motion="no-preference" if motion else "reduce",
            )
            page = context.new_page()
            seen = Seen(page)
            page.on("request", lambda r: seen.requests.append(r.url))
            page.on("pageerror", lambda e: seen.complaints.append(str(e)))
            page.on(
                "console",
                lambda m: (
                    seen.complaints.append(m.text) if m.type in ("error", "warning") else None
                ),
            )
            page.goto(file.resolve().as_uri())
            yield seen
        finally:
            browser.close()
