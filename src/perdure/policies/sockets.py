"""A websocket as clients of policies use it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from perdure.errors import PolicyServerFault
from perdure.policies.client import Patience, ServerAddress, opened
from perdure.policies.wire import MOST_BYTES
from perdure.registry import extras_named

SHOWN = 2000
"""Characters of an error that a server sends."""


class PolicyServerGone(PolicyServerFault):
    """The connection broke without a word."""


class PolicySocket:
    """One connection; every failure is a PolicyServerFault that says what was expected."""

    def __init__(self, address: ServerAddress, patience: Patience) -> None:
        self.address, self.patience = address, patience
        self.socket: Any = None
        self._within = ExitStack()

    def open(self) -> None:
        """Connect, waiting for the server if it is not there."""
        with extras_named("policies"):
            from websockets.exceptions import WebSocketException
            from websockets.sync.client import connect
        a = self.address
        host = f"[{a.host}]" if ":" in a.host else a.host

        def once() -> Any:
            wait = min(10.0, self.patience.connect)
            waiting = connect(
                f"ws://{host}:{a.port}{a.path}",
                compression=None,
                max_size=MOST_BYTES,
                open_timeout=wait,
                ping_interval=None,  # A server that computes in its only thread answers none.
                close_timeout=1,
                proxy=None,
            )
            return self._within.enter_context(waiting)

        try:
            self.socket = opened(a, self.patience, once)
        except WebSocketException as e:
            raise PolicyServerFault(f"{a}: expected a websocket ({type(e).__name__}: {e})") from e

    def send(self, data: bytes) -> None:
        """A binary frame."""
        from websockets.exceptions import ConnectionClosed

        try:
            self.socket.send(data)
        except (ConnectionClosed, OSError) as e:
            raise self._gone(e) from e

    def receive(self, what: str) -> bytes:
        """The next binary frame. A text frame is the server's error."""
        from websockets.exceptions import ConnectionClosed

        try:
            found = self.socket.recv(timeout=self.patience.answer)
        except TimeoutError as e:
            raise PolicyServerFault(
                f"{self.address}: expected {what} within {self.patience.answer:g} s, got nothing; give it "
                "longer (timeout), or see what the server does"
            ) from e
        except (ConnectionClosed, OSError) as e:
            raise self._gone(e) from e
        if isinstance(found, str):
            raise PolicyServerFault(
                f"{self.address}: expected {what}, and the server failed:\n{found[-SHOWN:]}"
            )
        return bytes(found)

    def _gone(self, error: Exception) -> PolicyServerGone:
        return PolicyServerGone(f"{self.address}: the server closed the connection ({error})")

    def close(self) -> None:
        """Let it go."""
        self.socket = None
        self._within.close()
