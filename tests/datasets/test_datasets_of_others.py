"""LeRobotDataset and Minari, in and out: file by file as documented, and round trips without a loss."""

import json
import shutil

import numpy as np
import pandas
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from gymnasium import spaces

from perdure import experiment
from perdure.cli.main import main
from perdure.datasets.convert import open_dataset
from perdure.datasets.episodes import DatasetEpisode
from perdure.datasets.hdf5 import DIGEST
from perdure.datasets.lerobot import LeRobotReader, write_lerobot
from perdure.datasets.minari import MinariReader, write_minari
from perdure.errors import StoreError

RNG = np.random.default_rng(0)


def episode(steps, task, seed=None):
    return DatasetEpisode(
        {"images.image": RNG.integers(0, 256, (steps + 1, 8, 8, 3), np.uint8),
         "state": RNG.normal(size=(steps + 1, 3))},
        RNG.uniform(-1, 1, (steps, 2)).astype(np.float32), RNG.normal(size=steps),
        np.arange(steps) == steps - 1, np.zeros(steps, bool), np.arange(steps) == steps - 1, task, seed,
    )  # fmt: skip


@pytest.fixture(scope="module")
def episodes():
    return [episode(5, "open it", 11), episode(3, "close it", 12), episode(4, "open it", 13)]


@pytest.fixture(scope="module")
def written(episodes, tmp_path_factory):
    return write_lerobot(tmp_path_factory.mktemp("lerobot") / "set", episodes, 10, "panda")


def same(a, b, last):
    for name, array in a.observations.items():
        other = b.observations.get(f"observation.{name}", b.observations.get(name))
        assert other.dtype == array.dtype and (other == array[: len(array) - (not last)]).all()
    for name in ("actions", "rewards", "terminations", "truncations", "successes"):
        assert (getattr(a, name) == getattr(b, name)).all(), name
    assert a.task == b.task


def test_lerobot_comes_back_as_it_was(written, episodes):
    found = LeRobotReader(written)
    assert len(found) == 3 and found.fps == 10 and found.tasks == {0: "open it", 1: "close it"}
    for a, b in zip(episodes, found, strict=True):
        same(a, b, last=False)


def test_lerobots_files_are_as_documented(written, episodes):
    info = json.loads((written / "meta/info.json").read_text())
    assert info["codebase_version"] == "v3.0" and info["splits"] == {"train": "0:3"}
    assert (info["total_episodes"], info["total_frames"], info["total_tasks"]) == (3, 12, 2)
    assert info["data_path"] == "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
    assert info["features"]["observation.images.image"]["dtype"] == "image"
    assert info["features"]["action"] == {"dtype": "float32", "shape": [2], "names": None}
    for name in ("timestamp", "frame_index", "episode_index", "index", "task_index"):
        assert info["features"][name]["shape"] == [1]
    data = written / "data/chunk-000/file-000.parquet"
    assert [pq.ParquetFile(data).metadata.row_group(k).num_rows for k in range(3)] == [5, 3, 4]
    table = pq.read_table(data).to_pydict()
    assert table["index"] == list(range(12)) and table["task_index"] == [0] * 5 + [1] * 3 + [0] * 4
    assert table["frame_index"][5:8] == [0, 1, 2] and np.allclose(
        table["timestamp"][5:8], [0, 0.1, 0.2]
    )
    assert table["observation.images.image"][0]["bytes"][:4] == b"\x89PNG"
    tasks = pandas.read_parquet(written / "meta/tasks.parquet")
    assert tasks.index.name == "task" and tasks.loc["close it"].task_index == 1
    rows = pq.read_table(written / "meta/episodes/chunk-000/file-000.parquet").to_pylist()
    assert [(r["dataset_from_index"], r["dataset_to_index"]) for r in rows] == [
        (0, 5),
        (5, 8),
        (8, 12),
    ]
    assert rows[1]["tasks"] == ["close it"] and rows[1]["length"] == 3
    assert np.allclose(rows[1]["stats/action/mean"], episodes[1].actions.mean(0))


def test_lerobots_files_are_those_of_its_layout_and_no_others(written):
    """Files, keys and columns of version 3.0, each by its name."""
    found = {p.relative_to(written).as_posix() for p in written.rglob("*") if p.is_file()}
    assert found == {
        "meta/info.json", "meta/stats.json", "meta/tasks.parquet",
        "meta/episodes/chunk-000/file-000.parquet", "data/chunk-000/file-000.parquet",
    }  # fmt: skip
    info = json.loads((written / "meta/info.json").read_text())
    assert set(info) == {
        "codebase_version", "fps", "features", "total_episodes", "total_frames", "total_tasks", "chunks_size",
        "data_files_size_in_mb", "video_files_size_in_mb", "data_path", "video_path", "robot_type", "splits",
    }  # fmt: skip
    assert (info["chunks_size"], info["data_files_size_in_mb"]) == (1000, 100)
    assert info["video_files_size_in_mb"] == 200 and info["video_path"] is None
    kinds = {n: f["dtype"] for n, f in info["features"].items()}
    counts = dict.fromkeys(("frame_index", "episode_index", "index", "task_index"), "int64")
    assert kinds.items() >= {"timestamp": "float32", **counts}.items()
    assert {"action", "next.reward", "next.done", "next.truncated", "next.success"} < set(kinds)
    table = pq.ParquetFile(written / "data/chunk-000/file-000.parquet")
    assert set(table.schema_arrow.names) == set(kinds)
    assert table.metadata.row_group(0).column(0).compression == "SNAPPY"
    numbers = ("min", "max", "mean", "std", "count", "q01", "q10", "q50", "q90", "q99")
    stats = json.loads((written / "meta/stats.json").read_text())
    assert set(stats) == set(kinds) and {frozenset(s) for s in stats.values()} == {
        frozenset(numbers)
    }
    rows = pq.read_schema(written / "meta/episodes/chunk-000/file-000.parquet").names
    assert set(rows) == {
        "episode_index", "tasks", "length", "data/chunk_index", "data/file_index", "dataset_from_index",
        "dataset_to_index", "meta/episodes/chunk_index", "meta/episodes/file_index",
        *(f"stats/{n}/{s}" for n in kinds for s in numbers),
    }  # fmt: skip


def test_lerobots_statistics_by_hand(written, episodes):
    stats = json.loads((written / "meta/stats.json").read_text())
    actions = np.concatenate([e.actions for e in episodes]).astype(np.float64)
    for name, value in (("mean", actions.mean(0)), ("std", actions.std(0)), ("min", actions.min(0)),
                        ("max", actions.max(0)), ("count", [12])):  # fmt: skip
        assert np.allclose(stats["action"][name], value), name
    pictures = np.concatenate([e.observations["images.image"][:-1] for e in episodes]) / 255
    mean = np.array(stats["observation.images.image"]["mean"])
    assert mean.shape == (3, 1, 1) and np.allclose(mean.ravel(), pictures.mean((0, 1, 2)))


def test_version_2_1_is_read(written, episodes, tmp_path):
    """The same frames in the older layout, put there by hand."""
    info = json.loads((written / "meta/info.json").read_text())
    info |= {"codebase_version": "v2.1", "total_chunks": 1, "total_videos": 0,
             "data_path": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"}  # fmt: skip
    (tmp_path / "meta").mkdir()
    (tmp_path / "data/chunk-000").mkdir(parents=True)
    (tmp_path / "meta/info.json").write_text(json.dumps(info))
    table = pq.read_table(written / "data/chunk-000/file-000.parquet")
    lines = []
    for k, e in enumerate(episodes):
        mine = table.filter(np.array(table["episode_index"]) == k)
        pq.write_table(mine, tmp_path / f"data/chunk-000/episode_{k:06d}.parquet")
        lines.append(json.dumps({"episode_index": k, "tasks": [e.task], "length": len(e)}))
    (tmp_path / "meta/episodes.jsonl").write_text("\n".join(lines))
    tasks = [{"task_index": 0, "task": "open it"}, {"task_index": 1, "task": "close it"}]
    (tmp_path / "meta/tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    for a, b in zip(episodes, LeRobotReader(tmp_path), strict=True):
        same(a, b, last=False)
    info["codebase_version"] = "v1.6"
    (tmp_path / "meta/info.json").write_text(json.dumps(info))
    with pytest.raises(StoreError, match=r"version 'v1\.6'"):
        LeRobotReader(tmp_path)


def test_what_cannot_be_written_is_refused(written, episodes, tmp_path):
    with pytest.raises(StoreError, match="nothing is overwritten"):
        write_lerobot(written, episodes, 10)
    with pytest.raises(StoreError, match="at least one episode"):
        write_lerobot(tmp_path / "none", [], 10)
    other = DatasetEpisode(
        {"": np.zeros((2, 3))}, np.zeros((1, 2)), np.zeros(1), *[np.zeros(1, bool)] * 2
    )
    with pytest.raises(StoreError, match="other features than the first"):
        write_lerobot(tmp_path / "mixed", [episodes[0], other], 10)
    with pytest.raises(StoreError, match="expected 1, one for each action"):
        DatasetEpisode({}, np.zeros((1, 2)), np.zeros(3), *[np.zeros(1, bool)] * 2)
    broken = tmp_path / "broken"
    shutil.copytree(written, broken)
    info = json.loads((broken / "meta/info.json").read_text())
    info["data_path"] = "../../{chunk_index}{file_index}"
    (broken / "meta/info.json").write_text(json.dumps(info))
    with pytest.raises(StoreError, match="outside the dataset"):
        LeRobotReader(broken)[0]


def test_minari_comes_back_without_a_loss(episodes, tmp_path):
    observed = spaces.Dict(
        {"images.image": spaces.Box(0, 255, (8, 8, 3), np.uint8),
         "state": spaces.Box(-np.inf, np.inf, (3,), np.float64)}
    )  # fmt: skip
    acted = spaces.Box(-1, 1, (2,), np.float32)
    out = write_minari(
        tmp_path / "set", episodes, observed, acted, "own/test-v0", algorithm_name="x"
    )
    found = MinariReader(out)
    assert found.observation_space == observed and found.action_space == acted and len(found) == 3
    for a, b in zip(episodes, found, strict=True):
        same(a, b, last=True)
        assert a.seed == b.seed
    metadata = json.loads((out / "data/metadata.json").read_text())
    assert metadata["total_steps"] == 12 and metadata["data_format"] == "parquet"
    assert metadata["jpeg_encoding"] is False and metadata["dataset_id"] == "own/test-v0"
    rows = pq.read_table(out / "data/1/part-0.parquet", partitioning=None)
    assert (
        rows.num_rows == 4
        and json.loads((out / "data/1/metadata.json").read_text())["total_steps"] == 3
    )
    metadata["data_format"] = "feather"
    (out / "data/metadata.json").write_text(json.dumps(metadata))
    with pytest.raises(StoreError, match="read are parquet, arrow, hdf5"):
        MinariReader(out)
    discrete = DatasetEpisode(
        {"": np.zeros((3, 1))}, np.array([4, 2]), np.zeros(2), *[np.zeros(2, bool)] * 2
    )
    box = spaces.Box(-1, 1, (1,), np.float64)
    back = MinariReader(write_minari(tmp_path / "d", [discrete], box, spaces.Discrete(5)))[0]
    assert back.actions.tolist() == [4, 2] and back.observations[""].shape == (3, 1)


def test_an_expert_is_recorded_and_learned_from(tmp_path):
    """From the command to a policy that imitates: Meta-World's expert, small pictures, as LeRobot's data."""
    out = tmp_path / "reach"
    args = [
        "record",
        "metaworld/reach",
        "--protocol",
        "lerobot",
        "--set",
        "size=16",
        "-n",
        "2",
        "-o",
        str(out),
    ]
    done = CliRunner().invoke(main, args)
    assert done.exit_code == 0, done.output
    found = LeRobotReader(out)
    assert (
        len(found) == 2
        and found[0].successes[-1]
        and found[0].observations["observation.image"].shape[1:] == (16, 16, 3)
    )
    assert found[0].observations["observation.state"].shape[1] == 4
    run = experiment(
        f'lerobot/sequence,path="{out}",epochs=2',
        {"bc": "bc"},
        out=str(tmp_path / "run"),
        executor="serial",
    )
    rows = run.rows().to_pylist()
    losses = [r["loss"] for r in rows if not r["learning"]]
    assert len(losses) >= 2 and all(np.isfinite(losses))
    again = CliRunner().invoke(main, [*args[:-2], "-o", str(tmp_path / "m"), "--format", "minari"])
    assert again.exit_code == 0, again.output
    assert len(MinariReader(tmp_path / "m")) == 2


def test_demonstrations_of_several_scenes_become_one_dataset(tmp_path):
    """HDF5 in the layout of robomimic: states of other lengths are left out, pictures kept, unfinished files not read."""
    h5py = pytest.importorskip("h5py")
    pictures = RNG.integers(0, 256, (4, 8, 8, 3), np.uint8)
    for name, width in (("open_it", 5), ("close_it", 7)):
        path = tmp_path / "demos" / "set" / f"{name}_demo.hdf5"
        path.parent.mkdir(parents=True, exist_ok=True)
        with h5py.File(path, "w") as file:
            for k in (2, 10):
                demo = file.create_group(f"data/demo_{k}")
                demo["actions"], demo["states"] = np.full((4, 7), k, float), np.zeros((4, width))
                demo["robot_states"], demo["obs/agentview_rgb"] = np.full((4, 9), width), pictures
    damaged = tmp_path / "demos" / "_unfinished" / "other_demo.hdf5"
    damaged.parent.mkdir()
    damaged.write_bytes(b"half")
    told = CliRunner().invoke(main, ["convert", str(tmp_path / "demos"), str(tmp_path / "out")])
    assert told.exit_code == 0, told.output
    found = LeRobotReader(tmp_path / "out")
    assert [(e.task, e.actions[0, 0]) for e in found] == [
        ("close it", 2), ("close it", 10), ("open it", 2), ("open it", 10),
    ]  # fmt: skip
    assert set(found[0].observations) == {"observation.robot_states", "observation.agentview_rgb"}
    assert (found[3].observations["observation.agentview_rgb"] == pictures).all()
    assert found[0].terminations.tolist() == [False, False, False, True] and found.fps == 20
    with h5py.File(path, "r+") as file:
        file["data/demo_10/actions"][2, 3] = np.nan
    for kind in ("lerobot", "lerobot-video"):
        again = ["convert", str(tmp_path / "demos"), str(tmp_path / "again"), "-f", kind]
        told = CliRunner().invoke(main, again)
        assert told.exit_code == 2 and "episode 1: action is not finite" in told.output
    with h5py.File(path, "r+") as file:
        file["data/demo_2"].attrs[DIGEST] = "of what was written"
    told = CliRunner().invoke(main, [*again[:-1], "minari"])
    assert told.exit_code == 2 and "demo_2 is not as it was written" in told.output
    left = {p.name for p in tmp_path.iterdir()}
    assert left == {"demos", "out"}, "the next try finds nothing in its way"
    damaged.rename(tmp_path / "demos" / "other_demo.hdf5")
    with pytest.raises(StoreError, match="other_demo.hdf5 is damaged or no HDF5 file"):
        open_dataset(tmp_path / "demos")
