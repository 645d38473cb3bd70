"""The bodies of measure, compare and export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perdure.cli.terminal import lacking, remark, say, tell
from perdure.errors import StoreError
from perdure.measure.runs import MeasureOptions, compared, measured
from perdure.registry import metrics_named
from perdure.show.measured import (
    estimates_table,
    progress_line,
    remarks,
    scores_table,
    shown_columns,
    verdict_lines,
    verdicts_table,
)


def measure(
    path: Path,
    how: MeasureOptions,
    json_file: Path | None,
    partial: bool = False,
) -> int:
    """Measure, print a table, write JSON."""
    results = measured([path], how, metrics_named, progress=progress_line)
    if results.lifetimes:
        scores_table(results).show()
        _tell_protocols(results.protocols)
        shown = shown_columns(results)
        for line in remarks(results, shown):
            remark(line)
        more = len(results.lifetimes[0].scores) - len(shown)
        if more > 0:
            remark(f"{more} more metrics: --metric NAME, or --json FILE for all", style="dim")
    code = lacking(results.failed, partial)
    if json_file is not None:
        _write_json(json_file, results.to_json())
    if not results.lifetimes:
        tell("nothing could be measured")
        return 1
    return code


def _tell_protocols(protocols: Mapping[str, str]) -> None:
    """By which protocols runs were evaluated; different ones are marked."""
    if len(set(protocols.values())) > 1:
        each = "; ".join(f"{run}: {protocol}" for run, protocol in protocols.items())
        remark(f"evaluated by different protocols, so these numbers mean different things: {each}")
    for protocol in set(protocols.values()) if len(set(protocols.values())) == 1 else ():
        remark(f"protocol: {protocol}", style="dim")


def compare(
    paths: Sequence[Path],
    how: MeasureOptions,
    baseline: str | None,
    anyway: bool,
    json_file: Path | None,
    partial: bool = False,
    every: bool = False,
) -> int:
    """A verdict, agents × metrics with intervals, and the differences that hold after correction."""
    results, family, better = compared(
        paths, how, metrics_named, baseline=baseline, anyway=anyway, progress=progress_line
    )
    code = lacking(results.failed, partial)
    if family is None:
        tell("nothing could be measured")
        return 1
    for line in verdict_lines(results, family, better):
        remark(line)
    estimates_table(results, family, better).show()
    differences = verdicts_table(family, better, every)
    if differences.rows:
        differences.show()
    _tell_protocols(results.protocols)
    for line in remarks(results, list(better)):
        remark(line)
    if json_file is not None:
        found = {"preset": results.preset, "measure": results.measure, **family.as_dict()}
        found |= {"failed": dict(results.failed), "mixed_code": list(results.mixed)}
        found["protocols"] = dict(results.protocols)
        _write_json(json_file, found)
    return code


def _write_json(path: Path, value: Any) -> None:
    from perdure.store.files import write_output
    from perdure.store.plain import strict_json

    write_output(path, strict_json(value).encode())


def export(path: Path, format: str, out: Path, partial: bool = False) -> int:
    """Write a run in another format. Of one that is not whole nothing is written, unless that was
    asked for."""
    from perdure.store.completeness import listed
    from perdure.store.export import export_rows
    from perdure.store.l2logger.write import write_run
    from perdure.store.run import Run

    run = Run(path)
    gaps = run.gaps(verify=True)
    if gaps and not partial:
        raise StoreError(f"{listed(path, gaps)}\n--partial exports the rest")
    for gap in gaps:
        tell(f"not exported, or not to its end: {gap}")
    without = {gap.id for gap in gaps if gap.damage}
    if format == "tensorboard":
        from perdure.store.tensorboard import write_tensorboard

        say(f"{len(write_tensorboard(run, out, without))} lifetimes: {out}")
    elif format == "l2logger":
        written = write_run(run, out, without=without)
        say(f"{len(written)} logs: {out}")
    elif format == "compact":
        from perdure.store.compact import write_compact

        say(f"run: {write_compact(run, out)}")
    elif format == "safetensors":
        from perdure.store.safetensors import write_safetensors

        agents, left_out = write_safetensors(run, out, without)
        for why in left_out:
            tell(f"not exported: {why}")
        say(f"{len(agents)} agents: {out}")
        return 0 if agents else 1
    else:
        say(f"rows: {export_rows(run, out, format, partial)}")
    return 0
