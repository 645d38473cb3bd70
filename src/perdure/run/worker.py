"""``python -m perdure.run.worker RUN LIFETIME [--video] [--mix-code] [--pruning] [--eval-workers=N]``: one
lifetime in a process of its own.

Exit code 0: done; 1: failed, and the last it writes is ``failed: `` with the reason; 128 + n:
stopped by signal n.
"""

from __future__ import annotations

import faulthandler
import os
import sys
from dataclasses import replace


def main(argv: list[str]) -> int:
    """Run one lifetime of a planned run."""
    run, job, *flags = argv
    from perdure.errors import Interrupted
    from perdure.pythonpath import import_from_here
    from perdure.run.lifetime import FAILED, describe_error, run_lifetime
    from perdure.run.plan import load_plan
    from perdure.run.signals import die_with_parent, interruptible
    from perdure.store.urls import place

    faulthandler.disable()  # Wherever it writes to: a lifetime has a file for that.
    import_from_here()
    try:
        with interruptible():
            if "PERDURE_PARENT" in os.environ:
                die_with_parent(int(os.environ["PERDURE_PARENT"]))
            plan = load_plan(place(run))
            video, mix_code, pruning = (f"--{f}" in flags for f in ("video", "mix-code", "pruning"))
            plan = replace(plan, video=video, mix_code=mix_code, pruning=pruning)
            wide = [int(f.partition("=")[2]) for f in flags if f.startswith("--eval-workers=")]
            plan = replace(plan, eval_workers=max([1, *wide]))
            run_lifetime(plan, plan.job(job))
    except Interrupted as e:
        return 128 + e.signum
    except Exception as e:
        print(f"{FAILED}{describe_error(e)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    from perdure.run.signals import leave

    leave(main(sys.argv[1:]))
