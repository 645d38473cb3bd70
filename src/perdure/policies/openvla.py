"""OpenVLA's REST server: a picture and an instruction as JSON, a chunk of actions as the answer.

Arrays in JSON are as json_numpy writes them: base64 of their bytes. A server may wrap the body in a
second layer of JSON (``encoded``); ours reads both.
"""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perdure.arrays import Array
from perdure.errors import PolicyServerFault
from perdure.policies.client import Patience, ServerAddress, opened
from perdure.policies.interface import View
from perdure.policies.wire import MOST_BYTES, array_of

PICTURES = {"image": "full_image", "wrist_image": "wrist_image"}


class OpenVlaClient:
    """Speaks to a server of OpenVLA's."""

    batch = 1

    def __init__(self, address: ServerAddress, patience: Patience) -> None:
        self.address, self.patience = address, patience
        self.path = address.path if address.path not in ("", "/") else "/act"
        self.metadata: Mapping[str, Any] = {}
        self.line: http.client.HTTPConnection | None = None
        self._open()

    def _open(self) -> None:
        def once() -> http.client.HTTPConnection:
            wait = self.patience.answer
            line = http.client.HTTPConnection(self.address.host, self.address.port, timeout=wait)
            line.connect()
            return line

        self.line = opened(self.address, self.patience, once)

    def infer(self, views: Sequence[View]) -> list[Any]:
        return [self._act(view) for view in views]

    def _act(self, view: View) -> Any:
        body = json.dumps(observation(view), default=as_json).encode()
        try:
            status, data = self._post(body)
        except TimeoutError as e:
            self.close()
            raise PolicyServerFault(
                f"{self.address}: expected actions within {self.patience.answer:g} s, got nothing; give "
                "it longer (timeout)"
            ) from e
        except (OSError, http.client.HTTPException):
            # Servers close idle connections, and keep nothing between queries.
            self.close()
            self._open()
            try:
                status, data = self._post(body)
            except (OSError, http.client.HTTPException) as e:
                raise PolicyServerFault(
                    f"{self.address}: the server closed the connection ({e})"
                ) from e
        if status != 200:
            raise PolicyServerFault(
                f"{self.address}: expected status 200, got {status}: {data[:500]!r}"
            )
        return self._actions(data)

    def _post(self, body: bytes) -> tuple[int, bytes]:
        assert self.line is not None
        self.line.request("POST", self.path, body, {"Content-Type": "application/json"})
        answer = self.line.getresponse()
        return answer.status, answer.read(MOST_BYTES)

    def _actions(self, data: bytes) -> Any:
        try:
            found = json.loads(data, object_hook=from_json)
            if isinstance(found, str) and found.lstrip().startswith(("{", "[")):
                found = json.loads(found, object_hook=from_json)
        except (ValueError, RecursionError) as e:
            raise PolicyServerFault(
                f"{self.address}: expected actions as JSON, got {data[:80]!r} ({e})"
            ) from e
        if isinstance(found, str):
            raise PolicyServerFault(f"{self.address}: the server failed: {found:.500}")
        if isinstance(found, np.ndarray):
            return found[None] if found.ndim == 1 else found
        if isinstance(found, list) and found and isinstance(found[0], np.ndarray):
            if len({part.shape for part in found}) > 1:
                raise PolicyServerFault(f"{self.address}: expected actions of one shape")
            return np.stack(found)
        if isinstance(found, list) and found and isinstance(found[0], (int, float)):
            return [found]
        return found

    def close(self) -> None:
        if self.line is not None:
            self.line.close()
            self.line = None


def observation(view: View) -> dict[str, Any]:
    """A view as OpenVLA's server knows it."""
    pictures = {PICTURES.get(name, name): picture for name, picture in view.images.items()}
    return {**pictures, **view.numbers, "instruction": view.prompt}


def as_json(value: Any) -> Any:
    """An array as JSON."""
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"__numpy__": data, "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be sent to a policy")


def from_json(found: dict[str, Any]) -> Any:
    """A map, or the array that it stands for."""
    if "__numpy__" not in found:
        return found
    try:
        data = base64.b64decode(found["__numpy__"], validate=True)
    except (TypeError, ValueError) as e:
        raise PolicyServerFault(f"an array's bytes must be base64 ({e})") from e
    array: Array = array_of(data, found.get("dtype"), found.get("shape"))
    return array
