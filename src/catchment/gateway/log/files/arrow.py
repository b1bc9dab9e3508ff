"""The log as Arrow: one row per entry, payloads as they came, and no step per entry.

A block's rows are fixed-width and its strings are listed once, so a batch is made of array slices: what Python does is
per block and per distinct string. Text columns are dictionaries; numbers and payloads are copied once, to stand side
by side. pyarrow and numpy are imported on the first call, because the gateway itself has no use for them.

Who reads some streams only says which: uploads of others are left out here, by what their header says, and cost no row.

Columns: `offset`, then the fields of `Entry` in its order; instants stay whole microseconds, and `NO_INSTANT` where
there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import TYPE_CHECKING, Any

from catchment.gateway.log.entry import Kind
from catchment.gateway.log.files import block
from catchment.gateway.log.files.reader import LogReader

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_BYTES = 16 << 20
"""A batch is closed once it holds this much; a single block may be larger."""
_OF_A_STREAM = (Kind.DATA, Kind.PROMISE)


def schema() -> pa.Schema:
    """The columns of `read_arrow`."""
    import pyarrow as pa

    text = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            pa.field("offset", pa.int64(), nullable=False),
            pa.field("kind", pa.int32(), nullable=False),
            *(pa.field(name, text, nullable=False) for name in block.STRINGS),
            *(pa.field(name, pa.int64(), nullable=False) for name in block.NUMBERS),
            pa.field("payload", pa.binary(), nullable=False),
        ]
    )


def read_arrow(
    log: LogReader,
    partition: int,
    start: int,
    end: int | None = None,
    *,
    batch_bytes: int = BATCH_BYTES,
    streams: Set[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Entries whose offset lies in [start, end), as record batches; all that is durable by default.

    Given `streams`, data and promises of any other are left out. What is of no stream, such as a tick, is there.
    """
    limit = log.end(partition) if end is None else end
    held: list[block.Parts] = []
    held_bytes = 0
    for parts in log.blocks(partition, start, limit):
        held.append(parts)
        held_bytes += parts.header.length
        if held_bytes >= batch_bytes:
            yield _batch(held, start, limit, streams)
            held, held_bytes = [], 0
    if held:
        yield _batch(held, start, limit, streams)


def _batch(held: list[block.Parts], start: int, limit: int, streams: Set[str] | None) -> pa.RecordBatch:
    import numpy as np
    import pyarrow as pa

    dtype = np.dtype(list(block.COLUMNS))
    rows = np.frombuffer(b"".join([parts.rows for parts in held]), dtype)
    counts = [parts.header.entries for parts in held]

    # Each block numbers its own strings; give them one numbering.
    words: dict[str, int] = {}
    bases: list[int] = []
    renumbered: list[int] = []
    for parts in held:
        bases.append(len(renumbered))
        renumbered += [words.setdefault(text, len(words)) for text in parts.strings]
    number = np.array(renumbered, np.int32)
    base = np.repeat(np.array(bases, np.int64), counts)
    dictionary = pa.array(list(words), pa.string())

    firsts = np.array([parts.header.offset for parts in held], np.int64)
    row_of_block = np.cumsum([0, *counts[:-1]])
    offsets = np.repeat(firsts - row_of_block, counts) + np.arange(len(rows))

    ends = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(rows["payload_length"], out=ends[1:])
    payload = pa.Array.from_buffers(
        pa.binary(),
        len(rows),
        [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join([parts.payloads for parts in held]))],
    )
    columns: list[Any] = [pa.array(offsets), pa.array(rows["kind"].astype(np.int32))]
    columns += [pa.DictionaryArray.from_arrays(number[base + rows[name]], dictionary) for name in block.STRINGS]
    columns += [pa.array(rows[name]) for name in block.NUMBERS]
    batch = pa.RecordBatch.from_arrays([*columns, payload], schema=schema())
    kept = (offsets >= start) & (offsets < limit)
    if streams is not None:
        of_another = np.array([word not in streams for word in words], np.bool_)
        kept &= ~(np.isin(rows["kind"], _OF_A_STREAM) & of_another[number[base + rows["stream"]]])
    return batch if kept.all() else batch.filter(pa.array(kept))
