"""The published LIBERO stack's side of libero.py and evaluation.py; runs in the environment of libero_env.sh.

python libero_side.py --check                           imports it and makes one environment
python libero_side.py FOLDER FILE IMAGES                prints what one task costs, as JSON
python libero_side.py --episodes FOLDER FILE COUNT STEPS  plays episodes as openpi's client does
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


def played(folder, file, count, steps):
    """CPU and wall seconds of episodes, the environment's construction apart, in a plain loop around one environment, by openpi's protocol: the
    official states, ten steps to settle, two pictures of 256 pixels in each step, turned and made 224 where the
    policy is asked, which is every fifth step. The policy gives the same chunk to all."""
    root = settings()
    import numpy as np
    import torch
    from libero.libero.envs import OffScreenRenderEnv
    from PIL import Image
    from robosuite.utils.transform_utils import quat2axisangle

    def small(picture):
        turned = np.ascontiguousarray(picture[::-1, ::-1])
        return np.asarray(Image.fromarray(turned).resize((224, 224), Image.BILINEAR))

    def policy(observation):
        assert observation["observation/image"].shape == (224, 224, 3)
        return np.tile([0.0] * 6 + [-1.0], (10, 1))

    start = time.process_time()
    env = OffScreenRenderEnv(
        bddl_file_name=str(root / "bddl_files" / folder / f"{file}.bddl"),
        camera_heights=256, camera_widths=256,
    )  # fmt: skip
    env.seed(7)
    # Files of the package itself, as old as torch's pickles.
    states = torch.load(root / "init_files" / folder / f"{file}.pruned_init", weights_only=False)
    constructed, start = time.process_time() - start, time.process_time()
    solved, wall = 0, time.perf_counter()
    for number in range(count):
        env.reset()
        obs = env.set_init_state(states[number])
        for _ in range(10):
            obs, _, done, _ = env.step([0.0] * 6 + [-1.0])
        plan = []
        for _ in range(steps):
            if not plan:
                state = (
                    obs["robot0_eef_pos"],
                    quat2axisangle(obs["robot0_eef_quat"]),
                    obs["robot0_gripper_qpos"],
                )
                plan = list(policy({
                    "observation/image": small(obs["agentview_image"]),
                    "observation/wrist_image": small(obs["robot0_eye_in_hand_image"]),
                    "observation/state": np.concatenate(state), "prompt": file,
                })[:5])  # fmt: skip
            obs, _, done, _ = env.step(plan.pop(0))
            if done:
                solved += 1
                break
    cpu, wall = time.process_time() - start, time.perf_counter() - wall
    return {"cpu": cpu, "wall": wall, "construct": constructed, "episodes": count, "solved": solved}


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        made("libero_object", "pick_up_the_butter_and_place_it_in_the_basket", False).reset()
    elif sys.argv[1] == "--episodes":
        print(json.dumps(played(*sys.argv[2:4], *map(int, sys.argv[4:6]))))
    else:
        print(json.dumps(measured(sys.argv[1], sys.argv[2], sys.argv[3] == "1")))
