"""The paper's two protocols: one factor in nine tasks, and four factors in twelve.

Scales set what a task's training costs. ``paper`` is the authors': 3000 batches of 32 frames squashed
to 50 × 50. ``small`` is for two cores: 250 batches of 32 frames at 32 × 32. On the track of features
the scale sets the batches alone: features are made of frames at 128 × 128.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perdure.curricula import interleave
from perdure.errors import CurriculumError, UnknownName
from perdure.suites.openloris.data import LEVELS, SIZES, parameters
from perdure.suites.openloris.layouts import BATCH, FACTORS, SEGMENTS
from perdure.types import Curriculum, Exposure, Task, evaluate, learn

SCALES: Mapping[str, Mapping[str, int]] = {
    "paper": {"batches": 3000, "size": 50},
    "small": {"batches": 250, "size": 32},
}


def single_factor(
    factor: str = "illumination",
    scale: str = "small",
    track: str = "pixels",
    batches: int | None = None,
    epochs: int | None = None,
    size: int | None = None,
    labels: int = 121,
    batch_size: int = 32,
    test: str = "test",
    per_clip: int = 0,
    root: str | None = None,
) -> Curriculum:
    """One factor in nine tasks, three segments of each level from easy to hard.

    Training takes ``batches``, or ``epochs`` if given, else what the scale says. ``labels`` are
    121 objects, 40 categories or the older release's 69 objects; ``test`` names the part that
    evaluation reads (``test`` or ``validation``); ``track`` is ``pixels`` or ``features``;
    ``per_clip`` caps the frames of each object.
    """
    if factor not in FACTORS:
        raise UnknownName("OpenLORIS factor", factor, FACTORS, f"Known are {', '.join(FACTORS)}.")
    name = "openloris/single-factor"
    amount, unit, params = _budget(name, scale, track, batches, epochs, size)
    params |= _given(labels=labels, batch_size=batch_size, test=test, per_clip=per_clip, root=root)
    tasks = [Task("openloris", factor, f"segment{k}", params) for k in range(1, SEGMENTS + 1)]
    return _in_turn(name, tasks, amount, unit, f"{factor.capitalize()} in nine segments")


def sequential(
    as_released: bool = False,
    scale: str = "small",
    track: str = "pixels",
    batches: int | None = None,
    epochs: int | None = None,
    size: int | None = None,
    labels: int = 121,
    batch_size: int = 32,
    test: str = "test",
    per_clip: int = 0,
    root: str | None = None,
) -> Curriculum:
    """Illumination, occlusion, pixel size and clutter in twelve tasks, each a level of one factor.

    ``as_released`` gives the twelve tasks that the authors' program reads instead: the nine
    segments of illumination and the first three of occlusion.
    """
    name = "openloris/sequential"
    amount, unit, params = _budget(name, scale, track, batches, epochs, size)
    params |= _given(labels=labels, batch_size=batch_size, test=test, per_clip=per_clip, root=root)
    if as_released:
        pairs = [(f, f"segment{k}") for f in FACTORS for k in range(1, SEGMENTS + 1)][:12]
    else:
        pairs = [(f, f"level{k}") for f in FACTORS for k in range(1, LEVELS + 1)]
    tasks = [Task("openloris", factor, variant, params) for factor, variant in pairs]
    return _in_turn(name, tasks, amount, unit, "Four factors in twelve tasks")


def competition(
    batches: int = 3000, size: int = 50, batch_size: int = 32, root: str | None = None
) -> Curriculum:
    """The nine batches of the IROS 2019 competition's first round, with its 51 labels."""
    params = {"size": size, **_given(labels=51, batch_size=batch_size, root=root)}
    tasks = [Task("openloris", BATCH, f"segment{k}", params) for k in range(1, SEGMENTS + 1)]
    return _in_turn("openloris/competition", tasks, batches, "batches", "Nine mixed batches")


def _budget(
    name: str, scale: str, track: str, batches: int | None, epochs: int | None, size: int | None
) -> tuple[int, str, dict[str, Any]]:
    if scale not in SCALES:
        raise UnknownName("OpenLORIS scale", scale, SCALES, f"Known are {', '.join(SCALES)}.")
    if batches is not None and epochs is not None:
        raise CurriculumError(f"curriculum {name}: give batches or epochs, not both")
    chosen = SCALES[scale]
    params: dict[str, Any] = {} if track == "pixels" else {"track": track}
    usual = chosen["size"] if track == "pixels" else SIZES.get(track, 0)
    params["size"] = usual if size is None else size
    if epochs is not None:
        return epochs, "epochs", params
    return chosen["batches"] if batches is None else batches, "batches", params


def _given(**params: Any) -> dict[str, Any]:
    return {k: v for k, v in params.items() if v is not None and (k != "per_clip" or v)}


def _in_turn(name: str, tasks: Sequence[Task], amount: int, unit: Any, about: str) -> Curriculum:
    for task in tasks:
        parameters(task)
    blocks = [learn(Exposure(t, amount, unit)) for t in tasks]
    evaluation = evaluate(*(Exposure(t, 1, "epochs") for t in tasks))
    about += ", all evaluated before the first and after each"
    return Curriculum(name, interleave(blocks, evaluation), about=about)


CURRICULA: Mapping[str, Callable[..., Curriculum]] = {
    "single-factor": single_factor,
    "sequential": sequential,
    "competition": competition,
}
