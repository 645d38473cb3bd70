"""MJCF as element trees: read with absolute file names, prefixed, put together.

The order of bodies, geoms and assets decides the order of contacts and with it the last bits of the
physics, so it is kept as it stands in the files.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

import numpy as np

from perdure.types import Array

Element: TypeAlias = ET.Element

NAMING = (
    "name", "objname", "material", "texture", "joint", "joint1", "joint2", "jointinparent", "geom",
    "geom1", "geom2", "mesh", "fixed", "actuator", "tendon", "tendon1", "tendon2", "slidesite",
    "cranksite", "body", "body1", "body2", "hfield", "target", "prefix", "site",
)  # fmt: skip
"""Attributes that hold the name of an element."""


def load(path: Path, checked: Callable[[Path], Path] = lambda p: p) -> Element:
    """A file's tree, its default classes written out and the names of its files absolute; every
    file, this one too, passes through ``checked``."""
    root = ET.parse(checked(path)).getroot()
    defaults = root.find("default")
    classes: dict[str | None, dict[str, Element]] = {}
    if defaults is not None:
        classes = {c.get("class"): {e.tag: e for e in c} for c in defaults}
        root.remove(defaults)
    for element in root.iter():
        wanted = element.attrib.pop("class", None)
        if wanted is not None:
            given = classes[wanted].get(element.tag)
            for name, value in given.items() if given is not None else ():
                element.attrib.setdefault(name, value)
    for element in root.iterfind("asset/*[@file]"):
        element.set("file", str(checked(_normal(path.parent / element.attrib["file"]))))
    return root


def _normal(path: Path) -> Path:
    """Without ``..``; links stay, as the packages' files may be some."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        else:
            parts.append(part)
    return Path(*parts)


def section(root: Element, tag: str) -> Element:
    """The part of a model that has this tag, made if there is none."""
    found = root.find(tag)
    return ET.SubElement(root, tag) if found is None else found


def prefixed(root: Element, prefix: str) -> Element:
    """The same tree, in which every name begins with the prefix."""
    for element in root.iter():
        for attribute in NAMING:
            value = element.get(attribute)
            if value is not None and not value.startswith(prefix):
                element.set(attribute, prefix + value)
    return root


def merge_assets(root: Element, other: Element) -> None:
    """Add another model's assets; of two with one tag and name the first stays."""
    into = section(root, "asset")
    known = {(e.tag, e.get("name")) for e in into}
    for element in section(other, "asset"):
        key = element.tag, element.get("name")
        if key not in known:
            known.add(key)
            into.append(element)


def merge(root: Element, other: Element, body: Element | None = None) -> None:
    """Add another model: its bodies to the world or to ``body``, and all else."""
    into = section(root, "worldbody") if body is None else body
    into.extend(list(section(other, "worldbody")))
    merge_assets(root, other)
    for tag in ("actuator", "sensor", "tendon", "equality", "contact"):
        section(root, tag).extend(list(section(other, tag)))


def named(root: Element, tag: str, name: str) -> Element:
    """The element of this name below a root."""
    for element in root.iter(tag):
        if element.get("name") == name:
            return element
    raise KeyError(f"the model has no {tag} {name!r}")


def text(values: Iterable[float]) -> str:
    """Numbers as an attribute."""
    return " ".join(repr(float(v)) for v in values)


def numbers(attribute: str | None) -> Array:
    """An attribute's numbers."""
    return np.array([float(x) for x in (attribute or "").split()])
