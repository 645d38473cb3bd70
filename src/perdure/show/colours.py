"""Colours of tasks and marks of agents: the same everywhere, in the report and in figures.

The first eight colours keep apart under every common colour blindness, and each colour stands out
against its background by at least 3 : 1. Where there are more tasks than colours, colours come
again with another dash. Agents are told apart by mark and dash; their colour comes on top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LIGHT = (
    "#0069ad", "#dc6f24", "#199d62", "#cb6aa8", "#4c27a4", "#8f1d2c", "#02a0ce", "#7b6428",
    "#66436e", "#244f04", "#6e066e", "#1c6c5c", "#777ad8", "#8d2f8d", "#bd7e89", "#3a49b5",
    "#c43f40", "#6e2340", "#9b4b66", "#8b0657", "#7d5986", "#59794a", "#2b378b", "#966cb0",
)  # fmt: skip
"""On a white background."""
DARK = (
    "#3f9fe4", "#dd903f", "#4cc596", "#ee8fc3", "#ba87fb", "#e0636c", "#85d2ff", "#c0bb5c",
    "#9e79a7", "#5b8843", "#ac4dab", "#59a391", "#a9b0ff", "#c968c7", "#f1adb9", "#6b83f4",
    "#fe7873", "#ad5c77", "#d57f9a", "#cc4f8e", "#b48dbc", "#8cae7c", "#5d71cb", "#ca9ee5",
)  # fmt: skip
"""The same hues on a dark one."""
DASHES = ("", "6 3", "2 2", "8 3 2 3")
"""Lengths of line and gap; the first is a solid line."""
MARKS = ("circle", "square", "triangle", "diamond", "cross", "star")
AGENT_LIGHT = (
    "#1f3a5f", "#b3541e", "#2f7d5b", "#8a3b6b", "#6b6b2a", "#5a5f6b",
    "#3b3f9c", "#a3282f", "#12707f", "#4f7319", "#6a2fa0", "#8c5a3c",
)  # fmt: skip
"""Of agents: darker than the tasks', and none of theirs."""
AGENT_DARK = (
    "#9db8e0", "#f0a070", "#7fcfa8", "#dd9bc2", "#cfcf86", "#b3b8c2",
    "#a9adf7", "#ff9a98", "#7fd0dd", "#bcd47a", "#cda4f5", "#d9b08c",
)  # fmt: skip


@dataclass(frozen=True)
class Style:
    """How a task or an agent is drawn."""

    light: str
    dark: str
    dash: str
    mark: str
    letter: str = ""
    """Of an agent: what it is called where there is room for no more."""


def task_styles(tasks: Sequence[str]) -> dict[str, Style]:
    """A style for each task, by its place."""
    return {
        task: Style(
            LIGHT[i % len(LIGHT)], DARK[i % len(DARK)],
            DASHES[i // len(LIGHT) % len(DASHES)], MARKS[i // len(LIGHT) % len(MARKS)],
        )
        for i, task in enumerate(tasks)
    }  # fmt: skip


def agent_styles(agents: Sequence[str]) -> dict[str, Style]:
    """A style for each agent, by its place: no colour comes twice with the same mark among the
    first 36."""
    return {
        agent: Style(
            AGENT_LIGHT[i % len(AGENT_LIGHT)], AGENT_DARK[i % len(AGENT_DARK)],
            DASHES[i % len(DASHES)], MARKS[(i + i // len(AGENT_LIGHT)) % len(MARKS)], letter(i),
        )
        for i, agent in enumerate(agents)
    }  # fmt: skip


def letter(place: int) -> str:
    """A, B, … Z, AA, AB, …"""
    out = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        out = chr(ord("A") + rest) + out
    return out
