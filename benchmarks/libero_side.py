"""The published LIBERO stack's side of libero.py; runs in the environment of libero_env.sh.

python libero_side.py --check             imports it and makes one environment
python libero_side.py FOLDER FILE IMAGES  prints what one task costs, as JSON
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

# libero.py is beside this file: do not import it in the package's place.
sys.path = [p for p in sys.path if Path(p).resolve() != Path(__file__).resolve().parent]
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MUJOCO_GL", "egl")
STEPS = 40


def settings():
    """It asks where to keep its settings, unless it finds them."""
    os.environ.setdefault("LIBERO_CONFIG_PATH", tempfile.mkdtemp())
    import importlib.util

    root = Path(importlib.util.find_spec("libero").submodule_search_locations[0]) / "libero"
    names = {"benchmark_root": "", "bddl_files": "bddl_files", "init_states": "init_files",
             "datasets": "datasets", "assets": "assets"}  # fmt: skip
    lines = [f"{name}: {root / folder}" for name, folder in names.items()]
    Path(os.environ["LIBERO_CONFIG_PATH"], "config.yaml").write_text("\n".join(lines) + "\n")
    return root


def memory():
    """The most megabytes that were resident."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def made(folder, file, images):
    root = settings()
    from libero.libero.envs.env_wrapper import ControlEnv

    return ControlEnv(
        bddl_file_name=str(root / "bddl_files" / folder / f"{file}.bddl"),
        has_offscreen_renderer=images, use_camera_obs=images,
        camera_names=["agentview", "robot0_eye_in_hand"], camera_heights=128, camera_widths=128,
    )  # fmt: skip


def timed(make, reset):
    """CPU seconds to construct, to reset and to step an environment, and the memory it took."""
    import numpy as np

    clock = time.process_time
    empty, start = memory(), clock()
    env = make()
    reset(env, 0)
    constructed = clock() - start
    start = clock()
    reset(env, 1)
    again = clock() - start
    moves = np.random.default_rng(0).uniform(-0.5, 0.5, (STEPS, 7))
    for move in moves[:5]:
        env.step(move)
    start = clock()
    for move in moves:
        env.step(move)
    stepped = (clock() - start) / STEPS
    found = {
        "construct": constructed,
        "reset": again,
        "step": stepped,
        "memory": memory(),
        "empty": empty,
    }
    return env, found


def measured(folder, file, images):
    settings()
    import libero.libero.envs.env_wrapper  # noqa: F401 (what importing costs is no part of it)

    def reset(env, number):
        if number == 0:
            env.seed(0)
        env.reset()

    return timed(lambda: made(folder, file, images), reset)[1]


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        made("libero_object", "pick_up_the_butter_and_place_it_in_the_basket", False).reset()
    else:
        print(json.dumps(measured(sys.argv[1], sys.argv[2], sys.argv[3] == "1")))
