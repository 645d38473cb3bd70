"""LIBERO's primitive look: our own things mean in every task what the published ones mean."""

import mujoco
import numpy as np
import pytest
from libero_kit import blind, needs_assets, rotation, simulation, task

from perdure.errors import MissingExtra, UnknownName
from perdure.registry import suite
from perdure.suite import Episode
from perdure.suites.libero import assets, bddl, mjcf, problems
from perdure.suites.libero.camera import Renderer
from perdure.suites.libero.lighten import gathered
from perdure.suites.libero.looks import LOOKS, look
from perdure.suites.libero.problems import problem_of
from perdure.suites.libero.scene import build
from perdure.suites.libero.simulation import TOUCH
from perdure.suites.libero.tasks import find, officials, settings
from perdure.suites.libero.workspaces import WORKSPACES
from perdure.testing import check_task

SUITE = suite("libero")
OWN = LOOKS["primitive"]


def primitive(name, **params):
    return blind(name, **{"look": "primitive", **params})


def used():
    """The categories of movable objects and of fixtures."""
    surfaces = {w.category for w in WORKSPACES.values()}
    found = [problem_of(o) for o in officials().values()]
    movable = {t.category for p in found for t in p.objects}
    return movable, {t.category for p in found for t in p.fixtures} - surfaces, surfaces


# What there is.


def test_every_category_of_the_130_tasks_has_a_model():
    movable, fixtures, surfaces = used()
    assert (len(movable), len(fixtures) + len(surfaces)) == (26, 12)
    assert set(OWN.things()) == movable | fixtures
    with pytest.raises(UnknownName, match="primitive look"):
        OWN.thing("popcorn")


def test_every_region_that_a_task_speaks_of_is_there():
    """Goals and first relations of all 130; build refuses one that names nothing."""
    regions = set()
    for official in officials().values():
        scene = build(problem_of(official), "primitive")
        for relation in scene.problem.goal:
            zone = scene.zones.get(relation.names[-1])
            if zone is not None and zone.parent is not None:
                kind = scene.bodies[zone.parent].category.name
                regions.add((kind, zone.name.removeprefix(f"{zone.parent}_")))
    assert len(regions) > 15


@needs_assets
@pytest.mark.parametrize("name", sorted(OWN.things()))
def test_a_model_means_what_the_published_one_means(name):
    """Joints, regions, and what placing goes by are the same; sizes nearly."""
    ours, theirs = (look(s).thing(name) for s in ("primitive", "official"))

    def told(tree):
        body = mjcf.named(tree, "body", "object")
        joints = {
            j.get("name"): (j.get("type"), j.get("axis"), *mjcf.numbers(j.get("range")), float(j.get("damping", 0)))
            for j in body.iter("joint")
        }  # fmt: skip
        outer = tree.find("worldbody/body")
        regions = {
            s.get("name"): [*mjcf.numbers(s.get("pos")), *mjcf.numbers(s.get("size")), *mjcf.numbers(s.get("quat"))]
            for s in body.iter("site")
            if s.get("type") == "box"
        }  # fmt: skip
        placing = {s.get("name"): list(mjcf.numbers(s.get("pos"))) for s in outer.findall("site")}
        return joints, regions, placing

    for mine, other in zip(told(ours), told(theirs), strict=True):
        assert mine == other
    corners = [extent(tree) for tree in (ours, theirs)]
    for mine, other in zip(*corners, strict=True):
        np.testing.assert_allclose(mine, other, rtol=0, atol=0.012)


def extent(tree):
    """The corners of the box around what collides."""
    root = mjcf.ET.fromstring("<mujoco><compiler angle='radian'/><asset/><worldbody/></mujoco>")
    body = mjcf.named(tree, "body", "object")
    for parent in list(body.iter()):
        for geom in parent.findall("geom"):
            if geom.get("group", "0") != "0":
                parent.remove(geom)
            geom.attrib.pop("material", None)
    body.attrib.pop("pos", None)
    root.find("worldbody").append(body)
    model = mujoco.MjModel.from_xml_string(mjcf.ET.tostring(root, encoding="unicode"))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    points = []
    for g in range(model.ngeom):
        size, kind = model.geom_size[g].copy(), int(model.geom_type[g])
        if kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
            size[:] = size[0], size[0], size[0] + size[1]
        elif kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
            size[:] = size[0], size[0], size[1]
        reach = np.abs(data.geom_xmat[g].reshape(3, 3)) @ size
        points += [data.geom_xpos[g] - reach, data.geom_xpos[g] + reach]
    return np.min(points, axis=0), np.max(points, axis=0)


@needs_assets
def test_the_embedded_tasks_are_the_published_files():
    found = {
        f"{o.folder}/{o.file}": bddl.read(assets.file("tasks", f"{o.folder}/{o.file}.bddl"))
        for o in officials().values()
    }
    for o in officials().values():
        assert problems.official(o.folder, o.file) == found[f"{o.folder}/{o.file}"], o.name
    assert problems.packed(found) == problems.FILE.read_text()


# How it behaves.


@pytest.mark.parametrize("name", rotation())
def test_this_turns_tasks_begin_clear_and_lie_still(name):
    """A tenth of the 130 at each turn: nothing begins in something else, nothing falls off, nothing
    goes on moving, and no goal holds from the beginning."""
    sim = simulation(name, "primitive")
    sim.reset(1)
    assert sim.data.ncon == 0 or sim.data.contact.dist.min() > -2 * TOUCH
    assert not sim.success()
    for _ in range(20):
        sim.act(np.zeros(7))
    assert np.abs(sim.data.qvel).max() < 0.02
    assert not sim.success()
    surface = sim.scene.workspace.offset[2]
    for body in sim.objects.values():
        assert sim.data.body(body.root).xpos[2] > surface - 0.02, body.name


@needs_assets
def test_a_seed_places_things_where_the_official_look_has_them():
    for name in ("spatial-4", "object-3", "goal-6", "90-40", "90-73"):
        own, official = (simulation(name, source) for source in ("primitive", "official"))
        for sim in (own, official):
            sim.reset(7)
        assert own.state_size == official.state_size
        np.testing.assert_allclose(own.data.qpos, official.data.qpos, rtol=0, atol=0.06)
        for body in own.objects.values():
            mine, other = (s.data.joint(body.joints[-1]).qpos for s in (own, official))
            # Higher only if it would begin in the floor.
            np.testing.assert_allclose(
                mine[[0, 1, 3, 4, 5, 6]], other[[0, 1, 3, 4, 5, 6]], atol=1e-9
            )
            assert mine[2] >= other[2] - 1e-9
        np.testing.assert_allclose(
            own.model.body_pos[list(own.fixtures.values())],
            official.model.body_pos[list(official.fixtures.values())],
            atol=1e-9,
        )


def test_the_hand_holds_what_it_takes():
    """A packet is taken from above, lifted and carried."""
    sim = simulation("object-6", "primitive")
    sim.reset(3)
    butter = sim.data.body("butter_1_main").xpos
    hand = sim.data.site_xpos[sim.controller.site]
    start = butter.copy()

    def go(target, grip, steps):
        for _ in range(steps):
            step = np.clip((np.asarray(target) - hand) / 0.05, -1, 1)
            sim.act(np.array([*step, 0, 0, 0, grip]))

    for _ in range(20):
        sim.act(np.array([0, 0, 0, 0, 0, 0, -1.0]))
    place = butter.copy()
    go((*place[:2], place[2] + 0.12), -1, 30)
    go((*place[:2], place[2] + 0.002), -1, 25)
    go((*place[:2], place[2] + 0.002), 1, 12)
    go((*place[:2], place[2] + 0.25), 1, 25)
    assert butter[2] > start[2] + 0.15, "lifted"


@pytest.mark.parametrize(
    ("name", "joint", "force", "moved"),
    [
        *(
            ("goal-0", f"wooden_cabinet_1_{x}_level", -15, -0.15)
            for x in ("top", "middle", "bottom")
        ),
        *(("90-22", f"white_cabinet_1_{x}_level", -15, -0.15) for x in ("top", "middle", "bottom")),
        ("90-33", "microwave_1_microjoint", 1, 0.8),
        ("90-20", "flat_stove_1_button", 2, 0.5),
    ],
)
def test_drawers_doors_and_knobs_move_freely(name, joint, force, moved):
    sim = simulation(name, "primitive", solves=1)
    sim.reset(0)
    place = sim.data.joint(joint).qpos
    if force == -15:
        place[0] = 0.0
    start = float(place[0])
    sim.data.joint(joint).qfrc_applied[0] = force
    for _ in range(18):
        sim.act(np.zeros(7))
    assert (place[0] - start) / moved > 1, f"it went {place[0] - start}, not {moved}"


def test_numbered_states_are_the_same_for_everybody():
    env = SUITE.env(primitive("goal-1", settle=0))
    states = {}
    for seed, number in ((1, 0), (2, 0), (1, 60), (2, 61)):
        env.reset(seed=seed, options=Episode(seed, seed, number, number).options)
        states[seed, number] = env.simulation.state()
    np.testing.assert_array_equal(states[1, 0], states[2, 0])
    assert not np.array_equal(states[1, 60], states[2, 61])
    # In learning there is no instance to play, and the seed draws.
    env.reset(seed=5, options=Episode(5, 5, 0).options)
    assert not np.array_equal(env.simulation.state(), states[1, 0])
    always = SUITE.env(primitive("goal-1", settle=0, initial_state=0))
    always.reset(seed=9, options=Episode(9, 9, 4).options)
    np.testing.assert_array_equal(always.simulation.state(), states[1, 0])


@needs_assets
def test_official_states_fit_the_primitive_look():
    env = SUITE.env(primitive("90-25", initial_states="official"))
    env.reset(seed=0, options=Episode(0, 0, 4).options)
    assert np.abs(env.simulation.data.qvel).max() < 0.5 and not env.simulation.success()


def test_seeds_are_honest():
    """Also in batches."""
    check_task(SUITE, primitive("10-2", objects=True, horizon=10))


def test_it_needs_no_other_package(monkeypatch):
    monkeypatch.setattr(assets, "ROOTS", {k: ("no_such_package", "x") for k in assets.ROOTS})
    assets.root.cache_clear()
    try:
        env = SUITE.env(task("90-1", look="primitive", size=32))
        seen, _ = env.reset(seed=0)
        env.close()
        with pytest.raises(MissingExtra, match=r"\.\[libero-official\]"):
            SUITE.env(task("90-1", cameras=[])).reset(seed=0)
    finally:
        assets.root.cache_clear()
    for camera in ("agentview", "robot0_eye_in_hand"):
        assert seen[f"{camera}_image"].std() > 10, "an empty picture"


def test_the_default_is_the_primitive_look():
    assert settings(SUITE.task("goal-0")).look == "primitive"
    assert settings(SUITE.task("goal-0")).initial_states == "numbered"
    assert settings(task("goal-0")).initial_states == "official"
    assert find("goal-0").name == "goal-0"


# Pictures.


def test_points_of_one_cell_come_together():
    points = np.array([[0, 0, 0], [0.2, 0, 0], [1, 0, 0], [4.0, 0, 0]])
    moved, leaders = gathered(points, cells=4)
    # A metre is a cell: the first two share one; the last begins a fifth.
    assert leaders.tolist() == [0, 0, 2, 3]
    np.testing.assert_allclose(moved[:, 0], [0.1, 0.1, 1, 4])


def drawn(name, source, rendering, every=True):
    sim = simulation(name, source)
    sim.reset(0)
    drawing = Renderer(sim.scene.visual_xml, 64, rendering)
    drawing.show(sim)
    if every:
        drawing.reach = np.full_like(drawing.reach, np.inf)
    return {c: drawing.picture(c, 64) for c in ("agentview", "robot0_eye_in_hand")}


def test_what_is_out_of_sight_need_not_be_drawn():
    whole, sighted = (drawn("10-2", "primitive", "exact", every) for every in (True, False))
    for camera, picture in whole.items():
        np.testing.assert_array_equal(picture, sighted[camera])
    sim = simulation("10-2", "primitive")
    sim.reset(0)
    drawing = Renderer(sim.scene.visual_xml, 64)
    drawing.show(sim)
    seen = {c: int(drawing.in_sight(c).sum()) for c in ("agentview", "robot0_eye_in_hand")}
    assert 0 < seen["robot0_eye_in_hand"] < seen["agentview"] < drawing.model.ngeom


@needs_assets
@pytest.mark.slow
def test_fast_pictures_are_nearly_the_exact_ones(tmp_path, monkeypatch):
    """The lightened scene is small, and read from the cache folder the second time."""
    monkeypatch.setenv("PERDURE_CACHE", str(tmp_path))
    exact, fast = (drawn("goal-0", "official", r, False) for r in ("exact", "fast"))
    (kept,) = (tmp_path / "libero").glob("light-*")
    assert kept.stat().st_size < 8e6
    made = kept.stat().st_mtime_ns
    again = drawn("goal-0", "official", "fast", False)
    assert kept.stat().st_mtime_ns == made
    for camera, picture in fast.items():
        np.testing.assert_array_equal(picture, again[camera])
    for camera, picture in exact.items():
        away = np.abs(picture.astype(int) - fast[camera])
        assert 0 < away.mean() < 12, camera
