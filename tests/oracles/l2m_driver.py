"""Runs inside the environment of scripts/l2m_env.sh: many calls of the real l2logger.validate and
l2metrics in one process, since their imports take seconds.

Usage: l2m_driver.py JOB.json RESULT.json
"""

import contextlib
import csv
import io
import json
import logging
import math
import os
import runpy
import sys
import warnings
from pathlib import Path


def call(module, *arguments):
    """`python -m module arguments`; what it printed."""
    sys.argv = [module, *map(str, arguments)]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        runpy.run_module(module, run_name="__main__")
    return printed.getvalue()


def validate(folder):
    try:
        return "passed" if "validation passed" in call("l2logger.validate", folder) else "refused"
    except Exception as e:
        return f"{type(e).__name__}: {e}"


def measure(log, options, out):
    try:
        call("l2metrics", "-l", log, "--no-plot", "-O", out, *options)
        name = Path(log).name
        metrics = json.loads((out / f"{name}_metrics.json").read_text())
        with (out / f"{name}_regime.tsv").open(newline="") as f:
            regimes = [
                {k: number(v) for k, v in row.items() if k != "task_params"}
                for row in csv.DictReader(f, delimiter="\t")
            ]
    except Exception as e:
        return {"options": options, "error": f"{type(e).__name__}: {e}"}
    return {"options": options, "error": None, "metrics": finite(metrics), "regimes": regimes}


def number(text):
    try:
        return finite(float(text)) if text else None
    except ValueError:
        return text


def finite(value):
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def main(job, result):
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    os.environ["MPLBACKEND"] = "Agg"
    work = Path(result).parent
    asked = json.loads(Path(job).read_text())
    found = {"validated": {f: validate(f) for f in asked["validate"]}, "groups": []}
    for i, group in enumerate(asked["groups"]):
        os.environ["L2DATA"] = str(work / f"l2data{i}")
        if group["experts"]:
            call("l2metrics", "-l", group["experts"], "-R", "-s", "a")
        found["groups"].append(
            [
                measure(log, options, work / f"out{i}" / str(j) / str(k))
                for j, log in enumerate(group["logs"])
                for k, options in enumerate(group["options"])
            ]
        )
    Path(result).write_text(json.dumps(found))


main(*sys.argv[1:])
