"""What trained policies look at: pictures with what mattered, one row for each policy.

    python scripts/libero_saliency.py --task object-0 RUN:AGENT[:COMMIT] …

The sheet is kept with the first policy's run, and `perdure report RUN` shows it; ``--out FILE.png`` writes it there
instead. An agent of a run as it was at a commit (the last), so that a policy can be seen before and after it learned
other tasks. All of them see what the first one's episode showed: its steps are played by the scripted expert
(the first ``--steps`` of initial state ``--state``). Bright is where painting a patch over moves the answer
most; ``vit_t`` has what its own attention read beside it. Below each row: the words of the instruction, and
how far the answer moves without each; and for transformers what share of its attention the last step's answer gave
to each kind of token, over all steps. At its end the same attention, a column a step.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isqrt
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("agg")
import matplotlib.pyplot as plt
import torch

from perdure import Run
from perdure.agents.learners.sequence_bc import SequenceBCAgent
from perdure.agents.networks.language import embed
from perdure.agents.networks.saliency import attention, picture_saliency, word_saliency
from perdure.agents.networks.tensors import to_array, to_tensor
from perdure.errors import PerdureError, SpecError
from perdure.registry import suite
from perdure.store.layout import RunFolder
from perdure.suites.libero.experts import solve
from perdure.types import Array, Task

LIBERO = suite("libero")


def policy_of(text: str) -> SequenceBCAgent:
    """The learner of RUN:AGENT[:COMMIT]."""
    run, *rest = text.split(":")
    agent, commit = (*rest, "-1") if len(rest) == 1 else rest if len(rest) == 2 else ("", "")
    if not agent or not commit.removeprefix("-").isdecimal():
        raise SpecError(
            f"{text}: expected RUN:AGENT, or RUN:AGENT:COMMIT with the number of a commit"
        )
    found: Any = Run(run).agent(agent, commit=int(commit))
    while not isinstance(found, SequenceBCAgent):
        inner = getattr(found, "learner", None) or getattr(found, "agent", None)
        if inner is None:
            raise SpecError(f"{text} is {type(found).__name__}, expected sequence_bc")
        found = inner
    if not found.pictures:
        raise SpecError(f"{text} reads no pictures: there is nothing to draw on")
    return found


def episode(task: Task, state: int, steps: int) -> list[dict[str, Array]]:
    """What is seen in the first steps of an expert's episode."""
    env, seen = LIBERO.env(task), []
    solve(env, state, before_step=lambda now, action: seen.append(dict(now)))
    return seen[:steps]


@dataclass(frozen=True)
class Looked:
    """What a policy looked at."""

    maps: Mapping[str, Array]
    """By picture: how far the answer moves where it is painted over."""
    words: Mapping[str, float]
    patches: Mapping[str, Array]
    """By picture: what a vision transformer's step read of each of its patches; empty of other policies."""
    time: Array | None
    """What the answer read, (tokens, steps); None where there is no transformer through time."""
    tokens: Sequence[str]

    @property
    def shares(self) -> dict[str, float]:
        """The attention to each kind of token, over all steps."""
        if self.time is None:
            return {}
        return dict(zip(self.tokens, self.time.sum(1), strict=True))


def rows(
    learner: SequenceBCAgent, seen: Sequence[dict[str, Array]], sentence: str, patch: int
) -> Looked:
    """Pictures with their saliency, the words with theirs, and attention."""
    last = seen[-learner.settings.look_back :]
    parts = {n: np.stack([now[n] for now in last])[None] for n in learner.inputs.parts}
    told = learner.seen(learner.read(parts))
    words = sentence.split()
    others = [" ".join(w for k, w in enumerate(words) if k != left) for left in range(len(words))]
    s = learner.settings
    learner.net.eval()
    embedded_by = learner.instructions.language
    if embedded_by in ("task-id", "none"):
        language, moved = learner.vectors[:1], np.zeros(len(words))
    else:
        vectors = to_tensor(embed([sentence, *others], embedded_by, s.weights), learner.device)
        language, without = vectors[:1], [v[None] for v in vectors[1:]]
        moved = to_array(word_saliency(learner.net, told, language, without))[0]
    maps = {
        name: to_array(picture_saliency(learner.net, told, language, name, patch))[0]
        for name in learner.pictures
    }
    looked = attention(learner.net, told, language)
    patches = by_picture(learner, to_array(looked["patches"])[0]) if "patches" in looked else {}
    time = to_array(looked["time"])[0].T if "time" in looked else None
    said = dict(zip(words, moved, strict=True))
    return Looked(maps, said, patches, time, ["the sentence", *tokens_of(learner)])


def by_picture(learner: SequenceBCAgent, read: Array) -> dict[str, Array]:
    """The attention to the patches of each picture, side by side as they lie in it. They come one picture after
    another, and the sentence last."""
    counts: list[int] = learner.net.places  # type: ignore[assignment]
    ends = np.cumsum(counts)
    parts = [read[end - n : end].reshape(isqrt(n), -1) for n, end in zip(counts, ends, strict=True)]
    return dict(zip(learner.pictures, parts, strict=True))


def tokens_of(learner: SequenceBCAgent) -> list[str]:
    """A step's tokens after the sentence's, in the order of the policy."""
    numbers = list(learner.net.names)
    if learner.settings.policy == "vit_t":
        return ["pictures", *numbers]
    return [*numbers, *learner.pictures]


def draw_time(axis: Any, looked: Looked) -> None:
    """The attention through time as a picture: a row a kind of token, a column a step."""
    if looked.time is None:
        axis.set_axis_off()
        return
    axis.imshow(looked.time, cmap="viridis", vmin=0, aspect="auto")
    axis.set_title(f"attention: at most {looked.time.max():.1g}", fontsize=7)
    axis.yaxis.tick_right()
    axis.set_yticks(range(len(looked.tokens)), looked.tokens, fontsize=6)
    axis.set_xticks([0, looked.time.shape[1] - 1], ["earliest step", "last"], fontsize=6)


def main() -> None:
    """Draw the sheet; a mistake is told in a line."""
    try:
        draw()
    except PerdureError as e:
        print(f"libero_saliency: {type(e).__name__}: {e}", file=sys.stderr)
        sys.exit(2)


def draw() -> None:
    """Draw the sheet."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("policies", nargs="+", help="RUN:AGENT[:COMMIT]")
    parser.add_argument("--task", required=True)
    parser.add_argument("--out", help="a file, instead of the first policy's run and its report")
    parser.add_argument("--state", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--patch", type=int, default=8)
    given = parser.parse_args()
    torch.set_num_threads(1)
    learners = [policy_of(text) for text in given.policies]
    first = learners[0]
    size = first.inputs.parts[first.pictures[0]].row[0]
    cameras = [name.removesuffix("_image") for name in first.pictures]
    numbers = [n for n in first.inputs.parts if n.startswith("robot0") and n not in first.pictures]
    params = {"cameras": cameras, "size": size, "proprioception": numbers, "solves": 1}
    task = Task("libero", given.task, params=params)
    seen = episode(task, given.state, given.steps)
    (sentence,) = LIBERO.instructions(replace(task))
    count = len(first.pictures)
    figure, axes = plt.subplots(
        len(learners), 2 * count + 1, figsize=(4 * count + 2.6, 2.8 * len(learners)), squeeze=False
    )
    for row, (text, learner) in enumerate(zip(given.policies, learners, strict=True)):
        looked = rows(learner, seen, sentence, given.patch)
        for k, name in enumerate(learner.pictures):
            picture, here = seen[-1][name], axes[row, 2 * k : 2 * k + 2]
            here[0].imshow(picture)
            here[1].imshow(picture)
            shown = looked.maps[name]
            if name in looked.patches:
                read = looked.patches[name]
                here[0].imshow(
                    read, cmap="viridis", alpha=0.5, extent=(0, size, size, 0),
                    interpolation="bilinear",
                )  # fmt: skip
                here[0].set_title(f"attention: {read.sum():.2f} of its step's", fontsize=7)
            here[1].imshow(
                shown,
                cmap="inferno",
                alpha=0.55,
                extent=(0, size, size, 0),
                interpolation="bilinear",
            )
            here[1].set_title(f"painted over: at most {shown.max():.1g}", fontsize=7)
        said = "  ".join(f"{w} {v:.2f}" for w, v in looked.words.items())
        if looked.time is not None:
            said += "\nattention: " + "  ".join(f"{n} {v:.2f}" for n, v in looked.shares.items())
        draw_time(axes[row, -1], looked)
        axes[row, 0].set_ylabel(text.rpartition("/")[2], fontsize=7)
        axes[row, 0].text(0, -0.12, said, transform=axes[row, 0].transAxes, fontsize=6, va="top")
    for axis in axes[:, :-1].flat:
        axis.set_xticks([])
        axis.set_yticks([])
    if given.out:
        figure.savefig(given.out, dpi=130, bbox_inches="tight")
        return
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=130, bbox_inches="tight", format="png")
    shown = ", ".join(t.rpartition("/")[2] for t in given.policies)
    file = RunFolder(Path(given.policies[0].split(":")[0])).write_picture(
        f"saliency {given.task}",
        drawn.getvalue(),
        f"What the policies look at in {given.task}: {sentence}",
        f"Step {given.steps} of initial state {given.state}, a row a policy ({shown}). Bright is where painting a "
        "patch over moves the action most; below, how far it moves without each word of the instruction.",
    )
    print(f"{file}; perdure report shows it")


if __name__ == "__main__":
    main()
