"""GR00T's protocol: a ZeroMQ request and its reply, several environments in one query.

Observations are flat, as its simulation wrapper takes them (``--use-sim-policy-wrapper``): LIBERO's eight
numbers of state are seven parts there, whose roll, pitch and yaw are the parts of an axis times its angle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perdure.arrays import Array
from perdure.errors import PolicyServerFault
from perdure.policies.client import Patience, ServerAddress, field_of
from perdure.policies.interface import View
from perdure.policies.wire import pack, unpack
from perdure.registry import extras_named

PARTS = ("x", "y", "z", "roll", "pitch", "yaw")
STATE = 8
ACTIONS = (*PARTS, "gripper")
PROMPT = "annotation.human.action.task_description"


class GrootClient:
    """Speaks to a server of GR00T's."""

    batch = 1024

    def __init__(self, address: ServerAddress, patience: Patience) -> None:
        with extras_named("policies"):
            import zmq
        self.address, self.patience, self.zmq = address, patience, zmq
        self.context = zmq.Context()
        self.socket: Any = None
        self._open()
        try:
            self._ask({"endpoint": "ping"}, patience.connect)
            self.metadata: Mapping[str, Any] = {}
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        host = f"[{self.address.host}]" if ":" in self.address.host else self.address.host
        self.socket = self.context.socket(self.zmq.REQ)
        self.socket.setsockopt(self.zmq.LINGER, 0)
        if ":" in host:
            self.socket.setsockopt(self.zmq.IPV6, 1)
        self.socket.connect(f"tcp://{host}:{self.address.port}")

    def _ask(self, request: Mapping[str, Any], wait: float) -> Any:
        self.socket.send(pack(request, "groot"))
        if not self.socket.poll(int(1000 * wait)):
            raise PolicyServerFault(
                f"{self.address}: expected an answer to {request['endpoint']} within {wait:g} s, got "
                "nothing; start the server, or give it longer (timeout)"
            )
        answer = unpack(self.socket.recv(), f"{self.address}: answer")
        if isinstance(answer, Mapping) and "error" in answer:
            raise PolicyServerFault(f"{self.address}: the server failed: {answer['error']!s:.2000}")
        return answer

    def infer(self, views: Sequence[View]) -> list[Any]:
        begun = [view for view in views if view.first]
        if len(begun) == len(views):
            self._ask({"endpoint": "reset", "data": {"options": None}}, self.patience.answer)
        data = {"observation": observation(views), "options": None}
        answer = self._ask({"endpoint": "get_action", "data": data}, self.patience.answer)
        if not isinstance(answer, (list, tuple)) or len(answer) != 2:
            raise PolicyServerFault(
                f"{self.address}: expected [actions, info] as the answer, got {type(answer).__name__}"
            )
        parts = [self._part(answer[0], name, len(views)) for name in ACTIONS]
        together: Array = np.concatenate(parts, axis=2)
        return list(together)

    def _part(self, answer: Any, name: str, count: int) -> Array:
        part = field_of(answer, f"action.{name}", self.address)
        if not isinstance(part, np.ndarray) or part.ndim not in (2, 3) or len(part) != count:
            got = getattr(part, "shape", type(part).__name__)
            raise PolicyServerFault(
                f"{self.address}: expected action.{name} as an array of shape ({count}, n, 1), got {got}"
            )
        return part.reshape(count, part.shape[1], -1)

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
        self.context.term()


def observation(views: Sequence[View]) -> dict[str, Any]:
    """Views side by side, with one step of time each."""
    out: dict[str, Any] = {}
    for name in views[0].images:
        out[f"video.{name}"] = np.stack([view.images[name] for view in views])[:, None]
    for name in views[0].numbers:
        numbers = np.stack([view.numbers[name] for view in views])[:, None].astype(np.float32)
        if name == "state" and numbers.shape[2] == STATE:
            for k, part in enumerate(PARTS):
                out[f"state.{part}"] = numbers[:, :, k : k + 1]
            out["state.gripper"] = numbers[:, :, len(PARTS) :]
        else:
            out[f"state.{name}"] = numbers
    return {**out, PROMPT: [view.prompt for view in views]}
