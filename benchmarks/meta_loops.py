"""Whole meta-training and meta-test of one lifetime: where the time goes, with one core and with two."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from contextlib import contextmanager
from tempfile import TemporaryDirectory

import perdure
from perdure import registry

LOOPS = {
    "rl2": ("rl2,trials=4,sequence=250,batch=8", "descend"),
    "maml": ("maml,tasks=4,shots=2", "climb"),
    "pearl": (
        "pearl,start=400,rate=0.2,hidden=[128,128],encoder=[64,64],threads={cores}",
        "descend",
    ),
}
"""For each learner its specification, and the method that is one gradient update."""
STEPS = 8000
LIFE = f"metaworld/ml1,task=reach,steps={STEPS},trial=4,shots=2,episodes=1,goals=10,horizon=100,rounds=1"
TESTED = 10 * (1 + 2 + 1) * 100
"""Steps of meta-test: 10 goals, episodes before adapting, to adapt in and after it."""


class Profile:
    """Wall and CPU seconds of meta-training (learn blocks) and meta-test (the others), and within each the
    seconds of some methods, without what is measured inside them, and how often they were called."""

    def __init__(self):
        self.part = "around"
        self.wall, self.cpu = defaultdict(float), defaultdict(float)
        self.spent, self.calls = defaultdict(float), defaultdict(int)
        self.inside = 0.0
        self.began = time.perf_counter(), time.process_time()

    def turn(self, part):
        """What comes from now on is of this part."""
        now = time.perf_counter(), time.process_time()
        self.wall[self.part] += now[0] - self.began[0]
        self.cpu[self.part] += now[1] - self.began[1]
        self.part, self.began = part, now

    @contextmanager
    def of(self, *methods):
        """Clock these methods, given as class and name; a learner's blocks tell the part."""
        with_own = [
            (owner, name, name in vars(owner), getattr(owner, name)) for owner, name in methods
        ]
        for owner, name, _, method in with_own:
            setattr(owner, name, self._clocked(name, method))
        try:
            yield
        finally:
            for owner, name, own, method in with_own:
                if own:
                    setattr(owner, name, method)
                else:
                    delattr(owner, name)

    def _clocked(self, name, method):
        def timed(agent, *args, **more):
            if name == "enter" and args[0].event == "block":
                self.turn("training" if args[0].kind == "learn" else "test")
            began, before = time.perf_counter(), self.inside
            try:
                return method(agent, *args, **more)
            finally:
                took = time.perf_counter() - began
                self.spent[self.part, name] += took - (self.inside - before)
                self.inside = before + took
                self.calls[self.part, name] += 1
                if name == "leave" and args[0].event == "block":
                    self.turn("around")

        return timed


def profiled(name, cores):
    """The profile of a lifetime with so many cores: for physics, and for torch if the learner asks."""
    from perdure.suites import _threads
    from perdure.suites.metaworld.env import BatchedSawyer

    spec, gradient = LOOPS[name]
    kind, profile = registry.load("agents", name), Profile()
    methods = [(kind, m) for m in ("enter", "leave", "act", "update", gradient)]
    before = os.environ.get("PERDURE_THREADS")
    os.environ["PERDURE_THREADS"] = str(cores)
    _threads._pool.cache_clear()
    try:
        with TemporaryDirectory() as folder, profile.of(*methods, (BatchedSawyer, "step")):
            agents = [spec.format(cores=cores)]
            perdure.experiment(LIFE, agents, out=folder, executor="serial", envs=8)
    finally:
        os.environ.pop("PERDURE_THREADS")
        if before is not None:
            os.environ["PERDURE_THREADS"] = before
        _threads._pool.cache_clear()
    return profile, gradient


def table():
    """A line for each learner and number of cores."""
    lines = [
        "| learner | cores | steps a second | gradient updates a second | CPU-seconds a second | stepping | acting | updates | the rest | meta-test, steps a second |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name in LOOPS:
        for cores in (1, 2):
            p, gradient = profiled(name, cores)
            wall = p.wall["training"]
            spent = {m: p.spent["training", m] / wall for m in ("step", "act", "update", gradient)}
            shares = [spent["step"], spent["act"], spent["update"] + spent[gradient]]
            shares = [f"{100 * s:.0f} %" for s in (*shares, 1 - sum(shares))]
            paces = [f"{STEPS / wall:.0f}", f"{p.calls['training', gradient] / wall:.1f}", f"{p.cpu['training'] / wall:.2f}"]  # fmt: skip
            cells = [name, str(cores), *paces, *shares, f"{TESTED / p.wall['test']:.0f}"]
            lines.append(f"| {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return lines
