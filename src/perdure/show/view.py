"""The report of a running experiment on this machine's own loopback address.

Read-only: a page that frames the report and asks now and then whether there is a newer one. What
the report is made of is the caller's business. A request must name this server as its host, so
that no foreign page can reach it through a name that it lets point here.
"""

from __future__ import annotations

import base64
import hashlib
import html
import sys
import threading
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perdure.errors import PerdureError, StoreError
from perdure.store.files import is_folder
from perdure.store.layout import RunFolder

if TYPE_CHECKING:
    from perdure.show.live import Watcher

EVERY = 3.0
"""Seconds between two builds at least."""
SHARE = 0.1
"""Of the time, at most, that is spent on building: the machine is busy with the experiment."""

_STYLE = """
:root{color-scheme:light dark}
html,body{height:100%;margin:0}
body{display:flex;flex-direction:column;font:14px/1.5 system-ui,sans-serif}
iframe{flex:1;border:0;width:100%}
#bar{display:flex;gap:1rem;align-items:center;padding:.3rem .8rem;border-bottom:1px solid #8886}
#state{flex:1;white-space:pre-line;font-variant-numeric:tabular-nums}
"""
_SCRIPT = """
"use strict";
const frame = document.querySelector("iframe"), state = document.getElementById("state");
const again = document.getElementById("again"), follow = document.getElementById("follow");
let shown = frame.dataset.version, touched = 0;
function reload(version) {
  const inner = frame.contentWindow, x = inner.scrollX, y = inner.scrollY;
  frame.addEventListener("load", () => frame.contentWindow.scrollTo(x, y), {once: true});
  shown = version;
  again.hidden = true;
  inner.location.reload();
}
frame.addEventListener("load", () => {
  document.title = frame.contentDocument.title || "Perdure";
  // Nobody likes a page that changes under the hand.
  for (const sign of ["pointermove", "pointerdown", "keydown", "scroll"]) frame.contentWindow.addEventListener(sign, () => { touched = Date.now(); }, {passive: true});
});
let newest = shown;
again.addEventListener("click", () => reload(newest));
async function ask() {
  try {
    const answer = await fetch("/version", {cache: "no-store"});
    if (!answer.ok) throw new Error(answer.status);
    newest = await answer.text();
    const progress = await fetch("/progress", {cache: "no-store"});
    state.textContent = progress.ok ? await progress.text() : "refreshed as rows land";
    if (newest !== shown && follow.checked && Date.now() - touched > 4000) reload(newest);
    again.hidden = newest === shown;
  } catch (error) {
    state.textContent = "perdure view has ended; this is the last state";
  }
  setTimeout(ask, 2000);
}
ask();
"""


def _source(text: str) -> str:
    """A script or style by its digest, as a Content-Security-Policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


_SHELL_POLICY = (
    "default-src 'none'; connect-src 'self'; frame-src 'self'; base-uri 'none'; "
    f"form-action 'none'; frame-ancestors 'none'; style-src {_source(_STYLE)}; "
    f"script-src {_source(_SCRIPT)}"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def _shell(version: str) -> bytes:
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Perdure</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{_STYLE}</style>"
        '<body><div id="bar"><span id="state" role="status"></span>'
        '<button id="again" hidden>Show the newest</button>'
        '<label><input type="checkbox" id="follow" checked> refresh by itself</label></div>'
        f'<iframe src="/report" title="Report" data-version="{html.escape(version)}"></iframe>'
        f"<script>{_SCRIPT}</script></body></html>"
    ).encode()


def _problem(error: PerdureError) -> bytes:
    text = html.escape(str(error))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Perdure</title>'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">'
        f"<h1>Nothing to show yet</h1><p>{text}</p></html>"
    ).encode()


def newest(paths: Sequence[Path]) -> str:
    """What changes when any lifetime of these runs has new rows."""
    seen = hashlib.sha256()
    for run in map(RunFolder, paths):
        for job in run.lifetimes():
            try:
                version = run.lifetime(job).version()
            except StoreError as e:
                version = str(e)  # The report names what cannot be read.
            seen.update(f"{run.path}\0{job}\0{version}\0".encode(errors="replace"))
    return seen.hexdigest()[:16]


class Page:
    """The newest report: built when it is asked for, if something changed, and not too often."""

    def __init__(
        self, paths: Sequence[Path], build: Callable[[], bytes], every: float = EVERY
    ) -> None:
        self.paths, self.build, self.every = paths, build, every
        self._lock = threading.Lock()
        self._version, self._bytes = "", b""
        self._next = float("-inf")

    def get(self) -> tuple[str, bytes]:
        """The version and the report of that version."""
        with self._lock:
            began = time.monotonic()
            if began >= self._next:
                # The version is taken first: rows that land while it is built make a newer one.
                version = newest(self.paths)
                if version != self._version:
                    try:
                        self._bytes = self.build()
                    except PerdureError as e:
                        self._bytes = _problem(e)
                    self._version = version
                now = time.monotonic()
                self._next = now + (max(self.every, (now - began) / SHARE) if self.every else 0.0)
            return self._version, self._bytes


def progress(watchers: Sequence[Watcher]) -> str:
    """How far the runs are, a line each: how many lifetimes are running, done and waiting, and the time
    that is left."""
    lines = []
    for watcher in watchers:
        try:
            lines.append(watcher.summary())
        except StoreError as e:
            lines.append(f"{watcher.path}: {e}")
    return "\n".join(lines)


class Server(ThreadingHTTPServer):
    """Serves one page on 127.0.0.1; ``url`` says where."""

    daemon_threads = True

    def __init__(self, page: Page, port: int = 0) -> None:
        from perdure.show.live import Watcher

        self.page, self.watchers = page, [Watcher(path) for path in page.paths]
        self.watching = threading.Lock()
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as e:
            raise StoreError(
                f"cannot listen on 127.0.0.1:{port}: {e.strerror or e}; choose another port, or 0 "
                "for any that is free"
            ) from e
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost", "[::1]")}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the midst of an answer is nothing to report."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "perdure", ""
    timeout = 30.0

    def parse_request(self) -> bool:
        """Refuse what is not a plain reading of this server's own pages."""
        if not super().parse_request():
            return False
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0].lower() not in self.server.hosts:
            self._refuse(HTTPStatus.FORBIDDEN, "this server answers only to its loopback address")
        elif self.command not in ("GET", "HEAD"):
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "read-only: GET and HEAD")
        else:
            return True
        return False

    def do_GET(self) -> None:
        """Answer."""
        path = self.path.partition("?")[0]
        if path not in ("/", "/report", "/version", "/progress"):
            self._refuse(HTTPStatus.NOT_FOUND, "nothing here")
            return
        if path == "/progress":
            with self.server.watching:
                said = progress(self.server.watchers)
            self._send(said.encode(), "text/plain; charset=utf-8", {})
            return
        version, report = self.server.page.get()
        page = "text/html; charset=utf-8"
        if path == "/":
            self._send(_shell(version), page, {"Content-Security-Policy": _SHELL_POLICY})
        elif path == "/version":
            self._send(version.encode(), "text/plain; charset=utf-8", {})
        else:
            # The report carries a policy of its own; a page outside may not frame it.
            policy = {"Content-Security-Policy": "frame-ancestors 'self'"}
            self._send(report, page, policy)

    do_HEAD = do_GET

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self.close_connection = True
        more = {"Connection": "close"}
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            more["Allow"] = "GET, HEAD"
        self._send(f"{why}\n".encode(), "text/plain; charset=utf-8", more, status)

    def _send(
        self, body: bytes, kind: str, more: dict[str, str], status: HTTPStatus = HTTPStatus.OK
    ) -> None:
        self.send_response(status)
        headers = {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(body)), **more}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal belongs to the user."""


def view(
    paths: Sequence[Path],
    build: Callable[[], bytes],
    port: int = 0,
    ready: Callable[[str], None] = print,
    every: float = EVERY,
) -> None:
    """Serve what ``build`` makes of the runs at ``paths`` until Ctrl-C. ``ready`` gets the URL."""
    for path in paths:
        if not is_folder(path):
            raise StoreError(f"{path} is not a folder: expected a run")
    with Server(Page(paths, build, every), port) as server:
        ready(server.url)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            return
