"""A lifetime's rows as the text of an L2Logger directory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from perdure.arrays import Array
from perdure.errors import StoreError
from perdure.store import rows
from perdure.store.history import codes, task_ids
from perdure.store.l2logger.names import STANDARD, STEPS, clock, column_names

WORKER = "worker-default"
_SECOND = 1_000_000
_CHUNK = 1 << 16
"""Rows that become text at once."""


def measures_of(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """The measures that some row has, by the name of their column in the log."""
    held = [m for m in (*rows.MEASURES, "more") if m in table.column_names]
    wide = rows.flatten(table.select(held))
    found = dict(zip(wide.column_names, wide.columns, strict=True))
    found = {m: c for m, c in found.items() if c.null_count < len(c)}
    return {name: found[m] for m, name in column_names(found).items()}


def write_blocks(
    table: pa.Table, measures: Mapping[str, pa.ChunkedArray], folder: Path, names: Mapping[str, str]
) -> None:
    """Write the rows of one lifetime, a file for each block."""
    extra = dict(sorted({**measures, STEPS: table.column("steps")}.items()))
    header = "\t".join([*STANDARD, *extra]).encode() + b"\n"
    exp, block, learning = (table.column(c).to_numpy() for c in ("exp", "block", "learning"))
    if np.any(np.diff(exp) < 0) or np.any(np.diff(block) < 0):
        raise StoreError(f"{folder.parent}: expected the rows of one lifetime, in order of exp")
    heads, tails, place = _places(table, names)
    new_file = np.concatenate([[True], (np.diff(block) != 0) | (np.diff(learning) != 0)])
    cuts = np.union1d(np.flatnonzero(new_file), np.arange(0, len(table), _CHUNK)).tolist()
    for a, b in pairwise([*cuts, len(table)]):
        if a % _CHUNK == 0:
            chunk, start = slice(a, a + _CHUNK), a
            data, ends = _lines(
                pa.array(heads).take(pa.array(place[chunk])),
                exp[chunk],
                pa.array(tails).take(pa.array(place[chunk])),
                [c.slice(a, _CHUNK) for c in extra.values()],
            )
        path = folder / f"{block[a]}-{'train' if learning[a] else 'test'}" / "data-log.tsv"
        if new_file[a]:
            path.parent.mkdir(parents=True)
            path.write_bytes(header)
        with path.open("ab") as f:
            f.write(data[ends[a - start] : ends[b - start]])


def _places(table: pa.Table, names: Mapping[str, str]) -> tuple[list[str], list[str], Array]:
    """For each different place in life, what stands before the experience number and what after
    it, and an index for each row. Places are few and rows are many."""
    ids, task = task_ids(table)
    params, param = codes(table.column("params"))
    statuses, status = codes(table.column("status"))
    blocks, block = np.unique(table.column("block").to_numpy(), return_inverse=True)
    learning = table.column("learning").to_numpy().astype(np.int64)
    sizes = (len(blocks), 2, len(ids), len(params), len(statuses))
    keys = np.ravel_multi_index((block, learning, task, param, status), sizes)
    keys, place = np.unique(keys, return_inverse=True)
    different = np.stack(np.unravel_index(keys, sizes), axis=1).tolist()
    used: dict[tuple[int, ...], dict[str, None]] = {}
    for b, learns, t, p, _ in different:
        used.setdefault((b, learns, t), {})[params[p] or "{}"] = None
    heads, tails = [], []
    for b, learns, t, _, s in different:
        kind = "train" if learns else "test"
        ended = "incomplete" if statuses[s] == "incomplete" else "complete"
        words = (WORKER, kind, "wake", names[ids[t]], _params(list(used[b, learns, t])), ended)
        heads.append(str(blocks[b]))
        tails.append("\t".join(words))
    return heads, tails, place


def _params(found: Sequence[str]) -> str:
    """A task's parameters in a block, quoted. l2metrics fails where they change within a block, so
    each row then tells them all."""
    text = found[0]
    if len(found) > 1:
        text = json.dumps({"any_of": [json.loads(f) for f in found]})
    return '"' + text.replace('"', '""') + '"' if '"' in text else text


def _lines(
    heads: pa.Array, exp: Array, tails: pa.Array, extra: Sequence[Any]
) -> tuple[memoryview, Array]:
    """The rows as lines in one buffer, and where each begins; the end last."""
    second, micro = np.divmod(exp, _SECOND)
    seconds, at = np.unique(second, return_inverse=True)
    clocks = pa.array([clock(int(s) * _SECOND)[:-6] for s in seconds]).take(pa.array(at))
    times = pc.binary_join_element_wise(
        clocks, pc.utf8_lpad(pa.array(micro).cast(pa.string()), 6, "0"), ""
    )
    values = [pc.fill_null(c.combine_chunks().cast(pa.string()), "") for c in extra]
    values[-1] = pc.binary_join_element_wise(values[-1], "", "\n")
    numbers = pa.array(exp).cast(pa.string())
    text = pc.binary_join_element_wise(heads, numbers, tails, times, *values, "\t")
    _, offsets, data = text.buffers()
    ends = np.frombuffer(offsets, np.int32, len(text) + 1, text.offset * 4)
    return memoryview(data), ends
