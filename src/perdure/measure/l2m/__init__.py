"""Lifelong Learning Metrics (New et al., arXiv 2201.08278), by preset `reference` or `paper`."""

from __future__ import annotations

from perdure.measure.metric import Better, Life, Metric, Score

_TABLE: tuple[tuple[str, Better, tuple[str, ...], str], ...] = (
    ("pm", "higher", ("learning", "evaluations"), "Performance maintenance: change after learning"),
    ("pm_tlp", "higher", ("learning", "evaluations"), "Performance maintenance, against the end of learning"),
    ("ft", "higher", ("learning", "evaluations"), "Forward transfer to tasks not yet learned, contrast"),
    ("ft_ratio", "higher", ("learning", "evaluations"), "Forward transfer to tasks not yet learned, ratio"),
    ("bt", "higher", ("learning", "evaluations"), "Backward transfer to tasks learned before, contrast"),
    ("bt_ratio", "higher", ("learning", "evaluations"), "Backward transfer to tasks learned before, ratio"),
    ("rp", "higher", ("learning", "experts"), "Relative performance: area under the learning curve ÷ expert's"),
    ("se", "higher", ("learning", "experts"), "Sample efficiency: height and speed of saturation ÷ expert's"),
    ("pr", "higher", ("learning",), "Performance recovery: how recovery times shorten over life"),
    ("cg", "higher", ("learning",), "Cumulative gain: performance won while learning, per experience"),
    ("lb", "lower", ("learning",), "Learn burn: performance given up on the way to saturation"),
    ("droop", "lower", ("learning",), "Droop: loss at the return to a task"),
    ("rt", "lower", ("learning",), "Recovery time: experiences to be back at the former level"),
    ("rr", "higher", ("learning",), "Recovery rate: loss won back per experience"),
    ("tlp", "higher", ("learning",), "Terminal learning performance"),
    ("sat", "higher", ("learning",), "Saturation: best smoothed performance"),
    ("ets", "lower", ("learning",), "Experience to saturation"),
    ("atp", "higher", ("learning",), "Average training performance"),
    ("aep", "higher", ("evaluations",), "Average evaluation performance"),
)  # fmt: skip

CORE = ("l2m.pm", "l2m.ft", "l2m.bt", "l2m.rp", "l2m.se")
"""What the document calls its core metrics."""


def _reader(short: str) -> Metric:
    _, better, needs, about = next(row for row in _TABLE if row[0] == short)

    def read(life: Life) -> Score:
        return life.l2m[short]

    return Metric(f"l2m.{short}", about, better, needs, read)


metrics = tuple(_reader(row[0]) for row in _TABLE)
