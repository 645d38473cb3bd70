"""Policy servers written to the documented frames, with nothing of ours: peers of our clients."""

from __future__ import annotations

import base64
import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgpack
import numpy as np
from websockets.sync.server import serve


def openpi_array(a, text=False):
    keys = ["__ndarray__", "data", "dtype", "shape"]
    mark, data, dtype, shape = keys if text else [k.encode() for k in keys]
    return {mark: True, data: a.tobytes(), dtype: a.dtype.str, shape: list(a.shape)}


def plain(value):
    """Decode any of the documented encodings, independently of ours."""
    if not isinstance(value, dict):
        return [plain(v) for v in value] if isinstance(value, list) else value
    named = {k.decode() if isinstance(k, bytes) else k: v for k, v in value.items()}
    if named.get("__ndarray__"):
        return np.frombuffer(named["data"], named["dtype"]).reshape(named["shape"])
    if named.get("nd"):
        return np.frombuffer(named["data"], named["type"]).reshape(named["shape"])
    return {k: plain(v) for k, v in value.items()}


class OpenPi:
    """A server of openpi's: ``policy(observation)`` gives a chunk. ``fault`` breaks answer number
    ``after``."""

    def __init__(self, policy, fault="", after=0, text_keys=False, metadata=None, until=10**9):
        self.policy, self.fault, self.after, self.text = policy, fault, after, text_keys
        self.metadata, self.seen, self.count, self.until = metadata or {}, [], 0, until

    def handle(self, ws):
        ws.send(msgpack.packb(self.metadata))
        for message in ws:
            obs = plain(msgpack.unpackb(message, strict_map_key=False))
            self.seen.append(obs)
            self.count += 1
            if self.fault and self.after < self.count <= self.until:
                if self.broken(ws, obs):
                    return
                continue
            actions = np.asarray(self.policy(obs))
            answer = {
                "actions": openpi_array(actions, self.text),
                "server_timing": {"infer_ms": 1.0},
            }
            ws.send(msgpack.packb(answer))

    def broken(self, ws, obs):
        actions = np.asarray(self.policy(obs), np.float64)
        sent = {
            "wrong shape": lambda: {"actions": openpi_array(actions[:, :-1] if actions.shape[1] > 1 else actions[..., None])},
            "NaN": lambda: {"actions": openpi_array(np.full_like(actions, np.nan))},
            "short chunk": lambda: {"actions": openpi_array(actions[:1])},
            "no actions": lambda: {"state": openpi_array(actions)},
            "words": lambda: {"actions": "left"},
            "lies about its size": lambda: {"actions": {**openpi_array(actions), b"shape": [1000, 7]}},
            "objects": lambda: {"actions": {**openpi_array(actions), b"dtype": "|O"}},
            "a list": lambda: [1, 2],
        }  # fmt: skip
        if self.fault == "slow":
            time.sleep(1.5)
        elif self.fault == "garbage":
            ws.send(b"\xc1\xff not a message")
        elif self.fault == "text":
            ws.send("Traceback: out of memory")
            ws.close(1011)
            return True
        elif self.fault == "dead":
            ws.socket.close()
            return True
        else:
            ws.send(msgpack.packb(sent[self.fault]()))
        return False


@contextmanager
def served(handler, port=0):
    """A websocket server in a thread; its port."""
    with serve(handler, "127.0.0.1", port, compression=None, max_size=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.socket.getsockname()[1]
        finally:
            server.shutdown()
            thread.join()


class VlaEval:
    """A model server of vla-eval's, one action at a time."""

    def __init__(self, policy, wrong_seq=False):
        self.policy, self.wrong, self.log = policy, wrong_seq, []

    def handle(self, ws):
        for message in ws:
            m = plain(msgpack.unpackb(message))
            assert {"type", "payload", "seq", "timestamp"} == m.keys()
            self.log.append((m["type"], m["payload"]))
            if m["type"] == "hello":
                self.send(
                    ws, "hello", {"harness_version": "0.8.0", "protocol_version": 1}, m["seq"]
                )
            elif m["type"] == "observation":
                actions = np.asarray(self.policy(m["payload"]), np.float32)
                seq = m["seq"] + self.wrong
                self.send(ws, "action", {"actions": openpi_array(actions, text=True)}, seq)

    def send(self, ws, kind, payload, seq):
        message = {"type": kind, "payload": payload, "seq": seq, "timestamp": time.time()}
        ws.send(msgpack.packb(message))


@contextmanager
def groot(policy, error=""):
    """A server of GR00T's in a thread: its port, and what it was asked."""
    import zmq

    context = zmq.Context()
    socket = context.socket(zmq.REP)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    asked, going = [], threading.Event()

    def array(a):
        a = np.ascontiguousarray(a, np.float32)
        return {
            b"nd": True,
            b"type": a.dtype.str,
            b"kind": b"",
            b"shape": a.shape,
            b"data": a.tobytes(),
        }

    def work():
        while not going.is_set():
            if not socket.poll(50):
                continue
            request = plain(msgpack.unpackb(socket.recv()))
            asked.append(request)
            if request["endpoint"] != "get_action":
                answer = {"status": "ok"}
            elif error:
                answer = {"error": error}
            else:
                found = policy(request["data"]["observation"])
                answer = [{f"action.{k}": array(v) for k, v in found.items()}, {}]
            socket.send(msgpack.packb(answer))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield port, asked
    finally:
        going.set()
        thread.join()
        socket.close(0)
        context.term()


@contextmanager
def openvla(policy, double=False, broken=""):
    """A REST server of OpenVLA's: its port, and what it was asked."""
    asked = []

    def read(found):
        if "__numpy__" in found:
            data = base64.b64decode(found["__numpy__"])
            return np.frombuffer(data, found["dtype"]).reshape(found["shape"])
        return found

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(
                self.rfile.read(int(self.headers["Content-Length"])), object_hook=read
            )
            asked.append((self.path, body))
            chunk = [
                {"__numpy__": base64.b64encode(np.asarray(a, "<f8").tobytes()).decode(),
                 "dtype": "<f8", "shape": [len(a)]}
                for a in policy(body)
            ]  # fmt: skip
            text = broken or json.dumps(json.dumps(chunk) if double else chunk)
            self.send_response(200)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1], asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
