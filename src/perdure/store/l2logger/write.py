"""Writing a run's lifetimes as L2Logger directories.

- Block and experience numbers are the run's own. They have gaps, since pre-deployment and adapt
  blocks are left out: the format has no word for them.
- Experiences stand in order of completion. Where tasks run side by side their rows alternate, and
  a reader that cuts regimes where the task changes gets many short ones.
- A window of a continuing task counts as a complete experience.
- Rows hold no clock. Timestamps count one microsecond an experience from 1 January 2000, and
  `logger_info.json` says so.
- `return` is written as `reward`; all other measures keep their names.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from perdure.errors import StoreError
from perdure.store import files, rows
from perdure.store.history import task_ids
from perdure.store.l2logger.names import l2_names, log_folder
from perdure.store.l2logger.read import SCENARIO
from perdure.store.l2logger.text import (
    WORKER,
    measures_of,
    write_blocks,
)
from perdure.store.l2logger.view import LEVELS
from perdure.store.run import LifetimeInfo, Run

_PLACE = (
    "exp",
    "block",
    "deployed",
    "kind",
    "learning",
    "task",
    "variant",
    "params",
    "steps",
    "status",
)


def write_run(
    run: Run,
    out: Path,
    *,
    without: Collection[str] = (),
    complexity: str = LEVELS["complexity"],
    difficulty: str = LEVELS["difficulty"],
) -> list[Path]:
    """Write every lifetime that has rows, and every finished single-task expert, into a new folder.

    Lifetimes go to `ll_logs/<agent>-<seed>`, experts to `ste_logs/<agent>/<task>-<seed>`. The folder
    appears when all of it is written. ``complexity`` and ``difficulty`` describe the scenario in
    the format's own words; lifetimes whose ids are in ``without`` are left out.
    """
    levels = {"complexity": complexity, "difficulty": difficulty}
    for key, value in levels.items():
        if value not in SCENARIO[key]:
            raise StoreError(f"{key} {value!r}: expected one of {', '.join(SCENARIO[key])}")
    infos = [i for i in run.lifetimes() if i.rows and i.id not in without]
    infos = [i for i in infos if not i.expert or i.status == "done"]
    names = l2_names([t for i in infos for t in _tasks_of(i)])
    written = []
    with files.new_folder(out) as folder:
        for info in infos:
            place = log_folder(info.agent, info.seed, names.get(info.expert, ""))
            table = info.read().table([*_PLACE, *rows.MEASURES, "more"])
            about = {**levels, **_about(run, info)}
            if _write_log(table, folder / place, names, about):
                written.append(out / place)
        if not written:
            raise StoreError(f"{run.path} has no rows to export yet: run it first")
    return written


def write_rows(
    table: pa.Table,
    out: Path,
    names: Mapping[str, str] | None = None,
    scenario: Mapping[str, Any] | None = None,
) -> None:
    """Write one lifetime's rows, as its segments hold them, as the new log ``out``."""
    about = {**LEVELS, "scenario_type": "custom", **(scenario or {})}
    names = l2_names(task_ids(table)[0]) if names is None else names
    with files.new_folder(out) as folder:
        if not _write_log(table, folder, names, about):
            raise StoreError(
                f"{out}: all rows are of pre-deployment or adapt blocks, none to write"
            )


def _about(run: Run, info: LifetimeInfo) -> dict[str, Any]:
    import perdure

    described = info.description
    return {
        "author": "Perdure",
        "scenario_type": "ste" if info.expert else "custom",
        "run": run.path.resolve().name,
        "curriculum_name": described.get("curriculum", {}).get("name", ""),
        "curriculum_fingerprint": described.get("fingerprint", ""),
        "agent_name": info.agent,
        "agent": described.get("agent", ""),
        "seed": info.seed,
        "expert": info.expert,
        "status": info.status,
        "perdure_version": perdure.__version__,
    }


def _tasks_of(info: LifetimeInfo) -> list[str]:
    table = info.read().table(["task", "variant"])
    return [*task_ids(table)[0], *([info.expert] if info.expert else [])]


def _write_log(
    table: pa.Table, folder: Path, names: Mapping[str, str], scenario: Mapping[str, Any]
) -> bool:
    """Write the rows that belong into a log; False if there are none."""
    before = pc.invert(table.column("deployed"))
    adapt = pc.equal(table.column("kind"), "adapt")
    table = table.filter(pc.invert(pc.or_(before, adapt))).combine_chunks()
    if not len(table):
        return False
    measures = measures_of(table)
    if not measures:
        raise StoreError(f"{folder.name}: the rows hold no measure, and a log needs one")
    tasks = {names[i]: i for i in task_ids(table)[0]}
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / "scenario_info.json", {**scenario, "tasks": tasks})
    said = "synthetic: one microsecond an experience, from 2000-01-01"
    info = {"metrics_columns": list(measures), "log_format_version": "1.1", "clock": said}
    _write_json(folder / "logger_info.json", info)
    write_blocks(table, measures, folder / WORKER, names)
    return True


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, allow_nan=False) + "\n", encoding="utf-8")
