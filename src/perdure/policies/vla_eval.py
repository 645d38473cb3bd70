"""vla-eval's websocket protocol, version 1: typed, numbered messages, and a word when episodes begin and
end. One environment at a time, and one connection for each: a server may remember an episode."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import perdure
from perdure.errors import PolicyServerFault
from perdure.policies.client import Patience, ServerAddress, field_of
from perdure.policies.interface import View
from perdure.policies.sockets import PolicySocket
from perdure.policies.wire import pack, unpack

VERSION = 1
CAMERAS = {"image": "agentview", "wrist_image": "wrist"}


class VlaEvalClient:
    """Speaks to a model server of vla-eval's."""

    batch = 1

    def __init__(self, address: ServerAddress, patience: Patience) -> None:
        self.address, self.patience = address, patience
        self.lines: dict[int, _Line] = {}
        self.metadata: Mapping[str, Any] = self._line(0).told

    def _line(self, slot: int) -> _Line:
        if slot not in self.lines:
            self.lines[slot] = _Line(self.address, self.patience)
        return self.lines[slot]

    def infer(self, views: Sequence[View]) -> list[Any]:
        return [self._line(view.slot).act(view) for view in views]

    def close(self) -> None:
        for line in self.lines.values():
            line.close()
        self.lines = {}


class _Line:
    """One connection, with one environment at its end."""

    def __init__(self, address: ServerAddress, patience: Patience) -> None:
        self.address, self.count, self.playing = address, 0, False
        self.socket = PolicySocket(address, patience)
        self.socket.open()
        hello = {
            "harness_version": perdure.__version__,
            "protocol_version": VERSION,
            "role": "client",
        }
        self._send("hello", hello)
        self.told = self._receive("hello", None)
        version = self.told.get("protocol_version", VERSION)
        if version != VERSION:
            raise PolicyServerFault(
                f"{address}: expected version {VERSION} of the protocol, and the server speaks {version!r}"
            )

    def _send(self, kind: str, payload: Mapping[str, Any]) -> int:
        self.count += 1
        message = {"type": kind, "payload": payload, "seq": self.count, "timestamp": time.time()}
        self.socket.send(pack(message, "vla-eval"))
        return self.count

    def _receive(self, kind: str, number: int | None) -> Mapping[str, Any]:
        message = unpack(self.socket.receive(kind), f"{self.address}: message")
        found, payload = (field_of(message, k, self.address) for k in ("type", "payload"))
        if found == "error":
            raise PolicyServerFault(f"{self.address}: the server failed: {payload!s:.2000}")
        if found != kind or not isinstance(payload, Mapping):
            raise PolicyServerFault(
                f"{self.address}: expected a message {kind!r}, got {found!r:.80}"
            )
        if number is not None and message.get("seq") != number:
            raise PolicyServerFault(
                f"{self.address}: expected the answer to message {number}, got that to "
                f"{message.get('seq')!r}"
            )
        return payload

    def act(self, view: View) -> Any:
        if view.first:
            if self.playing:
                self._send("episode_end", {})
            self._send("episode_start", {"task_description": view.prompt})
            self.playing = True
        number = self._send("observation", observation(view))
        payload = self._receive("action", number)
        name = "actions" if "actions" in payload else "action"
        actions = field_of(payload, name, self.address)
        single = isinstance(actions, np.ndarray) and actions.ndim == 1
        return actions[None] if single else actions

    def close(self) -> None:
        self.socket.close()


def observation(view: View) -> dict[str, Any]:
    """A view as vla-eval's model servers know it."""
    out: dict[str, Any] = {
        "images": {CAMERAS.get(name, name): picture for name, picture in view.images.items()},
        "task_description": view.prompt,
    }
    numbers = dict(view.numbers)
    if "state" in numbers:
        out["states"] = numbers.pop("state")
    return {**out, **numbers}
