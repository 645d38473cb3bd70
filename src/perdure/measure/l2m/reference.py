"""L2M as l2metrics 3.1.0 computes it, value for value, with its options and its departures from
the document (docs/design/metrics.md lists them)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from math import isnan, nan
from typing import Any

import numpy as np

from perdure.arrays import Array
from perdure.errors import MeasureError
from perdure.measure.l2m.regimes import (
    ReferenceOptions,
    Regime,
    curve_of,
    expert,
    joined,
    regimes,
    saturated,
    task_name,
)
from perdure.measure.l2m.smoothing import OFFSET, SCALE, smooth_reference, theil_sen
from perdure.measure.metric import Moment, Score, mean_of_moments, mean_over_tasks
from perdure.store.history import History

__all__ = ["Analysis", "ReferenceOptions", "analyse", "scores"]


@dataclass(frozen=True)
class Analysis:
    """What the reference would write, and why a value is missing."""

    metrics: dict[str, Any]
    """The metrics JSON, NaN where undefined."""
    curves: Sequence[Regime]
    unseen: frozenset[int]
    """Numbers of the regimes that are tests while awake, where sleeping ones count."""
    reasons: dict[str, str]
    """For an undefined lifetime metric: why."""
    notes: tuple[str, ...]

    def regimes(self) -> list[dict[str, Any]]:
        """The regime table."""
        rows = [{**r.row(), "run_id": self.metrics["run_id"]} for r in self.curves]
        return [{**r, "avg_perf": nan} if r["regime_num"] in self.unseen else r for r in rows]


def analyse(history: History, options: ReferenceOptions | None = None) -> Analysis:
    """All of the reference's values for one lifetime; its experts are ``history.experts``."""
    return _Reference(history, options or ReferenceOptions()).analysis()


class _Reference:
    """One lifetime on its way through the reference's pipeline."""

    def __init__(self, history: History, options: ReferenceOptions) -> None:
        self.history = history
        self.options = options
        self.notes: list[str] = []
        self.reasons: dict[str, str] = {}
        self.regimes = regimes(history, options, "log")
        trained = dict.fromkeys(r.task for r in self.regimes if r.train)
        self.tasks = list(trained | dict.fromkeys(r.task for r in self.regimes))
        self.experts = self._find_experts()
        self._smooth()
        self.ranges = self._ranges()
        if options.clamp_outliers:
            self._clamp()
            self.ranges = self._ranges()
        self._normalise()
        for regime in self.regimes:
            regime.finish()
        self.seen = self._evaluation_view()

    def _find_experts(self) -> dict[str, list[list[Regime]]]:
        """For each task: the regimes of each expert run."""
        found: dict[str, list[list[Regime]]] = {}
        stored = self.history.experts
        for task in self.tasks:
            names = [task] if task in stored else []
            if not names and any(name.split("_")[0] == task for name in stored):
                names = sorted(name for name in stored if name.startswith(task))
            # Pooled variants lose their names, whatever the mode.
            o = self.options if task in stored else replace(self.options, variant_mode="agnostic")
            runs = [expert(h, o) for name in names for h in stored[name]]
            if runs:
                found[task] = runs
        return found

    def _all_expert_regimes(self) -> list[Regime]:
        return [r for runs in self.experts.values() for run in runs for r in run]

    def _smooth(self) -> None:
        o = self.options
        for regime in self.regimes:
            if regime.train or o.smooth_eval_data:
                regime.values = smooth_reference(regime.values, o.smoothing_method, o.window_length)

    def _of_task(self, task: str) -> Array:
        """All rows that count for a task's range: lifelong ones and its experts' training."""
        own = [r for r in self.regimes if r.task == task]
        theirs = [r for run in self.experts.get(task, ()) for r in run if r.train]
        return joined([*own, *theirs])

    def _given(self) -> dict[str, tuple[float, float]]:
        out: dict[str, tuple[float, float]] = {}
        for name, limits in (self.options.data_range or {}).items():
            try:
                out[name.lower()] = float(limits["min"]), float(limits["max"])
            except (TypeError, KeyError, ValueError) as e:
                raise MeasureError(
                    f"data range of {name!r}: expected {{'min': number, 'max': number}}, got {limits!r}"
                ) from e
        if self.options.variant_mode == "aware":
            return out
        pooled = {}
        for task in dict.fromkeys(task_name(n, self.options) for n in out):
            # The reference takes every entry whose name holds the task's anywhere.
            lows, highs = zip(*(r for n, r in out.items() if task in n), strict=True)
            pooled[task] = (min(lows), max(highs))
        return pooled

    def _ranges(self) -> dict[str, tuple[float, float]]:
        """Of each task of the log; where they are given, all that are given."""
        o = self.options
        if o.data_range is None:
            rows = {task: self._of_task(task) for task in self.tasks}
            return {task: (float(r.min()), float(r.max())) for task, r in rows.items()}
        given = self._given()
        if o.normalization_method != "none" or (o.clamp_outliers and given):
            for task in self.tasks:
                if task not in given:
                    raise MeasureError(f"the data range file has no entry for task {task!r}")
        return given

    def _clamp(self) -> None:
        for task in self.tasks:
            if self.options.data_range:
                low, high = self.ranges[task]
            else:
                low, high = np.quantile(self._of_task(task), [0.1, 0.9])
            for regime in [*self.regimes, *self._all_expert_regimes()]:
                if regime.task == task:
                    regime.values = np.clip(regime.values, low, high)

    def _normalise(self) -> None:
        method = self.options.normalization_method
        if method == "none":
            return
        low = min(r[0] for r in self.ranges.values())
        high = max(r[1] for r in self.ranges.values())
        for regime in [*self.regimes, *self._all_expert_regimes()]:
            if regime.task not in self.ranges:
                raise MeasureError(
                    f"a single-task expert's log holds task {regime.task!r}, which {self.history.name} "
                    "never meets, so it has no range to be normalised with: leave that log out, or "
                    "measure with --normalization-method none"
                )
            if method == "task":
                low, high = self.ranges[regime.task]
            if high == low:
                if method == "run":
                    raise MeasureError(f"{self.history.name}: performance is the same everywhere")
                self.notes.append(f"task {regime.task}: performance is constant, normalised to 1")
                regime.values = np.full(len(regime.values), OFFSET)
            else:
                regime.values = (regime.values - low) / (high - low) * SCALE + OFFSET

    def _evaluation_view(self) -> list[Regime]:
        """Where any regime is of subtype sleep, tests while awake do not count."""
        if not any(r.sleep for r in self.regimes):
            return self.regimes
        return [r for r in self.regimes if r.train or r.sleep]

    def _regimes_of(self, task: str, train: bool, awake: bool = False) -> list[Regime]:
        source = self.regimes if awake else self.seen
        return [
            r for r in source if r.task == task and r.train == train and not (awake and r.sleep)
        ]

    def _all_tests(self, task: str) -> list[Regime]:
        return [r for r in self.regimes if r.task == task and not r.train]

    def analysis(self) -> Analysis:
        """Every value."""
        o = self.options
        tasks: dict[str, dict[str, Any]] = {t: self._blank() for t in self.tasks}
        self._recovery(tasks)
        self._averages(tasks)
        for method in o.maintenance:
            self._maintenance(tasks, method)
        for method in o.transfer:
            self._transfer(tasks, method)
        self._relative(tasks)
        self._efficiency(tasks)
        metrics: dict[str, Any] = {}
        for key in self._lifetime_keys():
            metrics[key] = self._over_tasks(key, tasks)
        metrics |= self._describe(tasks)
        metrics["task_metrics"] = tasks
        notes = tuple(dict.fromkeys((*self.history.notes, *self.notes)))
        unseen = frozenset(r.number for r in self.regimes) - {r.number for r in self.seen}
        return Analysis(metrics, self.regimes, unseen, self.reasons, notes)

    def _blank(self) -> dict[str, Any]:
        """A task's entry before anything is known."""
        return {k: nan for k in self._lifetime_keys()} | {
            "recovery_times": [], "ste_rel_perf_vals": [], "ste_saturation_vals": [],
            "ste_exp_to_sat_vals": [], "se_saturation_vals": [], "se_exp_to_sat_vals": [],
            "sample_efficiency_vals": [], "se_task_saturation": nan, "se_task_exp_to_sat": nan,
        }  # fmt: skip

    def _lifetime_keys(self) -> list[str]:
        o = self.options
        return [
            "perf_recovery", "avg_train_perf", "avg_eval_perf",
            *(f"perf_maintenance_{m}" for m in o.maintenance),
            *(f"{d}_transfer_{m}" for m in o.transfer for d in ("forward", "backward")),
            "ste_rel_perf", "sample_efficiency",
        ]  # fmt: skip

    def _over_tasks(self, key: str, tasks: Mapping[str, Mapping[str, Any]]) -> float:
        values = []
        for task in tasks.values():
            if "_transfer_" in key:
                values += [found[0] for found in task[key].values()]
            else:
                values.append(task[key])
        defined = [v for v in values if not isnan(v)]
        if not defined:
            self.reasons.setdefault(
                key, _REASONS[key.rsplit("_", 1)[0] if "_transfer_" in key else key]
            )
            return nan
        combine = np.mean if self.options.aggregation_method == "mean" else np.median
        return round(float(combine(defined)), 10)

    def _recovery(self, tasks: dict[str, dict[str, Any]]) -> None:
        times: dict[str, list[float]] = {}
        for task in self.tasks:
            lessons = self._regimes_of(task, train=True, awake=True)
            times[task] = []
            for before, after in pairwise(lessons):
                reached = np.flatnonzero(after.means >= before.terminal)
                times[task].append(float(reached[0] if len(reached) else len(after.values) + 1))
        if sum(map(len, times.values())) < 2:
            return
        for task, found in times.items():
            tasks[task]["recovery_times"] = found
            if len(found) >= 2:
                tasks[task]["perf_recovery"] = -theil_sen(range(len(found)), found)

    def _averages(self, tasks: dict[str, dict[str, Any]]) -> None:
        for key, train in (("avg_train_perf", True), ("avg_eval_perf", False)):
            for task in self.tasks:
                values = [r.average for r in self._regimes_of(task, train)]
                tasks[task][f"{key}_vals"] = values
                if values:
                    tasks[task][key] = float(np.mean(values))

    def _maintenance(self, tasks: dict[str, dict[str, Any]], method: str) -> None:
        for task in self.tasks:
            lessons = self._regimes_of(task, train=True)
            tests = self._regimes_of(task, train=False)
            references = {}
            for lesson in lessons:
                after = [e for e in tests if e.number > lesson.number]
                if after:
                    references[after[0].number] = after[0]
            groups: list[list[float]] = []
            previous = None
            # A group ends where a test has no value: a reference, or one while awake.
            place = {r: i for i, r in enumerate(self._all_tests(task))}
            for test in tests:
                past = [n for n in references if n < test.number]
                if test.number in references or not past:
                    continue
                latest = max(past)
                if method == "mrlep":
                    against = references[latest].terminal
                else:
                    against = [a for a in lessons if a.number < test.number][-1].terminal
                if previous is None or place[test] != previous + 1:
                    groups.append([])
                previous = place[test]
                groups[-1].append(test.terminal - against)
            tasks[task][f"maintenance_val_{method}"] = groups
            flat = [v for g in groups for v in g]
            if flat:
                tasks[task][f"perf_maintenance_{method}"] = float(np.mean(flat))

    def _transfer(self, tasks: dict[str, dict[str, Any]], method: str) -> None:
        contrast = method == "contrast"
        order = list(dict.fromkeys(r.task for r in self.seen))
        tables: dict[str, dict[str, dict[str, list[float]]]] = {
            d: {t: {} for t in self.tasks} for d in ("forward", "backward")
        }
        for target in order:
            own = self._regimes_of(target, train=True)
            first = own[0].number if own else len(self.regimes)
            tests = self._regimes_of(target, train=False)
            for e1, e2 in pairwise(tests):
                value = _change(e1.terminal, e2.terminal, contrast)
                if value is None:
                    continue
                # The reference has one slot a direction: the last source in task order keeps it.
                slots: dict[str, str] = {}
                for source in order:
                    for q in self._regimes_of(source, train=True):
                        if source != target and e1.number < q.number < e2.number:
                            slots["forward" if q.number < first else "backward"] = source
                for direction, source in slots.items():
                    tables[direction][source].setdefault(target, []).append(value)
        for direction, table in tables.items():
            for task in self.tasks:
                tasks[task][f"{direction}_transfer_{method}"] = table[task]

    def _expert_lessons(self, task: str) -> list[list[Regime]]:
        return [[r for r in run if r.train] for run in self.experts.get(task, ())]

    def _averaged(self, task: str) -> list[Array]:
        """The expert runs as one curve, cut to the shortest."""
        curves = [joined(run) for run in self._expert_lessons(task)]
        shortest = min(map(len, curves), default=0)
        return [np.mean([c[:shortest] for c in curves], axis=0)] if shortest else []

    def _expert_curves(self, task: str) -> list[Array]:
        if self.options.ste_averaging_method == "time":
            return self._averaged(task)
        return [joined(run) for run in self._expert_lessons(task)]

    def _expert_saturations(self, task: str) -> list[tuple[float, int]]:
        if self.options.ste_averaging_method == "time":
            return [saturated(c) for c in self._averaged(task)]
        return [saturated(curve_of(run)) for run in self._expert_lessons(task) if run]

    def _relative(self, tasks: dict[str, dict[str, Any]]) -> None:
        for task in self.tasks:
            curve = joined(self._regimes_of(task, train=True, awake=True))
            ratios = []
            for theirs in self._expert_curves(task):
                n = min(len(curve), len(theirs))
                if n:
                    ratios.append(_ratio(float(curve[:n].sum()), float(theirs[:n].sum())))
            if ratios:
                tasks[task]["ste_rel_perf_vals"] = ratios
                tasks[task]["ste_rel_perf"] = float(np.mean(ratios))

    def _efficiency(self, tasks: dict[str, dict[str, Any]]) -> None:
        for task in self.tasks:
            lessons = self._regimes_of(task, train=True, awake=True)
            experts = self._expert_saturations(task)
            if not lessons or not experts:
                continue
            saturation, reached = saturated(curve_of(lessons))
            out = tasks[task]
            if reached == 0:
                self.notes.append(
                    f"task {task}: saturated at its first experience, no sample efficiency"
                )
                continue
            slope = _slope(np.concatenate([r.exp for r in lessons]), joined(lessons))
            stats = [(theirs, needed) for theirs, needed in experts if needed]
            if not stats and self.options.ste_averaging_method == "time":
                continue  # Then the reference leaves out the task's own saturation too.
            out["ste_saturation_vals"] = [theirs for theirs, _ in stats]
            out["ste_exp_to_sat_vals"] = [needed for _, needed in stats]
            out["se_saturation_vals"] = [_ratio(saturation, theirs) for theirs, _ in stats]
            out["se_exp_to_sat_vals"] = [needed / reached for _, needed in stats]
            weak = [saturation < 0.2 * theirs or slope < 0 for theirs, _ in stats]
            values = [
                0.0 if w else _ratio(saturation, theirs) * (needed / reached)
                for w, (theirs, needed) in zip(weak, stats, strict=True)
            ]
            out["sample_efficiency_vals"] = values
            out["se_task_saturation"] = saturation
            out["se_task_exp_to_sat"] = float(reached)
            if values:
                out["sample_efficiency"] = float(np.mean(values))

    def _describe(self, tasks: dict[str, dict[str, Any]]) -> dict[str, Any]:
        info = self.history.info
        everything = joined(self.regimes)
        for task in self.tasks:
            mine = [r for r in self.regimes if r.task == task]
            rows = joined(mine)
            tasks[task] |= {
                "min": float(rows.min()),
                "max": float(rows.max()),
                "num_lx": sum(len(r.values) for r in mine if r.train),
                "num_ex": sum(len(r.values) for r in mine if not r.train),
            }
        ranges = {t: {"min": low, "max": high} for t, (low, high) in self.ranges.items()}
        normalised = self.options.normalization_method != "none"
        return {
            "run_id": self.history.name,
            "complexity": info.get("complexity", ""),
            "difficulty": info.get("difficulty", ""),
            "scenario_type": info.get("scenario_type", ""),
            "metrics_column": self.options.perf_measure or self.history.measure,
            "min": round(float(everything.min()), 10),
            "max": round(float(everything.max()), 10),
            "num_lx": sum(t["num_lx"] for t in tasks.values()),
            "num_ex": sum(t["num_ex"] for t in tasks.values()),
            "runtime": _runtime(info, self.options.perf_measure or self.history.measure),
            "normalization_data_range": ranges if normalised else None,
        }


_REASONS = {
    "perf_recovery": "no task has three learning blocks",
    "avg_train_perf": "nothing was learned",
    "avg_eval_perf": "nothing was evaluated",
    "perf_maintenance_mrlep": "no task is evaluated again after the evaluation that follows its learning",
    "perf_maintenance_mrtlp": "no task is evaluated again after the evaluation that follows its learning",
    "forward_transfer": "no task is evaluated before and after another one's learning, before its own",
    "backward_transfer": "no task is evaluated before and after another one's learning, after its own",
    "ste_rel_perf": "no single-task expert of a task that was learned",
    "sample_efficiency": "no single-task expert of a task that was learned and took time to saturate",
}


def _change(before: float, after: float, contrast: bool) -> float | None:
    if contrast:
        total = before + after
        return None if total == 0 else (after - before) / total
    return None if before == 0 else after / before


def _ratio(a: float, b: float) -> float:
    return a / b if b else nan


def _slope(x: Array, y: Array) -> float:
    if len(x) < 2:
        return 0.0
    # Sums, not dot products: those start threads, which costs more than the sums.
    away = x - x.mean()
    spread = float(np.sum(away * away))
    return float(np.sum(away * (y - y.mean()))) / spread if spread else 0.0


def _runtime(info: Mapping[str, Any], measure: str) -> float:
    first, last = info.get("span", {}).get(measure, (None, None))
    if not first or not last:
        return nan
    try:
        times = [datetime.strptime(t, "%Y%m%dT%H%M%S.%f") for t in (first, last)]
    except ValueError:
        return nan
    return (times[1] - times[0]).total_seconds()


_KEYS = {
    "pm": "perf_maintenance_mrlep", "pm_tlp": "perf_maintenance_mrtlp", "pr": "perf_recovery",
    "ft": "forward_transfer_contrast", "ft_ratio": "forward_transfer_ratio",
    "bt": "backward_transfer_contrast", "bt_ratio": "backward_transfer_ratio",
    "rp": "ste_rel_perf", "se": "sample_efficiency", "atp": "avg_train_perf", "aep": "avg_eval_perf",
}  # fmt: skip
_PER_BLOCK = {"tlp": "term_perf", "sat": "saturation", "ets": "exp_to_sat"}
_ABSENT = ("cg", "lb", "droop", "rr")


def scores(history: History, options: ReferenceOptions) -> dict[str, Score]:
    """The reference's values as scores, by short name; what it does not compute is NaN."""
    both = replace(options, maintenance_method="both", transfer_method="both")
    found = analyse(history, both)
    tasks = found.metrics["task_metrics"]
    out = {}
    for short, key in _KEYS.items():
        per_task = {} if "_transfer_" in key else {t: v[key] for t, v in tasks.items()}
        pairs = {
            (source, target): values[0]
            for source, entry in tasks.items()
            for target, values in (entry[key].items() if "_transfer_" in key else ())
        }
        value = found.metrics[key]
        out[short] = Score(
            value, per_task, pairs, reason=found.reasons.get(key, ""), notes=found.notes
        )
    lessons = [r for r in found.regimes() if r["block_type"] == "train"]
    for short, key in _PER_BLOCK.items():
        moments = tuple(Moment(r["block_num"], r["task_name"], float(r[key])) for r in lessons)
        out[short] = mean_of_moments(moments, "nothing was learned")
    times = {t: v["recovery_times"] for t, v in tasks.items()}
    out["rt"] = mean_over_tasks(
        {t: float(np.mean(v)) for t, v in times.items() if v}, "no task is learned twice"
    )
    for short in _ABSENT:
        out[short] = Score(nan, reason="the reference implementation does not compute it")
    return out
