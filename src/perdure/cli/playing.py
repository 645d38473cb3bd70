"""The body of play."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import Any

from perdure.cli.terminal import say, tell

MEASURES = {"ret": "return", "success": "success", "accuracy": "accuracy"}


REFERENCE = ("agent", "seed", "commit", "expert")
"""Flags that say which agent of the run is meant."""


def play(run: Path, **what: Any) -> int:
    """Play, print the score, say where the video is."""
    from perdure.run.play import play as again
    from perdure.store.run import Run
    from perdure.store.saved import AgentReference

    which = AgentReference(Run(run), **{name: what.pop(name) for name in REFERENCE})
    played = again(which, **what, note=tell)
    say(f"{played.saved}, on {played.task.id}")
    episodes = [r for r in played.rows if r.ret is not None]
    for row in episodes if len(episodes) > 1 else ():
        found = {words: getattr(row, name) for name, words in MEASURES.items()}
        said = ", ".join(f"{words} {v:.6g}" for words, v in found.items() if v is not None)
        say(f"  episode {row.episode}: {said}, {row.steps} steps")
    means = {words: played.mean(name) for name, words in MEASURES.items()}
    text = ", ".join(f"{words} {v:.6g}" for words, v in means.items() if not isnan(v))
    steps, count = sum(r.steps for r in played.rows), len(episodes)
    over = f"{count} episode{'s' * (count != 1)}, {steps} steps" if count else f"{steps} examples"
    say(f"{text} ({over})")
    if played.video is not None:
        say(f"video: {played.video}")
    return 0
