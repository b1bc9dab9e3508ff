"""What one output gave in one task of an epoch: decoded when a sink asks, as rows or as a table.

A packet is MessagePack: a list of results, each [at, device, owner, row] (of the quarantine: [step, reason, row]), or
the columns of `Rows`, which a sink that writes columns takes without a step per result.

>>> from catchment.program.types import STR
>>> packet = Rows.of([(5, ("", "ada"), ("a",))], (STR,)).pack()
>>> results = Results([msgspec.msgpack.encode([(4, "", None, ("b",))]), packet], 2)
>>> len(results), list(results)
(2, [(4, '', None, ('b',)), (5, '', 'ada', ('a',))])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from catchment.engines.spark.rows import Rows, tuples
from catchment.plan.history import Source
from catchment.program.types import Schema

if TYPE_CHECKING:
    import pyarrow as pa


class Results:
    """Results in the order in which they were numbered. Sized and iterable: each is (at, device, owner, row)."""

    def __init__(self, packets: Sequence[bytes], count: int) -> None:
        self.packets = packets
        """As they were made."""
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        for packet in self.packets:
            decoded = msgspec.msgpack.decode(packet)
            if isinstance(decoded, dict):
                yield from Rows.from_plain(decoded)
            else:
                yield from map(tuples, decoded)

    def rows(self, schema: Schema) -> Rows:
        """The same as columns."""
        kinds = [column.type for column in schema.fields]
        parts = []
        for packet in self.packets:
            decoded = msgspec.msgpack.decode(packet)
            if isinstance(decoded, dict):
                parts.append(Rows.from_plain(decoded))
            else:
                given = [(at, Source(device, owner), tuples(row)) for at, device, owner, row in decoded]
                parts.append(Rows.of(given, kinds))
        return Rows.concat(parts) if parts else Rows.none(kinds)

    def table(self, schema: Schema) -> pa.Table:
        """The same as Arrow: the fields of the schema, after `_at`, `_device` and `_owner`."""
        import pyarrow as pa

        from catchment.sync.codecs.arrow import arrow_array, arrow_schema

        rows = self.rows(schema)
        devices = pa.array([source.device for source in rows.sources], pa.string())
        owners = pa.array([source.owner for source in rows.sources], pa.string())
        places = pa.array(rows.source)
        fields = zip(schema.fields, rows.columns, strict=True)
        arrays = [pa.array(rows.at), devices.take(places), owners.take(places)]
        arrays += [arrow_array(field.type, column) for field, column in fields]
        about = [pa.field("_at", pa.int64()), pa.field("_device", pa.string()), pa.field("_owner", pa.string())]
        return pa.Table.from_arrays(arrays, schema=pa.schema([*about, *arrow_schema(schema)]))
