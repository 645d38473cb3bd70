"""Runs made up row by row: what the tests of the report are made of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from perdure.errors import NameRefused
from perdure.names import task_slug
from perdure.store.layout import LifetimeFolder, RunFolder
from perdure.store.log import LifetimeLog
from perdure.store.rows import FORMAT, Row

HOSTILE = (
    "toy/</script><script>window.hacked=1</script>",
    "toy/\"><img src=x onerror='window.hacked=1'>",
    "toy/\u202egnitirw tfel ot thgir\u2066",
    "toy/\x1b[31mred\x1b[0m\x07 & <b>bold</b> {{ 7 * 7 }}",
    "toy/" + "long-" * 20,
    "toy/</sCrIpT/><!-- ]]>\u2028\u2029`${alert(1)}`",
    "toy/tame",
)
"""Names that a page must show and not obey; and one that an expert's folder can have."""


def row(exp, block, task, learning, value, *, kind="", steps=10, measure="success", **more):
    """One experience."""
    values = {"return": None, "success": None, "accuracy": None} | {measure: value}
    return Row(
        exp, block, more.get("deployed", True), kind or ("learn" if learning else "eval"), learning,
        0, task, "", "", 0, exp, exp, exp, exp, steps, exp, more.get("status", "complete"), True, False,
        values["return"], values["success"], None, values["accuracy"], None, None,
    )  # fmt: skip


def write_lifetime(path, rows, agent, seed, *, expert="", described=None, done=True, error=""):
    """A lifetime's folder with these rows."""
    with LifetimeLog(path, agent, seed, expert) as log:
        log.commit(rows, None, {}, done=done)
    about = {"format": FORMAT, "agent": agent, "seed": seed, "expert": expert, **(described or {})}
    folder = LifetimeFolder(path)
    folder.write_description(about)
    session = {"python": "3.11.7", "packages": {"perdure": "0.1.0", "numpy": "2.0"}, "git": "abc"}
    folder.write_session(0, session)
    if error:
        folder.write_error(error)


def start_run(root: Path, name: str = "made/up", **spec) -> Path:
    """An empty run."""
    RunFolder(root).write_spec({"curriculum": name, **spec})
    return root


def describe(name: str, tasks: Sequence[str], amount: int, episodes: int) -> dict:
    """What a lifetime of tasks in turn says of its curriculum."""
    named = [dict(zip(("suite", "name"), t.split("/", 1), strict=True)) for t in tasks]
    evaluation = {
        "kind": "eval",
        "exposures": [{"task": t, "amount": episodes, "unit": "episodes"} for t in named],
    }
    blocks = [evaluation]
    for task in named:
        exposure = {"task": task, "amount": amount, "unit": "episodes"}
        blocks += [{"kind": "learn", "exposures": [exposure]}, evaluation]
    outline = {"name": name, "blocks": blocks}
    digest = hashlib.sha256(json.dumps(outline).encode()).hexdigest()
    return {"curriculum": outline, "fingerprint": digest[:12]}


def tasks_in_turn(rng, tasks, *, amount=60, episodes=5, keep=0.7, skill=0.9, measure="success"):
    """Rows of a lifetime: each task learned once, all evaluated before, between and after."""
    level = dict.fromkeys(tasks, 0.1)
    rows, block = [], 0

    def experience(task, learning, p):
        value = p + 0.08 * rng.standard_normal() if measure == "return" else float(rng.random() < p)
        if measure == "accuracy":
            value = float(np.clip(p + 0.05 * rng.standard_normal(), 0, 1))
        rows.append(row(len(rows), block, task, learning, value, measure=measure))

    for stage in range(len(tasks) + 1):
        for task in tasks:
            for _ in range(episodes):
                experience(task, False, level[task])
        block += 1
        if stage < len(tasks):
            task = tasks[stage]
            for p in np.linspace(level[task], skill, amount):
                experience(task, True, p)
            level = {t: 0.1 + (v - 0.1) * keep for t, v in level.items()} | {task: skill}
            block += 1
    return rows


def make_run(
    root: Path,
    tasks: Sequence[str] = ("toy/a", "toy/b", "toy/c"),
    agents: Sequence[tuple[str, float]] = (("good", 0.95), ("poor", 0.4)),
    seeds: Sequence[int] = (0, 1, 2),
    *,
    name: str = "made/up",
    experts: bool = False,
    **keys,
) -> Path:
    """A finished run; each agent is a name and the share that it keeps of what it learned."""
    start_run(root, name)
    described = describe(name, tasks, keys.get("amount", 60), keys.get("episodes", 5))
    for place, (agent, keep) in enumerate(agents):
        for seed in seeds:
            rng = np.random.default_rng([place, seed])
            rows = tasks_in_turn(rng, tasks, keep=keep, **keys)
            write_lifetime(root / agent / str(seed), rows, agent, seed, described=described)
        if experts:
            for t, task in enumerate(tasks):
                rng = np.random.default_rng([place, t, 7])
                chances = np.linspace(0.1, 0.9, keys.get("amount", 60))
                rows = [
                    row(i, 0, task, True, float(rng.random() < p)) for i, p in enumerate(chances)
                ]
                with suppress(NameRefused):  # Nobody can have run an expert of such a task.
                    folder = root / agent / "experts" / task_slug(task) / "0"
                    write_lifetime(folder, rows, agent, 0, expert=task)
    return root
