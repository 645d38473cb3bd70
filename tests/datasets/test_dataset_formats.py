"""RLDS without TensorFlow, LeRobot's videos, Minari's HDF5: read from files of the real packages, and round trips."""

import json
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from gymnasium import spaces

from perdure import registry
from perdure.cli.main import main
from perdure.curricula.named import curriculum_of
from perdure.datasets.convert import open_dataset
from perdure.datasets.episodes import DatasetEpisode
from perdure.datasets.lerobot import LeRobotReader, write_lerobot
from perdure.datasets.minari import MinariReader, write_minari
from perdure.datasets.minari.spaces import space_json, space_of
from perdure.datasets.rlds import RldsReader
from perdure.datasets.tfrecord import example, masked_crc, records
from perdure.errors import StoreError, UnknownName
from perdure.specs import Spec

HERE = Path(__file__).parent
RLDS, AV1 = HERE / "rlds", HERE / "lerobot_av1"
PEERS = HERE.parents[1] / ".venv-peers/bin/python"
CAMERA = "observation.images.cam"


# RLDS: rlds/ was written by TensorFlow Datasets itself (make_rlds.py).


def test_rlds_is_read_as_tensorflow_wrote_it():
    reader = RldsReader(RLDS, verify=True)
    assert len(reader) == 3 and reader.split == "train" and not reader.left_out
    lengths = {}
    for episode in reader:
        e = episode.about["episode_metadata/episode_id"]
        lengths[e] = len(episode)
        k = e * 100 + np.arange(len(episode))
        seen, over = episode.observations, k[:, None, None, None]
        assert (seen["image"] == (np.arange(192).reshape(8, 8, 3) + over) % 256).all()
        assert (seen["grid"] == (np.arange(6).reshape(2, 3) + k[:, None, None]) % 256).all()
        assert abs(seen["wrist_image"].astype(int) - 3 * over % 256).max() < 3  # JPEG
        assert seen["state"].dtype == np.float32 and seen["joint_state"].dtype == np.float64
        assert np.allclose(seen["state"], np.arange(8) + k[:, None] / 10)
        assert np.allclose(episode.actions, np.arange(7) - k[:, None] / 10)
        assert episode.task == ("close the drawer" if e == 1 else "open the drawer")
        assert episode.rewards.tolist() == [0.0] * (len(k) - 1) + [1.0]
        assert episode.terminations[-1] == (e != 1) and episode.truncations[-1] == (e == 1)
        assert episode.infos["discount"].tolist() == [1.0] * len(k)
        assert episode.about["episode_metadata/file_path"] == f"demo_{e}.hdf5"
    assert lengths == {0: 5, 1: 3, 2: 4}
    assert (reader[2].actions == list(reader)[2].actions).all()
    assert len(RldsReader(RLDS, drop_last=True)[0]) == len(reader[0]) - 1
    with pytest.raises(UnknownName, match="did you mean 'train'"):
        RldsReader(RLDS, split="trian")


def test_damaged_rlds_is_named(tmp_path):
    shutil.copytree(RLDS, tmp_path / "set")
    (file,) = (tmp_path / "set").glob("*.tfrecord-*")
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    with pytest.raises(StoreError, match="the file ends before"):
        list(RldsReader(tmp_path / "set"))
    file.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    with pytest.raises(StoreError, match="record 0: the file is damaged"):
        list(RldsReader(tmp_path / "set"))
    file.write_bytes(whole[:2000] + bytes([whole[2000] ^ 1]) + whole[2001:])
    with pytest.raises(StoreError, match="the data are damaged"):
        list(RldsReader(tmp_path / "set", verify=True))
    file.unlink()
    with pytest.raises(StoreError, match="is not there"):
        RldsReader(tmp_path / "set")[0]


def test_records_and_examples_by_hand(tmp_path):
    """CRC-32C of "123456789" is E3069283. Numbers of an example are seven bits in a byte, negative ones ten of
    these."""
    crc = 0xE3069283
    assert masked_crc(b"123456789") == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    packed = b"\x05\xac\x02" + b"\xff" * 9 + b"\x01"  # 5, 300, -1
    numbers = b"\x0a" + bytes([len(packed)]) + packed
    feature = b"\x1a" + bytes([len(numbers)]) + numbers
    entry = b"\x0a\x01n\x12" + bytes([len(feature)]) + feature
    features = b"\x0a" + bytes([len(entry)]) + entry
    data = b"\x0a" + bytes([len(features)]) + features
    assert example(data)["n"].tolist() == [5, 300, -1]
    length = struct.pack("<Q", len(data))
    sums = [struct.pack("<I", masked_crc(part)) for part in (length, data)]
    path = tmp_path / "one"
    path.write_bytes(length + sums[0] + data + sums[1])
    assert list(records(path, verify=True)) == [data]
    with pytest.raises(StoreError, match=r"expected a tf\.train\.Example"):
        example(b"\x0a\x7fno")


def test_rlds_becomes_lerobots_and_minaris(tmp_path):
    found = CliRunner().invoke(main, ["convert", str(RLDS), str(tmp_path / "l"), "--fps", "10"])
    assert found.exit_code == 2 and "grid: LeRobotDataset holds" in found.output
    # Without that matrix, which a dataset of LeRobot's has no place for.
    shutil.copytree(RLDS, tmp_path / "less")
    told = json.loads((RLDS / "features.json").read_text())
    steps = told["featuresDict"]["features"]["steps"]["sequence"]["feature"]["featuresDict"]
    del steps["features"]["observation"]["featuresDict"]["features"]["grid"]
    (tmp_path / "less/features.json").write_text(json.dumps(told))
    less = [str(tmp_path / "less"), str(tmp_path / "l2"), "--fps", "10"]
    done = CliRunner().invoke(main, ["convert", *less])
    assert done.exit_code == 0, done.output
    assert LeRobotReader(tmp_path / "l2").fps == 10
    for a, b in zip(RldsReader(RLDS), LeRobotReader(tmp_path / "l2"), strict=True):
        for name in ("image", "wrist_image", "state", "joint_state"):
            assert (b.observations[f"observation.{name}"] == a.observations[name]).all()
        assert (a.actions == b.actions).all() and a.task == b.task
    done = CliRunner().invoke(
        main, ["convert", str(RLDS), str(tmp_path / "m"), "-f", "minari-hdf5"]
    )
    assert done.exit_code == 0, done.output
    for a, b in zip(RldsReader(RLDS), open_dataset(tmp_path / "m"), strict=True):
        for name, array in a.observations.items():
            assert (b.observations[name][:-1] == array).all() and b.about["last_observation"]
        assert (a.actions == b.actions).all() and a.task == b.task
        assert (b.infos["discount"][1:] == a.infos["discount"]).all()
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="expected a LeRobotDataset"):
        open_dataset(tmp_path / "empty")


# LeRobot's videos: lerobot_av1/ was written by LeRobot itself (make_lerobot.py).


def drawn(e, steps):
    out = np.zeros((steps, 64, 64, 3), np.uint8)
    for t in range(steps):
        out[t, :, :, 0], out[t, :, :, 1] = 40 * e + 60, 20 * t + 40
        out[t, 8 * t : 8 * t + 8, :, 2] = 250
    return out


def apart(a, b):
    return np.abs(a.astype(float) - b).mean()


def test_lerobots_own_videos_are_read_frame_by_frame():
    reader = LeRobotReader(AV1)
    assert (
        reader.videos == [CAMERA]
        and reader.info["features"][CAMERA]["info"]["video.codec"] == "av1"
    )
    assert [len(e) for e in reader] == [6, 4, 5]
    for e, episode in enumerate(reader):
        pictures = drawn(e, len(episode))
        assert apart(episode.observations[CAMERA], pictures) < 4
        assert (
            apart(episode.observations[CAMERA][1:], pictures[:-1]) > 20
        )  # A frame off is far off.
        assert episode.actions[:, 0].tolist() == list(range(len(episode)))
    observed, _ = registry.suite("lerobot").spaces(
        curriculum_of(Spec("lerobot/sequence", {"path": str(AV1)})).tasks[0]
    )
    assert observed["images_cam"] == spaces.Box(0, 255, (64, 64, 3), np.uint8)


def test_videos_are_written_and_come_back(tmp_path, monkeypatch):
    out = write_lerobot(tmp_path / "v", LeRobotReader(AV1), 10, videos=True)
    for e, episode in enumerate(LeRobotReader(out)):
        assert apart(episode.observations[CAMERA], drawn(e, len(episode))) < 6
    assert len(list(out.rglob("*.mp4"))) == 1
    # A new file when one is full: here at once.
    monkeypatch.setattr("perdure.datasets.lerobot.videos.VIDEO_MB", -1)
    many = write_lerobot(tmp_path / "many", LeRobotReader(AV1), 10, videos=True)
    assert len(list(many.rglob("*.mp4"))) == 3
    for a, b in zip(LeRobotReader(out), LeRobotReader(many), strict=True):
        assert apart(a.observations[CAMERA], b.observations[CAMERA]) < 3
    # The layout of version 2.1: a file for each episode.
    info = json.loads((many / "meta/info.json").read_text())
    info |= {"codebase_version": "v2.1", "data_path": "data/{episode_chunk}-{episode_index}.parquet",
             "video_path": "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4"}  # fmt: skip
    old = tmp_path / "old"
    (old / "meta").mkdir(parents=True)
    (old / "data").mkdir()
    (old / f"videos/chunk-000/{CAMERA}").mkdir(parents=True)
    (old / "meta/info.json").write_text(json.dumps(info))
    import pyarrow.parquet as pq

    table = pq.read_table(many / "data/chunk-000/file-000.parquet")
    for k in range(3):
        mine = table.filter(np.array(table["episode_index"]) == k)
        pq.write_table(mine, old / f"data/0-{k}.parquet")
        video = many / f"videos/{CAMERA}/chunk-000/file-{k:03d}.mp4"
        shutil.copy(video, old / f"videos/chunk-000/{CAMERA}/episode_{k:06d}.mp4")
    lines = [
        json.dumps({"episode_index": k, "tasks": ["x"], "length": n})
        for k, n in enumerate((6, 4, 5))
    ]
    (old / "meta/episodes.jsonl").write_text("\n".join(lines))
    (old / "meta/tasks.jsonl").write_text('{"task_index": 0, "task": "x"}')
    for e, episode in enumerate(LeRobotReader(old)):
        assert apart(episode.observations[CAMERA], drawn(e, len(episode))) < 6
    (old / f"videos/chunk-000/{CAMERA}/episode_000001.mp4").write_bytes(b"no video")
    with pytest.raises(StoreError, match="cannot be read"):
        LeRobotReader(old)[1]


# Minari.

RNG = np.random.default_rng(0)
OBSERVED = spaces.Dict({
    "camera": spaces.Tuple([spaces.Box(0, 255, (32, 40, 3), np.uint8), spaces.Box(0, 255, (4, 4), np.uint8)]),
    "arm": spaces.Dict({"pose": spaces.Box(-np.inf, np.inf, (2, 3), np.float64), "open": spaces.Discrete(2)}),
    "lamps": spaces.MultiBinary(4), "mode": spaces.MultiDiscrete([3, 2]),
})  # fmt: skip
ACTED = spaces.Box(-1, 1, (2,), np.float32)


def nested(steps, seed, **more):
    n = steps + 1
    seen = {
        "camera/0": RNG.integers(0, 256, (n, 32, 40, 3), np.uint8),
        "camera/1": RNG.integers(0, 256, (n, 4, 4), np.uint8),
        "arm/pose": RNG.normal(size=(n, 2, 3)), "arm/open": RNG.integers(0, 2, n),
        "lamps": RNG.integers(0, 2, (n, 4)).astype(np.int8), "mode": RNG.integers(0, 2, (n, 2)), **more,
    }  # fmt: skip
    infos = {
        "success": np.arange(n) == steps,
        "contact/force": RNG.normal(size=(n, 3)),
        "t": np.arange(n),
    }
    ends = np.arange(steps) == steps - 1
    return DatasetEpisode(
        seen, RNG.uniform(-1, 1, (steps, 2)).astype(np.float32), RNG.normal(size=steps).astype(np.float32),
        ends, np.zeros(steps, bool), ends, "put it there", seed, {"level": 2}, infos,
    )  # fmt: skip


def equal(a, b):
    for mine, other in ((a.observations, b.observations), (a.infos, b.infos)):
        assert mine.keys() == other.keys()
        for name in mine:
            assert mine[name].dtype == other[name].dtype and (mine[name] == other[name]).all(), name
    for name in ("actions", "rewards", "terminations", "truncations", "successes"):
        x, y = getattr(a, name), getattr(b, name)
        assert x.dtype == y.dtype and (x == y).all(), name
    assert (a.task, a.seed, a.about) == (b.task, b.seed, b.about)


@pytest.mark.parametrize("form", ["parquet", "hdf5"])
def test_minari_keeps_everything(form, tmp_path):
    episodes = [nested(5, 11), nested(3, 12)]
    out = write_minari(tmp_path / "a", episodes, OBSERVED, ACTED, data_format=form)
    reader = MinariReader(out)
    assert reader.observation_space == OBSERVED and reader.action_space == ACTED
    for a, b in zip(episodes, reader, strict=True):
        equal(a, b)
    # And from one format into the other.
    other = "minari" if form == "hdf5" else "minari-hdf5"
    done = CliRunner().invoke(main, ["convert", str(out), str(tmp_path / "b"), "-f", other])
    assert done.exit_code == 0, done.output
    for a, b in zip(episodes, MinariReader(tmp_path / "b"), strict=True):
        equal(a, b)
    with pytest.raises(IndexError):
        reader[2]


def test_minari_holds_texts_in_hdf5_and_refuses_what_does_not_fit(tmp_path):
    told = spaces.Dict({**OBSERVED.spaces, "said": spaces.Text(20)})
    words = np.array(["to the left", "ünd jetzt", "", "stop"], object)
    one = nested(3, 1, said=words)
    back = MinariReader(write_minari(tmp_path / "t", [one], told, ACTED, data_format="hdf5"))[0]
    assert back.observations["said"].tolist() == words.tolist()
    assert space_of(json.loads(json.dumps(space_json(told)))) == told
    with pytest.raises(StoreError, match="HDF5 holds it"):
        write_minari(tmp_path / "p", [one], told, ACTED)
    with pytest.raises(StoreError, match="expected observations"):
        write_minari(tmp_path / "q", [one], OBSERVED, ACTED)
    with pytest.raises(UnknownName, match="did you mean 'hdf5'"):
        write_minari(tmp_path / "r", [one], told, ACTED, data_format="hdf")


REAL = """
import json, os, sys
import numpy as np
os.environ["MINARI_DATASETS_PATH"] = sys.argv[1]
import gymnasium as gym, minari
from minari.data_collector import EpisodeBuffer
for form in ("parquet", "hdf5"):
    found = minari.load_dataset(f"ours/{form}-v0")
    assert found.total_episodes == 2 and found.total_steps == 8
    first = next(iter(found.iterate_episodes([0])))
    np.savez(f"{sys.argv[1]}/{form}.npz", image=first.observations["camera"][0],
             gray=first.observations["camera"][1], pose=first.observations["arm"]["pose"],
             open=first.observations["arm"]["open"], mode=first.observations["mode"], actions=first.actions,
             rewards=first.rewards, success=first.infos["success"])
    if form == "hdf5":
        assert next(iter(found.storage.get_episode_metadata([0])))["seed"] == 11
space = gym.spaces.Dict({"image": gym.spaces.Box(0, 255, (32, 32, 3), np.uint8), "n": gym.spaces.Discrete(5)})
rng = np.random.default_rng(7)
for form, jpeg in (("parquet", False), ("arrow", False), ("hdf5", False), ("hdf5", True)):
    buffers = []
    for k in range(2):
        grey = np.full((4, 32, 32, 3), 50 * (k + 1), np.uint8)
        buffers.append(EpisodeBuffer(
            id=k, seed=k + 3, observations={"image": grey, "n": np.array([0, 1, 2, 4])},
            actions=np.arange(3) + k, rewards=[0.0, 0.5, 1.0], terminations=[False, False, True],
            truncations=[False] * 3, infos={"force": np.arange(8.0).reshape(4, 2)}))
    minari.create_dataset_from_buffers(
        f"theirs/{form}{int(jpeg)}-v0", buffers, observation_space=space, action_space=gym.spaces.Discrete(9),
        data_format=form, jpeg_encoding=jpeg, code_permalink="x", author="a", author_email="b",
        algorithm_name="c")
"""


@pytest.mark.skipif(not PEERS.exists(), reason="scripts/peers_env.sh has not been run")
def test_the_real_minari_reads_ours_and_we_read_its(tmp_path):
    episodes = [nested(5, 11), nested(3, 12)]
    for form in ("parquet", "hdf5"):
        write_minari(
            tmp_path / f"ours/{form}-v0", episodes, OBSERVED, ACTED, f"ours/{form}-v0", form
        )
    done = subprocess.run(
        [PEERS, "-W", "ignore", "-c", REAL, tmp_path], capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for form in ("parquet", "hdf5"):
        theirs, ours = np.load(tmp_path / f"{form}.npz"), episodes[0]
        for name, wanted in (
            ("image", ours.observations["camera/0"]), ("gray", ours.observations["camera/1"]),
            ("pose", ours.observations["arm/pose"]), ("open", ours.observations["arm/open"]),
            ("mode", ours.observations["mode"]), ("actions", ours.actions), ("rewards", ours.rewards),
            ("success", ours.infos["success"]),
        ):  # fmt: skip
            assert (theirs[name] == wanted).all(), (form, name)
    for name in ("parquet0", "arrow0", "hdf50", "hdf51"):
        found = MinariReader(tmp_path / f"theirs/{name}-v0")
        assert len(found) == 2, name
        for k, episode in enumerate(found):
            assert apart(episode.observations["image"], 50 * (k + 1)) < (
                1 if name == "hdf51" else 1e-9
            )
            assert episode.observations["n"].tolist() == [0, 1, 2, 4] and episode.seed == k + 3
            assert episode.actions.tolist() == [k, k + 1, k + 2] and episode.rewards.tolist() == [
                0,
                0.5,
                1,
            ]
            assert episode.infos["force"].tolist() == np.arange(8.0).reshape(4, 2).tolist()
