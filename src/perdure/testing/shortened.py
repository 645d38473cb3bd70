"""Any curriculum, short enough to check an agent on: its kinds of blocks, a little of each."""

from __future__ import annotations

from dataclasses import replace

from perdure.curricula.named import curriculum_of
from perdure.specs import Spec
from perdure.types import Block, BlockChoice, BlockGenerator, Curriculum, Exposure

STEPS, BATCHES, TASKS, BLOCKS = 60, 3, 3, 5
"""Of each exposure, of each block and of each curriculum, at most."""


def shortened_name(curriculum: str) -> str:
    """The name by which a run finds the short form of a curriculum."""
    return str(Spec(f"{__file__}:shortened", {"curriculum": curriculum}))


def shortened(curriculum: str, seed: int = 0) -> Curriculum:
    """The first blocks of a curriculum and the first of each kind, with few tasks and steps each."""
    whole = curriculum_of(Spec.parse(curriculum), seed)
    generate = whole.generate
    if generate is not None:
        return replace(whole, before=(), generate=lambda: _generated(generate()))
    kept = list(whole.fixed[:BLOCKS])
    for kind in {b.kind for b in whole.fixed} - {b.kind for b in kept}:
        kept.append(next(b for b in whole.fixed if b.kind == kind))
    return Curriculum(whole.name, tuple(map(_block, kept)))


def _generated(blocks: BlockGenerator) -> BlockGenerator:
    item = next(blocks, None)
    for _ in range(BLOCKS):
        if item is None:
            return
        if isinstance(item, BlockChoice):
            results = yield BlockChoice(tuple(map(_block, item.options)))
        else:
            results = yield _block(item)
        try:
            item = blocks.send(results)
        except StopIteration:
            return


def _block(block: Block) -> Block:
    few = tuple(map(_exposure, block.exposures[:TASKS]))
    return replace(block, exposures=few, then=tuple(map(_exposure, block.then[:TASKS])))


def _exposure(e: Exposure) -> Exposure:
    # Steps, even of episodes: one of them may be long.
    return (
        replace(e, amount=BATCHES, unit="batches")
        if e.on_data
        else replace(e, amount=STEPS, unit="steps")
    )
