"""The report of a running experiment over real sockets."""

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import perdure
from perdure.errors import PerdureError, StoreError
from perdure.show.view import Page, Server, newest, view

REPORT = b"<!doctype html><title>made</title><h1>"


@pytest.fixture
def run(tmp_path):
    return perdure.experiment(
        "toy/compass,steps=20,episodes=1", ["random"], out=str(tmp_path / "x"), executor="serial"
    )


@pytest.fixture
def served(run):
    """A server with a builder that counts."""
    made = []

    def build():
        made.append(newest([run.path]))
        return REPORT + str(len(made)).encode()

    server = Server(Page([run.path], build, every=0.0))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server, run, made
    server.shutdown()
    thread.join()
    server.server_close()


def ask(server, path="/", method="GET", host=None, **headers):
    """(status, headers, body) of one request; the Host header as given."""
    link = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    link.putrequest(method, path, skip_host=True)
    if host != "":
        link.putheader("Host", host or f"127.0.0.1:{server.server_port}")
    for name, value in headers.items():
        link.putheader(name, value)
    link.endheaders()
    answer = link.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    link.close()
    return found


def test_it_listens_on_loopback_alone(served):
    server, _, _ = served
    assert server.socket.getsockname()[0] == "127.0.0.1"
    assert server.url == f"http://127.0.0.1:{server.server_port}/"
    for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET):
        if not info[4][0].startswith("127."):
            with pytest.raises(OSError):
                socket.create_connection((info[4][0], server.server_port), timeout=2).close()


def test_pages(served):
    server, _, made = served
    status, headers, body = ask(server, "/report")
    assert (status, body) == (200, REPORT + b"1")
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    status, headers, shell = ask(server)
    assert status == 200 and b'src="/report"' in shell and b"/version" in shell
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    for name in ("X-Content-Type-Options", "Referrer-Policy", "Cross-Origin-Resource-Policy"):
        assert name in headers
    assert headers["Cache-Control"] == "no-store"
    status, _, version = ask(server, "/version")
    assert status == 200 and len(version) == 16 and version in shell
    assert len(made) == 1  # Nothing changed, nothing was built again.
    assert ask(server, "/report?x=1")[0] == 200


def test_head_has_no_body(served):
    server, _, _ = served
    status, headers, body = ask(server, "/report", "HEAD")
    assert status == 200 and body == b"" and int(headers["Content-Length"]) == len(REPORT) + 1


def test_the_version_changes_when_rows_land(served):
    server, run, made = served
    before = ask(server, "/version")[2]
    (run.path / "random/0/_journal/00009.json").write_bytes(b"x")
    assert ask(server, "/version")[2] != before
    assert ask(server, "/report")[2] == REPORT + b"2" and len(made) == 2
    (run.path / "random/0/_meta/error.json").write_text("{}")
    assert ask(server, "/report")[2] == REPORT + b"3"


def test_it_is_not_built_too_often(run):
    made = []
    page = Page([run.path], lambda: made.append(1) or b"x", every=60.0)
    first = page.get()
    (run.path / "random/0/_meta/error.json").write_text("{}")
    assert page.get() == first and len(made) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "LOCALHOST"])
def test_loopback_names_are_answered(served, host):
    server, _, _ = served
    assert ask(server, host=f"{host}:{server.server_port}")[0] == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost", "127.0.0.1:1",
     "127.0.0.1:{port}.evil.example", "127.0.0.1:{port}@evil.example", "0.0.0.0:{port}", ""],
)  # fmt: skip
def test_other_hosts_are_refused(served, host):
    server, _, made = served
    status, _, body = ask(server, host=host.format(port=server.server_port))
    assert status == 403 and b"<" not in body and not made


def test_two_host_headers_are_refused(served):
    server, _, _ = served
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=5) as link:
        own = f"127.0.0.1:{server.server_port}".encode()
        link.sendall(b"GET / HTTP/1.1\r\nHost: " + own + b"\r\nHost: evil\r\n\r\n")
        assert link.recv(100).startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"]
)
def test_it_is_read_only(served, method):
    server, _, _ = served
    status, headers, _ = ask(server, "/report", method)
    assert status == 405 and headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "path",
    ["/_meta/spec.json", "/../../etc/passwd", "/..%2f..%2fetc/passwd", "//etc/passwd", "/report/",
     "/random/", "http://evil.example/", "/favicon.ico"],
)  # fmt: skip
def test_there_is_nothing_else(served, path):
    server, _, _ = served
    assert ask(server, path)[0] == 404


def test_a_run_without_rows_says_so_and_goes_on(run):
    def build():
        raise PerdureError("<b>no committed rows yet</b>")

    page = Page([run.path], build)
    assert b"&lt;b&gt;no committed rows yet" in page.get()[1]


def test_a_taken_port_is_a_clear_error(served):
    server, run, _ = served
    with pytest.raises(StoreError, match=f"127.0.0.1:{server.server_port}.*another port"):
        view([run.path], lambda: b"", server.server_port)
    with pytest.raises(StoreError, match="not a folder"):
        view([run.path / "no"], lambda: b"")


def test_viewing_changes_nothing(served):
    server, run, _ = served
    before = {p: p.stat().st_mtime_ns for p in run.path.rglob("*")}
    for path in ("/", "/report", "/version"):
        ask(server, path)
    assert {p: p.stat().st_mtime_ns for p in run.path.rglob("*")} == before


def test_ctrl_c_ends_it_cleanly(run):
    code = (
        "import sys; from pathlib import Path; from perdure.show.view import view\n"
        "view([Path(sys.argv[1])], lambda: b'x', ready=lambda u: print(u, flush=True))\n"
        "print('ended')"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(run.path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    try:
        port = int(process.stdout.readline().rsplit(":", 1)[1].strip().rstrip("/"))
        idle = socket.create_connection(("127.0.0.1", port))  # A browser keeps its line open.
        time.sleep(0.1)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=10)
        idle.close()
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out, err) == (0, "ended\n", "")


def test_a_real_browser_follows_the_run(served):
    """The page reloads by itself, offers to when told not to, and asks nobody else."""
    sync = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no Chromium here")
    server, run, made = served
    error = run.path / "random/0/_meta/error.json"
    with sync.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        said, asked = [], set()
        page.on(
            "console", lambda m: said.append(m.text) if "favicon" not in m.location["url"] else 0
        )
        page.on("pageerror", lambda e: said.append(str(e)))
        page.on("request", lambda r: asked.add(r.url))
        page.goto(server.url)
        report = page.frame_locator("iframe").locator("h1")
        sync.expect(report).to_have_text(str(len(made)))
        sync.expect(page).to_have_title("made")
        first = len(made)
        error.write_text("{}")
        sync.expect(report).to_have_text(str(first + 1), timeout=10_000)
        page.uncheck("#follow")
        error.write_text('{"a": 1}')
        page.get_by_role("button", name="Show the newest").click(timeout=10_000)
        sync.expect(report).to_have_text(str(first + 2))
        sync.expect(page.get_by_role("button")).to_be_hidden()
        browser.close()
    assert not said and all(url.startswith(server.url) for url in asked)
