"""The bodies of measure, compare and export."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perdure.cli.terminal import remark, say, tell
from perdure.errors import SpecError, UnknownName
from perdure.show.sheet import Sheet
from perdure.store.plain import visible

if TYPE_CHECKING:
    from perdure.measure.compare import Family
    from perdure.measure.metric import Metric
    from perdure.measure.results import Results
    from perdure.measure.stats import Estimate

MANY = 30
"""Beyond so many lifetimes the screen shows means alone."""
ARROWS = {"higher": "↑", "lower": "↓"}
PAPER_FLAGS = {
    "perf_measure", "smoothing_method", "window_length", "clamp_outliers", "data_range_file",
    "normalization_method",
}  # fmt: skip


def measure(
    path: Path,
    preset: str,
    ste: Sequence[str],
    names: Sequence[str],
    flags: Mapping[str, Any],
    json_file: Path | None,
) -> int:
    """Measure, print a table, write JSON."""
    results = _measured([path], preset, ste, names, flags)
    if results.lifetimes:
        _table(results).show()
        shown = _columns(results)
        for line in _remarks(results, shown):
            remark(line)
        more = len(results.lifetimes[0].scores) - len(shown)
        if more > 0:
            remark(f"{more} more metrics: --metric NAME, or --json FILE for all", style="dim")
    for name, reason in results.failed.items():
        tell(f"not measured: {name}: {reason}")
    if json_file is not None:
        _write_json(json_file, results.to_json())
    if not results.lifetimes:
        tell("nothing could be measured")
    return 1 if results.failed or not results.lifetimes else 0


def _measured(
    paths: Sequence[Path],
    preset: str,
    ste: Sequence[str],
    names: Sequence[str],
    flags: Mapping[str, Any],
    same_curriculum: bool = False,
) -> Results:
    from perdure.measure import sources
    from perdure.measure.results import measure_paper, measure_reference, read_all

    given = {k: v for k, v in flags.items() if v is not None}
    name = given.get("perf_measure")
    read = None if preset == "reference" and name == "reward" else name
    found = sources.merge([sources.find(p, ste, read) for p in paths])
    if same_curriculum:
        sources.refuse_different(found)
    progress = _progress(len(found.sources))
    if preset == "reference":
        # Its own values need no scores; those of metrics asked for by name come on top.
        wanted = choose(names) if names else []
        return measure_reference(found, _reference_options(given), wanted, progress)
    options, metrics = _paper_options(given), choose(names)
    histories, failed = read_all(found, progress)
    return measure_paper(histories, options, metrics, failed)


def _reference_options(given: dict[str, Any]) -> Any:
    from perdure.measure.results import reference_options

    settings = given.pop("load_settings", None)
    if settings is not None:
        given |= _read_object(settings, "settings")  # A settings file wins, as it does there.
    ranges = given.pop("data_range_file", None)
    if ranges is not None:
        given["data_range"] = _read_object(ranges, "data range file")
    return reference_options(given)


def _paper_options(given: dict[str, Any]) -> Any:
    from perdure.measure.l2m import paper

    for flag in given:
        if flag not in PAPER_FLAGS:
            raise SpecError(
                f"--{flag.replace('_', '-')} belongs to preset reference; preset paper takes "
                + ", ".join(f"--{f.replace('_', '-')}" for f in sorted(PAPER_FLAGS))
            )
    ranges = given.get("data_range_file")
    return paper.PaperOptions(
        measure=given.get("perf_measure"),
        smoothing=given.get("smoothing_method", "flat"),
        window=given.get("window_length"),
        clamp=given.get("clamp_outliers", True),
        normalise=given.get("normalization_method", "task") != "none",
        ranges=_ranges(_read_object(ranges, "data range file")) if ranges else None,
    )


def _ranges(found: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    try:
        return {t: (float(v["min"]), float(v["max"])) for t, v in found.items()}
    except (TypeError, KeyError, ValueError) as e:
        raise SpecError(f"data range file: expected {{task: {{min, max}}}}: {e}") from e


def _read_object(path: Path, what: str) -> dict[str, Any]:
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        raise SpecError(f"{what} {path}: {e}") from e
    if not isinstance(found, dict):
        raise SpecError(f"{what} {path} must hold a JSON object")
    return found


def choose(names: Sequence[str]) -> list[Metric]:
    """The metrics of these names: one, a whole paper's (``libero``), or ``file.py:object``; all
    registered ones where none is named."""
    from perdure import registry
    from perdure.specs import is_file_reference

    known = registry.metrics()
    if not names:
        return list(known.values())
    out: list[Metric] = []
    for name in names:
        if is_file_reference(name):
            out += registry.as_metrics(registry.load_file(name), name)
        elif name in known:
            out.append(known[name])
        else:
            paper = [m for n, m in known.items() if n.startswith(f"{name}.")]
            if not paper:
                raise UnknownName("metric", name, known, "(perdure ls metrics lists them)")
            out += paper
    return out


def _progress(total: int) -> Callable[[int, int, str], None] | None:
    """Progress of many lifetimes on standard error: in place on a terminal, else now and then."""
    if total < 4:
        return None
    began = time.monotonic()
    said = [began]
    screen = sys.stderr.isatty()

    def advance(done: int, of: int, name: str) -> None:
        now = time.monotonic()
        if done < of and now - said[0] < (0.1 if screen else 5.0) and done % 10:
            return
        said[0] = now
        left = (now - began) / done * (of - done) if done else 0.0
        text = f"measured {done}/{of}" + (f", {left:.0f} s left, {name}" if done and name else "")
        text = visible(text)
        print(f"\r\x1b[K{text}" if screen else text, file=sys.stderr, end="" if screen else "\n")
        if screen and done == of:
            print(file=sys.stderr)

    return advance


def _table(results: Results) -> Sheet:
    columns = _columns(results)
    what = f"{results.measure}, preset {results.preset}, n = {len(results.lifetimes)} lifetimes"
    head = ["lifetime", *(column.replace("_", " ") for column in columns)]
    sheet = Sheet(what, head, words=["lifetime"])
    rows = [(life.name, _values(life, columns)) for life in results.lifetimes]
    if len(rows) <= MANY:
        sheet.rows += [(name, *map(_cell, values)) for name, values in rows]
    groups: dict[str, list[list[float]]] = {}
    for life, (_, values) in zip(results.lifetimes, rows, strict=True):
        groups.setdefault(life.agent, []).append(values)
    if len(rows) > 1:
        sheet.rows.append(())
        for agent, lives in groups.items():
            label = f"{agent}: mean of {len(lives)}" if agent else f"mean of {len(lives)}"
            sheet.rows.append((label, *(_cell(_mean(c)) for c in zip(*lives, strict=True))))
    return sheet


def _columns(results: Results) -> list[str]:
    if results.preset == "reference" and results.lifetimes[0].reference is not None:
        shown = [
            k for k, v in results.lifetimes[0].reference.items()
            if isinstance(v, float) and k not in ("min", "max", "runtime")
        ]  # fmt: skip
        return shown + list(results.lifetimes[0].scores)
    names = [n for n in results.lifetimes[0].scores]
    if len(names) > 12:
        # Everything was asked for: show what the document calls core, and what has a value.
        from perdure.measure.l2m import CORE

        names = [n for n in names if n in CORE or n in ("l2m.pr", "l2m.atp", "l2m.aep", "gem.acc")]
    return names


def _values(life: Any, columns: Sequence[str]) -> list[float]:
    out = []
    for column in columns:
        if column in life.scores:
            out.append(life.scores[column].value)
        else:
            out.append((life.reference or {}).get(column, float("nan")))
    return out


def _mean(values: Sequence[float]) -> float:
    defined = [v for v in values if not isnan(v)]
    return sum(defined) / len(defined) if defined else float("nan")


def _cell(value: float) -> str:
    return "–" if isnan(value) else f"{value:.4g}" if abs(value) < 1e4 else f"{value:.3e}"


def _remarks(results: Results, shown: Sequence[str]) -> list[str]:
    """Why values are missing, and what to know before trusting the others; each said once."""
    said: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}

    def remark(mark: str, text: str, metric: str, life: str) -> None:
        metrics, lives = said.setdefault((mark, text), ({}, {}))
        metrics |= {metric: None} if metric else {}
        lives[life] = None

    for life in results.lifetimes:
        for key, reason in life.reasons.items():
            remark("–", reason, key, life.name)
        for name in shown:
            if name in life.scores:
                if life.scores[name].reason:
                    remark("–", life.scores[name].reason, name, life.name)
                for note in life.scores[name].notes:
                    remark("note", note, name, life.name)
        for note in life.notes:
            remark("note", note, "", life.name)
    everyone = len(results.lifetimes)
    lines = []
    for (mark, text), (metrics, lives) in said.items():
        of = f" {', '.join(metrics)}" if metrics else ""
        some = f" ({len(lives)} of {everyone} lifetimes)" if len(lives) < everyone else ""
        lines.append(f"{mark}{of}: {text}{some}")
    return lines


def compare(
    paths: Sequence[Path],
    preset: str,
    ste: Sequence[str],
    names: Sequence[str],
    baseline: str | None,
    anyway: bool,
    flags: Mapping[str, Any],
    json_file: Path | None,
) -> int:
    """Agents × metrics with intervals and corrected significance."""
    from perdure.measure.compare import compare_metrics
    from perdure.measure.l2m import CORE

    chosen = names or CORE
    results = _measured(paths, preset, ste, chosen, flags, same_curriculum=not anyway)
    for name, reason in results.failed.items():
        tell(f"not measured: {name}: {reason}")
    if not results.lifetimes:
        tell("nothing could be measured")
        return 1
    table = results.table()
    defined = {
        m: scores for m, scores in table.items()
        if any(not isnan(v) for seeds in scores.values() for v in seeds.values())
    }  # fmt: skip
    family = compare_metrics(defined or table, baseline=baseline)
    better = {m.name: m.better for m in choose(chosen)}
    _estimates(results, family, better).show()
    _verdicts(family, better).show()
    for line in _remarks(results, list(better)):
        remark(line)
    if json_file is not None:
        found = {"preset": results.preset, "measure": results.measure, **family.as_dict()}
        _write_json(json_file, {**found, "failed": dict(results.failed)})
    return 1 if results.failed else 0


def _estimates(results: Results, family: Family, better: Mapping[str, str]) -> Sheet:
    """Agents down, metrics across: mean, interval, n."""
    title = f"{results.measure}, preset {results.preset}: mean [{family.level:.0%} t interval] over lifetimes"
    metrics = dict.fromkeys(s.metric for s in family.summaries)
    sheet = Sheet(title, ["agent", *(f"{m} {ARROWS[better[m]]}" for m in metrics)], words=["agent"])
    for agent in dict.fromkeys(s.agent for s in family.summaries):
        cells = [_estimate(s.estimate) for s in family.summaries if s.agent == agent]
        sheet.rows.append((agent or "(all)", *cells))
    return sheet


def _estimate(e: Estimate) -> str:
    if isnan(e.value):
        return "–"
    span = "" if isnan(e.low) else f" [{_cell(e.low)}, {_cell(e.high)}]"
    return f"{_cell(e.value)}{span} n={e.n}"


def _verdicts(family: Family, better: Mapping[str, str]) -> Sheet:
    sheet = Sheet(
        f"differences, Holm-corrected over {family.tests} tests",
        ["metric", "a", "b", "effect of a over b", "Holm p", "verdict"],
        words=["metric", "a", "b", "verdict"],
    )
    for c in family.comparisons:
        said = c.verdict
        if not isnan(c.p_holm) and c.p_holm <= 1 - family.level:
            high = c.a if c.difference.value > 0 else c.b
            low = c.b if high == c.a else c.a
            said += f"; better: {high if better[c.metric] == 'higher' else low}"
        p = "–" if isnan(c.p_holm) else f"{c.p_holm:.3g}"
        sheet.rows.append(
            (f"{c.metric} {ARROWS[better[c.metric]]}", c.a, c.b, _cell(c.effect.value), p, said)
        )
    return sheet


def _write_json(path: Path, value: Any) -> None:
    from perdure.store.files import write_file
    from perdure.store.plain import strict_json

    write_file(path, strict_json(value).encode())


def export(run: Path, format: str, out: Path) -> int:
    """Write a run in another format."""
    from perdure.store.export import export_rows
    from perdure.store.l2logger.write import write_run
    from perdure.store.run import Run

    if format == "tensorboard":
        from perdure.store.tensorboard import write_tensorboard

        say(f"{len(write_tensorboard(Run(run), out))} lifetimes: {out}")
    elif format == "l2logger":
        written = write_run(Run(run), out)
        say(f"{len(written)} logs: {out}")
    else:
        say(f"rows: {export_rows(Run(run), out, format)}")
    return 0
