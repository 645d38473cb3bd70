"""Whether environments repeat: what the lifetimes of a run found when they played a few of their
episodes again (``_meta/repeat.json``)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from perdure.store.layout import LifetimeFolder


@dataclass(frozen=True)
class Repeats:
    """Episodes that were played again."""

    lifetimes: int = 0
    """That played any."""
    played: int = 0
    agreed: int = 0
    differences: tuple[str, ...] = ()
    """What differed, a sentence each; each once."""

    def __str__(self) -> str:
        if not self.played:
            return "no episode was played again"
        many = f"{self.played} episode{'s' * (self.played != 1)} played again"
        if self.agreed == self.played:
            return f"{many}, all alike" if self.played > 1 else f"{many}, alike"
        return f"{many}, {self.played - self.agreed} not alike"


def repeats(folders: Iterable[LifetimeFolder]) -> Repeats:
    """What some lifetimes found, together. Nothing depends on the files, so a damaged one is left
    out."""
    lifetimes = played = agreed = 0
    differences: dict[str, None] = {}
    for folder in folders:
        found = folder.repeat()
        if mine := found.get("played"):
            lifetimes, played = lifetimes + 1, played + mine
            agreed += min(found.get("agreed") or 0, mine)
            where = "/".join(folder.path.parts[-2:])
            for text in found.get("differences") or ():
                differences.setdefault(f"lifetime {where}: {text}"[:500], None)
    return Repeats(lifetimes, played, agreed, tuple(differences))
