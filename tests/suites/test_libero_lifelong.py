"""LIBERO's lifelong imitation learning: its curricula, its data, and a life that is killed in mid-episode."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("h5py")
pytest.importorskip("mujoco")

from perdure.errors import CurriculumError, SpecError, UnknownName
from perdure.pools import data_room
from perdure.registry import suite
from perdure.run.code import code_record
from perdure.run.config import stages_of
from perdure.run.demos import collect
from perdure.run.experiment import execute
from perdure.run.plan import make_plan
from perdure.run.spec import RunSpec
from perdure.run.validate import validate
from perdure.suites._held_arrays import EVERY, HeldArrays
from perdure.suites.libero.lifelong import AXES, lifelong, multitask, perturbed, robustness
from perdure.suites.libero.phrasing import rephrased
from perdure.suites.libero.protocols import bc
from perdure.suites.libero.tasks import settings
from perdure.testing.agents import read_rows
from perdure.types import Curriculum, Exposure, Task, evaluate, learn

SUITE = suite("libero")
SHORT = ("90-33", "90-0")
"""Closing a microwave, closing a drawer: short for the expert, and different things in their scenes."""


def outline(curriculum):
    """Each block in a word: 2:5 is five epochs of the third task, 012 an evaluation of all three."""
    ids = [t.id for t in curriculum.tasks]
    out = []
    for block in curriculum.blocks:
        numbers = "".join(str(ids.index(e.task.id)) for e in block.exposures)
        out.append(f"{numbers}:{block.exposures[0].amount}" if block.kind == "learn" else numbers)
    return " ".join(out)


def test_the_papers_setting_is_the_default():
    curriculum = lifelong("demos", "object", order=1)
    assert [t.name for t in curriculum.tasks[:3]] == ["object-4", "object-6", "object-8"]
    first = settings(curriculum.tasks[0])
    assert (first.sequence, first.batch_size, first.size, first.horizon) == (10, 32, 128, 600)
    assert len(first.cameras) == 2
    # Epochs 0, 5, …, 50 of a task, and all earlier ones when it ends.
    stages = outline(curriculum).split()
    assert stages[:3] == ["0", "0:5", "0"] and stages[20:24] == ["01", "1:5", "1", "1:5"]
    assert stages.count("0:5") == 10 and stages[-1] == "0123456789"


def test_a_stage_is_learned_in_parts_and_the_past_is_played_as_said():
    names = ["object-0", "object-1", "object-2"]
    kept = {"demos": "demos", "tasks": names, "scale": "small", "epochs": 5, "every": 2}
    assert outline(lifelong(**kept)) == "0:2 0 0:2 0 0:1 0 1:2 1 1:2 1 1:1 01 2:2 2 2:2 2 2:1 012"
    whole = lifelong(**kept, past="every", epoch_zero=True)
    assert outline(whole).startswith("0 0:2 0 0:2 0 0:1 01 1:2 01 1:2 01 1:1 012 2:2 012")
    # All see the same things, those that are not there as zeros.
    spaces = [SUITE.spaces(t) for t in whole.tasks]
    assert spaces[0] == spaces[1] == spaces[2]
    assert "ketchup_1_pos" in spaces[0][0].spaces and not settings(whole.tasks[0]).cameras
    together = multitask("demos", names, "small", epochs=4, every=2)
    assert outline(together) == "012:2 012 012:2 012" and together.blocks[0].parallel
    before = lifelong("demos", ["object-0"], "small", pretrain=["90-0", "90-1"], pretrain_epochs=3)
    assert [e.amount for e in before.before[0].exposures] == [3, 3] and before.before[0].parallel
    assert SUITE.spaces(before.tasks[0]) == SUITE.spaces(before.tasks[-1])


def test_fewer_tasks_are_played_with_the_observations_of_all_that_were_learned():
    learned = ["object-0", "object-1"]
    trained = SUITE.spaces(lifelong("demos", learned, "small").tasks[0])
    assert SUITE.spaces(robustness(learned[:1], "small").tasks[0]) != trained
    part = robustness(learned[:1], "small", objects=learned)
    assert all(SUITE.spaces(task) == trained for task in part.tasks)
    of_list = robustness(learned[:1], "small", objects="object").tasks[0]
    assert SUITE.spaces(of_list) == SUITE.spaces(robustness("object", "small").tasks[0])
    named = robustness(learned[:1], "small", objects=["milk_1", "basket_1"]).tasks[0]
    assert named.params["objects"] == ["milk_1", "basket_1"]


def test_mistakes_are_named():
    for params, words in (
        ({}, "set demos"),
        ({"demos": "d", "tasks": []}, "at least one task"),
        ({"demos": "d", "epochs": 0}, "epochs must be"),
        ({"demos": "d", "epochs": 3, "every": 4}, "every must be at most epochs = 3"),
    ):
        with pytest.raises(CurriculumError, match=words):
            lifelong(**params)
    with pytest.raises(UnknownName, match="scale"):
        lifelong("d", scale="smal")
    with pytest.raises(UnknownName, match="past"):
        lifelong("d", past="never")


def test_tasks_of_other_scenes_show_the_same_when_all_objects_are_asked_for():
    """The command of docs/libero.md: a thing that a scene does not have is zeros there."""
    seen = bc("d", tasks=["object-1", "object-4"], cameras=[], objects=True)
    first, last = (SUITE.spaces(t)[0] for t in seen.tasks)
    assert first == last and "ketchup_1_pos" in first.spaces
    named = bc("d", tasks="10", cameras=[], objects=["ketchup_1"])
    assert [t.params["objects"] for t in named.tasks] == [["ketchup_1"]] * 10


def test_spaces_that_differ_are_told_by_what_differs():
    tasks = [
        Task("libero", n, params={"cameras": [], "objects": True}) for n in ("object-1", "goal-0")
    ]
    with pytest.raises(CurriculumError, match="must share their spaces") as refused:
        validate(Curriculum("two", (evaluate(*(Exposure(t, 1) for t in tasks)),)))
    text = str(refused.value)
    assert len(text) < 1200 and "robot0" not in text.replace("to_robot0", "")
    assert "it has besides akita_black_bowl_1_pos" in text and "more;" in text


def test_a_block_knows_its_place_in_its_stage():
    a, b = Task("toy", "a"), Task("toy", "b")
    play = evaluate(Exposure(a, 1))
    blocks = [learn(Exposure(a, 3, "epochs")), play, learn(Exposure(a, 1, "epochs")),
              learn(Exposure(b, 2, "epochs")), learn(Exposure(a, 5, "steps"))]  # fmt: skip
    assert stages_of(blocks) == [
        (0.0, 0.75), (0.0, 1.0), (0.75, 0.25), (0.0, 1.0), (0.0, 1.0),
    ]  # fmt: skip
    mixed = [learn(Exposure(a, 3, "epochs")), learn(Exposure(a, 100, "steps"))]
    assert stages_of(mixed) == [(0.0, 0.5), (0.5, 0.5)]


def test_what_is_held_stays_within_its_room_and_is_made_once():
    held, made = HeldArrays(100), []

    def make(key):
        made.append(key)
        return {"": np.zeros(10, np.uint8) if key < 9 else np.zeros(95, np.uint8)}

    for key in (1, 2, 1, 9, 1, 2):
        held.get(key, lambda: make(key))
    # 9 fills the room; the oldest, 2, goes first, then 1.
    assert made == [1, 2, 9, 1, 2] and held.bytes == 20


def test_what_there_is_no_room_for_comes_in_now_and_then():
    """A working set that does not fit keeps what is held, and a new task's data still get in."""
    held, made = HeldArrays(100), []

    def ask(key):
        def make():
            made.append(key)
            return {"": np.zeros(10, np.uint8)}

        return held.get_if_room(key, 10, make)

    assert all(ask(k) is not None for k in range(10)) and held.bytes == 100
    assert [ask(k) is not None for k in range(10, 10 + EVERY)] == [False] * (EVERY - 1) + [True]
    assert made == [*range(10), 9 + EVERY] and held.bytes == 100
    assert ask(5) is not None and ask(0) is None, "what was not asked for longest went"
    assert HeldArrays(9).get_if_room(1, 10, dict) is None


def test_the_room_is_a_share_of_memory_unless_it_is_said(monkeypatch):
    monkeypatch.delenv("PERDURE_DATA_MB", raising=False)
    assert HeldArrays().most_bytes == data_room() >= 1 << 30
    assert data_room(4) == data_room() // 4
    monkeypatch.setenv("PERDURE_DATA_MB", "3")
    assert HeldArrays().most_bytes == 3_000_000
    monkeypatch.setenv("PERDURE_DATA_MB", "many")
    with pytest.raises(SpecError, match="PERDURE_DATA_MB must be a whole number of megabytes"):
        _ = HeldArrays().most_bytes


def test_perturbations_are_variants_of_the_tasks_themselves():
    names = ["object-0", "object-1"]
    blind = robustness(names, "small")
    ids = [e.task.id for e in blind.blocks[0].exposures]
    assert ids[:5] == ["libero/object-0", *(f"libero/object-0@start-{k}" for k in (1, 2, 3)),
                       "libero/object-0@words-1"]  # fmt: skip
    assert len(ids) == 2 * (1 + 15) and all("demos" not in t.params for t in blind.tasks)
    assert all(SUITE.spaces(t) == SUITE.spaces(blind.tasks[0]) for t in blind.tasks)
    seeing = robustness(names, axes=["camera", "light"])
    assert [t.variant for t in seeing.tasks[:4]] == ["", "camera-1", "camera-2", "camera-3"]
    whole = lifelong("demos", names, "small", epochs=2, every=1, perturb=["start"])
    assert [e.task.variant for e in whole.blocks[-1].exposures] == [
        "start-1",
        "start-2",
        "start-3",
    ] * 2
    said = {SUITE.instructions(t) for t in perturbed(whole.tasks[0], ["words"])}
    assert len(said) == 3
    with pytest.raises(UnknownName, match="axis"):
        perturbed(whole.tasks[0], ["lihgt"])
    with pytest.raises(CurriculumError, match="light must be a number from 0 to 2"):
        settings(Task("libero", "object-0", params={"light": 3}))
    assert all(len(levels) == 3 for levels in AXES.values())


def test_the_same_request_in_other_words():
    sentence = "pick up the milk and place it in the basket"
    assert rephrased(sentence, "polite") == f"could you please {sentence}"
    assert rephrased(sentence, "synonyms") == "grab the milk and set it in the hamper"
    reworded = "set it in the hamper, after you grab the milk, if you would"
    assert rephrased(sentence, "reworded") == reworded
    assert rephrased("turn on the stove", "reworded") == "I would like you to switch on the cooker"


def test_the_hand_begins_elsewhere_and_everything_else_where_it_was():
    def begun(shift, number):
        params = {"cameras": [], "objects": True, "solves": 1, "start_shift": shift}
        env = SUITE.env(Task("libero", "object-0", params=params))
        seen, _ = env.reset(seed=3, options={"episode": number})
        return seen

    still, moved = begun(0.0, 0), begun(0.06, 0)
    way = moved["robot0_eef_pos"] - still["robot0_eef_pos"]
    assert 0.04 < np.linalg.norm(way) < 0.08 and way[2] > 0
    np.testing.assert_allclose(moved["milk_1_pos"], still["milk_1_pos"], atol=2e-3)
    again = begun(0.06, 0)
    assert all(np.array_equal(moved[n], again[n]) for n in moved)
    other = begun(0.06, 1)["robot0_eef_pos"] - begun(0.0, 1)["robot0_eef_pos"]
    assert np.linalg.norm(other - way) > 0.01


def test_cameras_and_lights_change_what_is_seen_and_nobody_elses_pictures():
    pytest.importorskip("OpenGL")

    def drawn(**params):
        env = SUITE.env(Task("libero", "object-0", params={"size": 64, "solves": 1, **params}))
        seen, _ = env.reset(seed=0, options={"episode": 0})
        return (
            env,
            seen["agentview_image"].astype(float),
            seen["robot0_eye_in_hand_image"].astype(float),
        )

    kept, room, hand = drawn()
    _, dark, dark_hand = drawn(light=0.25)
    assert dark.mean() < 0.6 * room.mean() and dark_hand.mean() < 0.6 * hand.mean()
    _, shifted, same = drawn(camera_shift=0.12)
    assert np.abs(shifted - room).mean() > 3 and np.array_equal(same, hand)
    again = kept._observation()["agentview_image"]
    assert np.array_equal(again, room)


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    out = tmp_path_factory.mktemp("lifelong-demos")
    for name in SHORT:
        collect(SUITE.demonstration_tasks(name, {"cameras": [], "solves": 1}), out, 1)
    return out


def test_data_show_what_the_environment_shows(demos):
    """Things that are named and not there are zeros in both, the rest is where it is."""
    task = lifelong(str(demos), SHORT, "small", sequence=3).tasks[0]
    data = SUITE.data(task, True)
    batch = data.batch(np.array([0, len(data) - 1]))
    space = SUITE.spaces(task)[0]
    assert set(batch.inputs) == set(space.spaces)
    assert all(v.shape == (2, 3, *space[n].shape) for n, v in batch.inputs.items())
    env = SUITE.env(task)
    seen, _ = env.reset(seed=0)
    absent = {n for n, v in seen.items() if not v.any()}
    assert absent == {n for n, v in batch.inputs.items() if not v.any()}
    assert any(n.startswith("wooden_cabinet") is False and n.endswith("_pos") for n in absent)
    # Beyond the end the last step is repeated.
    for values in (*batch.inputs.values(), batch.targets):
        assert np.array_equal(values[1, 0], values[1, 2]) and np.isfinite(values).all()
    again = SUITE.data(task, True).batch(np.array([0, len(data) - 1]))
    assert again.inputs["robot0_eef_pos"] is not batch.inputs["robot0_eef_pos"]
    np.testing.assert_array_equal(again.inputs["robot0_eef_pos"], batch.inputs["robot0_eef_pos"])


def test_demonstrations_without_the_pictures_asked_for_are_refused_when_planned(demos):
    curriculum = f"libero/lifelong,demos={demos},tasks=[{SHORT[0]}],scale=small,cameras=[agentview]"
    expected = (
        r"demo.hdf5 has no pictures of agentview: set cameras=\[\] and learn from states.*"
        "perdure demos with --cameras agentview"
    )
    with pytest.raises(CurriculumError, match=expected):
        make_plan(RunSpec(curriculum, ("sequence_bc,policy=resnet_t,size=small",)))


def test_who_learns_from_sequences_is_not_planned_with_single_steps(demos):
    curriculum = f"libero/lifelong,demos={demos},tasks=[{SHORT[0]}],scale=small"
    agent = "sequence_bc,size=small,language=task-id"
    with pytest.raises(SpecError, match=r"gives it single steps of libero/90-33: set its seq"):
        make_plan(RunSpec(curriculum, (f"replay+{agent}",)))
    # Each of the ways out that it names, and where nothing is learned.
    make_plan(RunSpec(f"{curriculum},sequence=10", (agent,)))
    make_plan(RunSpec(curriculum, (f"{agent},policy=state_mlp", f"one={agent},look_back=1")))
    make_plan(RunSpec(f"libero/robustness,tasks=[{SHORT[0]}],axes=[words],scale=small", (agent,)))


LEARNER = '''
import os, signal
from pathlib import Path
from perdure.agents.learners.sequence_bc import SequenceBCAgent

class Mortal(SequenceBCAgent):
    """Dies in its n-th act, once."""
    acts = 0

    def act(self, obs, ctx):
        fuse = Path(__file__).with_name("fuse")
        Mortal.acts += 1
        if fuse.exists() and Mortal.acts == int(fuse.read_text()):
            fuse.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().act(obs, ctx)
'''


def test_a_life_that_is_killed_in_mid_episode_goes_on_exactly(demos, tmp_path):
    source = tmp_path / "mortal.py"
    source.write_text(LEARNER)
    names = "[" + ",".join(SHORT) + "]"
    curriculum = (
        f"libero/lifelong,demos={demos},tasks={names},scale=small,epochs=2,every=1,episodes=1,"
        "sequence=10,batch_size=16,horizon=25"
    )
    agent = (
        f"life=replay+{source}:Mortal,policy=state_transformer,size=small,language=task-id,"
        "quota=20,lr=1e-3"
    )

    def run(out):
        spec = RunSpec(curriculum, (agent,), out=str(out), executor="serial", checkpoint=11)
        assert [o.status for o in execute(make_plan(spec))] == ["done"]
        return read_rows(Path(out) / "life" / "0")

    whole = run(tmp_path / "whole")
    played = [row for row in whole if not row.learning]
    assert len(played) == 5 and all(row.steps == 25 for row in played)
    # In the middle of the second task's last episode: 4 · 25 acts came before.
    (tmp_path / "fuse").write_text("113")
    command = [sys.executable, "-m", "perdure", "run", curriculum, f"--agent={agent}",
               f"--out={tmp_path / 'killed'}", "--executor=serial", "--checkpoint=11"]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(command, env=env, capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr[-2000:]
    assert run(tmp_path / "killed") == whole


def test_other_demonstrations_are_another_version_of_what_is_learned(demos, tmp_path):
    """Their fingerprint stands in what lifetimes executed, so that rows of both are never mixed in silence."""
    name, others = SHORT[0], tmp_path / "others"
    collect(SUITE.demonstration_tasks(name, {"cameras": [], "solves": 1}), others, 1, seed=7)
    first, again, other = (
        SUITE.code(lifelong(str(folder), [name], "small").tasks[0])
        for folder in (demos, demos, others)
    )
    (said,), (else_,) = first, other
    assert first == again and said.keys() == else_.keys() and said != else_
    world = code_record([], first)["world"]
    assert said.items() <= world.items()
    # What is played alone has no demonstrations.
    assert not SUITE.code(perturbed(lifelong(str(demos), [name], "small").tasks[0], ["objects"])[0])
