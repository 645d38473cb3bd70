"""LIBERO's task files: a dialect of BDDL, read into typed objects and written again.

A file is one s-expression: the scene's regions, its fixtures and objects, what holds at first, what
is to hold at the end. Names are read in lower case, as upstream does; ``;`` begins a comment. A
region is known by its target and its own name: ``top_region`` of ``wine_rack_1`` is
``wine_rack_1_top_region``. A mistake is refused with its line and column.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NoReturn

from perdure.suites.libero.problem import Problem, Rectangle, Region, Relation, Thing
from perdure.suites.libero.sexpr import BddlError, Expression, Node, Word, refuse, tree

__all__ = ["BddlError", "parse", "read", "write"]

ARITY = {"on": 2, "in": 2, "open": 1, "close": 1, "turnon": 1, "turnoff": 1, "up": 1}
"""The predicates, and how many names each takes."""
SPELLING = {"on": "On", "in": "In", "turnon": "TurnOn", "turnoff": "TurnOff"}
"""How a predicate is written, where capitalising it is not enough."""
_PI = re.compile(r"(-?)(?:(\d+(?:\.\d*)?)\*)?(?:np\.)?pi(?:/(\d+(?:\.\d*)?))?")


def read(path: Path) -> Problem:
    """The task that a file describes."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as e:
        raise BddlError(path.name, 1, 1, f"not a text file in UTF-8 ({e})") from e
    return parse(text, path.name)


def parse(text: str, source: str = "task") -> Problem:
    """The task that a text describes; ``source`` names it in errors."""
    return _Reader(source).problem(text)


class _Reader:
    def __init__(self, source: str) -> None:
        self.source = source

    def refuse(self, at: Node, problem: str) -> NoReturn:
        refuse(self.source, at, problem)

    # Words and groups.

    def word(self, node: Node, what: str) -> str:
        if isinstance(node, Expression):
            self.refuse(node, f"expected {what}, got a group in parentheses")
        return node.text.lower()

    def group(self, node: Node, what: str) -> Expression:
        if isinstance(node, Word):
            self.refuse(node, f"expected {what} in parentheses, got {node.text!r}")
        return node

    def head(self, node: Node, what: str) -> tuple[Expression, str, tuple[Node, ...]]:
        """A group, its first word and the rest."""
        group = self.group(node, what)
        if not group.items:
            self.refuse(group, f"expected {what}, got '()'")
        return group, self.word(group.items[0], what), group.items[1:]

    def number(self, node: Node) -> float:
        text = self.word(node, "a number")
        try:
            value = float(text)
        except ValueError:
            match = _PI.fullmatch(text)
            if match is None:
                self.refuse(node, f"expected a number, got {text!r}")
            sign, times, over = match.groups()
            value = math.pi * float(times or 1) / float(over or 1) * (-1 if sign else 1)
        if not math.isfinite(value):
            self.refuse(node, f"expected a finite number, got {text!r}")
        return value

    def numbers(self, node: Node, count: int, what: str) -> tuple[float, ...]:
        group = self.group(node, what)
        if len(group.items) != count:
            self.refuse(group, f"expected {what}: {count} numbers, got {len(group.items)}")
        return tuple(self.number(n) for n in group.items)

    # The file.

    def problem(self, text: str) -> Problem:
        whole, first, parts = self.head(tree(text, self.source), "'define'")
        if first != "define":
            self.refuse(whole.items[0], f"expected 'define', got {first!r}")
        sections: dict[str, tuple[Expression, tuple[Node, ...]]] = {}
        known = ("problem", ":domain", ":language", ":regions", ":fixtures", ":objects",
                 ":obj_of_interest", ":init", ":goal")  # fmt: skip
        for part in parts:
            group, name, rest = self.head(part, "a section")
            if name not in known:
                self.refuse(group, f"unknown section {name!r}; known are {', '.join(known)}")
            if name in sections:
                self.refuse(group, f"a second section {name!r}")
            sections[name] = group, rest
        for name in known:
            if name not in sections and name not in (":domain", ":obj_of_interest", ":language"):
                self.refuse(whole, f"there is no section {name!r}")

        def rest_of(name: str) -> tuple[Node, ...]:
            return sections[name][1] if name in sections else ()

        domain = self.one_word(sections, ":domain") if ":domain" in sections else "robosuite"
        if domain != "robosuite":
            self.refuse(sections[":domain"][1][0], f"the domain must be robosuite, got {domain!r}")
        regions = tuple(self.region(n) for n in rest_of(":regions"))
        names: dict[str, str] = {}
        fixtures = self.things(rest_of(":fixtures"), "fixture", names)
        objects = self.things(rest_of(":objects"), "object", names)
        names |= {r.full_name: "region" for r in regions if r.full_name not in names}
        interest = tuple(
            self.known_name(n, names, self.word(n, "a name")) for n in rest_of(":obj_of_interest")
        )
        return Problem(
            name=self.one_word(sections, "problem"),
            language=" ".join(self.raw(n) for n in rest_of(":language")),
            regions=regions,
            fixtures=fixtures,
            objects=objects,
            of_interest=interest,
            init=tuple(self.relation(n, names) for n in rest_of(":init")),
            goal=self.goal(*sections[":goal"], names),
            domain=domain,
        )

    def one_word(
        self, sections: Mapping[str, tuple[Expression, tuple[Node, ...]]], name: str
    ) -> str:
        group, rest = sections[name]
        if len(rest) != 1:
            self.refuse(group, f"expected ({name} NAME)")
        return self.word(rest[0], "a name")

    def raw(self, node: Node) -> str:
        if isinstance(node, Expression):
            self.refuse(node, "an instruction has no parentheses")
        return node.text

    def things(self, nodes: Iterable[Node], kind: str, names: dict[str, str]) -> tuple[Thing, ...]:
        """``a b - category c - other``; their names are added to those known."""
        found: list[Thing] = []
        waiting: list[str] = []
        first: Node | None = None
        dash: Node | None = None
        for node in nodes:
            text = self.word(node, "a name")
            if text == "-":
                if dash is not None or not waiting:
                    self.refuse(node, "expected a name before '-'")
                dash = node
            elif dash is not None:
                found += [Thing(name, text) for name in waiting]
                waiting, dash = [], None
            else:
                if text in names:
                    self.refuse(node, f"{kind} {text!r} has the name of another {names[text]}")
                names[text] = kind
                first = first if waiting else node
                waiting.append(text)
        if dash is not None:
            self.refuse(dash, "expected a category after '-'")
        if waiting and first is not None:
            self.refuse(first, f"{waiting[0]!r} has no category: write 'name - category'")
        return tuple(found)

    def region(self, node: Node) -> Region:
        group, name, attributes = self.head(node, "a region")
        target: str | None = None
        ranges: tuple[Rectangle, ...] = ()
        yaw: tuple[float, float] | None = None
        rgba: tuple[float, float, float, float] | None = None
        for attribute in attributes:
            at, kind, values = self.head(attribute, "an attribute of the region")
            if kind not in (":target", ":ranges", ":yaw_rotation", ":rgba"):
                self.refuse(at, f"a region has no attribute {kind!r}")
            if len(values) != 1:
                self.refuse(at, f"expected one value for {kind}, got {len(values)}")
            if kind == ":target":
                target = self.word(values[0], "a name")
            elif kind == ":ranges":
                ranges = tuple(self.rectangle(n) for n in self.group(values[0], "rectangles").items)
            elif kind == ":yaw_rotation":
                inner = self.group(values[0], "a pair of angles").items
                if len(inner) != 1:
                    self.refuse(values[0], f"expected one pair of angles, got {len(inner)}")
                low, high = self.numbers(inner[0], 2, "two angles")
                yaw = low, high
            else:
                r, g, b, a = self.numbers(values[0], 4, "a colour")
                rgba = r, g, b, a
        if target is None:
            self.refuse(group, f"region {name!r} has no :target")
        return Region(name, target, ranges, yaw, rgba)

    def rectangle(self, node: Node) -> Rectangle:
        x0, y0, x1, y1 = self.numbers(node, 4, "a rectangle")
        if x1 < x0 or y1 < y0:
            self.refuse(
                node, f"a rectangle is (x0 y0 x1 y1) with x0 ≤ x1 and y0 ≤ y1, got {x0, y0, x1, y1}"
            )
        return Rectangle(x0, y0, x1, y1)

    def relation(self, node: Node, names: Mapping[str, str]) -> Relation:
        group, predicate, about = self.head(node, "a predicate")
        if predicate in ("and", "or", "not", "forall", "exists", "imply"):
            self.refuse(
                group, f"{predicate!r} is not understood here: a goal is an 'And' of predicates"
            )
        if predicate not in ARITY:
            self.refuse(group, f"unknown predicate {predicate!r}; known are {', '.join(ARITY)}")
        if len(about) != ARITY[predicate]:
            self.refuse(group, f"{predicate!r} takes {ARITY[predicate]} names, got {len(about)}")
        found = [self.known_name(n, names, self.word(n, "a name")) for n in about]
        return Relation(predicate, tuple(found))

    def known_name(self, node: Node, names: Mapping[str, str], text: str) -> str:
        if text not in names:
            self.refuse(node, f"{text!r} is neither a fixture nor an object nor a region")
        return text

    def goal(
        self, group: Expression, rest: tuple[Node, ...], names: Mapping[str, str]
    ) -> tuple[Relation, ...]:
        if len(rest) != 1:
            self.refuse(group, "expected (:goal (And …))")
        inner, first, parts = self.head(rest[0], "a predicate")
        if first != "and":
            return (self.relation(inner, names),)
        if not parts:
            self.refuse(inner, "a goal needs at least one predicate")
        return tuple(self.relation(n, names) for n in parts)


# Writing.


def write(problem: Problem) -> str:
    """The task as a file; reading it gives the task again."""
    lines = [f"(define (problem {problem.name})", f"  (:domain {problem.domain})"]
    if problem.language:
        lines.append(f"  (:language {problem.language})")
    lines.append("  (:regions")
    for region in problem.regions:
        lines += [f"    ({region.name}", f"      (:target {region.target})"]
        if region.ranges:
            inner = " ".join(_numbers(r.x0, r.y0, r.x1, r.y1) for r in region.ranges)
            lines.append(f"      (:ranges ({inner}))")
        if region.yaw is not None:
            lines.append(f"      (:yaw_rotation ({_numbers(*region.yaw)}))")
        if region.rgba is not None:
            lines.append(f"      (:rgba {_numbers(*region.rgba)})")
        lines.append("    )")
    lines.append("  )")
    for title, things in ((":fixtures", problem.fixtures), (":objects", problem.objects)):
        lines.append(f"  ({title}")
        # Neighbours of one category in one line: upstream keeps a category's last line only.
        for category, same in itertools.groupby(things, key=lambda t: t.category):
            lines.append(f"    {' '.join(t.name for t in same)} - {category}")
        lines.append("  )")
    lines += ["  (:obj_of_interest", *(f"    {name}" for name in problem.of_interest), "  )"]
    lines += ["  (:init", *(f"    {_written(r)}" for r in problem.init), "  )"]
    goal = " ".join(_written(r) for r in problem.goal)
    return "\n".join([*lines, f"  (:goal (And {goal}))", ")"]) + "\n"


def _numbers(*values: float) -> str:
    return f"({' '.join(repr(v) for v in values)})"


def _written(relation: Relation) -> str:
    name = SPELLING.get(relation.predicate, relation.predicate.capitalize())
    return f"({' '.join((name, *relation.names))})"
