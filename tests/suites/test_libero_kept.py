"""What LIBERO keeps of its scenes is what would be made anew."""

import os
import time
from xml.sax.saxutils import escape

import mujoco
import numpy as np
import pytest
from libero_kit import in_both_looks, needs_assets

from perdure.errors import EnvironmentFault
from perdure.suites.libero import assets, kept
from perdure.suites.libero.problems import problem_of
from perdure.suites.libero.scene import build
from perdure.suites.libero.tasks import find


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PERDURE_CACHE", str(tmp_path))
    kept.physics_model.cache_clear()
    yield tmp_path / "libero"
    kept.physics_model.cache_clear()


def whole(model):
    found = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, found)
    return found.tobytes()


@in_both_looks
@pytest.mark.parametrize("name", ["goal-0", "90-33"])
def test_a_kept_scene_is_the_one_that_is_built(folder, look, name):
    problem = problem_of(find(name))
    built = build(problem, look)
    for _ in range(2):  # Made, then read.
        assert kept.kept_scene(problem, look) == built
        assert len(list(folder.glob("scene-*"))) == 1


@needs_assets
def test_a_kept_model_is_the_one_that_is_compiled(folder):
    xml = kept.kept_scene(problem_of(find("object-3")), "official").xml
    expected = whole(kept.compiled(xml))
    for _ in range(2):
        assert whole(kept.physics_model(xml)) == expected
        kept.physics_model.cache_clear()
    (file,) = folder.glob("physics-*")
    file.write_bytes(file.read_bytes()[:-1] + b"x")  # Damaged: made anew.
    assert whole(kept.physics_model(xml)) == expected


def test_a_model_is_made_anew_of_a_file_that_was_written_since_and_by_other_code(
    folder, tmp_path, monkeypatch
):
    mesh, made = tmp_path / "a & b.obj", []
    points = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 {}\n"
    faces = "f 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"
    xml = (
        f'<mujoco><asset><mesh name="m" file="{escape(str(mesh))}"/></asset><worldbody>'
        '<geom type="mesh" mesh="m"/></worldbody></mujoco>'
    )

    def compiled():
        made.append(xml)
        return mujoco.MjModel.from_xml_string(xml)

    for height in (1, 2.5):
        mesh.write_text(points.format(height) + faces)
        for _ in range(2):
            kept.kept_model("physics", xml, compiled)
    assert len(made) == 2
    monkeypatch.setattr(kept, "_code", lambda: "another version")
    kept.kept_model("physics", xml, compiled)
    assert len(made) == 3


def test_other_code_makes_a_scene_anew(folder, monkeypatch):
    problem = problem_of(find("object-0"))
    kept.kept_scene(problem, "primitive")
    # Of a writer that was killed, and of one that writes.
    for name, age in (("_abcdefgh", 90_000), ("_klmnopqr", 60)):
        (folder / name).touch()
        os.utime(folder / name, (time.time() - age,) * 2)
    monkeypatch.setattr(kept, "_code", lambda: "another version")
    kept.kept_scene(problem, "primitive")
    assert len(list(folder.glob("scene-*"))) == 2
    assert [p.name for p in folder.glob("_*")] == ["_klmnopqr"]


def test_nothing_is_kept_where_no_folder_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("PERDURE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    kept.kept_scene(problem_of(find("object-0")), "primitive")
    assert not list(tmp_path.iterdir())


@needs_assets
def test_files_that_are_not_the_published_ones_are_refused_from_the_cache_too(folder, monkeypatch):
    """A scene is read without its files; who compiles it reads them, and checks."""
    xml = kept.kept_scene(problem_of(find("object-3")), "official").xml
    assets.check.cache_clear()
    monkeypatch.setattr(assets, "digest", lambda path: "another")
    try:
        with pytest.raises(EnvironmentFault, match=r"is not the file that files.sha256 lists"):
            kept.physics_model(xml)
    finally:
        assets.check.cache_clear()
