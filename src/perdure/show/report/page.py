"""The page: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from perdure.show.colours import Style
from perdure.show.report import data
from perdure.show.report.hero import hero, options
from perdure.show.report.hero import title as titled
from perdure.show.report.numbers import Record
from perdure.show.report.plasticity import plasticity
from perdure.show.report.running import running
from perdure.show.report.section import PageSection, clean
from perdure.show.report.study import Study
from perdure.show.report.tables import benchmark_tables, number, order_table, spread_cells, table
from perdure.show.rounding import seconds

__all__ = ["TEMPLATES", "PageSection", "clean", "embedded", "number", "render"]

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = (
    "base",
    "draw",
    "share",
    "line",
    "curves",
    "experts",
    "heatmaps",
    "rows",
    "benchmarks",
    "episodes",
    "main",
)
STRIP = 400
"""Blocks that a strip shows one by one; of more, neighbours are drawn together."""

LONG = 10
"""Pairs of agents beyond which they take the width of the page, as in rows.js."""

_HYPHEN = re.compile(r"(?<![\w.-])-(?=[\d.])")
"""A hyphen in front of a number: its minus."""


def render(study: Study, *, title: str | None = None, sections: Sequence[PageSection] = ()) -> str:
    """The page as text."""
    head = data.headline(study)
    page = clean(
        {
            "title": title or titled(study),
            "options": options(study),
            "hero": hero(study),
            "live": running(study),
            "measure": study.measure,
            "outline": data.outline(study),
            "head": head | {"table": table(head)},
            "every": table(data.everything(study)) if len(head["metrics"]) < len(study.metrics) else [],
            "unmeasured": data.unmeasured(study),
            "method": data.method(study),
            "orders": order_table(data.orders(study)),
            "benchmarks": [benchmark_tables(b) for b in data.benchmarks(study)],
            "n": len(study.histories),
            "bounded": study.bounds is not None,
            "episodic": any(c["episodes"] for c in head["cells"]),
            "chance": list(study.results.chance),
            "differ": len({f.fingerprint for f in study.folders}) > 1,
        }
    )  # fmt: skip
    charts = clean(data.page_data(study))
    labels = {t["name"]: t["label"] for t in charts["tasks"]}
    script = Markup("".join(_script(name) for name in SCRIPTS))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = _environment(study).get_template("page.html.j2")
    return template.render(
        **page,
        short=lambda name: labels.get(name, name),
        data=Markup(embedded(charts)),
        cells=Markup(embedded(spread_cells(page["head"]))),
        has=_has(charts),
        many_pairs=len(charts["improvement"]) > LONG,
        sections=(*plasticity(study), *sections),
        videos=any(s.id == "videos" for s in sections),
        pictures=any(b["picture"] != "table" for b in charts["benchmarks"]),
        script=script,
        style=Markup(_styles(study) + (TEMPLATES / "report.css").read_text("utf-8")),
        policy=(
            f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
            "img-src data: blob:; media-src data: blob:; base-uri 'none'; form-action 'none'"
        ),
    )


def embedded(value: Any) -> str:
    """JSON that no HTML parser sees an end in."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _script(name: str) -> str:
    return (TEMPLATES / f"{name}.js").read_text("utf-8")


def _styles(study: Study) -> str:
    """A variable for the colour of each task and agent, in both themes."""
    lines = []
    for letter, styles in (("t", study.task_styles), ("a", study.agent_styles)):
        lines += [_variable(letter, i, style) for i, style in enumerate(styles.values())]
    return f":root{{{''.join(lines)}}}\n"


def _variable(letter: str, place: int, style: Style) -> str:
    return f"--{letter}{place}:light-dark({style.light},{style.dark});"


def _environment(study: Study) -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    places = {clean(t): i for i, t in enumerate(study.tasks)}
    agents = {clean(a): i for i, a in enumerate(study.agents)}
    made.filters |= {
        "num": number,
        "colour": lambda task: f"var(--t{places[task]})" if task in places else "var(--muted)",
        "ink": lambda agent: f"var(--a{agents.get(agent, 0)})",
        "span": _span,
        "time": seconds,
        "seeds": _seeds,
        "budget": _budget,
        "minus": lambda text: _HYPHEN.sub("−", text),
        "joined": _joined,
        "strip": _strip,
    }
    made.globals |= {"letters": {clean(a): s.letter for a, s in study.agent_styles.items()}}
    return made


def _span(pair: Sequence[int]) -> str:
    low, high = pair
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _seeds(seeds: Sequence[int]) -> str:
    """Runs of neighbours as ranges: 0–2, 5."""
    parts = []
    for _, group in groupby(enumerate(sorted(seeds)), key=lambda p: p[1] - p[0]):
        run = [seed for _, seed in group]
        parts.append(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}")
    return ", ".join(parts)


def _budget(budget: Sequence[Record]) -> str:
    """What a lifetime takes: learning 900 steps, evaluation 60 episodes."""
    return ", ".join(f"{b['for']} {_span(b['amount'])} {b['unit']}" for b in budget)


def _joined(exposures: Sequence[Record]) -> str:
    return ", ".join(f"{e['task']} × {e['amount']:,} {e['unit']}" for e in exposures)


def _strip(blocks: Sequence[Record]) -> list[Record]:
    """The blocks to draw: all, or where there are very many, neighbours together."""
    each = -(-len(blocks) // STRIP)
    out = []
    for start in range(0, len(blocks), each):
        part = blocks[start : start + each]
        learns = [b for b in part if b["kind"] == "learn"] or part
        tasks = list(dict.fromkeys(e["task"] for b in learns for e in b["exposures"]))
        words = [_in_words(b) for b in part[:4]]
        words += [f"… and {len(part) - 4} more blocks"] if len(part) > 4 else []
        out.append(
            {"kind": learns[0]["kind"], "before": part[0]["before"], "tasks": tasks,
             "weight": sum(b["weight"] for b in part), "text": "\n".join(words)}
        )  # fmt: skip
    return out


def _in_words(block: Record) -> str:
    how = " side by side" if block["parallel"] else ""
    before = ", before deployment" if block["before"] else ""
    then = f"; then evaluate {_joined(block['then'])}; then restore" if block["then"] else ""
    kind = {"eval": "evaluate"}.get(block["kind"], block["kind"])
    return f"Block {block['block']}{before}: {kind}{how} {_joined(block['exposures'])}{then}"


def _has(charts: Mapping[str, Any]) -> dict[str, bool]:
    """Which parts have something to show."""
    return {k: bool(v.get("n") if isinstance(v, dict) and "columns" in v else v)
            for k, v in charts.items()}  # fmt: skip
