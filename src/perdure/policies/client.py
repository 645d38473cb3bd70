"""What the clients of all policy servers share: addresses, waiting, and what an answer must have."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

from perdure.errors import PolicyServerFault, SpecError, UnknownName
from perdure.policies.interface import View


@dataclass(frozen=True)
class Patience:
    """How long to wait, in seconds."""

    connect: float = 30.0
    """For a server that is not there yet, or has gone."""
    answer: float = 60.0
    """For the answer to a query; the first of a model may take long."""


class PolicyClient(Protocol):
    """A connection to a policy server."""

    metadata: Mapping[str, Any]
    """What the server says of itself."""
    batch: int
    """How many environments a query may be of."""

    def infer(self, views: Sequence[View]) -> list[Any]:
        """For each view the chunk of actions that the server gives, unchecked."""

    def close(self) -> None:
        """Let the connection go."""


@dataclass(frozen=True)
class ServerAddress:
    """Where a server is."""

    scheme: str
    host: str
    port: int
    path: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"


PORTS = {"ws": 8000, "tcp": 5555, "vla-eval": 8000, "http": 8777}


def is_address(text: str) -> bool:
    """Whether a policy is named by the address of its server."""
    return text.partition("://")[0] in PORTS and "://" in text


def parse_address(text: str, anywhere: bool = False) -> ServerAddress:
    """An address, refused if it is of another machine and that is not meant."""
    scheme = text.partition("://")[0]
    if scheme not in PORTS or "://" not in text:
        known = [f"{s}://" for s in PORTS]
        raise UnknownName("kind of policy server", f"{scheme}://", known, f"({', '.join(known)})")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as e:
        raise SpecError(f"policy server {text!r}: {e}") from e
    if not parts.hostname:
        raise SpecError(
            f"policy server {text!r}: name a host, as {scheme}://localhost:{PORTS[scheme]}"
        )
    if not anywhere and not is_loopback(parts.hostname):
        raise SpecError(
            f"policy server {text}: {parts.hostname} is not this machine, and what is sent there is "
            "neither encrypted nor signed; say anywhere=true (--anywhere) if that is meant"
        )
    return ServerAddress(scheme, parts.hostname, port or PORTS[scheme], parts.path)


def is_loopback(host: str) -> bool:
    """Whether a name is of this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def opened(address: ServerAddress, patience: Patience, open_once: Callable[[], Any]) -> Any:
    """A connection, tried again while nobody is there."""
    until, pause = time.monotonic() + patience.connect, 0.05
    while True:
        try:
            return open_once()
        except (OSError, TimeoutError) as e:
            if time.monotonic() + pause > until:
                raise PolicyServerFault(
                    f"{address}: nobody answers there after {patience.connect:g} s "
                    f"({type(e).__name__}: {e}); start the server, or name another address"
                ) from e
            time.sleep(pause)
            pause = min(2 * pause, 2.0)


def field_of(answer: Any, name: str, who: ServerAddress) -> Any:
    """A part of an answer; PolicyServerFault if there is none."""
    if not isinstance(answer, Mapping):
        got = type(answer).__name__
        raise PolicyServerFault(f"{who}: expected an answer with {name!r} in a map, got {got}")
    if name not in answer:
        keys = ", ".join(sorted(map(str, answer))) or "nothing"
        raise PolicyServerFault(f"{who}: expected {name!r} in the answer, got {keys:.200}")
    return answer[name]
