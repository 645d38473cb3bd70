"""The bodies of eval, protocols and serve."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from perdure import registry
from perdure.cli.group import ExecutionFlags
from perdure.cli.terminal import remark, say, tell
from perdure.curricula.named import curriculum_of
from perdure.errors import Interrupted, SpecError, UnknownName
from perdure.specs import Spec


def evaluate(
    policies: Sequence[Spec],
    curriculum: Spec,
    how: ExecutionFlags,
    preflight: bool,
    **flags: Any,
) -> int:
    """Check, play what is left, print success by task."""
    from perdure.run.evaluation import evaluation_run
    from perdure.run.experiment import execute, prepare
    from perdure.run.plan import make_plan
    from perdure.run.signals import interruptible
    from perdure.show.live import LiveView
    from perdure.show.screen import SafeConsole
    from perdure.store.run import Run

    given = {k: v for k, v in flags.items() if v is not None}
    spec = evaluation_run(policies, curriculum, **given)
    quiet = how.quiet
    screen = SafeConsole(stderr=True, quiet=quiet)
    try:
        with interruptible():
            plan = replace(make_plan(spec), mix_code=how.mix_code)
            by = plan.curriculum(spec.seed).protocol
            screen.print(f"{spec.curriculum} by protocol {by}", highlight=False, markup=False)
            prepare(plan, how.video)
            left = [job for job in plan.jobs if not _is_done(plan, job)]
            if preflight and left:
                _preflight(plan, {job.agent for job in left}, quiet)
            with LiveView(plan.path, SafeConsole(stderr=True, quiet=quiet)):
                workers = how.eval_workers
                outcomes = execute(plan, video=how.video, prepared=True, eval_workers=workers)
    except Interrupted as e:
        again = shlex.join(["perdure", *sys.argv[1:]])
        tell(f"\nstopped by signal {e.signum}; nothing is lost. To resume: {again}")
        return 128 + e.signum
    failed = [o for o in outcomes if o.status == "failed"]
    _tell_results(Run(plan.path), quiet)
    for o in failed:
        tell(f"failed: {o.job.id}: {o.error}")
    if failed:
        tell("episodes that were under way do not count; the same command goes on")
    return 1 if failed else 0


def _is_done(plan: Any, job: Any) -> bool:
    from perdure.run.lifetime import finished

    return finished(plan, job)


def _preflight(plan: Any, agents: set[str], quiet: bool) -> None:
    """What policies expect, beside what the protocol gives; a contradiction ends it here."""
    from perdure.run.preflight import preflight

    for label in sorted(agents):
        for line in preflight(plan, label):
            if not quiet:
                remark(f"{label}: {line}")


def _tell_results(run: Any, quiet: bool) -> None:
    from perdure.show.evaluation import (
        doubts,
        eval_info,
        evaluated,
        paired_table,
        protocol_of,
        success_table,
    )

    policies, protocol = evaluated(run), protocol_of(run)
    if not policies:
        return
    for policy in policies:
        path = run.folder.write_evaluation(policy.name, eval_info(policy, protocol))
    if quiet:
        return
    success_table(policies, f"success [95% interval], protocol {protocol}").show()
    open_ = doubts(policies)
    if len(policies) > 1:
        sheet, more = paired_table(policies)
        if sheet.rows:
            sheet.show()
        open_ += more
    for line in open_:
        remark(line)
    say(f"rows: {run.path}; for LeRobot's tools: {path.parent.parent}/*/{path.name}")


def protocols(suite: str | None, names: Sequence[str]) -> int:
    """The protocols of suites, side by side; of two, what differs."""
    from perdure.protocol import differences
    from perdure.show.sheet import Sheet

    if suite is None:
        for name in registry.entries("suites"):
            for protocol in registry.suite(name).protocols().values():
                say(f"{name}: {protocol}")
        return 0
    if not registry.is_suite(suite):
        raise UnknownName("suite", suite, registry.entries("suites"))
    known = registry.suite(suite).protocols()
    if not known:
        raise SpecError(f"suite {suite} has no evaluation protocols")
    for name in names:
        if name not in known:
            raise UnknownName(f"protocol of {suite}", name, known)
    chosen = [known[n] for n in names] or list(known.values())
    if len(chosen) == 2:
        say(f"{chosen[0]} | {chosen[1]}")
        for line in differences(chosen[0].values, chosen[1].values):
            say(f"  {line}")
        return 0
    rows = dict.fromkeys(k for p in chosen for k in p.values)
    sheet = Sheet("", ["parameter", *(p.name for p in chosen)], words=["parameter"])
    sheet.rows.append(("hash", *(p.hash for p in chosen)))
    for row in rows:
        sheet.rows.append((row, *(_shown(p.get(row)) for p in chosen)))
    sheet.show()
    return 0


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "/".join(str(v) for v in value.values())
    return "–" if value is None else str(value)


def serve(
    policy: str, suite: str, protocol: str, host: str, port: int, clients: int, anywhere: bool,
    changes: Sequence[str],
) -> int:  # fmt: skip
    """Serve a policy until it is interrupted."""
    from perdure.agents.compose import make_agent, pinned
    from perdure.policies.server import listening
    from perdure.run.evaluation import evaluation_spec, policy_spec
    from perdure.run.from_run import lifetime_of
    from perdure.run.plan import make_plan
    from perdure.run.spec import RunSpec
    from perdure.store.run import Run
    from perdure.store.saved import AgentReference, saved_agent

    spec = policy_spec(policy)
    if not suite and spec.name == "from_run":
        run, label = Run(str(spec.params["run"])), str(spec.params.get("agent", ""))
        saved = saved_agent(AgentReference(run, label))
        setup = replace(lifetime_of(saved).setup(), slots=clients)
    elif not suite:
        raise SpecError("name what it is a policy for: --for SUITE, such as metaworld/mt10")
    else:
        curriculum = evaluation_spec(suite, protocol, None, changes)
        plan = make_plan(RunSpec(str(curriculum), ("random",), envs=clients))
        setup = plan.config(plan.jobs[0]).setup()
    agent = make_agent(pinned(spec), setup)
    server = listening(agent, host, port, anywhere)
    where = server.socket.getsockname()
    say(f"serving {policy} at ws://{where[0]}:{where[1]} ({clients} places); Ctrl-C ends it")
    sys.stdout.flush()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.shutdown()
    return 0


def selftest(
    suite: str, protocol: str, changes: Sequence[str], expert: str, episodes: int, socket: bool,
    demonstrations: str,
) -> int:  # fmt: skip
    """Replay an expert through the path of an evaluation, and say what is wrong with it."""
    from perdure.run.evaluation import evaluation_spec
    from perdure.run.selftest import selftest as test

    plain = evaluation_spec(suite, protocol)
    changed = evaluation_spec(suite, protocol, None, changes)
    good = True
    who = "those who demonstrated" if demonstrations else "the expert"
    for found in test(changed, expert, plain, episodes, socket, demonstrations=demonstrations):
        verdict = "right" if found.passed else "WRONG"
        say(
            f"{found.task}: {verdict}; {who} solved {found.demonstrated} of {found.episodes}, "
            f"{'a' if demonstrations else 'its'} replay through this path {found.replayed}"
        )
        for finding in found.findings:
            say(f"  {finding}")
        good &= found.passed
    return 0 if good else 1


def record(
    played: Spec, policy: str, episodes: int, out: str, kind: str, seed: int, successful: bool
) -> int:
    """Play episodes and write them as a dataset."""
    from perdure.datasets.lerobot import write_lerobot
    from perdure.datasets.minari import write_minari
    from perdure.run.evaluation import policy_spec
    from perdure.run.recording import as_lerobot, recordings, setup_for

    curriculum = curriculum_of(played)
    task = curriculum.tasks[0]
    mine = registry.suite(task.suite)
    name, params = (policy, {}) if policy else mine.demonstrator()
    if not name:
        raise SpecError(f"suite {task.suite} has no expert of its own: name a policy (--policy)")
    found = recordings(curriculum, policy_spec(name), params, episodes, seed, successful)
    setup, own = setup_for(task, curriculum)
    if kind.startswith("minari"):
        spaces = (setup.observation_space, setup.action_space)
        form = "hdf5" if kind == "minari-hdf5" else "parquet"
        path = write_minari(out, found, *spaces, data_format=form)
    else:
        env = own.env(task)
        fps = int(env.metadata.get("render_fps", 20))
        env.close()
        videos = kind == "lerobot-video"
        named = (as_lerobot(mine, episode) for episode in found)
        path = write_lerobot(out, named, fps, task.suite, videos)
    say(f"{kind} dataset: {path}")
    return 0


def convert(source: str, out: str, kind: str, fps: int | None) -> int:
    """Write a dataset in another format."""
    from perdure.datasets.convert import convert as written

    path = written(source, out, kind, fps)
    say(f"{kind} dataset: {path}")
    return 0
