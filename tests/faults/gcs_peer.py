"""As much of Google Cloud Storage as a store of objects needs, on loopback, by its documented XML requests: objects
with generations, ``x-goog-if-generation-match``, listing by prefix and delimiter."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from object_stores import talking_to


class Peer(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    objects: dict[str, tuple[int, bytes]]
    """By name: generation and contents."""
    lock: threading.Lock
    count: list[int]

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        wanted = self.headers["x-goog-if-generation-match"]
        with self.lock:
            there = self.objects.get(self.name, (0, b""))[0]
            if wanted is not None and int(wanted) != there:
                return self._answer(412)
            self.count[0] += 1
            self.objects[self.name] = (self.count[0], data)
        self._answer(200, b"", self.count[0])

    def do_GET(self) -> None:
        if not self.name:
            return self._list()
        found = self.objects.get(self.name)
        if found is None:
            return self._answer(404)
        self._answer(200, found[1], found[0])

    do_HEAD = do_GET

    def do_DELETE(self) -> None:
        with self.lock:
            gone = self.objects.pop(self.name, None)
        self._answer(204 if gone else 404)

    @property
    def name(self) -> str:
        return unquote(urlsplit(self.path).path).partition("/")[2].partition("/")[2]

    def _list(self) -> None:
        asked = {k: v[0] for k, v in parse_qs(urlsplit(self.path).query).items()}
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
        with self.lock:
            names = sorted(n for n in self.objects if n.startswith(prefix))
            deeper = [n for n in names if delimiter and delimiter in n[len(prefix) :]]
            rest = [n for n in names if n not in set(deeper)]
            folders = dict.fromkeys(
                prefix + n[len(prefix) :].partition(delimiter)[0] for n in deeper
            )
            listed = "".join(
                f"<Contents><Key>{escape(n)}</Key><Generation>{self.objects[n][0]}</Generation>"
                f'<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"{self.objects[n][0]}"</ETag>'
                f"<Size>{len(self.objects[n][1])}</Size></Contents>"
                for n in rest
            ) + "".join(
                f"<CommonPrefixes><Prefix>{escape(f)}{delimiter}</Prefix></CommonPrefixes>"
                for f in folders
            )
        self._answer(200, f"<ListBucketResult>{listed}</ListBucketResult>".encode())

    def _answer(self, code: int, data: bytes = b"", generation: int = 0) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Last-Modified", formatdate(0, usegmt=True))
        if generation:
            self.send_header("ETag", f'"{generation}"')
            self.send_header("x-goog-generation", str(generation))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def gcs(folder: Path) -> Iterator[int]:
    """The peer, and clients that are told of it by a key file; its port."""
    kind = type("Own", (Peer,), {"objects": {}, "lock": threading.Lock(), "count": [0]})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    key = folder / "key.json"
    about = {"gcs_base_url": f"http://127.0.0.1:{server.server_port}", "disable_oauth": True}
    key.write_text(
        json.dumps({**about, "client_email": "", "private_key": "", "private_key_id": ""})
    )
    try:
        with talking_to({"GOOGLE_SERVICE_ACCOUNT": str(key), "GOOGLE_ALLOW_HTTP": "true"}):
            yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
