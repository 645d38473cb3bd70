"""Finetuned: a policy behind a server, trained between blocks by a command of one's own."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import shlex
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from perdure.agents._chunks import ChunkAgent
from perdure.agents.networks.column import GrowingColumn
from perdure.errors import AgentFault, SpecError
from perdure.policies.client import Patience, PolicyClient
from perdure.policies.connect import connect
from perdure.policies.interface import View
from perdure.types import Batch, Context, Examples, Setup, State, Transitions

DIGITS = 16
SAID = 2000
"""Characters of what a command printed, in an error."""


class FinetunedAgent(ChunkAgent):
    """Takes a policy that others train through a lifetime: at the end of each learn block, and of each task that an
    adapt block teaches, ``trainer`` is called with the data since it was called last, and ``server`` is started anew
    with what it made.

    Both are commands. ``trainer`` has ``{data}`` (a folder: ``data.npz`` with ``observation/…``, ``actions``
    and, from environments, ``rewards``, ``terminated``, ``truncated``; ``about.json`` with the tasks), ``{checkpoint}``
    (what to begin with; empty at first unless ``checkpoint`` is given), ``{out}`` (the folder to write) and
    ``{seed}``. ``server`` has ``{checkpoint}`` and ``{port}``, and speaks openpi's protocol. ``work`` is where
    checkpoints are kept, one folder for each, named by its content.

    A trainer that is stopped in the middle is called again with the same folders when the lifetime is
    resumed. Data of an unfinished block are part of what is saved.
    """

    def __init__(
        self,
        setup: Setup,
        trainer: str,
        server: str,
        work: str,
        checkpoint: str = "",
        timeout: float = 60.0,
        start_timeout: float = 300.0,
        replan: int | None = None,
    ) -> None:
        super().__init__(setup, replan)
        for name, command, needed in (("trainer", trainer, "{out}"), ("server", server, "{port}")):
            if needed not in command:
                raise SpecError(f"finetuned: {name} must have {needed} in it, got {command!r}")
        self.trainer, self.server = trainer, server
        self.work = Path(work) / str(setup.seed)
        self.first = self.checkpoint = checkpoint
        """The folder that is served."""
        self.patience = Patience(start_timeout, timeout)
        self.client: PolicyClient | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self.served: str | None = None
        self.kept: dict[str, GrowingColumn] = {}
        """The data of the block under way."""
        self.tasks: list[str] = []

    @property
    def who(self) -> str:
        return f"the server of {self.checkpoint or 'no checkpoint'}"

    # Acting.

    def query(self, views: Sequence[View]) -> Sequence[Any]:
        if self.client is None or self.served != self.checkpoint:
            self._serve()
        assert self.client is not None
        return self.client.infer(views)

    def _serve(self) -> None:
        self._stop()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = self._filled(self.server, checkpoint=self.checkpoint, port=port)
        self.work.mkdir(parents=True, exist_ok=True)
        with (self.work / "server.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        atexit.register(self._stop)
        self.client = connect(f"ws://127.0.0.1:{port}", self.patience)
        self.served = self.checkpoint

    def _stop(self) -> None:
        if self.client is not None:
            self.client.close()
            self.client = None
        if self.process is not None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.process = None
        self.served = None

    @staticmethod
    def _filled(command: str, **values: Any) -> list[str]:
        """A command with its values, which never become options or other commands."""
        parts = shlex.split(command)
        for name, value in values.items():
            parts = [part.replace(f"{{{name}}}", str(value)) for part in parts]
        return parts

    # Learning.

    def learn(self, batch: Batch, ctx: Context) -> None:
        for task in ctx.tasks or ():
            if task not in self.tasks:
                self.tasks.append(task)
        parts: dict[str, Any]
        if isinstance(batch, Examples):
            seen, parts = batch.inputs, {"actions": batch.targets}
        else:
            assert isinstance(batch, Transitions)
            seen = batch.obs
            ends = {"terminated": batch.terminated, "truncated": batch.truncated}
            parts = {"actions": batch.actions, "rewards": batch.rewards, **ends}
        named = seen if isinstance(seen, Mapping) else {"state": seen}
        parts |= {f"observation/{name}": array for name, array in named.items()}
        for name, array in parts.items():
            if array is not None:
                rows = np.asarray(array)
                if name not in self.kept:
                    self.kept[name] = GrowingColumn(rows.shape[1:], rows.dtype)
                self.kept[name].append(rows)

    def leave(self, ctx: Context) -> None:
        # An adapt block is evaluated before it is left, and at its end what it taught is taken back.
        if ctx.event == ("task" if ctx.kind == "adapt" else "block") and self.kept:
            self._train()
        if ctx.event == "lifetime":
            self._stop()

    def _train(self) -> None:
        data, out = self.work / "data", self.work / "out"
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir(parents=True)
        out.mkdir(exist_ok=True)
        arrays: dict[str, Any] = {name: column.rows for name, column in self.kept.items()}
        np.savez(data / "data.npz", **arrays)
        words = {t: list(self.setup.instructions.get(t, ())) for t in self.tasks}
        (data / "about.json").write_text(json.dumps({"tasks": self.tasks, "instructions": words}))
        command = self._filled(
            self.trainer, data=data, checkpoint=self.checkpoint, out=out, seed=self.setup.seed
        )
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            said = done.stdout.decode(errors="replace")[-SAID:]
            raise AgentFault(f"finetuned: the trainer ended with {done.returncode}: {said}")
        made = self.work / _digest(out)
        if made.exists():
            shutil.rmtree(out)
        else:
            os.replace(out, made)
        self.checkpoint = str(made)
        self.kept, self.tasks = {}, []

    # What is saved: which checkpoint, and the data of an unfinished block.

    def state(self) -> State:
        digest = Path(self.checkpoint).name if self.checkpoint.startswith(str(self.work)) else ""
        found: dict[str, Any] = {
            "checkpoint": np.frombuffer(digest.encode(), np.uint8).copy(),
            "tasks": np.frombuffer(json.dumps(self.tasks).encode(), np.uint8).copy(),
        }
        return {**found, **{f"data/{name}": column.state() for name, column in self.kept.items()}}

    def load(self, state: State) -> None:
        digest = np.asarray(state["checkpoint"]).tobytes().decode()
        self.checkpoint = self.first
        if digest:
            folder = self.work / digest
            if not folder.is_dir() or _digest(folder) != digest:
                raise AgentFault(
                    f"finetuned: the checkpoint {folder} is gone or has changed; put it back, or begin anew"
                )
            self.checkpoint = str(folder)
        self.tasks = json.loads(np.asarray(state["tasks"]).tobytes() or b"[]")
        self.kept = {}
        for name, value in state.items():
            if name.startswith("data/"):
                column = GrowingColumn(tuple(value.shape[1:]), value.dtype)
                column.load(value)
                self.kept[name.removeprefix("data/")] = column


def _digest(folder: Path) -> str:
    """Of what is in a folder: names and bytes."""
    found = hashlib.sha256()
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    if not files:
        raise AgentFault(f"finetuned: the trainer wrote nothing into {folder}")
    for path in files:
        found.update(f"{path.relative_to(folder)} {path.stat().st_size}\n".encode())
        with path.open("rb") as f:
            while block := f.read(1 << 20):
                found.update(block)
    return found.hexdigest()[:DIGITS]


agent = FinetunedAgent
