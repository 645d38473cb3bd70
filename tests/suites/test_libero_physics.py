"""LIBERO's physics and sensors against what upstream's stack did with the same seeds and actions."""

import sys

import numpy as np
import pytest
from libero_kit import REFERENCE, needs_assets, recorded, simulation, states_of

from perdure.suites.libero.controller import orientation_error
from perdure.suites.libero.env import object_names, object_state, robot_state
from perdure.suites.libero.rotations import matrix_of, turn_of
from perdure.suites.libero.simulation import PERIOD, SUBSTEPS, SensorClock
from perdure.suites.libero.tasks import officials

sys.path.insert(0, str(REFERENCE))
from record import EVERY, NUMBERS, TASKS, actions


def numbers(sim):
    """The observations that were recorded, in their order."""
    known = robot_state(sim, sim.reading)
    objects = object_state(sim, sim.reading, sim.objects)
    known["object-state"] = np.concatenate(
        [objects[n] for name in sim.objects for n in object_names(name)]
    )
    return np.concatenate([known[n] for n in NUMBERS])


@needs_assets
@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_an_episode_is_upstreams(name):
    """Positions to 1e-6 over an episode of eleven seconds with contacts; observations likewise."""
    told, seed = recorded("physics"), TASKS[name]
    qpos, seen = told[f"{name}/qpos"], told[f"{name}/seen"]
    sim = simulation(name)
    sim.reset(seed)
    sim.set_state(states_of(name)[seed])
    np.testing.assert_allclose(numbers(sim), seen[0], rtol=0, atol=1e-6)
    success = []
    for t, action in enumerate(actions(seed)):
        sim.act(action)
        sim.finish()
        success.append(sim.success())
        if (t + 1) % EVERY == 0:
            k = (t + 1) // EVERY
            np.testing.assert_allclose(sim.data.qpos, qpos[k - 1], rtol=0, atol=1e-6)
            np.testing.assert_allclose(numbers(sim), seen[k], rtol=0, atol=1e-6)
    assert success == told[f"{name}/success"].tolist()
    assert np.abs(qpos[-1] - qpos[0]).max() > 0.1, "nothing moved, so nothing was compared"


@needs_assets
def test_one_solve_is_nearly_the_same():
    told, name = recorded("physics"), "90-33"
    sim = simulation(name, solves=1)
    sim.reset(TASKS[name])
    sim.set_state(states_of(name)[TASKS[name]])
    for action in actions(TASKS[name]):
        sim.act(action)
    np.testing.assert_allclose(sim.data.qpos, told[f"{name}/qpos"][-1], rtol=0, atol=1e-5)


@needs_assets
@pytest.mark.slow
def test_every_task_is_set_as_upstream_sets_it():
    """All 130: the seed decides objects, joints and fixtures, and they are where upstream has them
    after ``seed(k)`` and ``reset()``; the official states fit, and no goal holds in the first."""
    told = recorded("placements")
    for seed, name in enumerate(officials()):
        sim = simulation(name)
        sim.reset(seed)
        np.testing.assert_allclose(
            sim.data.qpos, told[f"{name}/qpos"], rtol=0, atol=1e-9, err_msg=name
        )
        ids = list(sim.fixtures.values())
        places = np.concatenate([sim.model.body_pos[ids], sim.model.body_quat[ids]], axis=1)
        np.testing.assert_allclose(
            places, told[f"{name}/fixtures"].reshape(-1, 7), rtol=0, atol=1e-9, err_msg=name
        )
        sim.set_state(states_of(name)[0])
        assert not sim.success(), name


def test_sensors_are_read_once_in_a_control_step():
    clock = SensorClock()
    clock.force()  # A reset reads them,
    clock.force()  # and so does setting a state.
    for _ in range(1000):
        ticks = [clock.tick() for _ in range(SUBSTEPS)]
        assert sum(ticks) == 1
        # Two milliseconds before the step's end; rounding may make it one substep more or less.
        assert ticks.index(True) in (22, 23, 24)
    assert 0 <= clock.elapsed < PERIOD


def test_turns():
    half = np.array([0.0, 0.0, np.pi / 2])
    np.testing.assert_allclose(turn_of(half) @ [1, 0, 0], [0, 1, 0], atol=1e-6)
    np.testing.assert_array_equal(turn_of(np.zeros(3)), np.eye(3))
    np.testing.assert_allclose(
        matrix_of(np.array([np.cos(0.3), np.sin(0.3), 0, 0])),
        turn_of(np.array([0.6, 0, 0])),
        atol=1e-6,
    )


def test_orientation_error_is_a_small_turn():
    turn = np.array([0.01, -0.02, 0.015])
    current = turn_of(np.array([0.4, 1.0, -0.3]))
    np.testing.assert_allclose(
        orientation_error(turn_of(turn) @ current, current), turn, rtol=0, atol=1e-5
    )


@needs_assets
def test_the_hand_goes_where_an_action_says():
    sim = simulation("object-0")
    sim.reset(0)
    hand = sim.data.site_xpos[sim.controller.site]
    before = hand.copy()
    for _ in range(10):
        sim.act(np.array([0.0, 1.0, 0, 0, 0, 0, -1]))
    assert hand[1] - before[1] > 0.1 and abs(hand[0] - before[0]) < 0.02
    fingers = sim.data.qpos[sim.fingers]
    assert fingers[0] > 0.035 and fingers[1] < -0.035, "open"
    for _ in range(20):
        sim.act(np.array([0.0, 0, 0, 0, 0, 0, 1]))
    assert np.abs(sim.data.qpos[sim.fingers]).max() < 0.005, "closed"


@needs_assets
def test_actions_beyond_the_bounds_count_as_at_them():
    ends = []
    for size in (1.0, 7.0):
        sim = simulation("object-0")
        sim.reset(0)
        for _ in range(3):
            sim.act(size * np.array([1.0, -1, 1, 1, -1, 1, 1]))
        ends.append(sim.state())
    np.testing.assert_array_equal(*ends)
