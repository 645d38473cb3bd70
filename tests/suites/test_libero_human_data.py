"""Files as LIBERO's own tools write them, of what people did, are read as ours are.

No published file is here. Those of the tests are written as upstream's scripts/create_dataset.py does it:
recorded actions are played again, the first five rows are left out, what is seen after an action stands
beside the state before it, and the model is what MuJoCo saves of it.
"""

import json
from unittest.mock import patch

import mujoco
import numpy as np
import pytest
from click.testing import CliRunner
from libero_kit import needs_assets, states_of

h5py = pytest.importorskip("h5py")

from perdure.cli.main import main
from perdure.datasets.hdf5 import NUMBERS_DIGEST
from perdure.errors import EnvironmentFault
from perdure.registry import suite
from perdure.suites._demonstrations import DemonstrationFile, assemble, write_one
from perdure.suites._held_arrays import HeldArrays
from perdure.suites.libero import demonstration_data
from perdure.suites.libero.bddl import write
from perdure.suites.libero.demonstration_data import ARM
from perdure.suites.libero.demonstrations import demonstrate, put_fixtures
from perdure.suites.libero.env import scene_of
from perdure.suites.libero.problems import problem_of
from perdure.suites.libero.simulation import Simulation
from perdure.suites.libero.tasks import find, officials
from perdure.types import Task

SUITE = suite("libero")
NAME = "90-33"
"""Closing a microwave: the expert's shortest task."""
OFFICIAL = find(NAME)
LEFT_OUT = 5
PARAMS = {"look": "primitive", "solves": 1, "size": 16, "rendering": "fast", "horizon": 200}


@pytest.fixture(scope="module")
def played():
    shown = demonstrate(Task("libero", NAME, params=PARAMS), 3)
    assert shown is not None
    return shown


def saved(xml, folder):
    """As MuJoCo writes a model, without what is as it would be anyway."""
    path = folder / "model.xml"
    model = mujoco.MjModel.from_xml_string(xml)
    mujoco.mj_saveLastXML(str(path), model)
    return path.read_text()


@pytest.fixture
def human(tmp_path, played):
    """A folder with a file of one demonstration, and the file."""
    path = tmp_path / "datasets" / OFFICIAL.folder / f"{OFFICIAL.file}_demo.hdf5"
    path.parent.mkdir(parents=True)
    bddl = f"/Users/someone/libero/bddl_files/{OFFICIAL.folder}/{OFFICIAL.file}.bddl"
    arrays, after = played.arrays, {}
    for name, array in played.arrays.items():
        if name.startswith("obs/") or name == "robot_states":
            after[name] = np.concatenate([array[1:], array[-1:]])[LEFT_OUT:]
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["env_name"] = data.attrs["tag"] = "libero-v1"
        data.attrs["problem_info"] = json.dumps({"language_instruction": OFFICIAL.instruction})
        data.attrs["macros_image_convention"] = "opengl"
        data.attrs["bddl_file_name"] = bddl
        data.attrs["bddl_file_content"] = write(problem_of(OFFICIAL))
        data.attrs["env_args"] = json.dumps({"type": 1, "bddl_file": bddl, "env_kwargs": {}})
        demo = data.create_group("demo_0")
        for name, array in after.items():
            demo.create_dataset(name, data=array)
        for name in ("actions", "states", "rewards", "dones"):
            demo.create_dataset(name, data=arrays[name][LEFT_OUT:])
        demo.attrs["num_samples"] = len(demo["actions"])
        demo.attrs["model_file"] = saved(played.attributes["model_file"], tmp_path)
        demo.attrs["init_state"] = demo["states"][0]
        data.attrs["num_demos"], data.attrs["total"] = 1, len(demo["actions"])
    return path


def data(path, **params):
    return SUITE.data(Task("libero", NAME, params=PARAMS | {"demos": str(path.parents[1]), **params}), True)  # fmt: skip


def all_of(found):
    return found.batch(np.arange(len(found)))


def test_what_is_seen_goes_with_the_action_that_was_taken_upon_it(human, played):
    found = data(human, objects=True)
    steps = len(played.arrays["actions"])
    assert len(found) == steps - LEFT_OUT - 1, "nothing was seen before the first action of a file"
    batch = all_of(found)
    first = LEFT_OUT + 1
    assert np.array_equal(batch.targets, played.arrays["actions"][first:].astype(np.float32))
    for camera, name in (("agentview", "agentview_rgb"), ("robot0_eye_in_hand", "eye_in_hand_rgb")):
        upright = played.arrays[f"obs/{name}"][first:, ::-1]
        assert np.array_equal(batch.inputs[f"{camera}_image"], upright)
    joints = played.arrays["states"][first:, ARM]
    assert np.allclose(batch.inputs["robot0_joint_pos"], joints)
    assert np.allclose(joints, played.arrays["obs/joint_states"][first:], atol=0.01)
    assert np.abs(np.diff(joints, axis=0)).max() > 0.02, "a step is more than that"


@pytest.fixture
def own(tmp_path, played):
    """The same as a file of ours."""
    path = tmp_path / "own" / OFFICIAL.folder / f"{OFFICIAL.file}_demo.hdf5"
    path.parent.mkdir(parents=True)
    write_one(tmp_path / "part.hdf5", played)
    assemble(path, [tmp_path / "part.hdf5"], {"bddl_file_content": write(problem_of(OFFICIAL))})
    return path


def test_damaged_demonstrations_are_not_learned_from(own, human):
    written = DemonstrationFile(own).fingerprint()
    with h5py.File(own, "r+") as file:
        actions = file["data/demo_0/actions"][()]
        file["data/demo_0/actions"][:] = 0.5
    fix = f"{own.name} is damaged: demo_0 is not as it was written.*make it again by perdure demos"
    with pytest.raises(EnvironmentFault, match=fix):
        data(own)
    assert DemonstrationFile(own).fingerprint() != written
    with h5py.File(own, "r+") as file:
        file["data/demo_0/actions"][:] = actions
        del file["data/demo_0"].attrs[NUMBERS_DIGEST]
    assert len(data(own)), "as files were written that had one digest"
    with h5py.File(human, "r+") as file:
        file["data/demo_0/states"][3, 5] = np.nan
    with pytest.raises(EnvironmentFault, match=r"demo_0 has states that are not finite; remove"):
        data(human)


def test_a_damaged_picture_fails_where_it_is_read(own, tmp_path):
    with h5py.File(own) as file:
        pictures = file["data/demo_0/obs/agentview_rgb"]
        assert pictures.chunks == (1, 16, 16, 3) and pictures.fletcher32
        place = pictures.id.get_chunk_info(7).byte_offset
    with own.open("r+b") as file:
        file.seek(place + 20)
        byte = file.read(1)
        file.seek(place + 20)
        file.write(bytes([byte[0] ^ 1]))
    named = f"{own.name} is damaged: demo_0 cannot be read .*make it again by perdure demos"
    with pytest.raises(EnvironmentFault, match=named):
        data(own).batch(np.arange(3, 9))
    said = CliRunner().invoke(main, ["demos", "--check", str(tmp_path / "own")])
    assert said.exit_code == 1 and "make it again by perdure demos" in said.output


@pytest.mark.parametrize("kind", ["own", "human"])
def test_minibatches_do_not_depend_on_the_room_for_them(kind, request, monkeypatch):
    path = request.getfixturevalue(kind)
    found, read = data(path, sequence=10), []
    indices = np.random.default_rng(0).integers(len(found), size=12)
    batches = []
    for room, reads in ((1 << 30, 2), (0, 24)):
        monkeypatch.setattr(demonstration_data, "HELD", HeldArrays(room))
        with patch.object(type(found), "_read", counting(read, type(found)._read)):
            batches.append(found.batch(indices))
        assert len(read) == reads
        read.clear()
    assert np.array_equal(batches[0].targets, batches[1].targets)
    for name, array in batches[0].inputs.items():
        assert array.shape[:2] == (12, 10) and np.array_equal(array, batches[1].inputs[name])


def counting(calls, method):
    def counted(*given):
        calls.append(given)
        return method(*given)

    return counted


def test_ours_and_theirs_of_one_episode_are_the_same_data(human, played, own):
    ours, theirs = all_of(data(own)), all_of(data(human))
    assert len(data(own)) == len(played.arrays["actions"]), "ours show what is seen before"
    assert np.array_equal(ours.targets[LEFT_OUT + 1 :], theirs.targets)
    for name, array in theirs.inputs.items():
        assert np.array_equal(ours.inputs[name][LEFT_OUT + 1 :], array)


def test_pairs_as_published(human, played):
    published, other = all_of(data(human, pairing="published")), all_of(data(human))
    actions = played.arrays["actions"][LEFT_OUT:-1].astype(np.float32)
    assert np.array_equal(published.targets, actions)
    for name, array in published.inputs.items():
        assert np.array_equal(array, other.inputs[name])


def test_sequences_end_with_the_last_pair(human, played):
    found = data(human, sequence=4)
    last = found.batch(np.array([len(found) - 1]))
    wanted = played.arrays["actions"][-1].astype(np.float32)
    assert np.array_equal(last.targets[0], np.repeat(wanted[None], 4, 0))


def test_fixtures_stand_where_the_saved_model_has_them(human, played):
    with h5py.File(human) as file:
        xml = str(file["data/demo_0"].attrs["model_file"])
    simulation = Simulation(scene_of(problem_of(OFFICIAL), "primitive"))
    simulation.reset(11)
    elsewhere = {n: simulation.model.body_pos[k].copy() for n, k in simulation.fixtures.items()}
    put_fixtures(simulation, xml)
    moved = 0
    for name, number in simulation.fixtures.items():
        root = simulation.scene.bodies[name].root
        wanted = mujoco.MjModel.from_xml_string(played.attributes["model_file"]).body(root)
        assert np.allclose(simulation.model.body_pos[number], wanted.pos, atol=1e-4)
        assert np.allclose(np.abs(simulation.model.body_quat[number] @ wanted.quat), 1, atol=1e-6)
        moved += not np.allclose(elsewhere[name], wanted.pos, atol=1e-4)
    assert moved
    root = simulation.scene.bodies["microwave_1"].root
    put_fixtures(simulation, f'<mujoco><body name="{root}"/></mujoco>')
    number = simulation.fixtures["microwave_1"]
    assert not simulation.model.body_pos[number].any(), "what MuJoCo leaves out is at the origin"
    with pytest.raises(EnvironmentFault, match="the stored model has no microwave_1"):
        put_fixtures(simulation, "<mujoco/>")


def test_what_is_read_without_the_attributes(human):
    """Others write such files again, without what they do not need."""
    with h5py.File(human, "r+") as file:
        for group in (file["data"], file["data/demo_0"]):
            for name in list(group.attrs):
                del group.attrs[name]
        file.move("data/demo_0", "data/demo_17")
    assert len(all_of(data(human)).targets)
    file = DemonstrationFile(human)
    file.check()
    assert file.names == ["demo_17"] and not file.has_digests
    assert file.task() == Task("libero", OFFICIAL.file, params={"look": "official"})
    file.close()


def test_what_is_wrong_is_named(human, tmp_path):
    with pytest.raises(EnvironmentFault, match=r"16 pixels, the task 128: set size=16"):
        data(human, size=128)
    other = problem_of(find("90-35"))
    with h5py.File(human, "r+") as file:
        file["data"].attrs["bddl_file_content"] = write(other)
    with pytest.raises(EnvironmentFault, match="is of another task: its bddl_file_content has"):
        data(human)
    with h5py.File(human, "r+") as file:
        del file["data"].attrs["bddl_file_content"]
        states = file["data/demo_0/states"][:, :-3]
        del file["data/demo_0/states"]
        file["data/demo_0/states"] = states
    with pytest.raises(EnvironmentFault, match=r"demo_0 have \d+ numbers, those of 90-33 have \d+"):
        data(human, cameras=[]).batch(np.array([0]))
    with h5py.File(human, "r+") as file:
        rows = file["data/demo_0/obs/ee_pos"][:-2]
        del file["data/demo_0/obs/ee_pos"]
        file["data/demo_0/obs/ee_pos"] = rows
    said = CliRunner().invoke(main, ["demos", "--check", str(tmp_path / "datasets")])
    assert said.exit_code == 1 and "rows of obs/ee_pos" in said.output


@needs_assets
def test_published_files_are_played_again_in_the_official_look(tmp_path):
    """They do not say the look: it is the official one."""
    task = Task("libero", NAME, params=PARAMS | {"look": "official", "cameras": []})
    shown = demonstrate(task, 5)
    path = tmp_path / f"{OFFICIAL.file}_demo.hdf5"
    with h5py.File(path, "w") as file:
        for k, still in enumerate((False, True)):
            demo = file.create_group(f"data/demo_{k}")
            demo["actions"] = shown.arrays["actions"][LEFT_OUT:] * (0.0 if still else 1.0)
            demo["states"] = shown.arrays["states"][LEFT_OUT:]
            demo.attrs["model_file"] = shown.attributes["model_file"]
            demo.attrs["init_state"] = shown.arrays["states"][LEFT_OUT]
    said = CliRunner().invoke(main, ["demos", "--check", str(tmp_path), "--replay"])
    assert said.exit_code == 0, said.output
    assert "readable (it has no digests); 1 of 2 succeed again, not demo_1" in said.output


@needs_assets
def test_the_arm_is_first_in_a_state_of_every_scene():
    for scene in {o.scene or o.folder: o for o in officials().values()}.values():
        simulation = Simulation(scene_of(problem_of(scene), "primitive"), 1)
        assert [1 + k for k in simulation.arm] == list(range(ARM.start, ARM.stop))
        assert states_of(scene.name).shape[1] == simulation.state_size
