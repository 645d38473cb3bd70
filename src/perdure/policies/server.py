"""A policy of Perdure's behind openpi's websocket protocol, for any client that speaks it.

A client's observation is turned into what the agent was trained on: by the same names
(``observation/NAME``), or from LIBERO's three (``observation/image``, ``…/wrist_image``, ``…/state``).
What does not fit is refused with what was expected, as a text frame, which is an error to every client.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from gymnasium import spaces

import perdure
from perdure.agent import Agent
from perdure.arrays import Array
from perdure.errors import PerdureError, PolicyServerFault, SpecError
from perdure.policies.client import is_loopback
from perdure.policies.interface import CAMERAS, HAND, quaternion
from perdure.policies.openpi import OURS
from perdure.policies.wire import MOST_BYTES, pack, unpack
from perdure.registry import extras_named
from perdure.types import Context

# What openpi's clients of these robots pack into their state of eight numbers, or of four.
FROM_STATE = {HAND[0]: slice(0, 3), HAND[1]: slice(3, 6), HAND[2]: slice(6, 8), "hand": slice(0, 4)}
INTERNAL_ERROR = 1011


class PolicyServer:
    """Answers queries with an agent's actions, one query at a time."""

    def __init__(self, agent: Agent) -> None:
        self.agent, self.setup = agent, agent.setup
        space = agent.action_space
        if not isinstance(space, spaces.Box) or len(space.shape) != 1:
            raise SpecError(f"clients of policies expect vectors as actions, and these are {space}")
        observed = agent.observation_space
        self.parts: dict[str, spaces.Box] = {}
        for name, part in _parts(observed).items():
            if not isinstance(part, spaces.Box):
                raise SpecError(
                    f"clients of policies send arrays, and {name} is observed as {part}"
                )
            self.parts[name] = part
        self.lock = threading.Lock()
        self.free = list(range(self.setup.slots))
        self.tasks = {p: task for task, all_ in self.setup.instructions.items() for p in all_}

    @property
    def metadata(self) -> dict[str, Any]:
        """What clients are told first."""
        told = {n: [list(p.shape), str(p.dtype)] for n, p in self.parts.items()}
        protocol = self.setup.protocol
        return {
            OURS: {
                "version": perdure.__version__,
                "batch": self.setup.slots,
                "observation": told,
                "action": list(self.agent.action_space.shape or ()),
                "chunk": 1,
                "tasks": list(self.setup.tasks),
                **({} if protocol is None else {"protocol": protocol.to_json()}),
            }
        }

    @contextmanager
    def slot(self) -> Iterator[int]:
        """A place for a client that sends one environment at a time: it has a memory of its own."""
        with self.lock:
            if not self.free:
                raise PolicyServerFault(
                    f"all {self.setup.slots} places are taken: serve with more (--clients)"
                )
            mine = self.free.pop(0)
            self.agent.reset_memory(np.array([mine]))
        try:
            yield mine
        finally:
            with self.lock:
                self.free.append(mine)

    def answer(self, query: Any, slot: int = 0) -> dict[str, Any]:
        """Actions for an observation, or for a batch of them."""
        if not isinstance(query, Mapping):
            raise PolicyServerFault(f"expected an observation as a map, got {type(query).__name__}")
        many = f"{OURS}/slots" in query
        slots = query[f"{OURS}/slots"] if many else [slot]
        if not _whole(slots, self.setup.slots):
            raise PolicyServerFault(f"expected slots below {self.setup.slots}, got {slots!r:.80}")
        obs = self.observation(query, len(slots), many)
        begins = [bool(b) for b in query.get(f"{OURS}/episode_start", [False] * len(slots))]
        tasks = self._tasks(query, len(slots), many)
        with self.lock:
            starts = np.zeros(self.setup.slots, bool)
            fresh = [s for s, begun in zip(slots, begins, strict=False) if begun]
            starts[fresh] = True
            if fresh:
                self.agent.reset_memory(np.array(fresh))
            ctx = Context("eval", False, 0, tasks, np.array(slots), starts)
            actions = np.asarray(self.agent.act(obs, ctx))
        if actions.shape != (len(slots), *(self.agent.action_space.shape or ())):
            raise PolicyServerFault(f"the agent gave actions of shape {actions.shape}")
        return {"actions": actions[:, None] if many else actions}

    def _tasks(self, query: Mapping[str, Any], count: int, many: bool) -> tuple[str, ...] | None:
        """Which tasks these are, if the agent knows tasks: by their ids or their instructions."""
        if not self.setup.tasks:
            return None
        ids = query.get(f"{OURS}/tasks")
        prompts = query.get("prompt", "")
        listed = prompts if isinstance(prompts, (list, tuple)) else [prompts] * count
        out = []
        for k in range(count):
            named = ids[k] if isinstance(ids, (list, tuple)) and len(ids) == count else ""
            found = named or self.tasks.get(str(listed[k]) if k < len(listed) else "", "")
            if not found and len(self.setup.tasks) == 1:
                found = self.setup.tasks[0]
            if found not in self.setup.tasks:
                raise PolicyServerFault(
                    "which task is this? expected the instruction of one that the agent knows as "
                    f"'prompt' ({', '.join(self.setup.tasks)}), got {listed[:1]!r:.120}"
                )
            out.append(found)
        return tuple(out)

    def observation(self, query: Mapping[str, Any], count: int, many: bool) -> Any:
        """What the agent reads, of what a client sent."""
        parts = {n: self._part(query, n, space, many) for n, space in self.parts.items()}
        for name, part in parts.items():
            if len(part) != count:
                raise PolicyServerFault(f"{name}: expected {count} rows, got {len(part)}")
        if isinstance(self.agent.observation_space, spaces.Dict):
            return parts
        return next(iter(parts.values()))

    def _part(self, query: Mapping[str, Any], name: str, space: spaces.Box, many: bool) -> Array:
        key, found = f"observation/{name}", query.get(f"observation/{name}")
        if found is None and name in CAMERAS:
            key = f"observation/{CAMERAS[name]}"
            found = query.get(key)
        if found is None and name in FROM_STATE:
            key, whole = "observation/state", query.get("observation/state")
            if isinstance(whole, np.ndarray) and whole.shape[-1] in (4, 8):
                found = whole[..., FROM_STATE[name]]
                if name == HAND[1]:
                    rows = found if many else found[None]
                    found = np.array([quaternion(row) for row in rows])
                    found = found if many else found[0]
        if found is None:
            there = ", ".join(sorted(k for k in query if str(k).startswith("observation/")))
            raise PolicyServerFault(f"expected observation/{name} ({space}), got {there or 'none'}")
        if not isinstance(found, np.ndarray):
            found = np.asarray(found)
        rows = found if many else found[None]
        if rows.shape[1:] != space.shape or not np.can_cast(rows.dtype, space.dtype, "same_kind"):
            raise PolicyServerFault(
                f"{key}: expected shape {space.shape} and dtype {space.dtype}, got "
                f"{rows.shape[1:]} and {rows.dtype}"
            )
        if rows.dtype.kind == "f" and not np.isfinite(rows).all():
            raise PolicyServerFault(f"{key}: expected finite numbers")
        made: Array = rows.astype(space.dtype)
        return made

    def handle(self, connection: Any) -> None:
        """Speak to one client until it goes."""
        from websockets.exceptions import ConnectionClosed

        try:
            connection.send(pack(self.metadata))
            with self.slot() as slot:
                for message in connection:
                    if isinstance(message, str):
                        raise PolicyServerFault("expected a binary frame, got text")
                    connection.send(pack(self.answer(unpack(message), slot)))
        except ConnectionClosed:
            pass
        except Exception as e:
            self._refuse(connection, e)

    def _refuse(self, connection: Any, error: Exception) -> None:
        """An error as clients expect it: words, then the end."""
        from websockets.exceptions import ConnectionClosed

        own = isinstance(error, PerdureError)
        words = f"{type(error).__name__}: {error}" if own else traceback.format_exc()
        try:
            connection.send(words)
            connection.close(INTERNAL_ERROR, "the error is in the frame before")
        except ConnectionClosed:
            pass


def _parts(space: spaces.Space[Any]) -> dict[str, Any]:
    if isinstance(space, spaces.Dict):
        return dict(space.spaces)
    picture = isinstance(space, spaces.Box) and len(space.shape) == 3 and space.dtype == np.uint8
    return {"image" if picture else "state": space}


def _whole(slots: Any, most: int) -> bool:
    fits = isinstance(slots, Sequence) and not isinstance(slots, (str, bytes)) and len(slots) > 0
    return (
        fits
        and all(type(s) is int and 0 <= s < most for s in slots)
        and len(set(slots)) == len(slots)
    )


def listening(
    agent: Agent, host: str = "127.0.0.1", port: int = 8000, anywhere: bool = False
) -> Any:
    """A server that listens, on this machine alone unless ``anywhere``; ``serve_forever()`` and
    ``shutdown()`` it. ``/healthz`` answers OK."""
    with extras_named("policies"):
        from websockets.sync.server import ServerConnection, serve
    if not anywhere and not is_loopback(host):
        raise SpecError(
            f"{host} is open to other machines, and anyone there could use the policy; say --anywhere "
            "if that is meant"
        )
    policy = PolicyServer(agent)

    def health(connection: ServerConnection, request: Any) -> Any:
        return connection.respond(200, "OK\n") if request.path == "/healthz" else None

    try:
        return serve(
            policy.handle,
            host,
            port,
            process_request=health,
            compression=None,
            max_size=MOST_BYTES,
            ping_interval=None,
        )
    except OSError as e:
        raise SpecError(f"cannot listen on {host}:{port}: {e}; choose another --port") from e
