"""Meta-World's physics in threads: the same to the bit, all tasks of a block begun before any ends."""

import numpy as np
import pytest

pytest.importorskip("metaworld")

from test_metaworld import models_kept, task

from perdure.errors import EnvironmentFault, SpecError
from perdure.registry import suite
from perdure.run.guards import Observer
from perdure.run.vector import Environments
from perdure.suite import Episode
from perdure.suites import _threads as threads
from perdure.suites._threads import StepThreadPool
from perdure.suites.metaworld import fast_env

__all__ = ["models_kept"]
SUITE = suite("metaworld")
NAMES = ("push", "door-open", "reach")


def block(helpers):
    """Environments of a parallel block, two for each task, on a pool of its own."""
    tasks = [(SUITE, task(name, one_hot=[k, 3], horizon=8)) for k, name in enumerate(NAMES)]
    observations, actions = SUITE.spaces(tasks[0][1])
    envs = Environments(tasks, 2, Observer(observations, "environment"), actions)
    pool = StepThreadPool(helpers)
    for part in envs.parts:
        part.pool = pool
    return envs


def played(helpers):
    envs, rng, out = block(helpers), np.random.default_rng(0), []
    for slot in range(6):
        out.append(envs.reset(slot, Episode.alone(slot)).tobytes())
    for t in range(8):
        slots = [0, 1, 2, 3, 4, 5] if t % 3 else [0, 3, 4]
        seen, *rest = envs.step(slots, list(rng.uniform(-1, 1, (len(slots), 4)).astype("f4")))
        out.append((seen.tobytes(), repr(rest)))
    envs.close()
    return out


def test_threads_change_nothing():
    alone = played(0)
    assert played(1) == alone
    assert played(3) == alone


def test_all_tasks_are_started_before_the_first_is_stepped(monkeypatch):
    envs, order = block(1), []
    for number, part in enumerate(envs.parts):
        for name in ("step_async", "step"):
            was = getattr(part, name)
            monkeypatch.setattr(
                part,
                name,
                lambda *a, was=was, word=f"{name} {number}": (order.append(word), was(*a))[1],
            )
    for slot in range(6):
        envs.reset(slot, Episode.alone(slot))
    envs.step([0, 2, 4], [np.zeros(4, np.float32)] * 3)
    assert order == ["step_async 0", "step_async 1", "step_async 2", "step 0", "step 1", "step 2"]


def test_what_a_helper_meets_is_raised_where_it_was_waited_for(monkeypatch):
    envs = block(1)
    for slot in range(6):
        envs.reset(slot, Episode.alone(slot))

    def fail():
        raise ArithmeticError("no physics today")

    for arm in envs.parts[1].arms:
        monkeypatch.setattr(arm.robot, "move", fail)
    with pytest.raises(EnvironmentFault, match="no physics today"):
        envs.step(list(range(6)), [np.zeros(4, np.float32)] * 6)


def test_how_many(monkeypatch):
    monkeypatch.setenv("PERDURE_THREADS", "3")
    assert threads.threads() == 3
    monkeypatch.delenv("PERDURE_THREADS")
    assert threads.threads() >= 1
    for wrong in ("0", "two", ""):
        monkeypatch.setenv("PERDURE_THREADS", wrong)
        with pytest.raises(SpecError, match="PERDURE_THREADS"):
            threads.threads()


@pytest.mark.parametrize("name", ["hammer", "push-back", "door-open"])
def test_a_used_simulation_is_as_good_as_a_new_one(name):
    def play(fresh):
        fast_env._idle.clear()
        if not fresh:
            for settings in ({"reward": "v2"}, {"reward": "v1"}, {"hide_goal": True}):
                arm = SUITE.env(task(name, horizon=30, **settings))
                arm.reset(seed=99)
                for _ in range(30):
                    arm.step(np.array([0.3, 1.0, -1.0, 1.0], "f4"))
                arm.close()
            assert len(fast_env._idle) == 3
        fast_env.fast_env(name).resets.clear()
        arm = SUITE.env(task(name, horizon=30))
        out = [arm.reset(seed=7)[0].tobytes()]
        rng = np.random.default_rng(1)
        for _ in range(30):
            seen, *rest = arm.step(rng.uniform(-1, 1, 4).astype("f4"))
            out.append((seen.tobytes(), repr(rest)))
        assert fresh or len(fast_env._idle) == 2
        arm.close()
        return out

    assert play(fresh=False) == play(fresh=True)


def test_simulations_are_not_kept_without_end_nor_while_they_move():
    fast_env._idle.clear()
    many = SUITE.batched_env(task("reach"), fast_env.IDLE + 3)
    for slot in range(fast_env.IDLE + 3):
        many.reset(slot, Episode.alone(slot))
    many.pool = StepThreadPool(0)
    many.step_async([0], [np.zeros(4, "f4")])
    moving = many.arms[0].robot
    many.close()
    assert len(fast_env._idle) == fast_env.IDLE and moving not in fast_env._idle
    fast_env._idle.clear()
