"""Lifelong Learning Metrics (New et al., arXiv 2201.08278), by preset `reference` or `paper`."""

from __future__ import annotations

from perdure.measure.metric import Better, LifetimeData, Metric, Score

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
    ("cg", "higher", ("learning",), "Cumulative gain: whether learning blocks still lead upwards"),
    ("lb", "lower", ("learning",), "Learn burn: slope of learning after a change, over that of the lifetime"),
    ("droop", "lower", ("learning",), "Droop: loss at the return to a task"),
    ("rt", "lower", ("learning",), "Recovery time: experiences to be back at the former level"),
    ("rr", "higher", ("learning",), "Recovery rate: loss won back per experience"),
    ("tlp", "higher", ("learning",), "Terminal learning performance"),
    ("sat", "higher", ("learning",), "Saturation: best smoothed performance"),
    ("ets", "lower", ("learning",), "Experience to saturation"),
    ("atp", "higher", ("learning",), "Average training performance"),
    ("aep", "higher", ("evaluations",), "Average evaluation performance"),
)  # fmt: skip

_FORMULAS = {
    "pm": "PM = mean over the lifetime of EP(e) − EP(mark). EP(e) is the mean of evaluation e of a task; the mark is the first evaluation after the task's latest learning block, and e is any later one. Negative for forgetting.",
    "pm_tlp": "PM_TLP = mean over the lifetime of EP(e) − TLP(l), for the evaluations e of PM. TLP(l) is the mean of the last tenth of the task's latest learning block l.",
    "ft": "FT = mean over pairs (s, t) of (a − b) / (a + b). b and a are EP on t right before and right after the learning of s alone, while t is not yet learned; of a pair the first occurrence counts.",
    "ft_ratio": "FT = mean over pairs (s, t) of a / b, with b and a as in l2m.ft.",
    "bt": "BT = mean over pairs (s, t) of (a − b) / (a + b). b and a are EP on t right before and right after the learning of s alone, when t has been learned; of a pair the first occurrence counts.",
    "bt_ratio": "BT = mean over pairs (s, t) of a / b, with b and a as in l2m.bt.",
    "rp": "RP = mean over tasks and experts of Σ_{i≤n} c(i) / Σ_{i≤n} c_expert(i). c is the task's learning curve, its blocks end to end; n is the shorter of the two lengths.",
    "se": "SE = mean over tasks and experts of (Sat / Sat_expert) · (ETS_expert / ETS), with Sat and ETS as in l2m.sat and l2m.ets.",
    "pr": "PR = −mean over tasks of the Theil–Sen slope of RT against the index of the learning block, with RT as in l2m.rt. Positive where recovery gets quicker.",
    "cg": "CG = mean over learning blocks of the sign of the least-squares slope of performance: 1 rising, 0 level, −1 falling.",
    "lb": "LB = mean over learning blocks that bring another task than the one before of their least-squares slope, divided by the slope of all learning of the lifetime end to end.",
    "droop": "Droop = TLP of the task's previous learning block − the lowest performance before that level is reached again, 0 if at once; mean over blocks, then over tasks.",
    "rt": "RT = experiences of a learning block until performance is back at TLP of the task's previous one, counted from 1; 0 if it starts there, and n + 1 if it is not back within its n; mean over blocks, then over tasks.",
    "rr": "RR = Droop / RT of each learning block that drooped; mean over blocks, then over tasks.",
    "tlp": "TLP = mean of the last ⌈n/10⌉ of a learning block's n experiences; mean over blocks, then over tasks.",
    "sat": "Sat = max_i r(i), where r is the rolling average of the task's learning curve, its blocks end to end; mean over tasks.",
    "ets": "ETS = the least i with r(i) = Sat, counted from 1, with r as in l2m.sat; mean over tasks.",
    "atp": "ATP = mean of a learning block; mean over a task's blocks, then over tasks.",
    "aep": "AEP = mean of an evaluation block; mean over a task's blocks, then over tasks.",
}  # fmt: skip
"""How preset `paper` computes each; docs/design/metrics.md has the reasons."""

_TITLES = {"ft": "Forward transfer", "bt": "Backward transfer"}
"""Where a description does not begin with what people call it."""

_BOUNDS = {
    "pm": (-100.0, 100.0), "pm_tlp": (-100.0, 100.0), "ft": (-1.0, 1.0), "bt": (-1.0, 1.0),
}  # fmt: skip
"""Differences on a scale from 1 to 101, and contrasts of scores that are not negative."""
_UNITS = {
    "pm": "points of 100", "pm_tlp": "points of 100", "ft": "contrast", "bt": "contrast",
    "ft_ratio": "ratio", "bt_ratio": "ratio", "rp": "ratio to the expert",
    "se": "ratio to the expert", "rt": "experiences", "ets": "experiences",
}  # fmt: skip
_KEEPING = ("pm", "pm_tlp", "bt", "bt_ratio")
"""Of what was learned: who learned nothing loses nothing."""

CORE = ("l2m.pm", "l2m.ft", "l2m.bt", "l2m.rp", "l2m.se")
"""What the document calls its core metrics."""


def _reader(short: str) -> Metric:
    _, better, needs, about = next(row for row in _TABLE if row[0] == short)

    def read(life: LifetimeData) -> Score:
        return life.l2m[short]

    read.__doc__ = f"{about}\n\n{_FORMULAS[short]}"
    return Metric(
        f"l2m.{short}", about, better, needs, read, _TITLES.get(short, ""),
        _BOUNDS.get(short), short in _KEEPING, _UNITS.get(short, ""),
    )  # fmt: skip


metrics = tuple(_reader(row[0]) for row in _TABLE)
