"""Options of the two presets, from flags and settings files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perdure.errors import SpecError, StoreError
from perdure.measure.l2m.paper import PaperOptions
from perdure.measure.l2m.reference import ReferenceOptions
from perdure.measure.results import reference_options
from perdure.store.files import read_input

PAPER_FLAGS = {
    "perf_measure", "smoothing_method", "window_length", "clamp_outliers", "data_range_file",
    "normalization_method",
}  # fmt: skip

REFERENCE_FLAGS = {
    *PAPER_FLAGS, "smooth_eval_data", "variant_mode", "ste_averaging_method", "aggregation_method",
    "maintenance_method", "transfer_method", "unit", "load_settings",
}  # fmt: skip


def reference_options_of(flags: Mapping[str, Any]) -> ReferenceOptions:
    """Options of preset reference from what was given on the command line."""
    given = dict(flags)
    settings = given.pop("load_settings", None)
    if settings is not None:
        given |= _read_object(settings, "settings")  # A settings file wins, as it does there.
    ranges = given.pop("data_range_file", None)
    if ranges is not None:
        given["data_range"] = _read_object(ranges, "data range file")
    return reference_options(given)


def paper_options_of(given: Mapping[str, Any]) -> PaperOptions:
    """Options of preset paper from what was given on the command line."""
    for flag in given:
        if flag not in PAPER_FLAGS:
            raise SpecError(
                f"--{flag.replace('_', '-')} belongs to preset reference; preset paper takes "
                + ", ".join(f"--{f.replace('_', '-')}" for f in sorted(PAPER_FLAGS))
            )
    ranges = given.get("data_range_file")
    return PaperOptions(
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
    except (TypeError, KeyError, ValueError, OverflowError) as e:
        raise SpecError(f"data range file: expected {{task: {{min, max}}}}: {e}") from e


def _read_object(path: Path, what: str) -> dict[str, Any]:
    try:
        found = json.loads(read_input(Path(path)))
    except (StoreError, ValueError, RecursionError) as e:
        raise SpecError(f"{what} {path}: {e}") from e
    if not isinstance(found, dict):
        raise SpecError(f"{what} {path} must hold a JSON object")
    return found
