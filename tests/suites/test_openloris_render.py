"""The rendered OpenLORIS stream: shapes, measured factors, determinism, resume."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("PIL")

from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw
from scipy.spatial import ConvexHull

from perdure.errors import PerdureError, SpecError, UnknownName
from perdure.suites.openloris import data, frame_annotations, load, missing
from perdure.suites.openloris.__main__ import main
from perdure.suites.openloris.frame_annotations import OCCLUDED, VISIBLE, Annotation
from perdure.suites.openloris.labels import CATEGORIES, NAMES, category
from perdure.suites.openloris.layouts import FACTORS
from perdure.suites.openloris.rendering.camera import Pose, fit_pose, project
from perdure.suites.openloris.rendering.clips import ClipRenderer, downsample
from perdure.suites.openloris.rendering.dataset import (
    VERSION,
    assign_splits,
    render_dataset,
    select_objects,
)
from perdure.suites.openloris.rendering.factors import (
    FRAME_SCALES,
    Levels,
    check_levels,
    check_truncation,
)
from perdure.suites.openloris.rendering.gallery import gallery
from perdure.suites.openloris.rendering.meshes import box, extrude, lathe, superquadric, tube
from perdure.suites.openloris.rendering.objects import MAKERS, build
from perdure.suites.openloris.rendering.occlusion import occluder_offset
from perdure.suites.openloris.rendering.sensor import Lighting, Sensor, luminance

WIDTH = 128


def volume(mesh):
    """Enclosed volume by the divergence theorem: positive if all faces look outward."""
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    return float((a * np.cross(b, c)).sum() / 6)


# Shapes


def test_shapes_are_closed_and_look_outward():
    assert volume(box(2, 3, 4)) == pytest.approx(24)
    assert volume(superquadric(1, 2, 3, n=60)) == pytest.approx(4 / 3 * np.pi * 6, rel=0.01)
    cone = lathe([(0, 0), (1, 0), (0, 3)], n=200)
    assert volume(cone) == pytest.approx(np.pi, rel=0.01)
    assert volume(lathe([(0, 0), (1, 0), (0, 3)], n=200, sharp=True)) == pytest.approx(
        np.pi, rel=0.01
    )
    straight = tube([(0, 0, 0), (0, 0, 5), (0, 0, 10)], 1, n=60)
    assert volume(straight) == pytest.approx(np.pi * 10 + 4 / 3 * np.pi, rel=0.03)  # round ends
    angle = np.linspace(0, 2 * np.pi, 80, endpoint=False)
    ring = tube([(3 * np.cos(a), 3 * np.sin(a), 0) for a in angle], 1, n=40, closed=True)
    assert volume(ring) == pytest.approx(2 * np.pi**2 * 3, rel=0.02)


@given(st.lists(st.floats(0.3, 2), min_size=5, max_size=14))
@settings(max_examples=30, deadline=None)
def test_extrusions_of_any_star_keep_their_area(radii):
    angle = np.linspace(0, 2 * np.pi, len(radii), endpoint=False)
    points = [(r * np.cos(a), r * np.sin(a)) for r, a in zip(radii, angle)]
    x, y = np.array(points).T
    area = (x * np.roll(y, -1) - y * np.roll(x, -1)).sum() / 2
    assert volume(extrude(points, 2)) == pytest.approx(2 * area)
    assert volume(extrude(points[::-1], 2)) == pytest.approx(2 * area)


def test_every_object_stands_on_the_ground_and_differs():
    assert set(MAKERS) == set(CATEGORIES)
    seen = {}
    for name in NAMES:
        points = np.concatenate([p.mesh.vertices for p in build(name)])
        assert np.isfinite(points).all(), name
        assert points[:, 2].min() == pytest.approx(0, abs=1e-9), name
        assert np.ptp(points, axis=0).max() == pytest.approx(1), name
        for p in build(name):
            assert p.mesh.faces.max() < len(p.mesh.vertices) == len(p.mesh.uv), name
        look = (len(points), round(float(points.sum()), 6), tuple(p.colour for p in build(name)))
        assert look not in seen, (name, seen.get(look))
        seen[look] = name


# The camera


@given(st.floats(0, 360), st.floats(25, 50), st.floats(0.07, 0.4), st.floats(-0.06, 0.06))
@settings(max_examples=30, deadline=None)
def test_a_fitted_pose_gives_the_wanted_size_and_place(azimuth, elevation, size, offset):
    points = np.concatenate([p.mesh.vertices for p in build("cup_01")])
    pose = fit_pose(points, azimuth, elevation, size, np.array([offset, 0.01]), 424, 240)
    seen = project(points, pose, 424, 240)[:, :2]
    low, high = seen.min(0), seen.max(0)
    assert (high - low).max() / 424 == pytest.approx(size, rel=0.02)
    assert (low + high) / 2 == pytest.approx([212 + 424 * offset, 120 + 4.24], abs=1.5)


def test_projection_by_hand():
    pose = Pose(0, 0, 2.0, (0, 0, 0))  # at (2, 0, 0), looking along −x; y is to its right
    f = 120 / np.tan(np.deg2rad(21))
    column, row, depth = project(np.array([[0.0, 0.5, 0.25]]), pose, 424, 240)[0]
    assert depth == pytest.approx(2)
    assert (column, row) == pytest.approx((212 + f * 0.25, 120 - f * 0.125))


def test_the_sensor_reaches_its_exposure_with_tint_and_noise():
    grey = np.full((90, 120, 3), 60, np.uint8)
    lighting = Lighting(1.0, (0, 0), 4.0, (1.1, 1.0, 0.8))
    out = Sensor(np.random.default_rng(0))(grey, lighting, 100.0, np.random.default_rng(1))
    assert out.mean((0, 1)) == pytest.approx([110, 100, 80], abs=0.5)
    assert out.std((0, 1)) == pytest.approx([4, 4, 4], rel=0.1)
    # A soft shoulder: what is brighter than white stays below it, and in order.
    steps = np.repeat(np.array([10, 100, 200, 250], np.uint8), 3).reshape(1, 4, 3)
    still = Lighting(1.0, (0, 0), 0.0)
    values = Sensor(np.random.default_rng(0))(steps, still, 220.0, np.random.default_rng(1))[
        0, :, 0
    ]
    assert (np.diff(values.astype(int)) > 0).all() and values[0] == round(10 * 220 / 140)


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("wanted", [0.25, 0.5])
def test_an_occluder_hides_the_wanted_part(side, wanted):
    corners = box(0.5, 0.4, 1.3).translate(z=0.65).vertices
    corners = corners[np.argsort(corners[:, 2], kind="stable")]
    rings = (corners, np.array([0, len(corners) // 2]))
    pose = Pose(50, 32, 3.0, (0, 0, 0.2))
    near = 0.4 * pose.position[:2]
    whole = np.zeros((240, 424), bool)
    whole[100:150, 180:250] = np.tri(50, 70, 30, dtype=bool)
    offset = occluder_offset(rings, near, pose, whole, wanted, side)
    # Drawn by other means: the outline of its corners, filled.
    there = corners + np.array([*(near + offset * pose.axes[0][:2]), 0])
    outline = project(there, pose, 424, 240)[:, :2]
    picture = Image.new("L", (424, 240))
    corners_ = outline[ConvexHull(outline).vertices]
    ImageDraw.Draw(picture).polygon([tuple(p) for p in corners_.tolist()], fill=1)
    covered = np.asarray(picture).astype(bool) & whole
    assert covered.sum() / whole.sum() == pytest.approx(wanted, abs=0.04)
    # It leaves the far side free.
    assert not covered[:, 180 if side > 0 else 249].any()


def test_downsampling_by_hand():
    rgb = np.zeros((2, 6, 3), np.uint8)
    rgb[:, :2] = [[[10], [20]], [[30], [41]]]
    depth = np.array([[0.1, 0.9, 0.2, 0.3, 0.5, 0.6], [0.4, 0.5, 0.1, 0.7, 0.2, 0.8]], np.float32)
    whole = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 0, 0]], bool)
    seen = np.array([[1, 0, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0]], bool)
    colours, near, mine, shown = downsample(rgb, depth, whole, seen, 2)
    assert colours[0, :, 0].tolist() == [25, 0, 0]  # the mean of 10, 20, 30, 41, rounded
    assert mine.tolist() == [[True, True, False]]
    assert shown.tolist() == [[True, False, False]]  # one of two is half, one of three is not
    assert near[0].tolist() == pytest.approx([0.1, 0.7, 0.8])  # the seen point, then middles


# Factors


@pytest.fixture(scope="module")
def clips():
    made = ClipRenderer("cup_01", seed=3, width=WIDTH)
    yield made
    made.close()


GOOD = Annotation("", 40, 20, 45, 30, 130.0, 0.0, 45 / 128, 0, 0.0)


@pytest.mark.parametrize(
    ("change", "levels", "words"),
    [
        ({}, Levels(), ""),
        ({"luminance": 90.0}, Levels(), "luminance 90"),
        ({"luminance": 90.0}, Levels(illumination=2), ""),
        ({"luminance": 60.0}, Levels(illumination=3), ""),
        ({"occluded": 0.05}, Levels(clutter=2), "5.0% of the object is hidden"),
        ({"occluded": 0.25}, Levels(occlusion=2), ""),
        ({"occluded": 0.25}, Levels(occlusion=3), "not 45% to 55%"),
        ({"size": 0.1}, Levels(), "longer side is 0.100"),
        ({"size": 0.1}, Levels(pixel=2), ""),
        ({"size": 0.09}, Levels(pixel=3), ""),
        ({"clutter": 1}, Levels(), "1 other objects"),
        ({"clutter": 3}, Levels(clutter=2), ""),
        ({"clutter": 3}, Levels(clutter=3), "not at least 6"),
    ],
)
def test_the_acceptance_test(change, levels, words):
    why = check_levels(replace(GOOD, **change), levels)
    assert words in why and bool(words) == bool(why)


def test_an_object_at_the_edge_is_cut():
    mask = np.zeros((5, 6), np.uint8)
    mask[1:4, 1:5] = VISIBLE
    assert check_truncation(mask) == ""
    for row, column in ((0, 2), (4, 2), (2, 0), (2, 5)):
        touching = mask.copy()
        touching[row, column] = OCCLUDED
        assert "edge" in check_truncation(touching)


@pytest.mark.parametrize("factor", FACTORS)
def test_frames_hold_their_levels_by_an_independent_measure(clips, factor):
    for level in (1, 2, 3):
        frames = clips.clip(factor, 3 * level - 1, 3)
        levels = Levels(**{factor: level})
        assert len(frames) == 3
        for f in frames:
            m = f.annotation
            assert check_levels(m, levels) == ""
            height, width = f.mask.shape
            assert f.rgb.shape == (height, width, 3) and f.depth.shape == (height, width)
            grey = np.asarray(Image.fromarray(f.rgb).convert("L"), float).mean()
            assert (
                m.luminance == pytest.approx(grey, abs=1) == pytest.approx(luminance(f.rgb), abs=1)
            )
            visible, hidden = (f.mask == VISIBLE).sum(), (f.mask == OCCLUDED).sum()
            assert m.occluded == pytest.approx(hidden / (hidden + visible))
            rows, columns = np.nonzero(f.mask)
            assert (m.x, m.y) == (columns.min(), rows.min())
            assert (m.width, m.height) == (np.ptp(columns) + 1, np.ptp(rows) + 1)
            assert m.size == max(m.width, m.height) / width
            assert 0.1 < f.depth[f.mask == VISIBLE].min() and f.depth.max() < 12
        if factor == "pixel":
            assert width == 2 * round(WIDTH * FRAME_SCALES[level - 1] / 2)
    if factor == "clutter":
        assert m.share > 0.02


def test_thin_objects_do_not_fall_between_pixels():
    for name in ("pencil_01", "spoon_02"):
        thin = ClipRenderer(name, width=WIDTH)
        try:
            frames = thin.clip("pixel", 8, 2)
        finally:
            thin.close()
        assert frames[0].rgb.shape == (54, 96, 3)
        assert all(f.annotation.size >= 5 / 96 and (f.mask > 0).sum() >= 5 for f in frames)


def test_an_occluder_may_rise_above_a_near_camera():
    # Seen end on, a spoon is small: the camera comes so near that the carton's top is behind it.
    near = ClipRenderer("spoon_02", width=WIDTH)
    try:
        frames = near.clip("occlusion", 9, 2)
    finally:
        near.close()
    assert [check_levels(f.annotation, Levels(occlusion=3)) for f in frames] == ["", ""]


def test_frames_move_and_sizes_stay(clips):
    frames = clips.clip("illumination", 1, 4)
    assert all(not np.array_equal(a.rgb, b.rgb) for a, b in itertools.pairwise(frames))
    # Along an arc the size glides between its ends: no drift with the object's side.
    sizes = [f.annotation.size for f in frames]
    assert np.abs(np.diff(sizes, 2)).max() < 0.03


def test_a_clip_depends_on_its_own_name_alone(clips):
    first = clips.clip("occlusion", 5, 3)
    clips.clip("clutter", 8, 3)
    other = ClipRenderer("cup_01", seed=3, width=WIDTH)
    try:
        again = other.clip("occlusion", 5, 3)
        assert not np.array_equal(first[0].rgb, other.clip("occlusion", 6, 3)[0].rgb)
    finally:
        other.close()
    for a, b in zip(first, again, strict=True):
        assert a.annotation == b.annotation
        assert np.array_equal(a.rgb, b.rgb) and np.array_equal(a.depth, b.depth)
        assert np.array_equal(a.mask, b.mask)


def test_frames_are_those_of_this_version(clips):
    # Tolerances allow for another renderer; other seeds or objects are far outside.
    assert VERSION == 2
    assert list(clips.backgrounds.values()) == [10, 6, 12, 3]
    cluttered = clips.clip("clutter", 8, 3)[1].annotation
    box = (cluttered.x, cluttered.y, cluttered.width, cluttered.height)
    assert box == pytest.approx((49, 19, 41, 42), abs=1)
    assert cluttered.luminance == pytest.approx(126.5, abs=0.5)
    assert cluttered.share == pytest.approx(0.1038, abs=0.002)
    occluded = clips.clip("occlusion", 5, 3)[1].annotation
    box = (occluded.x, occluded.y, occluded.width, occluded.height)
    assert box == pytest.approx((51, 18, 29, 29), abs=1)
    assert occluded.luminance == pytest.approx(124.3, abs=0.5)
    assert occluded.occluded == pytest.approx(0.276, abs=0.01)


# Whole sets


def test_which_objects_and_splits():
    assert select_objects(121) == list(NAMES)
    forty = select_objects(40)
    assert len({category(n) for n in forty}) == 40 and "bottle_01" in forty
    assert select_objects(["cup_10", "bottle_02"]) == ["bottle_02", "cup_10"]
    with pytest.raises(UnknownName):
        select_objects(["cup_09"])
    with pytest.raises(SpecError, match="1 to 121"):
        select_objects(0)
    parts = assign_splits(60, 0, "cup_01")
    assert np.bincount(parts).tolist() == [48, 6, 6]
    assert np.bincount(assign_splits(3, 0)).tolist() == [1, 1, 1]
    assert not np.array_equal(parts, assign_splits(60, 1, "cup_01"))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    root = tmp_path_factory.mktemp("rendered") / "set"
    seen = []
    render_dataset(
        root,
        ["pencil_01", "toy_03"],
        3,
        64,
        1,
        report=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(k, 8) for k in range(9)]
    return root


def tree(root):
    return {p.relative_to(root): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def test_the_loader_reads_what_was_rendered(small, monkeypatch, tmp_path):
    monkeypatch.setenv("PERDURE_CACHE", str(tmp_path))
    found = load(small)
    assert found.layout == "A" and missing(found) == [] and found.empty == ()
    assert set(found.counts().values()) == {2}  # two objects, one frame in each part
    clip = found.part("test", "occlusion", 8)[1]
    rows = frame_annotations.read_annotations(small, "test/occlusion/segment8/toy_03")
    (file,) = clip.files
    row = rows[file.rsplit("/", 1)[1]]
    assert check_levels(row, Levels(occlusion=3)) == ""
    mask = frame_annotations.read_mask(small, file)
    assert row.occluded == pytest.approx((mask == OCCLUDED).sum() / (mask > 0).sum(), abs=1e-4)
    depth = frame_annotations.read_depth(small, file)
    assert depth.shape == mask.shape and 0.1 < depth[mask == VISIBLE].mean() < 2
    frames = data.frames(data.Task("openloris", "occlusion", "level3", {"root": str(small)}), False)
    assert len(frames) == 6 and frames.batch(np.arange(6)).inputs.std() > 5
    assert json.loads((small / "rendered.json").read_text()) == {
        "instances": ["pencil_01", "toy_03"]
    }


def test_again_makes_nothing_and_other_settings_are_refused(small):
    before = tree(small)
    render_dataset(small, ["pencil_01", "toy_03"], 3, 64, 1)
    assert tree(small) == before
    with pytest.raises(SpecError, match="size 64 there, 66 asked"):
        render_dataset(small, ["pencil_01"], 3, 66, 1)
    for bad in ({"frames": 2}, {"size": 10}, {"workers": 0}):
        with pytest.raises(SpecError, match=next(iter(bad))):
            render_dataset(small / "x", ["pencil_01"], **bad)


def test_killed_and_resumed_on_two_workers_is_the_same(small, tmp_path):
    root = tmp_path / "set"
    code = (
        "from perdure.suites.openloris.rendering.dataset import render_dataset\n"
        "if __name__ == '__main__':\n"
        f"    render_dataset({str(root)!r}, ['pencil_01', 'toy_03'], 3, 64, 2)\n"
    )
    script = tmp_path / "go.py"
    script.write_text(code)
    running = subprocess.Popen([sys.executable, str(script)])
    deadline = time.monotonic() + 120
    while len(list(root.glob("boxes/train/*/*/*.csv"))) < 5:
        assert time.monotonic() < deadline and running.poll() is None
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    time.sleep(0.5)  # its workers notice
    made = len(list(root.glob("boxes/train/*/*/*.csv")))
    assert 5 <= made < 72 and not (root / "rendered.json").exists()
    for torn in list(root.glob("train/clutter/segment9/*/*.jpg"))[:1]:
        torn.write_bytes(b"")
    render_dataset(root, ["pencil_01", "toy_03"], 3, 64, 1)
    left = {k: v for k, v in tree(root).items() if not k.name.startswith(".")}
    assert left == tree(small)


def test_the_command_line(small, tmp_path):
    run = CliRunner().invoke(main, ["check", str(small)])
    assert run.exit_code == 0, run.output
    assert "layout A, 2 objects, 72 train, 72 validation, 72 test frames" in run.output
    run = CliRunner().invoke(main, ["check", str(tmp_path)])
    assert isinstance(run.exception, PerdureError)
    run = CliRunner().invoke(main, ["render", "--help"])
    assert "--instances" in run.output


def test_the_gallery(tmp_path):
    objects, factors = gallery(tmp_path / "sheets" / "all.png", ["cup_02", "key_01"])
    with Image.open(objects) as image:
        assert image.size == (2 * 212, 134)
        assert np.asarray(image)[:120].std() > 10
    with Image.open(factors) as image:
        assert image.size == (12 * 212, 134)
