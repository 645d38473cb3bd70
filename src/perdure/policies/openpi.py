"""openpi's websocket protocol, which many policy servers speak.

The server speaks first: a map about itself. Then, for each observation sent, a map with ``actions``: a
chunk of them. A text frame is an error. It knows neither batches nor episodes; a server that says in its
metadata that it does (``perdure serve``) is sent several environments in one query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perdure.errors import PolicyServerFault
from perdure.policies.client import Patience, ServerAddress, field_of
from perdure.policies.interface import View
from perdure.policies.sockets import PolicyServerGone, PolicySocket
from perdure.policies.wire import pack, unpack

OURS = "perdure"
"""In a server's metadata: what it can do beyond the protocol."""


class OpenPiClient:
    """Speaks to a server of openpi's."""

    def __init__(self, address: ServerAddress, patience: Patience) -> None:
        self.address, self.socket = address, PolicySocket(address, patience)
        self.metadata: Mapping[str, Any] = {}
        self.batch = 1
        self._open()

    def _open(self) -> None:
        self.socket.open()
        told = unpack(self.socket.receive("the server's metadata"), f"{self.address}: metadata")
        if not isinstance(told, Mapping):
            raise PolicyServerFault(
                f"{self.address}: expected metadata as a map, got {type(told).__name__}"
            )
        self.metadata = told
        ours = told.get(OURS)
        batch = ours.get("batch") if isinstance(ours, Mapping) else None
        self.batch = batch if type(batch) is int and batch > 0 else 1

    def infer(self, views: Sequence[View]) -> list[Any]:
        if self.batch == 1:
            return [self._ask(observation(view)) for view in views]
        found: list[Any] = []
        for k in range(0, len(views), self.batch):
            some = views[k : k + self.batch]
            actions = self._ask(batched(some))
            if not isinstance(actions, np.ndarray) or len(actions) != len(some):
                got = getattr(actions, "shape", type(actions).__name__)
                raise PolicyServerFault(
                    f"{self.address}: expected chunks of actions for {len(some)} environments, got {got}"
                )
            found += list(actions)
        return found

    def _ask(self, query: Mapping[str, Any]) -> Any:
        data = pack(query)
        try:
            self.socket.send(data)
            answer = self.socket.receive("actions")
        except PolicyServerGone:
            # It keeps nothing between queries, so a server that came back is asked again.
            self.socket.close()
            self._open()
            self.socket.send(data)
            answer = self.socket.receive("actions")
        return field_of(unpack(answer, f"{self.address}: answer"), "actions", self.address)

    def close(self) -> None:
        self.socket.close()


def observation(view: View) -> dict[str, Any]:
    """A view as openpi's servers know it."""
    parts = {f"observation/{n}": part for n, part in {**view.images, **view.numbers}.items()}
    return {**parts, "prompt": view.prompt}


def batched(views: Sequence[View]) -> dict[str, Any]:
    """Several views in one query, for servers that say they read it."""
    first = observation(views[0])
    every = [observation(view) for view in views]
    stacked = {n: np.stack([one[n] for one in every]) for n in first if n != "prompt"}
    about = {
        f"{OURS}/slots": [view.slot for view in views],
        f"{OURS}/episode_start": [view.first for view in views],
        f"{OURS}/tasks": [view.task for view in views],
    }
    return {**stacked, "prompt": [view.prompt for view in views], **about}
