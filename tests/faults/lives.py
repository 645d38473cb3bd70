"""Lives, environments and agents for the fault tests, named on command lines as
``lives.py:name``. Whatever breaks here breaks on purpose, where and how it is told to."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

from perdure.agent import Agent
from perdure.seeds import seed_for
from perdure.types import (
    Array,
    Batch,
    Block,
    BlockChoice,
    Context,
    Curriculum,
    Exposure,
    Setup,
    State,
    Task,
    adapt,
    evaluate,
    learn,
)

FAMILY = ["sleep", "3601.25"]
"""What an environment may leave behind."""
WORDS = "broken on purpose, at left and right"


class TwoPart(Exception):
    """Cannot be unpickled: its constructor takes two arguments."""

    def __init__(self, left: str, right: str) -> None:
        super().__init__(f"broken on purpose, at {left} and {right}")


class Unpicklable(Exception):
    """Cannot be pickled: it holds a lock."""

    def __init__(self) -> None:
        super().__init__(WORDS)
        self.lock = threading.Lock()


def trouble(how: str) -> None:
    """Make it."""
    if how == "two":
        raise TwoPart("left", "right")
    if how == "unpicklable":
        raise Unpicklable
    if how == "leaves":
        sys.exit(0)
    if how in ("hang", "stuck"):
        time.sleep(3600)
    if how == "family":
        subprocess.Popen(FAMILY)
        time.sleep(3600)
    if how.startswith("exit"):
        os._exit(int(how[4:]))
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "parent":
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(3600)
    raise AssertionError(f"no such trouble: {how}")


# The life that is interrupted: every kind of block, and a learner that has something to lose.


def life(steps: int = 60) -> Curriculum:
    """Eval, learn, adapt and parallel blocks on two corners of a small grid."""
    ne, sw = (Task("toy", f"goal-{c}", params={"size": 3, "horizon": 9}) for c in ("ne", "sw"))
    both = (Exposure(ne, 2), Exposure(sw, 2))
    blocks = (
        evaluate(*both),
        learn(Exposure(ne, steps, "steps")),
        adapt(Exposure(sw, steps // 2, "steps"), then=[Exposure(sw, 2)]),
        learn(Exposure(ne, steps, "steps"), Exposure(sw, steps // 2, "steps"), parallel=True),
        evaluate(*both, parallel=True),
        learn(Exposure(sw, 5), Exposure(ne, steps // 2, "steps")),
        evaluate(*both),
    )
    return Curriculum("faults/life", blocks)


def wide(blobs: bool = False, generated: bool = False, pause: float = 0.0) -> Curriculum:
    """Evaluations of several tasks, one of them with two variants; with ``blobs``, of data."""
    size = {"size": 3, "horizon": 9}
    names = [("ne", ""), ("ne", "again"), ("sw", ""), ("nw", ""), ("se", "")]
    tasks = [Task("toy", f"goal-{name}", variant, size) for name, variant in names]
    amount, unit = 3, "episodes"
    if pause:
        names = [("", "a"), ("", "b"), ("", "c"), ("", "d")]
        tasks = [Task("gym", "PerdureTroubled-v0", v, {"pause": pause}) for _, v in names]
        tasks += [Task("gym", "PerdureDishonest-v0", params={"pause": pause})]
    if blobs:
        tasks = [Task("toy", "blobs", f"turn{a}", {"angle": a}) for a in (0, 45, 90)]
        amount, unit = 1, "epochs"
    each = [Exposure(task, amount, unit) for task in tasks]  # type: ignore[arg-type]
    some = Exposure(tasks[0], 1 if blobs else 30, "epochs" if blobs else "steps")
    probe = adapt(some, then=each[:3])
    if not (blobs or pause):
        # The last task adapted to is not the one evaluated first, nor are the trials.
        trials = [Exposure(task, 4, episodes_per_trial=2) for task in tasks]
        probe = adapt(replace(some, episodes_per_trial=2), trials[2], then=trials[:3])
    blocks = (evaluate(*each), learn(some), evaluate(*each), probe)
    if not generated:
        return Curriculum("faults/wide", blocks)

    def generate() -> Any:
        for k in range(len(blocks)):
            yield blocks[k]

    return Curriculum("faults/wide", generate=generate, tasks=tuple(tasks))


# Environments in trouble.


class Troubled(gymnasium.Env[Array, int]):
    """Four steps an episode; the ``at``-th call of ``where`` goes wrong in the way ``how`` says.

    With ``flag`` it goes wrong only once in the world: the file remembers.
    """

    calls: ClassVar[Counter[tuple[str, ...]]] = Counter()

    def __init__(
        self, where: str = "", how: str = "two", at: int = 3, flag: str = "", pause: float = 0.0
    ) -> None:
        self.key = (where, how, flag)
        self.where, self.how, self.at, self.flag, self.pause = where, how, at, flag, pause
        self.observation_space = spaces.Box(0.0, 1.0, (3,), np.float32)
        self.action_space = spaces.Discrete(2)  # type: ignore[assignment]
        self.closed = self.stuck = False
        self._maybe("make")

    def _maybe(self, here: str) -> None:
        if here != self.where:
            return
        self.calls[self.key] += 1
        if self.calls[self.key] < self.at:
            return
        if self.flag:
            try:
                os.close(os.open(self.flag, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return
        self.stuck = self.how == "stuck"
        trouble(self.how)

    def _obs(self) -> Array:
        return self.np_random.random(3, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self.t = 0
        self._maybe("reset")
        return self._obs(), {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        time.sleep(self.pause)
        self._maybe("step")
        self.t += 1
        return self._obs(), float(action), self.t >= 4, False, {}

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            if self.stuck:
                trouble("hang")
            self._maybe("close")


class Dishonest(Troubled):
    """Its episodes depend on how many there were before: ``reset(seed)`` is not honest."""

    episodes = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        self.episodes += 1
        return super().reset(seed=None if seed is None else seed + self.episodes)


for _name, _class in (("PerdureTroubled-v0", Troubled), ("PerdureDishonest-v0", Dishonest)):
    if _name not in gymnasium.registry:
        gymnasium.register(_name, _class)


def troubled(
    faults: Sequence[str] = (), flag: str = "", pause: float = 0.0, seed: int = 0
) -> Curriculum:
    """Lifetime k gets ``faults[k]``, written ``where:how``; the others are sound."""
    mine = {seed_for(k, "curriculum"): f for k, f in enumerate(faults)}.get(seed, "")
    params: dict[str, Any] = {}
    if mine:
        params["where"], params["how"] = mine.split(":")
    if mine and flag:
        params["flag"] = str(Path(flag) / mine.replace(":", "-"))
    if pause:
        params["pause"] = pause
    task = Task("gym", "PerdureTroubled-v0", params=params)
    # How a sound and a broken lifetime differ must not move the episodes' seeds, so that a life
    # that got over its trouble can be compared with one that had none: evaluation seeds hang on
    # the task's parameters, so there is none of it where a flag is used.
    few = Exposure(task, 2)
    body = (learn(Exposure(task, 30, "steps")), learn(few), learn(few), learn(few))
    blocks = body if flag else (evaluate(few), *body, evaluate(few))
    return Curriculum("faults/troubled", blocks)


def closing() -> Curriculum:
    """An environment that hangs the first time it is closed."""
    params = {"where": "close", "how": "hang", "at": 1}
    return Curriculum(
        "faults/closing", (learn(Exposure(Task("gym", "PerdureTroubled-v0", params=params), 2)),)
    )


# Agents in trouble.


class Quiet(Agent):
    """Acts by chance and counts what it learned."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.n = 0

    def act(self, obs: Any, ctx: Context) -> Array:
        return self.rng.integers(self.setup.action_space.n, size=len(ctx.slots))  # type: ignore[attr-defined]

    def learn(self, batch: Batch, ctx: Context) -> None:
        self.n += len(batch)

    def state(self) -> dict[str, Array]:
        return {"n": np.array(self.n)}

    def load(self, state: State) -> None:
        self.n = int(state["n"])


class Touchy(Quiet):
    """Raises in the method it is told."""

    def __init__(self, setup: Setup, where: str = "", how: str = "two") -> None:
        super().__init__(setup)
        self.where, self.how = where, how
        self._maybe("constructor")

    def _maybe(self, here: str) -> None:
        if here == self.where:
            trouble(self.how)

    def act(self, obs: Any, ctx: Context) -> Array:
        self._maybe("act")
        return super().act(obs, ctx)

    def learn(self, batch: Batch, ctx: Context) -> None:
        self._maybe("learn")
        super().learn(batch, ctx)

    def observe(self, batch: Batch, ctx: Context) -> None:
        self._maybe("observe")

    def enter(self, ctx: Context) -> None:
        self._maybe("enter")

    def leave(self, ctx: Context) -> None:
        self._maybe("leave")

    def choose(self, options: Sequence[Block], results: Any) -> int:
        self._maybe("choose")
        return super().choose(options, results)

    def state(self) -> dict[str, Array]:
        self._maybe("state")
        return super().state()

    def load(self, state: State) -> None:
        self._maybe("load")
        super().load(state)


def every_method() -> Curriculum:
    """A life in which each method of an agent is called: it chooses, adapts and is evaluated."""
    task = Task("toy", "bandit")
    few, some = Exposure(task, 2), Exposure(task, 5, "steps")

    def generate() -> Any:
        yield evaluate(few)
        yield BlockChoice((learn(some), learn(few)))
        yield adapt(some, then=[few])

    return Curriculum("faults/every-method", generate=generate, tasks=(task,))


class Remembering(Quiet):
    """Acts by chance and by what it has done since the scope of its memory began."""

    def __init__(self, setup: Setup, scope: str = "episode") -> None:
        super().__init__(setup)
        self.memory_scope = scope  # type: ignore[assignment]
        self.steps = np.zeros(setup.slots, np.int64)

    def act(self, obs: Any, ctx: Context) -> Array:
        self.steps[ctx.slots] += 1
        actions: Array = (super().act(obs, ctx) + self.steps[ctx.slots]) % 4
        return actions

    def reset_memory(self, slots: Array) -> None:
        self.steps[slots] = 0

    def memory(self) -> dict[str, Array]:
        return {"steps": self.steps}

    def load_memory(self, memory: State) -> None:
        self.steps = np.array(memory["steps"])

    def diagnose(self) -> dict[str, float]:
        return {"drawn": float(self.rng.random()), "learned": float(self.n)}


class Talking(Quiet):
    """Says a word to the user when it learns first, and takes its time."""

    def learn(self, batch: Batch, ctx: Context) -> None:
        if not self.n:
            print("perdure: a word in the middle of life", file=sys.stderr, flush=True)
        time.sleep(0.1)
        super().learn(batch, ctx)


class Restless(Quiet):
    """Learns in evaluation."""

    def act(self, obs: Any, ctx: Context) -> Array:
        self.n += 1
        return super().act(obs, ctx)


class Misbehaving(Quiet):
    """Does one bad thing at its first step, and once in the world if it is told a ``flag``."""

    def __init__(self, setup: Setup, how: str = "", flag: str = "", pause: float = 0.0) -> None:
        super().__init__(setup)
        self.how, self.flag, self.pause = how, flag, pause

    def act(self, obs: Any, ctx: Context) -> Array:
        if self.how and not (self.flag and Path(self.flag).exists()):
            if self.flag:
                Path(self.flag).touch()
            how, self.how = self.how, ""
            misbehave(how, Path(self.flag))
        time.sleep(self.pause)
        return super().act(obs, ctx)


def misbehave(how: str, file: Path) -> None:
    """Do it."""
    if how == "thread":
        threading.Thread(target=time.sleep, args=(3600,), name="left-behind").start()
    elif how == "crash":
        ctypes.string_at(0)
    elif how == "loud":
        line = "x" * 1023 + "\n"
        print("the first line")
        for _ in range(20):
            sys.stdout.write(line * 1024)
        sys.stdout.flush()
        raise RuntimeError(f"it begins {'y' * 5_000_000} it ends")
    elif how in ("child", "daemon"):
        child = subprocess.Popen(FAMILY, start_new_session=how == "daemon")
        file.with_suffix(".pid").write_text(str(child.pid))
