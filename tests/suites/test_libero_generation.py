"""Generated LIBERO tasks: every promise, over seeds and kinds; and that broken tasks are refused."""

import dataclasses
import json
import shutil
from collections import Counter

import numpy as np
import pytest
from click.testing import CliRunner
from libero_kit import needs_assets

pytest.importorskip("mujoco")

from kit import live
from perdure.agent import Agent
from perdure.agents.expert import SuiteExpert
from perdure.cli.main import main
from perdure.cli.picturing import draw
from perdure.curricula.named import curriculum_of
from perdure.datasets.convert import open_dataset
from perdure.errors import CurriculumError, EnvironmentFault, SpecError, UnknownName
from perdure.registry import suite
from perdure.run.code import code_record
from perdure.run.demos import collect
from perdure.specs import Spec
from perdure.suites._demonstrations import DemonstrationFile
from perdure.suites.libero import bddl
from perdure.suites.libero.clearance import extent_of, surface_height
from perdure.suites.libero.env import scene_of
from perdure.suites.libero.folders import tasks_in
from perdure.suites.libero.generation import solving
from perdure.suites.libero.generation.behaviours import TEMPLATES, Behaviour, behaviours
from perdure.suites.libero.generation.checks import world_of
from perdure.suites.libero.generation.contacts import touching
from perdure.suites.libero.generation.draft import NoRoom, problem_of_draft
from perdure.suites.libero.generation.identity import key, official_keys
from perdure.suites.libero.generation.kinds import family
from perdure.suites.libero.generation.nouns import AT_HOME, FIXTURES, MOVABLES, SURFACES
from perdure.suites.libero.generation.reading import meanings
from perdure.suites.libero.generation.scene_layout import SceneLayout
from perdure.suites.libero.generation.suite import KINDS, NOTES, Report, generate, problem_with
from perdure.suites.libero.problem import Problem, Rectangle, Region, Relation, Thing
from perdure.suites.libero.problems import problem_of
from perdure.suites.libero.simulation import Simulation
from perdure.suites.libero.tasks import find, officials, settings
from perdure.types import Task

SUITE = suite("libero")
COUNTS = {"spatial": 8, "object": 6, "goal": 8, "all": 10}


def drafts(kind, seed, most=12, families=4):
    """Some tasks of a kind, before any check."""
    found = []
    for number in range(families if kind != "all" else 10 * families):
        try:
            make = family(kind, seed, number)
        except NoRoom:
            continue
        for k in range(most):
            try:
                found.append((number, make(k)))
            except NoRoom:
                continue
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of each kind."""
    root = tmp_path_factory.mktemp("generated")
    return {k: generate(root / k, k, n, seed=3, workers=1) for k, n in COUNTS.items()}


def problems(report):
    return {n: bddl.read(report.folder / f"{n}.bddl") for n in report.names}


# Before the simulation: many seeds.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_drafts_are_files_about_things_that_fit(kind, seed):
    found = drafts(kind, seed)
    assert len(found) >= 8
    for _, draft in found:
        problem = problem_of_draft(draft)
        assert bddl.parse(bddl.write(problem)) == problem
        names = {t.name: t.category for t in problem.objects}
        assert set(names.values()) <= set(AT_HOME[draft.surface])
        assert len({t.words for t in (MOVABLES[c] for c in names.values())}) == len(
            set(names.values())
        )
        for relation in problem.goal:
            if relation.predicate in ("on", "in"):
                assert relation.names[0] in names
        opened = [r for r in problem.init if r.predicate in ("open", "turnon")]
        assert not set(opened) & set(problem.goal), "the goal is how it begins"


def test_a_seed_gives_the_same_drafts_and_another_others():
    assert drafts("all", 4, families=1) == drafts("all", 4, families=1)
    assert drafts("all", 4, families=1) != drafts("all", 5, families=1)


def test_every_template_can_be_filled_and_is_drawn():
    things = [*MOVABLES, "akita_black_bowl"]
    assert {b.template for b in behaviours(things, list(FIXTURES))} == set(TEMPLATES)
    drawn = Counter(d.template for seed in range(4) for _, d in drafts("all", seed))
    assert len(drawn) >= len(TEMPLATES) - 2, drawn


def test_what_must_be_open_at_first_follows_from_the_steps():
    known = behaviours(["butter"], ["white_cabinet"])

    def states(template):
        steps = {b.template: b for b in known if "top" in b.steps[0].place.region}
        found: Behaviour = steps[template]
        return found.states

    drawer = ("white_cabinet", "top_region")
    assert states("put … in …") == (("open", *drawer),)
    assert states("open … and put … in it") == (("close", *drawer),)
    assert states("put … in … and close it") == (("open", *drawer),)
    assert states("close …") == (("open", *drawer),)


# Each kind holds fixed what it says.


@pytest.mark.parametrize("seed", [0, 1])
def test_spatial_tasks_differ_in_where_two_equal_things_are(seed):
    groups = {}
    for number, draft in drafts("spatial", seed):
        groups.setdefault(number, []).append(draft)
    for mine in groups.values():
        assert len({(d.surface, d.fixtures, d.template) for d in mine}) == 1
        assert len({tuple(sorted(o.category for o in d.objects)) for d in mine}) == 1
        twins = {d.goal[0].names[0].rpartition("_")[0] for d in mine}
        assert len(twins) == 1 and len({d.goal[0].names[1] for d in mine}) == 1
        rest = {tuple(o for o in d.objects if o.category not in twins) for d in mine}
        assert len(rest) == 1, "only the two may be elsewhere"
        assert len({d.language for d in mine}) > 2


@pytest.mark.parametrize("seed", [0, 1])
def test_object_tasks_differ_in_what_is_there(seed):
    for number in range(3):
        mine = [d for n, d in drafts("object", seed) if n == number]
        assert len({tuple(o.at for o in d.objects) for d in mine}) <= 1
        assert len({(d.surface, d.goal[0].names[1]) for d in mine}) <= 1
        assert len({d.goal[0].names[0] for d in mine}) > 3 or not mine


@pytest.mark.parametrize("seed", [0, 1])
def test_goal_tasks_differ_in_what_is_to_be_done(seed):
    for number in range(3):
        mine = [d for n, d in drafts("goal", seed) if n == number]
        assert len({(d.surface, d.fixtures, d.objects, d.states) for d in mine}) <= 1
        assert len({d.goal for d in mine}) == len(mine)


# In the simulation.


@needs_assets
@pytest.mark.parametrize("kind", KINDS)
def test_generated_tasks_keep_every_promise(kind, made):
    """What is promised, asked of the files anew: another seed than the checks', the suite's own reset."""
    report = made[kind]
    assert len(report.names) == COUNTS[kind]
    index = json.loads((report.folder / "tasks.json").read_text())
    assert [e["name"] for e in index["tasks"]] == list(report.names)
    for entry in index["tasks"]:
        task = Task("libero", entry["name"], params={"folder": str(report.folder), "cameras": []})
        assert SUITE.instructions(task) == (entry["instruction"],)
        env = SUITE.env(dataclasses.replace(task, params={**task.params, "settle": 0}))
        env.reset(seed=77)
        sim = env.simulation
        deep = [(a, b, d) for a, b, d in touching(sim) if d > 0.006]
        assert not deep, (entry["name"], deep)
        assert not sim.success()
        before = {n: extent_of(sim, n).middle for n in sim.objects}
        for _ in range(25):
            _, _, ended, _, _ = env.step(np.zeros(7, np.float32))
            assert not ended, "the goal came true by itself"
        for name, place in before.items():
            moved = np.linalg.norm((extent_of(sim, name).middle - place)[:2])
            assert moved < 0.05, (entry["name"], name, moved)
            assert extent_of(sim, name).low[2] > surface_height(sim) - 0.02
        goal = frozenset(env.problem.goal)
        assert meanings(entry["instruction"], world_of(sim.scene, sim)) == {goal}


@needs_assets
def test_generated_tasks_are_none_of_those_known(made):
    keys = [key(p) for report in made.values() for p in problems(report).values()]
    assert len(set(keys)) == len(keys) == sum(COUNTS.values())
    assert len(official_keys()) == len(officials())
    assert not set(keys) & official_keys()


@needs_assets
def test_a_task_under_other_names_is_the_same():
    for name in ("goal-1", "spatial-3", "90-13"):
        problem = problem_of(find(name))
        text = bddl.write(problem).replace("akita_black_bowl_1", "akita_black_bowl_9")
        assert key(bddl.parse(text)) in official_keys()
        other = dataclasses.replace(problem, goal=(Relation("on", ("plate_1", "plate_1")),))
        assert key(other) not in official_keys()


# The same bytes.


@needs_assets
def test_the_folder_is_the_same_however_it_was_made(made, tmp_path):
    """With other processes, after an interruption, and begun with fewer tasks."""
    expected = {p.name: p.read_bytes() for p in made["goal"].folder.iterdir()}
    several = tmp_path / "several"
    generate(several, "goal", 2, seed=3, workers=1)
    index = json.loads((several / "tasks.json").read_text())
    assert len(index["tasks"]) == 2
    notes = (several / NOTES).read_bytes()
    (several / NOTES).write_bytes(notes[:-7])  # As a kill may leave it.
    (several / "tasks.json").unlink()
    generate(several, "goal", COUNTS["goal"], seed=3, workers=2)
    found = {p.name: p.read_bytes() for p in several.iterdir()}
    assert set(found) == set(expected)
    for name in expected.keys() - {NOTES}:  # Which may also have what was checked ahead.
        assert found[name] == expected[name], name


@needs_assets
def test_a_folder_of_other_tasks_is_refused(made, tmp_path):
    with pytest.raises(SpecError, match="holds other tasks"):
        generate(made["goal"].folder, "goal", 4, seed=4)
    (tmp_path / "mine.bddl").write_text("(define)")
    with pytest.raises(SpecError, match="other task files"):
        generate(tmp_path, "goal", 4)
    with pytest.raises(UnknownName, match="spatial"):
        generate(tmp_path / "new", "spacial")


# What is wrong is refused.


def scene_with(objects, goal, language, fixtures=(), init=()):
    """A kitchen table with things at points of it."""
    placed = [Region(f"{n}_at", "kitchen_table", (Rectangle(x - 0.001, y - 0.001, x + 0.001, y + 0.001),), yaw)
              for n, x, y, yaw in (*objects, *fixtures)]  # fmt: skip
    own = []
    for name, *_ in (*objects, *fixtures):
        category = name.rpartition("_")[0]
        for region in ("top_region", "middle_region", "bottom_region", "top_side"):
            own += [Region(region, name)] if "cabinet" in category else []
    starts = [Relation("on", (r.name.removesuffix("_at"), r.full_name)) for r in placed]
    return Problem(
        "libero_kitchen_tabletop_manipulation",
        language,
        (*placed, *own),
        (Thing("kitchen_table", "kitchen_table"), *(Thing(f[0], f[0].rpartition("_")[0]) for f in fixtures)),
        tuple(Thing(o[0], o[0].rpartition("_")[0]) for o in objects),
        (),
        (*starts, *init),
        goal,
    )  # fmt: skip


PLATE = ("plate_1", 0.0, 0.15, None)
ON_PLATE = (Relation("on", ("akita_black_bowl_1", "plate_1")),)
SAID = "put the black bowl on the plate"
CABINET = ("wooden_cabinet_1", 0.0, -0.3, (np.pi, np.pi))


@needs_assets
@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (scene_with([("akita_black_bowl_1", 0.0, -0.1, None), PLATE], ON_PLATE, SAID), ""),
        (scene_with([("akita_black_bowl_1", 0.02, 0.08, None), PLATE], ON_PLATE, SAID), "penetration"),
        (scene_with([("akita_black_bowl_1", -0.1, 0.65, None), PLATE], ON_PLATE, SAID), "view"),
        (scene_with([("akita_black_bowl_1", -0.23, -0.33, None), PLATE], ON_PLATE, SAID, [CABINET]), "view"),
        (scene_with([("akita_black_bowl_1", 0.0, -0.1, None), PLATE], ON_PLATE,
                    "put the black bowl to the left of the plate"), "sentence"),
        (scene_with([("akita_black_bowl_1", 0.1, -0.2, None), ("akita_black_bowl_2", 0.1, 0.0, None), PLATE],
                    ON_PLATE, SAID), "sentence"),
        (scene_with([("akita_black_bowl_1", 0.1, -0.2, None), ("akita_black_bowl_2", 0.1, 0.0, None), PLATE],
                    ON_PLATE, "put the left black bowl on the plate"), ""),
        (scene_with([("akita_black_bowl_1", 0.1, -0.2, None), ("akita_black_bowl_2", 0.1, 0.0, None), PLATE],
                    ON_PLATE, "put the right black bowl on the plate"), "sentence"),
        (scene_with([("chefmate_8_frypan_1", 0.0, 0.05, None)],
                    (Relation("in", ("chefmate_8_frypan_1", "wooden_cabinet_1_top_region")),
                     Relation("close", ("wooden_cabinet_1_top_region",))),
                    "put the frying pan in the top drawer of the cabinet and close it", [CABINET],
                    [Relation("open", ("wooden_cabinet_1_top_region",))]), "reachable|penetration"),
        (scene_with([PLATE], (Relation("open", ("wooden_cabinet_1_top_region",)),),
                    "open the top drawer of the cabinet", [CABINET],
                    [Relation("open", ("wooden_cabinet_1_top_region",))]), "goal"),
    ],
)  # fmt: skip
def test_a_task_that_breaks_a_promise_is_refused(problem, why):
    found = problem_with(problem, ["official"])
    assert found == "" if not why else any(found.startswith(w) for w in why.split("|")), found


# Reading sentences.


def at(**positions):
    """A world of things at points, in which relations hold by what is said of them."""
    names = {n: n.rpartition("_")[0] for n in positions}
    problem = scene_with([(n, *p[:2], None) for n, p in positions.items() if names[n] in MOVABLES], (), "",
                         [(n, *p[:2], None) for n, p in positions.items() if names[n] in FIXTURES])  # fmt: skip
    true = {r for p in positions.values() for r in p[2:]}
    return SceneLayout(
        problem,
        {n: np.array([*p[:2], 0.0]) for n, p in positions.items()},
        {n: len(p) == 2 for n, p in positions.items()},
        lambda relation: relation in true,
        (0.0, 0.0),
        {"kitchen_table_left": np.array([0.0, -0.15, 0.0])},
    )


BOWLS = at(
    akita_black_bowl_1=(0.1, -0.2),
    akita_black_bowl_2=(0.1, 0.12),
    plate_1=(0.0, 0.0),
    cookies_1=(0.1, 0.25),
    wooden_cabinet_1=(0.0, -0.35),
)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("put the left black bowl on the plate", ["on(akita_black_bowl_1, plate_1)"]),
        ("put the black bowl next to the cookie box on the plate", ["on(akita_black_bowl_2, plate_1)"]),
        ("pick up the right black bowl and place it on top of the cabinet",
         ["on(akita_black_bowl_2, wooden_cabinet_1_top_side)"]),
        ("open the top drawer of the cabinet and put the cookie box in it",
         ["in(cookies_1, wooden_cabinet_1_top_region)", "open(wooden_cabinet_1_top_region)"]),
        ("put the cookie box in the middle drawer of the cabinet and close it",
         ["close(wooden_cabinet_1_middle_region)", "in(cookies_1, wooden_cabinet_1_middle_region)"]),
        ("stack the left black bowl on the right black bowl",
         ["on(akita_black_bowl_1, akita_black_bowl_2)"]),
        ("put the cookie box to the left of the plate", ["on(cookies_1, kitchen_table_left)"]),
        ("put the black bowl on the plate", None),
        ("put the front black bowl on the plate", None),
        ("put the cookie box to the right of the plate", None),
        ("open the plate", None),
        ("sing", None),
    ],
)  # fmt: skip
def test_what_a_sentence_means(text, meant):
    found = [sorted(map(str, m)) for m in meanings(text, BOWLS)]
    assert found == ([] if meant is None else [meant])


# As a suite.


class Idle(Agent):
    def act(self, obs, ctx):
        return np.zeros((len(obs["robot0_joint_pos"]), 7), np.float32)


@needs_assets
def test_a_folder_is_evaluated_like_an_official_suite(made, tmp_path):
    folder = str(made["all"].folder)
    plan = curriculum_of(
        Spec("libero/eval-folder", {"folder": folder, "episodes": 2, "horizon": 2, "cameras": []})
    )
    (block,) = plan.blocks
    assert [e.task.name for e in block.exposures] == list(made["all"].names)
    short = dataclasses.replace(
        plan, blocks=(dataclasses.replace(block, exposures=block.exposures[:2]),)
    )
    rows, agent = live(short, Idle, tmp=tmp_path)
    assert len(rows) == 4 and {r.success for r in rows} == {0.0}
    assert agent.setup.instructions[f"libero/{made['all'].names[0]}"]
    chosen = curriculum_of(
        Spec("libero/eval-folder", {"folder": folder, "names": [made["all"].names[1]]})
    )
    assert [e.task.name for e in chosen.blocks[0].exposures] == [made["all"].names[1]]
    assert settings(block.exposures[0].task).initial_states == "random"


@needs_assets
def test_a_seed_draws_the_initial_state(made):
    task = Task("libero", made["object"].names[0],
                params={"folder": str(made["object"].folder), "cameras": [], "settle": 1})  # fmt: skip
    env, states = SUITE.env(task), []
    for seed in (1, 2, 1):
        env.reset(seed=seed)
        states.append(env.simulation.state())
    np.testing.assert_array_equal(states[0], states[2])
    assert not np.array_equal(states[0], states[1])


@needs_assets
def test_what_runs_is_the_file(made, tmp_path):
    """A changed file is refused where an index knows it, and is other code where none does."""
    folder = tmp_path / "copy"
    shutil.copytree(made["object"].folder, folder)
    name = made["object"].names[0]
    task = Task("libero", name, params={"folder": str(folder)})
    before = code_record([], SUITE.code(task))["world"]
    assert any(k.endswith(f"{name}.bddl") for k in before)
    path = folder / f"{name}.bddl"
    path.write_text("; changed\n" + path.read_text())
    with pytest.raises(EnvironmentFault, match=r"is not the file that tasks.json lists"):
        SUITE.env(task)
    (folder / "tasks.json").unlink()
    assert list(tasks_in(str(folder))) == sorted(made["object"].names)
    assert code_record([], SUITE.code(task))["world"] != before


def test_folders_that_are_none_are_refused(tmp_path):
    with pytest.raises(CurriculumError, match="there is none"):
        tasks_in(str(tmp_path / "nowhere"))
    with pytest.raises(CurriculumError, match=r"no \.bddl files"):
        tasks_in(str(tmp_path))
    (tmp_path / "a.bddl").write_text("")
    with pytest.raises(UnknownName, match="did you mean 'a'"):
        settings(Task("libero", "aa", params={"folder": str(tmp_path)}))
    with pytest.raises(CurriculumError, match="no official initial states"):
        settings(Task("libero", "a", params={"folder": str(tmp_path), "initial_states": "cycle"}))
    (tmp_path / "tasks.json").write_text("[]")
    with pytest.raises(EnvironmentFault, match="no index of task files"):
        tasks_in(str(tmp_path))


# The tables that layouts are made with.


@needs_assets
@pytest.mark.parametrize("category", [*MOVABLES, *FIXTURES])
def test_boxes_are_those_of_the_models(category):
    """A box holds what a thing covers, and not much more."""
    name, own = f"{category}_1", MOVABLES.get(category) or FIXTURES[category]
    here = [(name, 0.0, 0.0, (0.0, 0.0) if category in FIXTURES else None)]
    both = {"objects": [], "fixtures": here} if category in FIXTURES else {"objects": here}
    problem = scene_with(goal=(), language="", **both)
    sim = Simulation(scene_of(problem, "official"), solves=1)
    sim.reset(0)
    box = extent_of(sim, name)
    middle = sim.data.body(sim.scene.bodies[name].root).xpos
    for low, high, mine in ((0, own.box.x0, own.box.x1), (1, own.box.y0, own.box.y1)):
        found = box.low[low] - middle[low], box.high[low] - middle[low]
        assert high - 0.004 <= found[0] + 0.004 and found[1] <= mine + 0.004, (found, high, mine)
        if "book" not in category:  # Which are turned by chance.
            assert found[0] - high < 0.02 and mine - found[1] < 0.02, (found, high, mine)


def test_every_surface_has_things_and_every_thing_a_surface():
    assert set(AT_HOME) == set(SURFACES)
    assert {c for home in AT_HOME.values() for c in home} == set(MOVABLES)


def test_experts_say_what_they_solve_and_are_asked_once(tmp_path, monkeypatch):
    made = generate(tmp_path / "g", "all", 2, 3, experts=1, workers=1)
    index = json.loads((tmp_path / "g" / "tasks.json").read_text())
    assert [e["solved"] for e in index["tasks"]] == [[made.solved[n], 1] for n in made.names]
    assert sum(made.solved.values()) >= 1
    assert "experts solve" in made.summary

    def asked_again(*_):
        raise AssertionError("what is noted is not played again")

    monkeypatch.setattr(solving, "times_solved", asked_again)
    assert generate(tmp_path / "g", "all", 2, 3, experts=1, workers=1) == made


def test_a_run_s_expert_solves_a_generated_task_and_demonstrates_it(made, tmp_path):
    """In a folder of task files the experts play, demonstrations are collected, replayed and learned from."""
    pytest.importorskip("h5py")
    name, folder = made["spatial"].names[0], str(made["spatial"].folder)
    given = {"cameras": [], "solves": 1, "folder": folder}
    plan = curriculum_of(
        Spec("libero/eval-folder", {**given, "names": [name], "episodes": 1, "privileged": True})
    )
    rows, _ = live(plan, SuiteExpert, tmp=tmp_path)
    assert [r.success for r in rows] == [1.0]
    assert len(SUITE.demonstration_tasks("all", given)) == COUNTS["spatial"]
    (shown,) = SUITE.demonstration_tasks(name, given)
    (path,) = collect([shown], tmp_path / "demos", 1)
    assert path.parts[-2:] == (made["spatial"].folder.name, f"{name}_demo.hdf5")
    file = DemonstrationFile(path)
    assert file.task() == shown and SUITE.replay(shown, file.read("demo_0"))
    assert file.data.attrs["bddl_file_content"] == bddl.write(problem_of(tasks_in(folder)[name]))
    learned = curriculum_of(
        Spec(
            "libero/bc",
            {**given, "demos": str(tmp_path / "demos"), "tasks": [name], "objects": True},
        )
    )
    data = SUITE.data(learned.tasks[0], True)
    assert len(data) == file.lengths[0]
    first = {n: v[0] for n, v in data.batch(np.array([0])).inputs.items()}
    assert SUITE.spaces(learned.tasks[0])[0].contains(first)
    told = CliRunner().invoke(
        main, ["convert", str(tmp_path / "demos"), str(tmp_path / "set"), "--format", "lerobot"]
    )
    assert told.exit_code == 0, told.output
    exported, stored = open_dataset(tmp_path / "set"), file.read("demo_0").arrays
    (episode,) = exported
    assert exported.fps == 20
    assert episode.task == problem_of(tasks_in(folder)[name]).language
    np.testing.assert_array_equal(episode.actions, stored["actions"])
    for what, array in {n: stored[n] for n in ("states", "robot_states", "obs/ee_pos")}.items():
        seen = episode.observations[f"observation.{what.removeprefix('obs/')}"]
        np.testing.assert_array_equal(seen, array)
    assert episode.successes.tolist() == [False] * (len(episode) - 1) + [True]
    file.close()


def test_tasks_that_no_expert_solves_are_named():
    assert solving.share({"a": 2, "b": 0, "c": 1}, 2) == "experts solve 50% of 6 episodes; never b"


def test_tasks_that_no_expert_solves_are_marked_in_the_pictures(tmp_path):
    report = Report(tmp_path, ("a", "b"), 1, {}, {"a": 1, "b": 0}, 1)
    assert report.unsolved == ("b",)
    tasks = [Task("toy", name) for name in ("reach", "count")]
    draw(tasks, [tmp_path / "index.html"], "some", unsolved=("count",))
    page = (tmp_path / "index.html").read_text()
    assert "toy/count (unsolved)" in page and "toy/reach<" in page
    assert "experts tried and never succeeded" in page
