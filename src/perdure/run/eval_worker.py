"""``python -m perdure.run.eval_worker [--mix-code] RUN LIFETIME FD``: evaluates tasks for a lifetime.

The lifetime's process (:mod:`perdure.run.eval_pool`) asks through a socket, whose number is FD: first for
a phase of a block, with the agent's state, then for tasks of it. The answer to a task is a
transcript for each of its variants. No row is written here.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from perdure.arrays import Array
from perdure.pythonpath import import_from_here
from perdure.relayed import in_words
from perdure.run.agent_state import AgentState
from perdure.run.boundaries import Group, groups_of, tell
from perdure.run.guards import exit_fault
from perdure.run.messages import receive, receive_arrays, send
from perdure.run.mixing import check_lifetime
from perdure.run.plan import load_plan
from perdure.run.runner import Runner, last_trials
from perdure.run.signals import die_with_parent, leave
from perdure.run.transcript import TranscribingLoop, Transcript
from perdure.store.urls import place
from perdure.types import Block


class EvalWorker:
    """An agent of its own, given the lifetime's state for each evaluation."""

    def __init__(self, run: str, job_id: str, sock: socket.socket, mix_code: bool) -> None:
        self.sock = sock
        plan = replace(load_plan(place(run)), mix_code=mix_code)
        job = plan.job(job_id)
        # Files may have changed since the lifetime began.
        check_lifetime(plan, job, {}, ())
        self.config = plan.config(job)
        self.agent = plan.make_agent(job.agent, self.config.setup())
        tell(self.agent, self.config, 0, "enter", "lifetime")
        self.state = AgentState(self.agent)
        self.groups: list[Group] = []
        self.loop: TranscribingLoop | None = None

    def begin(self, told: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Take over an agent that is about to be evaluated in a phase of a block."""
        number, fixed = told["number"], self.config.curriculum.fixed
        # Blocks that a generator made are known to the lifetime alone.
        block = fixed[number] if number < len(fixed) else Block.from_json(told["block"])
        phases = [groups_of(self.config, number, i, block) for i in range(len(block.phases))]
        tell(self.agent, self.config, number, "enter", "block", [g for p in phases for g in p])
        self.state.restore(arrays, None)
        self.state.begin_evaluation(self.config.seed, number, told["phase"])
        self.groups = phases[told["phase"]]
        kept = (told["videos"], told["repeats"], last_trials(told["adapted"]))
        self.loop = TranscribingLoop(self.config, self.agent, *kept, self._beat)

    def evaluate(self, numbers: list[int]) -> None:
        """Evaluate some groups, the variants of one task, and send each one's transcript."""
        assert self.loop is not None
        for g in numbers:
            failure = None
            self.loop.transcript = Transcript()
            try:
                self.loop.visit(self.state, self.groups[g], g == numbers[0], g == numbers[-1])
            except (Exception, SystemExit) as e:
                failure = described(e)
            found = self.loop.transcript
            told = {"group": g, "events": found.events, "failure": failure}
            send(self.sock, told, found.arrays)
            if failure is not None:
                return

    def end(self) -> None:
        """The phase is over: the agent must be as it was."""
        self.state.end_evaluation(self.groups[0][0].number)

    def _beat(self, runner: Runner) -> None:
        done = [fraction for _, fraction in runner.fractions]
        share = sum(done) / len(done)
        send(self.sock, {"beat": runner.place.group, "fraction": share, "cpu": time.process_time()})


def described(error: BaseException) -> dict[str, str]:
    """An exception in plain words, for the lifetime to raise."""
    return in_words(exit_fault(error) if isinstance(error, SystemExit) else error)


def main(argv: list[str]) -> int:
    """Answer until the lifetime asks no more."""
    *flags, run, job, fd = argv
    faulthandler.disable()  # Nothing reads what it would write.
    import_from_here()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The process that asks stops this one.
    die_with_parent(int(os.environ["PERDURE_PARENT"]))
    sock = socket.socket(fileno=int(fd))
    worker: EvalWorker | None = None
    while (message := receive(sock)) is not None:
        told, failure = message[0], None
        arrays: Mapping[str, Array] = {}
        try:
            if told["ask"] == "begin":
                arrays = receive_arrays(sock)
            if worker is None:
                worker = EvalWorker(run, job, sock, "--mix-code" in flags)
            if told["ask"] == "begin":
                worker.begin(told, arrays)
            elif told["ask"] == "evaluate":
                worker.evaluate(told["groups"])
            else:
                worker.end()
        except (Exception, SystemExit) as e:
            failure = described(e)
        del arrays  # They may be large.
        answer = {"answer": told["ask"], "failure": failure, "cpu": time.process_time()}
        send(sock, answer)
    return 0


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
