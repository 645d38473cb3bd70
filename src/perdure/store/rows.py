"""The one table: a row is one experience, its place in the lifetime and its measures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from perdure.arrays import Array

FORMAT = 2
"""Version of the log format. Readers refuse newer ones."""


class Row(NamedTuple):
    """One experience: an episode, a minibatch, or a window of a continuing task."""

    exp: int
    """Running number over the lifetime, in order of completion."""
    block: int
    deployed: bool
    """False in pre-deployment blocks."""
    kind: str
    learning: bool
    exposure: int
    task: str
    variant: str
    params: str
    slot: int
    episode: int
    """Number of the episode (or minibatch) within its exposure."""
    trial: int
    """Number of the trial within its exposure; that of the episode where a trial is one."""
    seed: int | None
    """What the episode was reset with: with its trial's, enough to play it again."""
    trial_seed: int | None
    """What the episodes of the trial share."""
    steps: int
    learning_steps: int
    """Learning steps (or examples) of the lifetime when the row ended."""
    status: str
    """``complete``, ``incomplete`` (the budget ran out) or ``window`` (continuing task)."""
    terminated: bool
    truncated: bool
    ret: float | None
    success: float | None
    """1 if the task succeeded at any step."""
    success_end: float | None
    """1 if the task was succeeding at the last step."""
    accuracy: float | None
    loss: float | None
    more: Mapping[str, float] | None
    """Any further measures."""


_MORE = pa.map_(pa.string(), pa.float64())
SCHEMA = pa.schema(
    [
        ("agent", pa.string()),
        ("lifetime", pa.int64()),
        ("expert", pa.string()),
        ("exp", pa.int64()),
        ("block", pa.int32()),
        ("deployed", pa.bool_()),
        ("kind", pa.string()),
        ("learning", pa.bool_()),
        ("exposure", pa.int32()),
        ("task", pa.string()),
        ("variant", pa.string()),
        ("params", pa.string()),
        ("slot", pa.int32()),
        ("episode", pa.int64()),
        ("trial", pa.int64()),
        ("seed", pa.int64()),
        ("trial_seed", pa.int64()),
        ("steps", pa.int64()),
        ("learning_steps", pa.int64()),
        ("status", pa.string()),
        ("terminated", pa.bool_()),
        ("truncated", pa.bool_()),
        ("return", pa.float64()),
        ("success", pa.float64()),
        ("success_end", pa.float64()),
        ("accuracy", pa.float64()),
        ("loss", pa.float64()),
        ("more", _MORE),
    ]
)
WORDS = [f.name for f in SCHEMA if f.type == pa.string()]
"""Columns with few different values."""
MEASURES = ("return", "success", "success_end", "accuracy", "loss")
"""Measures with a column of their own; all others are in ``more``."""
_COUNTS = {f.name: "DELTA_BINARY_PACKED" for f in SCHEMA if pa.types.is_integer(f.type)}
# What its encoding has already made small costs more time in a codec than it gives room.
_CODECS = {c: "lz4" for c in (*MEASURES, "more.key_value.key", "more.key_value.value")}
_CODECS |= {f.name: "none" for f in SCHEMA if f.name not in (*MEASURES, "more")}
# Where each column is in a file: the last one is two, keys and values.
_LEAVES = {f.name: [k] for k, f in enumerate(SCHEMA)} | {"more": [len(SCHEMA) - 1, len(SCHEMA)]}


def encode(rows: Sequence[Row], agent: str, lifetime: int, expert: str) -> bytes:
    """The rows as the bytes of a Parquet file."""
    n = len(rows)
    constants = (
        pa.repeat(pa.scalar(value, SCHEMA.field(k).type), n)
        for k, value in enumerate((agent, lifetime, expert))
    )
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(Row._fields)
    arrays = [*constants]
    arrays += [pa.array(c, f.type) for c, f in zip(columns[:-1], list(SCHEMA)[3:-1], strict=True)]
    arrays.append(_maps(columns[-1]))
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    table = pa.Table.from_arrays(arrays, schema=SCHEMA)
    pq.write_table(
        table,
        sink,
        compression=_CODECS,
        use_dictionary=WORDS,
        column_encoding=_COUNTS,
        write_statistics=[n for n in SCHEMA.names if n != "more"],
    )
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def encode_compact(table: pa.Table) -> bytes:
    """The rows of a table as a Parquet file that is as small as can be: some ten times slower to write.

    Without the seeds of learning episodes: they are most of its bytes, and follow from the lifetime's
    seed and the episode's place.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    for name in ("seed", "trial_seed"):
        kept = pc.if_else(table["learning"], pa.scalar(None, pa.int64()), table[name])
        table = table.set_column(table.schema.get_field_index(name), name, kept)
    floats = [*MEASURES, "more.key_value.value"]
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression="zstd",
        compression_level=19,
        use_dictionary=[*WORDS, "more.key_value.key"],
        # Bytes of equal weight together: exponents are alike, and the tails of what was float32 zero.
        column_encoding={**_COUNTS, **dict.fromkeys(floats, "BYTE_STREAM_SPLIT")},
        write_statistics=False,
        store_schema=False,
    )
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _maps(items: Sequence[Mapping[str, float] | None]) -> pa.Array:
    """A column of maps, built from flat arrays: a tenth of the time that rows of pairs take."""
    offsets: list[int | None] = []
    keys: list[str] = []
    values: list[float] = []
    for m in items:
        offsets.append(None if m is None else len(keys))
        if m:
            keys += m
            values += m.values()
    return pa.MapArray.from_arrays(
        pa.array([*offsets, len(keys)], pa.int32()),
        pa.array(keys, pa.string()),
        pa.array(values, pa.float64()),
    )


Owner = tuple[str, int, str]
"""Whose rows: agent, seed, task of a single-task expert."""


def owners(data: bytes) -> set[tuple[Any, ...]]:
    """Whose rows the bytes of a Parquet file hold, as its statistics tell, or the columns where it
    has none; empty if there are no rows."""
    from pyarrow._parquet import ParquetReader

    names = SCHEMA.names[:3]
    reader = ParquetReader()
    reader.open(pa.BufferReader(data), pre_buffer=False)
    found: set[tuple[Any, ...]] = set()
    for k in range(reader.metadata.num_row_groups):
        group = reader.metadata.row_group(k)
        said = [group.column(_LEAVES[c][0]).statistics for c in names]
        if not group.num_rows:
            continue
        if all(s is not None and s.has_min_max for s in said):
            found |= {tuple(s.min for s in said), tuple(s.max for s in said)}
            continue
        table = reader.read_all(column_indices=[_LEAVES[c][0] for c in names], use_threads=False)
        values = [column.unique().to_pylist() for column in table.columns]
        return {tuple(v[0] for v in values), tuple(v[-1] for v in values)}
    return found


def decode(data: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """The table in the bytes of a Parquet file. Of some ``columns`` alone, words come as
    dictionaries and measures without any value may be left out, which costs a fraction."""
    words = [c for c in columns or () if c in WORDS]
    source = pa.BufferReader(data)
    try:
        from pyarrow._parquet import ParquetReader
    except ImportError:
        import pyarrow.parquet as pq

        return pq.ParquetFile(source, read_dictionary=words).read(columns, use_threads=False)
    # What ParquetFile comes down to. To import that brings file systems, TLS and sockets with it,
    # which takes as long as to read 300,000 rows; to look columns up by name takes as long as to
    # read two of them.
    reader = ParquetReader()
    reader.open(source, read_dictionary=[_LEAVES[c][0] for c in words], pre_buffer=False)
    if columns is None:
        return reader.read_all(use_threads=False)
    known: dict[str, pa.Array] = {}
    unknown = list(columns)
    if reader.metadata.num_row_groups == 1:
        known, unknown = _told(reader.metadata.row_group(0), columns)
    leaves = [k for c in unknown for k in _LEAVES[c]]
    table = reader.read_all(column_indices=leaves, use_threads=False)
    if not known:
        return table
    held = {**known, **dict(zip(table.column_names, table.columns, strict=True))}
    names = [c for c in columns if c in held]
    return pa.Table.from_arrays([held[n] for n in names], names)


def _told(group: Any, columns: Sequence[str]) -> tuple[dict[str, pa.Array], list[str]]:
    """What a file's statistics tell without a look at its pages: columns of one value, and which
    others have to be read. Measures without a value are in neither."""
    n = group.num_rows
    known: dict[str, pa.Array] = {}
    unknown = []
    for name in columns:
        said = group.column(_LEAVES[name][0]).statistics
        if said is None:
            unknown.append(name)
        elif name in MEASURES or name == "more":
            if said.null_count < n:
                unknown.append(name)
        elif said.has_min_max and said.null_count == 0 and said.min == said.max:
            known[name] = _repeated(name, said.min, n)
        else:
            unknown.append(name)
    return known, unknown


@lru_cache(maxsize=32)
def _repeated(name: str, value: Any, n: int) -> pa.Array:
    """A column that is the same in all rows; words as a dictionary of one. From bare buffers: to
    convert a value imports pandas where it is installed, which takes longer than all the reading."""
    kind = SCHEMA.field(name).type
    if pa.types.is_boolean(kind):
        return truths(np.full(n, value))
    if name not in WORDS:
        return _bare(kind, np.full(n, value, f"i{kind.bit_width // 8}"))
    text = value.encode()
    ends = pa.py_buffer(np.array([0, len(text)], np.int32))
    word = pa.Array.from_buffers(kind, 1, [None, ends, pa.py_buffer(text)])
    return pa.DictionaryArray.from_arrays(_bare(pa.int32(), np.zeros(n, np.int32)), word)


def _bare(kind: pa.DataType, values: Array, there: Array | None = None) -> pa.Array:
    known = None if there is None else _bits(there)
    return pa.Array.from_buffers(kind, len(values), [known, pa.py_buffer(values)])


def _bits(mask: Array) -> pa.Buffer:
    return pa.py_buffer(np.packbits(mask, bitorder="little"))


def truths(mask: Array) -> pa.Array:
    """A mask as Arrow has it."""
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, _bits(mask)])


def to_rows(table: pa.Table) -> list[Row]:
    """A table back as rows."""
    columns = [table.column(f.name).to_pylist() for f in list(SCHEMA)[3:]]
    columns[-1] = [None if m is None else dict(m) for m in columns[-1]]
    return [Row(*values) for values in zip(*columns, strict=True)]


def flatten(table: pa.Table) -> pa.Table:
    """The table with every further measure as a column of its own; one that is named like a column
    of the rows gets an underscore."""
    out = table.drop_columns(["more"])
    more = table.column("more").combine_chunks()
    if isinstance(more, pa.ChunkedArray) or more.null_count == len(
        more
    ):  # No rows, or none has any.
        return out
    # Not by to_numpy and pa.array, which import pandas where it is installed.
    counts = np.diff(np.from_dlpack(more.offsets))
    row = np.repeat(np.arange(len(more)), counts)
    first, last = more.offsets[0].as_py(), more.offsets[-1].as_py()
    names = more.keys.slice(first, last - first).dictionary_encode()
    which = np.from_dlpack(names.indices)
    values = np.from_dlpack(more.items.slice(first, last - first))
    known = names.dictionary.to_pylist()
    for name in sorted(known):
        mine = which == known.index(name)
        column, there = np.zeros(len(more)), np.zeros(len(more), bool)
        column[row[mine]], there[row[mine]] = values[mine], True
        taken = name in SCHEMA.names
        out = out.append_column(f"{name}_" if taken else name, _bare(pa.float64(), column, there))
    return out


def params_json(params: Mapping[str, Any]) -> str:
    """Task parameters as they stand in a row."""
    return json.dumps(dict(params), sort_keys=True) if params else ""
