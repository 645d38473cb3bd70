"""Contact sheets of LIBERO's looks: every category, and tasks as the agent's camera sees them.

    python scripts/libero_looks.py OUT.png [--tasks spatial-0 90-33 ...] [--looks primitive official]

Without ``--tasks`` the sheet shows the categories, one look a row beneath the other.
"""

from __future__ import annotations

import argparse
import xml.etree.ElementTree as ET

import matplotlib
import mujoco
import numpy as np

matplotlib.use("agg")
import matplotlib.pyplot as plt

from perdure.registry import suite
from perdure.suites._offscreen import offscreen
from perdure.suites.libero import mjcf
from perdure.suites.libero.categories import CATEGORIES
from perdure.suites.libero.looks import LOOKS, look
from perdure.suites.libero.placement import _turned
from perdure.types import Array, Task

SIDE = 160
STAND = """
<mujoco><compiler angle="radian" inertiagrouprange="0 0"/><asset>
<texture builtin="gradient" height="32" width="32" rgb1=".9 .9 1" rgb2=".4 .5 .6" type="skybox"/></asset>
<worldbody><light pos="1 1 4" diffuse=".8 .8 .8" castshadow="false"/>
<light pos="-3 -3 4" diffuse=".8 .8 .8" castshadow="false"/></worldbody></mujoco>"""


def portrait(name: str, source: str) -> Array:
    """A category by itself, turned as scenes turn it, from the side that the agent's camera sees."""
    root = ET.fromstring(STAND)
    tree = look(source).thing(name)
    inner = mjcf.named(tree, "body", "object")
    movable = CATEGORIES[name].file.startswith(("stable", "turbosquid"))
    turned = _turned(np.random.RandomState(0), CATEGORIES[name].turn)
    if movable and name not in ("desk_caddy", "wine_rack", "wooden_two_layer_shelf"):
        inner.set("quat", mjcf.text(turned))
    mjcf.merge_assets(root, tree)
    mjcf.section(root, "worldbody").append(inner)
    model = mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))
    model.vis.global_.offwidth = model.vis.global_.offheight = SIDE
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    seen = model.geom_group == 1
    middle = data.geom_xpos[seen].mean(0)
    reach = max(np.linalg.norm(data.geom_xpos[seen] - middle, axis=1) + model.geom_rbound[seen])
    view, options = mujoco.MjvCamera(), mujoco.MjvOption()
    options.geomgroup[0] = 0
    view.lookat[:], view.distance, view.azimuth, view.elevation = middle, 2.6 * reach, 150, -35
    context = offscreen(SIDE, SIDE)
    context.make_current()
    scene, drawn = mujoco.MjvScene(model, 1000), mujoco.MjrContext(model, 100)
    mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, drawn)
    everything = mujoco.mjtCatBit.mjCAT_ALL.value
    mujoco.mjv_updateScene(model, data, options, mujoco.MjvPerturb(), view, everything, scene)
    frame, picture = mujoco.MjrRect(0, 0, SIDE, SIDE), np.empty((SIDE, SIDE, 3), np.uint8)
    mujoco.mjr_render(frame, scene, drawn)
    mujoco.mjr_readPixels(picture, None, frame, drawn)
    drawn.free()
    context.free()
    return picture[::-1].copy()


def views(name: str, source: str) -> Array:
    """A task's first observation: both cameras side by side."""
    env = suite("libero").env(
        Task("libero", name, params={"look": source, "size": SIDE, "fixture_seed": 0})
    )
    seen, _ = env.reset(seed=0, options={"episode": 0})
    env.close()
    return np.concatenate([seen["agentview_image"], seen["robot0_eye_in_hand_image"]], axis=1)


def sheet(pictures: dict[str, list[Array]], columns: int, path: str) -> None:
    """Pictures in a grid; those of one name beneath each other."""
    names, deep = list(pictures), len(next(iter(pictures.values())))
    rows = -(-len(names) // columns)
    high, wide = next(iter(pictures.values()))[0].shape[:2]
    figure, axes = plt.subplots(
        rows, columns, figsize=(columns * wide / 100, rows * (high * deep + 18) / 100), dpi=100,
        squeeze=False,
    )  # fmt: skip
    for axis in axes.flat:
        axis.axis("off")
    for axis, name in zip(axes.flat, names, strict=False):
        axis.imshow(np.concatenate(pictures[name]))
        axis.set_title(name.replace("_", " "), fontsize=7, pad=2)
    figure.subplots_adjust(0, 0, 1, 0.985, 0.01, 0.08)
    figure.savefig(path)


def main() -> None:
    """Draw what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("out")
    parser.add_argument("--looks", nargs="+", default=list(LOOKS), choices=list(LOOKS))
    parser.add_argument("--tasks", nargs="*")
    given = parser.parse_args()
    if given.tasks:
        sheet({t: [views(t, s) for s in given.looks] for t in given.tasks}, 4, given.out)
        return
    names = [n for n in CATEGORIES if all(n in look(s).things() for s in given.looks)]
    sheet({n: [portrait(n, s) for s in given.looks] for n in names}, 9, given.out)


if __name__ == "__main__":
    main()
