"""eval, protocols, selftest and serve."""

from __future__ import annotations

import sys
from typing import Any

import click

from perdure.cli.group import ExecutionFlags, eval_workers, main


@main.command("eval")
@click.argument("suite")
@click.option("--policy", "-p", "policies", multiple=True, required=True, metavar="[LABEL=]P",
              help="ws://HOST:PORT, RUN[:AGENT], file.py:Policy or an agent; repeatable.")  # fmt: skip
@click.option("--protocol", default="", help="Whose: perdure protocols SUITE lists them.")
@click.option("--episodes", "-n", type=click.IntRange(min=1), help="Of each task (the protocol's).")
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE",
              help="In place of the protocol's value; the hash changes too. Repeatable.")  # fmt: skip
@click.option("--seed", "-s", type=int, help="Of the first lifetime (the protocol's).")
@click.option(
    "--lifetimes", type=int, help="Evaluations of each policy, with seeds counting up (1)."
)
@click.option("--envs", type=int, help="Environments side by side, in one query (2).")
@click.option("--executor", help="serial | processes[,workers=N,deadline=S,retries=N].")
@eval_workers
@click.option("--out", "-o", default="", help="Folder of the run (runs/eval-SUITE-PROTOCOL).")
@click.option(
    "--video", is_flag=True, help="Record the first, best and worst episode of each task."
)
@click.option(
    "--preflight/--no-preflight", default=True, help="Check conventions before the first episode."
)
@click.option("--timeout", type=float, help="Seconds to wait for a server's answer (60).")
@click.option("--anywhere", is_flag=True, default=None, help="Servers may be on other machines.")
@click.option("--mix-code", is_flag=True, help="Also if code changed since earlier lifetimes.")
@click.option("--quiet", "-q", is_flag=True, help="No progress, no table.")
def eval_(
    suite: str,
    policies: tuple[str, ...],
    protocol: str,
    episodes: int | None,
    changes: tuple[str, ...],
    timeout: float | None,
    anywhere: bool | None,
    **flags: Any,
) -> None:
    """Evaluate policies on SUITE by a named protocol: success by task, with intervals.

    SUITE is libero/spatial (or libero_spatial), metaworld/mt10, …, or one task. Several policies play the
    same episodes and are compared on them. The same command again resumes; another policy with the same
    --out joins those that are there.
    """
    from perdure.cli import evaluating
    from perdure.run.evaluation import evaluation_spec, policy_spec

    servers = {"timeout": timeout, "anywhere": anywhere}
    chosen = [policy_spec(text, servers) for text in policies]
    curriculum = evaluation_spec(suite, protocol, episodes, changes)
    how = ExecutionFlags.taken_from(flags)
    sys.exit(evaluating.evaluate(chosen, curriculum, how, **flags))


@main.command()
@click.argument("suite", required=False)
@click.argument("names", nargs=-1)
def protocols(suite: str | None, names: tuple[str, ...]) -> None:
    """List evaluation protocols with their hashes; of a SUITE all values; of two NAMES what differs."""
    from perdure.cli import evaluating

    sys.exit(evaluating.protocols(suite, names))


@main.command()
@click.argument("suite")
@click.option("--protocol", default="", help="Whose conventions the replayed policy expects.")
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE",
              help="Scramble this one, to see that it is found. Repeatable.")  # fmt: skip
@click.option("--expert", default="", help="The agent that demonstrates (the suite's own).")
@click.option("--episodes", "-n", type=click.IntRange(1, 1000), default=2, show_default=True)
@click.option("--demonstrations", default="", metavar="DIR",
              help="Replay these in place of the expert: what record --format minari wrote.")  # fmt: skip
@click.option("--socket/--no-socket", default=True, help="Through a socket, as servers are asked.")
def selftest(suite: str, **flags: Any) -> None:
    """Replay an expert through the path of an evaluation: it must reach the expert's success.

    A convention that is not the protocol's is found and named. Exit 0 only if all is well.
    """
    from perdure.cli import evaluating

    sys.exit(evaluating.selftest(suite, **flags))


@main.command()
@click.argument("policy")
@click.option(
    "--for", "suite", default="", help="The suite it acts in; a run's agent knows its own."
)
@click.option("--protocol", default="", help="By which clients will evaluate it.")
@click.option(
    "--set", "changes", multiple=True, metavar="KEY=VALUE", help="As for eval; repeatable."
)
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True)
@click.option("--clients", type=click.IntRange(1, 1024), default=8, show_default=True,
              help="Environments at a time.")  # fmt: skip
@click.option("--anywhere", is_flag=True, help="HOST may be open to other machines.")
def serve(policy: str, **flags: Any) -> None:
    """Serve a POLICY over openpi's websocket protocol: RUN[:AGENT], file.py:Agent or an agent's name."""
    from perdure.cli import evaluating

    sys.exit(evaluating.serve(policy, **flags))
