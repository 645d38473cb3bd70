"""LIBERO's task files: what is read is what is written, and mistakes are found where they are."""

import pytest
from libero_kit import needs_assets

from perdure.errors import PerdureError
from perdure.suites.libero import assets
from perdure.suites.libero.bddl import BddlError, parse, read, write
from perdure.suites.libero.problem import Rectangle, Region, Relation, Thing
from perdure.suites.libero.tasks import officials

SAMPLE = """
(define (problem LIBERO_Kitchen_Tabletop_Manipulation)
  (:domain robosuite)   ; a remark (with parentheses
  (:language Put the Bowl away)
  (:regions
    (init_region (:target kitchen_table) (:ranges ((-0.1 0.2 0.0 0.3) (1e-3 0 1 2)))
      (:yaw_rotation ((-pi/2 pi))) (:rgba (0 0 1 0.5)))
    (top_region (:target cabinet_1)))
  (:fixtures kitchen_table - kitchen_table cabinet_1 - white_cabinet)
  (:objects bowl_1 bowl_2 - akita_black_bowl plate_1 - plate)
  (:obj_of_interest bowl_1 cabinet_1_top_region)
  (:init (On bowl_1 kitchen_table_init_region) (Open cabinet_1_top_region))
  (:goal (And (In bowl_1 cabinet_1_top_region) (Close cabinet_1_top_region))))
"""


def test_a_file_becomes_typed_objects():
    problem = parse(SAMPLE)
    assert problem.name == "libero_kitchen_tabletop_manipulation"
    assert problem.language == "Put the Bowl away"
    first, second = problem.regions
    assert first == Region(
        "init_region",
        "kitchen_table",
        (Rectangle(-0.1, 0.2, 0.0, 0.3), Rectangle(1e-3, 0, 1, 2)),
        (-1.5707963267948966, 3.141592653589793),
        (0, 0, 1, 0.5),
    )
    assert second.full_name == "cabinet_1_top_region" and second.ranges == ()
    assert problem.fixtures[1] == Thing("cabinet_1", "white_cabinet")
    assert [t.name for t in problem.objects] == ["bowl_1", "bowl_2", "plate_1"]
    assert problem.category("bowl_2") == "akita_black_bowl" and problem.category("cup") is None
    assert problem.of_interest == ("bowl_1", "cabinet_1_top_region")
    assert problem.init[1] == Relation("open", ("cabinet_1_top_region",))
    assert str(problem.goal[0]) == "in(bowl_1, cabinet_1_top_region)"
    assert problem.region("cabinet_1_top_region") is second and problem.region("x") is None


def test_written_and_read_again_it_is_the_same():
    problem = parse(SAMPLE)
    text = write(problem)
    assert parse(text) == problem
    # Upstream keeps the last line of a category, so one line must have them all.
    assert "    bowl_1 bowl_2 - akita_black_bowl\n" in text


@needs_assets
def test_all_official_files_make_the_round_trip():
    seen = set()
    for task in officials().values():
        problem = read(assets.file("tasks", f"{task.folder}/{task.file}.bddl"))
        assert parse(write(problem)) == problem, task.name
        seen |= {r.predicate for r in (*problem.init, *problem.goal)}
    assert seen == {"on", "in", "open", "close", "turnon", "turnoff"}


def edited(old, new):
    assert SAMPLE.count(old) == 1
    return SAMPLE.replace(old, new)


@pytest.mark.parametrize(
    ("marked", "words"),
    [
        ("", "empty"),
        ("¦; nothing\n", "empty"),
        ("¦bowl", "expected '(define"),
        ("¦(define\n (problem x)", "never closed"),
        ("(define (problem x)) ¦)", "complete"),
        ("(¦domain)", "expected 'define'"),
        ("(define ¦())", "expected a section"),
        (edited("(:domain robosuite)", "(:domain ¦kitchen)"), "robosuite"),
        (edited("(:language Put", "¦(:laguage Put"), "unknown section ':laguage'"),
        (edited("(:language Put the", "(:language Put ¦(the)"), "no parentheses"),
        (edited("(1e-3 0 1 2)", "¦(1e-3 0 1)"), "4 numbers, got 3"),
        (edited("(1e-3 0 1 2)", "(1e-3 0 ¦a 2)"), "expected a number, got 'a'"),
        (edited("(1e-3 0 1 2)", "(1e-3 0 ¦inf 2)"), "finite"),
        (edited("(1e-3 0 1 2)", "¦(1e-3 3 1 2)"), "y0 ≤ y1"),
        (edited("(:rgba", "¦(:colour"), "no attribute ':colour'"),
        (edited("(top_region (:target cabinet_1))", "¦(top_region)"), "no :target"),
        (edited("cabinet_1 - white_cabinet", "¦cabinet_1"), "has no category"),
        (edited("- white_cabinet)", "¦-)"), "category after '-'"),
        (edited("plate_1 - plate", "¦bowl_1 - plate"), "name of another"),
        (edited("bowl_1 cabinet_1_top_region)\n  (:init", "¦cup)\n  (:init"), "'cup' is neither"),
        (edited("(On bowl_1", "¦(Onto bowl_1"), "unknown predicate 'onto'"),
        (edited("(On bowl_1 ", "¦(On "), "takes 2 names, got 1"),
        (edited("(And (In", "¦(Or (In"), "'or' is not understood"),
        (edited("(In bowl_1 cabinet", "(In ¦bowl_9 cabinet"), "'bowl_9'"),
        (edited("(:goal", "¦(:init)(:goal"), "a second section ':init'"),
        ("¦(define (problem x))", "no section ':regions'"),
    ],
)
def test_a_mistake_is_refused_with_its_place(marked, words):
    """The place is where the bar stands."""
    before, _, after = marked.partition("¦")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    with pytest.raises(BddlError) as caught:
        parse(before + after, "bowls.bddl")
    e = caught.value
    assert (e.line, e.column) == (line, column), str(e)
    assert words in e.problem
    assert str(e).startswith(f"bowls.bddl:{line}:{column}: ") and isinstance(e, PerdureError)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "x.bddl"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BddlError, match=r"x\.bddl:1:1: not a text"):
        read(path)
