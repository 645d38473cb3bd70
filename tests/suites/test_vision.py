"""Data of one's own as tasks, the scenarios by name, and the classics from files that users have."""

import gzip
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import perdure
from perdure.cli.main import main
from perdure.curricula.named import curriculum_of
from perdure.errors import PerdureError
from perdure.run.validate import validate
from perdure.specs import Spec
from perdure.suites.vision import sources, suite

RNG = np.random.default_rng(0)
SIDE = 6
LABELS = np.arange(120) % 6
PICTURES = (RNG.random((120, SIDE, SIDE)) * 40 + LABELS[:, None, None] * 30).astype(np.uint8)

MINE = """
import numpy as np

import perdure

rng = np.random.default_rng(0)
LABELS = np.arange(120) % 6
PICTURES = rng.random((120, 6, 6)).astype(np.float32) * 0.1
PICTURES[np.arange(120), LABELS] += 1.0


def arrays(way: str = "split", scenario: str = "task"):
    tasks = 3 if way == "split" else 2
    return perdure.from_arrays(
        "stripes", PICTURES, LABELS, way=way, tasks=tasks, scenario=scenario, epochs=20, flat=True
    )


class Stripes:
    def __len__(self):
        return len(LABELS)

    def __getitem__(self, k):
        return PICTURES[k], LABELS[k]


def dataset(scenario: str = "class"):
    return perdure.from_dataset("read", Stripes(), Stripes(), tasks=3, scenario=scenario, epochs=1)
"""


def learned(made):
    return [b.exposures[0].task for b in made.blocks if b.kind == "learn"]


def shown(made):
    """Whether the agent is told which task it is when it is evaluated."""
    (told,) = {b.visibility.task_ids for b in made.blocks if b.kind == "eval"}
    return told


def test_arrays_become_tasks_that_are_learned_in_processes(tmp_path):
    """As a user would: a file, a command, workers that run it again."""
    pytest.importorskip("torch")
    (tmp_path / "mine.py").write_text(MINE)
    args = ["run", "mine.py:arrays", "-a", "classifier,multihead=true,lr=1e-2", "-o", "o"]
    done = subprocess.run(
        [sys.executable, "-m", "perdure", *args], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    rows = perdure.Run(tmp_path / "o").rows().to_pandas()
    last = rows[(rows.kind == "eval") & (rows.block == rows.block.max())]
    assert len(last.variant.unique()) == 3 and last.accuracy.mean() > 0.9


@pytest.mark.parametrize("scenario", ["task", "domain", "class", "class-incremental"])
def test_scenarios_by_name(scenario):
    split = perdure.from_arrays("abc", PICTURES, LABELS, tasks=3, scenario=scenario)
    data = [suite.data(t, True) for t in learned(split)]
    own = scenario.startswith("class")
    assert [sorted(set(d.targets.tolist())) for d in data] == (
        [[0, 1], [2, 3], [4, 5]] if own else [[0, 1]] * 3
    )
    assert shown(split) == (scenario == "task")
    resolved = validate(split)
    assert resolved.action_space.n == (6 if own else 2)
    assert (
        resolved.observation_space.shape == (SIDE, SIDE, 1)
        and resolved.observation_space.dtype == np.uint8
    )
    turned = perdure.from_arrays(
        "abc", PICTURES, LABELS, way="permuted", tasks=3, scenario=scenario
    )
    assert validate(turned).action_space.n == (18 if own else 6)


def test_permuted_and_rotated():
    test = (PICTURES[:30], LABELS[:30])
    made = perdure.from_arrays("pic", PICTURES, LABELS, test, way="permuted", tasks=2, flat=True)
    first, second = (suite.data(t, True) for t in learned(made))
    assert len(first) == 120 and len(suite.data(learned(made)[0], False)) == 30
    assert first.shape == (SIDE * SIDE,) and first.inputs.max() <= 1
    assert not np.array_equal(first.inputs, second.inputs)
    assert np.array_equal(np.sort(first.inputs), np.sort(second.inputs)), (
        "the same pixels elsewhere"
    )
    made = perdure.from_arrays("pic", PICTURES, LABELS, way="rotated", tasks=2)
    straight, turned = (suite.data(t, True) for t in learned(made))
    assert np.array_equal(
        turned.inputs[:, :, :, 0], np.rot90(straight.inputs[:, :, :, 0], 1, (1, 2))
    )
    same = turned.batch(np.array([3, 1])).inputs
    assert np.array_equal(same, turned.inputs[[3, 1]])


def test_other_arrays_are_other_tasks():
    keys = {"tasks": 3, "scenario": "task"}
    one, again = (perdure.from_arrays("d", PICTURES, LABELS, **keys) for _ in range(2))
    assert one.fingerprint == again.fingerprint
    assert perdure.from_arrays("d", PICTURES + 1, LABELS, **keys).fingerprint != one.fingerprint
    groups = perdure.from_arrays("d", PICTURES, LABELS, classes=[[5, 0], [1], [2, 3, 4]])
    assert [t.params["classes"] for t in learned(groups)] == [[5, 0], [1], [2, 3, 4]]


def test_a_changed_dataset_is_no_more_of_the_same_run(tmp_path, monkeypatch):
    """The file is the same, and so is the length of what it reads: other labels are other tasks, not one
    more agent beside those of the first labels."""
    monkeypatch.chdir(tmp_path)
    text = MINE.replace("LABELS[k]\n", "int(np.load('labels.npy')[k])\n")
    (tmp_path / "mine.py").write_text(text)
    args = ["run", "mine.py:dataset", "-o", "o", "--executor", "serial", "-q", "-a", "random"]
    for labels, code in ((LABELS, 0), (LABELS[::-1], 2)):
        np.save("labels.npy", labels)
        done = CliRunner().invoke(main, args)
        assert done.exit_code == code, done.output
        args += ["-a", "again=random"]
    assert '+        "data": "' in done.output and '-        "data": "' in done.output


class Read:
    """Pictures by index, as ``look`` makes them."""

    def __init__(self, look=lambda k: PICTURES[k], labels=LABELS):
        self.look, self.labels = look, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, k):
        return self.look(k), self.labels[k]


def test_what_tells_a_dataset_from_another():
    def seen(*data):
        return perdure.from_dataset("read", *data, tasks=3).fingerprint

    assert seen(Read()) == seen(Read())
    assert seen(Read(lambda k: PICTURES[k] + 1)) != seen(Read())
    assert len({seen(Read(), t) for t in (Read(), Read(labels=LABELS[::-1]))} | {seen(Read())}) == 3
    rng = np.random.default_rng(0)  # A random crop or flip, another each time.
    cut = Read(lambda k: np.roll(PICTURES[k], rng.integers(SIDE), 0))
    assert seen(cut) == seen(cut) != seen(Read())


def test_a_torch_dataset():
    torch = pytest.importorskip("torch")
    data = torch.utils.data.TensorDataset(torch.tensor(PICTURES), torch.tensor(LABELS))
    made = perdure.from_dataset("tensors", data, data, tasks=3)
    assert np.array_equal(suite.data(learned(made)[1], True).inputs[0, :, :, 0], PICTURES[2])


def test_a_folder_of_pictures(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for part, count in (("train", 4), ("test", 2)):
        for name, colour in (("ant", 10), ("bee", 120), ("cat", 200), ("dog", 250)):
            (tmp_path / part / name).mkdir(parents=True)
            for k in range(count):
                picture = image.fromarray(np.full((9, 7, 3), colour, np.uint8))
                picture.save(tmp_path / part / name / f"{k}.png")
    made = perdure.from_folder("pets", tmp_path, size=8, tasks=2)
    validate(made)
    first, second = (suite.data(t, True) for t in learned(made))
    assert (len(first), first.shape) == (8, (8, 8, 3)) and set(first.targets) == {0, 1}
    assert np.unique(second.inputs).tolist() == [200, 250]
    assert len(suite.data(learned(made)[0], False)) == 4
    (tmp_path / "test" / "cat" / "1.png").rename(tmp_path / "test" / "dog" / "2.png")
    moved = perdure.from_folder("pets", tmp_path, size=8, tasks=2)
    assert moved.fingerprint != made.fingerprint, "as many as before, another label"
    apart = perdure.from_folder("pets", tmp_path / "train", size=8, tasks=2)
    assert len(suite.data(learned(apart)[0], True)) + len(suite.data(learned(apart)[0], False)) == 8


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: perdure.from_arrays("x", PICTURES, LABELS[:5]), "one input a label"),
        (lambda: perdure.from_arrays("x", PICTURES, LABELS + 0.5), "whole numbers from 0"),
        (lambda: perdure.from_arrays("x", PICTURES * np.nan, LABELS), "NaN"),
        (lambda: perdure.from_arrays("mnist", PICTURES, LABELS), "another name"),
        (lambda: perdure.from_arrays("x", PICTURES, LABELS, tasks=4), "tasks must divide 6"),
        (lambda: perdure.from_arrays("x", PICTURES, LABELS, scenario="clas"), "did you mean 'class'"),
        (lambda: perdure.from_arrays("x", PICTURES, LABELS, way="turned"), "unknown way"),
        (lambda: perdure.from_arrays("x", PICTURES, LABELS, (PICTURES[:, :3], LABELS)), "evaluate on"),
        (lambda: perdure.from_arrays("x", PICTURES, LABELS, scenario="task", classes=[[0], [1, 2]]),
         "as many classes each"),
        (lambda: perdure.from_dataset("x", iter([1])), "a length and an index"),
        (lambda: perdure.from_folder("x", "/nowhere"), "is not a folder"),
        (lambda: validate(perdure.from_arrays("x", PICTURES.reshape(120, -1), LABELS, way="rotated", tasks=2)),
         "cannot be turned"),
    ],
)  # fmt: skip
def test_what_cannot_be_tasks_is_refused(call, says):
    with pytest.raises(PerdureError, match=says):
        call()


def write_idx(file, array, pack=False):
    raw = (
        bytes([0, 0, 8, array.ndim])
        + b"".join(n.to_bytes(4, "big") for n in array.shape)
        + array.tobytes()
    )
    file.write_bytes(gzip.compress(raw) if pack else raw)


def test_mnist_from_files(tmp_path, monkeypatch):
    root = tmp_path / "mnist"
    root.mkdir()
    train, test = (RNG.integers(0, 256, (n, 28, 28), np.uint8) for n in (40, 20))
    write_idx(root / "train-images-idx3-ubyte.gz", train, True)
    write_idx(root / "train-labels-idx1-ubyte", (np.arange(40) % 10).astype(np.uint8))
    write_idx(root / "t10k-images-idx3-ubyte", test)
    write_idx(root / "t10k-labels-idx1-ubyte", (np.arange(20) % 10).astype(np.uint8))
    monkeypatch.setenv(sources.ROOT, str(tmp_path))
    made = curriculum_of(Spec.parse("vision/split-mnist,scenario=domain"))
    data = suite.data(learned(made)[1], True)
    assert np.array_equal(data.inputs[0], train[2].reshape(-1).astype(np.float32) / 255)
    assert validate(made).observation_space.shape == (784,)
    assert validate(
        curriculum_of(Spec.parse("vision/rotated-mnist,tasks=2,flat=false"))
    ).observation_space.shape == (28, 28, 1)
    done = CliRunner().invoke(main, ["run", "vision/permuted-mnist,tasks=2", "-a", "random",
                                     "-o", str(tmp_path / "o"), "--executor", "serial"])  # fmt: skip
    assert done.exit_code == 0, done.stderr
    np.savez(
        tmp_path / "mnist.npz",
        x_train=train,
        y_train=np.arange(40) % 10,
        x_test=test,
        y_test=np.arange(20) % 10,
    )
    other = curriculum_of(Spec.parse(f"vision/split-mnist,scenario=domain,root={tmp_path}"))
    assert np.array_equal(suite.data(learned(other)[1], True).inputs, data.inputs)
    (root / "t10k-images-idx3-ubyte").write_bytes(b"\0\0\x08\x03half")
    sources._loaded.cache_clear()
    with pytest.raises(PerdureError, match="not a whole IDX file"):
        validate(made)


def test_cifar_from_files_but_no_pickle(tmp_path):
    rows = RNG.integers(0, 256, (10, 3074), np.uint8)
    rows[:, 1] = np.arange(10) * 10
    for name in ("train.bin", "test.bin"):
        (tmp_path / name).write_bytes(rows.tobytes())
    made = curriculum_of(
        Spec.parse(f"vision/split-cifar100,tasks=2,scenario=class,root={tmp_path}")
    )
    data = suite.data(learned(made)[0], True)
    assert data.targets.tolist() == [0, 10, 20, 30, 40] and data.shape == (32, 32, 3)
    assert data.inputs[0, 0, 1].tolist() == rows[0, [3, 1027, 2051]].tolist(), "red, green, blue"
    (tmp_path / "data_batch_1").write_bytes(b"\x80\x04.")
    with pytest.raises(PerdureError, match="pickle.*binary"):
        validate(curriculum_of(Spec.parse(f"vision/split-cifar10,root={tmp_path}")))


def test_core50_from_its_folders(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for session in range(1, 12):
        for thing in range(1, 51):
            folder = tmp_path / f"s{session}" / f"o{thing}"
            folder.mkdir(parents=True)
            picture = image.fromarray(np.full((4, 4, 3), 20 * session, np.uint8))
            picture.save(folder / f"C_{session:02d}_{thing:02d}_000.png")
    made = curriculum_of(Spec.parse(f"vision/core50-sessions,root={tmp_path}"))
    tasks = learned(made)
    assert [t.variant for t in tasks] == [f"session{k}" for k in (1, 2, 4, 5, 6, 8, 9, 11)]
    second = suite.data(tasks[1], True)
    assert len(second) == 50 and np.unique(second.inputs).tolist() == [40]
    assert np.unique(suite.data(tasks[1], False).inputs).tolist() == [60, 140, 200]
    classes = curriculum_of(Spec.parse(f"vision/core50-classes,root={tmp_path}"))
    assert [len(t.params["classes"]) for t in learned(classes)] == [10, *[5] * 8]


def test_a_set_that_is_not_here_says_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.setenv(sources.ROOT, str(tmp_path))
    done = CliRunner().invoke(
        main, ["run", "vision/split-cifar10", "-a", "random", "-o", str(tmp_path / "o")]
    )
    assert done.exit_code == 2
    for words in ("data_batch_1.bin", str(tmp_path / "cifar10"), "root=FOLDER", "$PERDURE_DATA"):
        assert words in done.stderr
