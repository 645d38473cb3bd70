"""ls and doctor."""

from __future__ import annotations

import sys

import click

from perdure.cli.group import main

PARTS = ("suites", "curricula", "agents", "strategies", "metrics", "executors")


@main.command()
@click.argument("part", required=False, type=click.Choice((*PARTS, "tasks")))
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def ls(part: str | None, name: str | None, as_json: bool) -> None:
    """List what there is: suites, curricula, agents, strategies, metrics, executors; and, if asked for,
    the tasks of all suites.

    With a NAME, all there is to know of one: its parameters with types and defaults, presets and
    docstring. perdure ls agents ppo, ls curricula gym/sequence, ls tasks SUITE.
    """
    from perdure.cli import listing

    listing.ls(PARTS if part is None else (part,), name, as_json)


@main.command()
@click.option("--thorough", is_flag=True, help="Import everything: finds what is broken, slowly.")
def doctor(thorough: bool) -> None:
    """Say what is installed here and what for, and how to install the rest."""
    from perdure.cli import verbs

    sys.exit(verbs.doctor(thorough))
