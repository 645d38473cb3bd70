"""The five studies of LIBERO's paper (Liu et al., 2023), one command each.

    python studies/libero.py t3 --demos demos                    the algorithms, at small scale
    python studies/libero.py t3 --demos demos --scale paper      as published, for a large machine
    python studies/libero.py t3 --demos demos --plan             what it would run, and nothing else

t1 kinds of knowledge (four lists), t2 architectures, t3 algorithms, t4 orders of tasks, t5 pretraining. Every
run can be stopped and goes on when the same command is given again; at the end the tables are printed, as the
paper prints them (mean ± standard error over lifetimes) and with 95 % intervals. Demonstrations of the small
scale are of the lists that a study names (t1 spatial, object, goal and 10, t3 object and spatial, t4 and t5
object), and for t2, whose policies read pictures, of two tasks and in a folder of their own:

    perdure demos libero/object demos --per-task 20 --cameras none
    perdure demos libero/object-0 demos-64 --per-task 40 --size 64      # and object-1

The small scale: five tasks of a list instead of ten, poses of objects instead of pictures (t2: two tasks, pictures
of 64 pixels), a small network, fewer epochs and episodes. What it costs stands in docs/libero-learning.md.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from pages import cell_with_error

from perdure import registry
from perdure.measure import sources
from perdure.measure.l2m import paper
from perdure.measure.results import measure_paper, read_all
from perdure.suites.libero.protocols import ORDERS

METRICS = ("libero.fwt", "libero.nbt", "libero.auc")
ALGORITHMS = {
    "seql": "finetune", "er": "replay", "ewc": "online_ewc", "packnet": "packnet", "mtl": "joint",
}  # fmt: skip
PUBLISHED = ("10", "spatial", "object", "goal")
"""The lists of the paper's tables."""
ARCHITECTURES = ("resnet_rnn", "resnet_t", "vit_t")
FEW = 5
"""Tasks of a list at small scale, and orders of them that are tried."""
STATES = "epochs=150,every=50,batch_size=64,horizon=220"
"""Of a small run on states: with 20 demonstrations, of which 18 are learned from, mostly about 30 steps of
learning an epoch, 4,500 a task; more where the expert takes longer. After 1,800 steps a policy still closed its hand beside object-0's can in 4
of 10 episodes."""
PICTURES = (
    "cameras=[agentview,robot0_eye_in_hand],objects=false,size=64,sequence=5,batch_size=32,"
    "epochs=20,every=5,horizon=220"
)
"""Of a small run on pictures: with 40 demonstrations, of which 36 are learned from, 2,400 steps of learning for
object-0 and 4,360 for object-1, whose expert takes longer. See docs/results/libero-pictures.md."""


@dataclass(frozen=True)
class Part:
    """One run of a study."""

    name: str
    curriculum: str
    agents: tuple[str, ...]


def curriculum(
    demos: str, tasks: str, small: bool, order: int = 0, more: str = "", few: int = FEW
) -> str:
    """A curriculum of a list of ten, or of its first few in an order of theirs."""
    chosen = tasks
    if small:
        some = [k for k in ORDERS[order] if int(k) < few]
        chosen = "[" + ",".join(f"{tasks}-{k}" for k in some) + "]"
    parts = [
        "libero/lifelong", f"demos={demos}", f"tasks={chosen}", f"scale={'small' if small else 'paper'}",
    ]  # fmt: skip
    parts += [more] if small else [f"order={order}"]
    return ",".join(filter(None, parts))


def agents(small: bool, names: Sequence[str], more: str = "") -> tuple[str, ...]:
    """Algorithms with the settings of a scale."""
    preset = "libero-small" if small else "libero,policy=resnet_t"
    return tuple(f"{n}={ALGORITHMS[n]}+sequence_bc,preset={preset}{more}" for n in names)


def t1(demos: str, small: bool) -> list[Part]:
    """Kinds of knowledge: places, things, goals, and all of them mixed."""
    lists = {"spatial": "spatial", "object": "object", "goal": "goal", "long": "10"}
    chosen = agents(small, ("seql", "er", "packnet"))
    # Long's tasks are two in one, and so is the fourth of Goal: experts take 273 steps.
    longer = STATES.replace("horizon=220", "horizon=440")
    settings = {name: longer if name in ("goal", "long") else STATES for name in lists}
    return [
        Part(n, curriculum(demos, of, small, more=settings[n]), chosen) for n, of in lists.items()
    ]


def t2(demos: str, small: bool) -> list[Part]:
    """Architectures, with the two algorithms of the paper's first table."""
    chosen = [
        f"{policy}-{name}={ALGORITHMS[name]}+sequence_bc,preset=libero,policy={policy}"
        + (",size=small,look_back=5,lr=1e-3,augment=false" if small else "")
        for policy in ARCHITECTURES
        for name in ("er", "packnet")
    ]
    lists = ("object",) if small else PUBLISHED
    return [Part(n, curriculum(demos, n, small, 0, PICTURES, 2), tuple(chosen)) for n in lists]


def t3(demos: str, small: bool) -> list[Part]:
    """Algorithms: sequential finetuning, ER, EWC, PackNet, and as the bound each task with all before it (joint)."""
    chosen = agents(small, tuple(ALGORITHMS))
    lists = ("object", "spatial") if small else PUBLISHED
    return [Part(n, curriculum(demos, n, small, more=STATES), chosen) for n in lists]


def t4(demos: str, small: bool) -> list[Part]:
    """Orders of tasks: the first five of the published ones."""
    tasks, chosen = "object" if small else "10", agents(small, ("er", "packnet"))
    return [
        Part(f"order-{k}", curriculum(demos, tasks, small, k, STATES), chosen) for k in range(5)
    ]


def t5(demos: str, small: bool) -> list[Part]:
    """Pretraining on LIBERO-90 (at small scale on five other tasks), then LIBERO-Long (Object)."""
    chosen = agents(small, ("seql", "er", "packnet"))
    if small:
        first = "[" + ",".join(f"object-{k}" for k in range(FEW, 10)) + "]"
        # Both see the same things: what is there in the scenes of either's tasks.
        pretrained = f"{STATES},pretrain={first},pretrain_epochs=60"
    else:
        pretrained = "pretrain=90"
    plain = curriculum(demos, "object" if small else "10", small, more=STATES)
    return [
        Part("scratch", plain, chosen),
        Part("pretrained", f"{plain},{pretrained.removeprefix(STATES + ',')}", chosen),
    ]


STUDIES = {"t1": t1, "t2": t2, "t3": t3, "t4": t4, "t5": t5}


def with_choices(part: Part, look: str | None, language: str | None) -> Part:
    """The same part in another look, with other sentence vectors."""
    words = f",language={language}" if language else ""
    where = f",look={look}" if look else ""
    return replace(
        part, curriculum=part.curriculum + where, agents=tuple(a + words for a in part.agents)
    )


def command(part: Part, out: Path, lifetimes: int, more: Sequence[str]) -> list[str]:
    """The run as one types it."""
    chosen = [word for agent in part.agents for word in ("-a", agent)]
    where = ["-n", str(lifetimes), "-o", str(out / part.name)]
    return ["run", part.curriculum, *chosen, *where, *more]


def run(words: Sequence[str]) -> None:
    """Run a command; whoever ends the study ends it too."""
    with subprocess.Popen(words) as process:
        try:
            code = process.wait()
        except BaseException:
            process.terminate()
            raise
    if code:
        sys.exit(code)


def scores(run: Path) -> Mapping[str, Mapping[str, list[float]]]:
    """Metric, agent: a value a lifetime."""
    histories, failed = read_all(sources.find(run, (), None))
    chosen = [registry.metrics()[m] for m in METRICS]
    found = measure_paper(histories, paper.PaperOptions(), chosen, failed).table()
    return {m: {a: list(v.values()) for a, v in found.get(m, {}).items()} for m in METRICS}


def table(title: str, found: Mapping[str, Mapping[str, list[float]]]) -> str:
    """Agents × FWT, NBT, AUC in Markdown."""
    names = dict.fromkeys(a for m in METRICS for a in found[m])
    # Its tasks are measured by success.
    limits = [registry.metrics()[m].bounds_with("success") for m in METRICS]
    head = f"| {title} | FWT ↑ | NBT ↓ | AUC ↑ | n |\n|---|---|---|---|---|"
    rows = []
    for name in names:
        values = [found[m].get(name, []) for m in METRICS]
        cells = " | ".join(map(cell_with_error, values, limits))
        rows.append(f"| {name} | {cells} | {max(map(len, values))} |")
    return "\n".join([head, *rows])


def spread(parts: Mapping[str, Mapping[str, Mapping[str, list[float]]]]) -> str:
    """How much the mean over lifetimes differs between the parts of a study, such as orders."""
    first = next(iter(parts.values()))
    lines = ["| standard deviation over parts | FWT | NBT | AUC |", "|---|---|---|---|"]
    for agent in first[METRICS[0]]:
        cells = []
        for m in METRICS:
            means = [np.nanmean(found[m][agent]) for found in parts.values() if found[m].get(agent)]
            cells.append(f"{np.std(means, ddof=1):.3f}" if len(means) > 1 else "–")
        lines.append(f"| {agent} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run a study, or go on with it, and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--demos", required=True, help="a folder that perdure demos has filled")
    parser.add_argument("--scale", choices=("small", "paper"), default="small")
    parser.add_argument("--lifetimes", type=int, default=3)
    parser.add_argument("--out", help="where its runs go (runs/libero-STUDY-SCALE)")
    parser.add_argument("--only", nargs="*", help="some of its parts, by name")
    parser.add_argument("--look", help="official: the published meshes (primitive)")
    parser.add_argument(
        "--language", help="as of sequence_bc: bert,weights=FOLDER as published (auto)"
    )
    parser.add_argument("--plan", action="store_true", help="print its commands and run nothing")
    given, more = parser.parse_known_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    out = Path(given.out or f"runs/libero-{given.study}-{given.scale}")
    parts = STUDIES[given.study](given.demos, given.scale == "small")
    known = [p.name for p in parts]
    for name in given.only or ():
        if name not in known:
            parser.error(f"--only: {given.study} has no part {name}, expected {', '.join(known)}")
    chosen = [p for p in parts if not given.only or p.name in given.only]
    done = {}
    for part in chosen:
        part = with_choices(part, given.look, given.language)
        words = command(part, out, given.lifetimes, more)
        if given.plan:
            print("perdure " + " ".join(f"'{w}'" if set(w) & set("[],= ") else w for w in words))
            continue
        run([sys.executable, "-m", "perdure", *words])
        done[part.name] = scores(out / part.name)
    for name, found in done.items():
        print(f"\n{table(name, found)}")
    if len(done) > 1:
        print(f"\n{spread(done)}")


if __name__ == "__main__":
    main()
