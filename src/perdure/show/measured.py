"""What the terminal shows of measure and compare. It loads no rich where the output is no terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

from perdure.measure.agent_comparison import better_of
from perdure.measure.compare import FEWEST
from perdure.measure.kept import verdict
from perdure.measure.l2m import CORE
from perdure.measure.metric import estimate
from perdure.measure.summary import distinct
from perdure.show.names import ARROWS, MIXED, REFERENCE
from perdure.show.rounding import bounded_places, column_places, typed
from perdure.show.sheet import Sheet
from perdure.store.plain import visible

if TYPE_CHECKING:
    from perdure.measure.compare import Family
    from perdure.measure.metric import Score
    from perdure.measure.results import Results
    from perdure.measure.stats import Estimate

FEW = 12
"""So many metrics that were asked for are all shown."""
MANY = 30
"""Beyond so many lifetimes the screen shows means alone."""


def progress_line(total: int) -> Callable[[int, int, str], None] | None:
    """Progress of many lifetimes on standard error: in place on a terminal, else now and then."""
    if total < 4:
        return None
    began = time.monotonic()
    said = [began]
    screen = sys.stderr.isatty()

    def advance(done: int, of: int, name: str) -> None:
        now = time.monotonic()
        if done < of and now - said[0] < (0.1 if screen else 5.0):
            return
        said[0] = now
        left = (now - began) / done * (of - done) if done else 0.0
        text = f"measured {done}/{of}" + (f", {left:.0f} s left, {name}" if done and name else "")
        text = visible(text)
        print(f"\r\x1b[K{text}" if screen else text, file=sys.stderr, end="" if screen else "\n")
        if screen and done == of:
            print(file=sys.stderr)

    return advance


def scores_table(results: Results) -> Sheet:
    """Lifetimes down, metrics across, and the means of each agent."""
    columns = shown_columns(results)
    what = f"{results.measure}, preset {results.preset}, n = {len(results.lifetimes)} lifetimes"
    head = ["lifetime", *(column.replace("_", " ") for column in columns)]
    sheet = Sheet(what, head, words=["lifetime"])
    rows = [(life.name, _values(life, columns)) for life in results.lifetimes]
    places = [bounded_places(results.bounds.get(column)) for column in columns]

    def cells(values: Sequence[float]) -> list[str]:
        return [_cell(v, p) for v, p in zip(values, places, strict=True)]

    if len(rows) <= MANY:
        for life, (name, values) in zip(results.lifetimes, rows, strict=True):
            spans = (_span_over_episodes(life.scores.get(column)) for column in columns)
            sheet.rows.append((name, *map("".join, zip(cells(values), spans, strict=True))))
    groups: dict[str, list[list[float]]] = {}
    for life, (_, values) in zip(results.lifetimes, rows, strict=True):
        groups.setdefault(life.agent, []).append(values)
    if len(rows) > 1:
        sheet.rows.append(())
        for agent, lives in groups.items():
            label = f"{agent}: mean of {len(lives)}" if agent else f"mean of {len(lives)}"
            label += MIXED if agent in results.mixed else ""
            sheet.rows.append((label, *cells([_mean(c) for c in zip(*lives, strict=True)])))
    return sheet


def shown_columns(results: Results) -> list[str]:
    """The columns of :func:`scores_table`: what was asked for, or of everything the core."""
    if results.preset == "reference" and results.lifetimes[0].reference is not None:
        shown = [
            k for k, v in results.lifetimes[0].reference.items()
            if isinstance(v, float) and k not in ("min", "max", "runtime")
        ]  # fmt: skip
        return shown + list(results.lifetimes[0].scores)
    names = list(results.lifetimes[0].scores)
    leading = [n for n in results.headline if n in names]
    if len(leading) < len(names) > FEW:
        # Everything was asked for: what leads everywhere, if anybody has a value of it.
        names = distinct(leading, [life.scores for life in results.lifetimes]) or leading
    return names


def _values(life: Any, columns: Sequence[str]) -> list[float]:
    out = []
    for column in columns:
        if column in life.scores:
            out.append(life.scores[column].value)
        else:
            out.append((life.reference or {}).get(column, float("nan")))
    return out


def _span_over_episodes(score: Score | None) -> str:
    """The interval of a share, where what was sampled are episodes."""
    if score is None or not score.trials:
        return ""
    found = estimate([score])
    span = "" if isnan(found.low) else f" [{_cell(found.low)}, {_cell(found.high)}]"
    return f"{span} of {found.episodes} episodes"


def _mean(values: Sequence[float]) -> float:
    defined = [v for v in values if not isnan(v)]
    return sum(defined) / len(defined) if defined else float("nan")


def _cell(value: float, places: int | None = None) -> str:
    return typed(value, places)


def remarks(results: Results, shown: Sequence[str]) -> list[str]:
    """Why values are missing, and what to know before trusting the others; each said once."""
    said: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}

    def remark(mark: str, text: str, metric: str, life: str) -> None:
        metrics, lives = said.setdefault((mark, text), ({}, {}))
        metrics |= {metric: None} if metric else {}
        lives[life] = None

    # What a table leaves out of the core has its reason said all the same: it may be mended.
    core = (n for n in results.headline if n in CORE)
    named = dict.fromkeys([*shown, *(core if len(shown) > 1 else ())])
    for life in results.lifetimes:
        for key, reason in life.reasons.items():
            remark("–", reason, key, life.name)
        for name in named:
            if name in life.scores:
                if life.scores[name].reason:
                    remark("–", life.scores[name].reason, name, life.name)
                for note in life.scores[name].notes:
                    remark("note", note, name, life.name)
        for note in life.notes:
            remark("note", note, "", life.name)
    everyone = len(results.lifetimes)
    lines = [
        f"{path} is a sweep: its validation seeds choose parameters, they are no results"
        for path in results.sweeps
    ]
    for (mark, text), (metrics, lives) in said.items():
        of = f" {', '.join(metrics)}" if metrics else ""
        some = f" ({len(lives)} of {everyone} lifetimes)" if len(lives) < everyone else ""
        lines.append(f"{mark}{of}: {text}{some}")
    return lines


def estimates_table(results: Results, family: Family, better: Mapping[str, str]) -> Sheet:
    """Agents down, metrics across: mean, interval, n."""
    found = results.estimates(family.level)
    metrics = [m for m in better if any(not isnan(found[m, a].value) for a in results.agents)]
    metrics = metrics or list(better)
    title = f"{results.measure}, preset {results.preset}: mean [{family.level:.0%} interval] over lifetimes"
    if any(life.scores[m].trials for life in results.lifetimes for m in metrics):
        title += "; of what was only evaluated, Wilson's over episodes"
    sheet = Sheet(title, ["agent", *(f"{m} {ARROWS[better[m]]}" for m in metrics)], words=["agent"])
    places = {
        m: column_places(
            results.bounds.get(m), [(found[m, a].low, found[m, a].high) for a in results.agents]
        )
        for m in metrics
    }
    for agent in ranked(results, metrics[0], better[metrics[0]]):
        cells = [_estimate(found[m, agent], places[m]) for m in metrics]
        mark = MIXED if agent in results.mixed else ""
        mark += REFERENCE if agent in results.chance else ""
        sheet.rows.append((f"{agent or '(all)'}{mark}", *cells))
    return sheet


def ranked(results: Results, metric: str, better: str) -> list[str]:
    """The agents, the best on a metric first; then those without a value, then chance."""
    found = results.estimates()
    sign = -1 if better == "higher" else 1

    def key(agent: str) -> tuple[bool, bool, float]:
        value = found[metric, agent].value
        return agent in results.chance, isnan(value), 0.0 if isnan(value) else sign * value

    return sorted(results.agents, key=key)


def verdict_lines(results: Results, family: Family, better: Mapping[str, str]) -> list[str]:
    """What a comparison comes to, in two lines: what was kept, and which differences hold."""
    lines = [verdict(results.kept)] if results.kept else []
    return [*filter(None, lines), significant(family, better)]


def significant(
    family: Family, better: Mapping[str, str], titles: Mapping[str, str] | None = None
) -> str:
    """The differences that hold after correction, in a line; metrics by their titles, if given."""
    wins: dict[tuple[str, str], list[str]] = {}
    for c in family.comparisons:
        found = better_of(c, better[c.metric], family.level)
        if found:
            wins.setdefault(found, []).append((titles or {}).get(c.metric, c.metric))
    tests = f"{family.tests} test{'s' * (family.tests != 1)}"
    if wins:
        said = (f"{a} over {b} on {_few(names)}" for (a, b), names in wins.items())
        return f"Holds after Holm's correction over {tests}: {'; '.join(said)}."
    why = untested(family)
    return (
        f"No difference can be told: {why}." if why else
        f"No difference holds after Holm's correction over {tests}."
    )  # fmt: skip


def _few(names: Sequence[str], most: int = 3) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def untested(family: Family) -> str:
    """Why no agents were told apart; empty where tests were made."""
    if family.tests:
        return ""
    if not family.comparisons:
        return "no metric is defined for two agents"
    if all(min(c.difference.n_a, c.difference.n_b) < FEWEST for c in family.comparisons):
        return f"too few lifetimes to test (at least {FEWEST} of each agent)"
    return "nothing varies between lifetimes, so there is nothing to test"


def _estimate(e: Estimate, places: int | None) -> str:
    if isnan(e.value):
        return "–"
    value, low, high = (_cell(v, places) for v in (e.value, e.low, e.high))
    span = "" if isnan(e.low) else f" [{low}, {high}]"
    return f"{value}{span} " + (f"of {e.episodes} episodes" if e.episodes else f"n={e.n}")


def verdicts_table(family: Family, better: Mapping[str, str], every: bool = True) -> Sheet:
    """Pairs of agents on a metric, with effect, corrected p, and what it says: ``every`` one, or those
    where a difference holds."""
    sheet = Sheet(
        f"differences{'' if every else ' that hold'}, Holm-corrected over {family.tests} tests",
        ["metric", "a", "b", "effect of a over b", "Holm p", "verdict"],
        words=["metric", "a", "b", "verdict"],
    )
    for c in family.comparisons:
        said, found = c.verdict, better_of(c, better[c.metric], family.level)
        if found:
            said += f"; better: {found[0]}"
        elif not every:
            continue
        p = "–" if isnan(c.p_holm) else f"{c.p_holm:.3g}"
        sheet.rows.append(
            (f"{c.metric} {ARROWS[better[c.metric]]}", c.a, c.b, _cell(c.effect.value), p, said)
        )
    return sheet
