"""Drawing leaves no files in the home folder."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("mujoco")
from perdure.suites._offscreen import shader_settings

DRAWN = """
import mujoco
from perdure.suites._offscreen import offscreen
context = offscreen(64, 64)
context.make_current()
model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><light pos='0 0 3'/><geom size='1'/></worldbody></mujoco>")
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
scene, drawn = mujoco.MjvScene(model, 10), mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, drawn)
mujoco.mjv_updateScene(model, data, mujoco.MjvOption(), None, mujoco.MjvCamera(), 7, scene)
mujoco.mjr_render(mujoco.MjrRect(0, 0, 64, 64), scene, drawn)
"""


@pytest.fixture
def plain(monkeypatch, tmp_path):
    for name in [n for n in os.environ if n.startswith("MESA_")]:
        monkeypatch.delenv(name)
    for name in ("PERDURE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return monkeypatch


def test_shaders_are_kept_where_the_environment_says(plain, tmp_path):
    plain.setenv("PERDURE_CACHE", str(tmp_path / "cache"))
    assert shader_settings() == {"MESA_SHADER_CACHE_DIR": str(tmp_path / "cache/mesa")}
    plain.setenv("MESA_SHADER_CACHE_DIR", "elsewhere")
    assert shader_settings() == {}


def test_or_else_in_a_temporary_folder_that_nobody_else_can_write(plain, tmp_path):
    own = tmp_path / f"perdure-{os.getuid()}"
    assert shader_settings() == {"MESA_SHADER_CACHE_DIR": str(own)}
    assert own.stat().st_mode & 0o777 == 0o700
    own.chmod(0o777)
    assert shader_settings() == {"MESA_SHADER_CACHE_DISABLE": "true"}
    own.rmdir()
    (tmp_path / "other").mkdir(mode=0o700)
    own.symlink_to(tmp_path / "other")
    assert shader_settings() == {"MESA_SHADER_CACHE_DISABLE": "true"}


def drawn(**environment):
    told = subprocess.run(
        [sys.executable, "-c", DRAWN],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert told.returncode == 0, told.stderr


def test_a_picture_is_drawn_and_mesa_keeps_its_shaders_there(plain, tmp_path):
    drawn(MESA_SHADER_CACHE_DIR=str(tmp_path / "told"))
    if not any((tmp_path / "told").rglob("*")):
        pytest.skip("this machine does not draw with a Mesa that keeps shaders")
    drawn(PERDURE_CACHE=str(tmp_path))
    assert any((tmp_path / "mesa").rglob("*"))
