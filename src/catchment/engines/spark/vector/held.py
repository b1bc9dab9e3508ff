"""What is held of keys, as a table: for each entry its key by number, some whole numbers, and the parts of aggregates.

Knows arrays and plain data; not what an entry stands for.

>>> import numpy as np
>>> held = Held(np.array([1, 1, 0]), [np.array([5, 7, 9])], [None])
>>> keys, again = Held.load([held.save([("ada",), ("bob",)])], 1, [None])
>>> [(keys[key], at) for key, at in zip(again.key.tolist(), again.columns[0].tolist())]
[(('bob',), 5), (('bob',), 7), (('ada',), 9)]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from catchment.engines.spark.rows import Array, tuples
from catchment.engines.spark.state.pieces import ShardOf, by_shard
from catchment.engines.spark.vector import aggregates
from catchment.engines.spark.vector.aggregates import Part
from catchment.operators.keys import Key


@dataclass(slots=True)
class Held:
    """The table."""

    key: Array
    columns: list[Array]
    parts: list[Part]

    @classmethod
    def nothing(cls, columns: int, parts: list[Part]) -> Held:
        """No entries, of so many columns."""
        none = np.zeros(0, np.int64)
        return cls(none, [none] * columns, parts)

    def __len__(self) -> int:
        return len(self.key)

    def take(self, which: Array) -> Held:
        """Those entries, by number or by mask."""
        parts = [None if part is None else part[which] for part in self.parts]
        return Held(self.key[which], [column[which] for column in self.columns], parts)

    def save(self, known: Sequence[Key]) -> list[Any]:
        """As plain data, with the keys themselves."""
        used, codes = np.unique(self.key, return_inverse=True)
        return [
            [known[number] for number in used.tolist()],
            codes.astype(np.int64).tobytes(),
            *(column.astype(np.int64).tobytes() for column in self.columns),
            [aggregates.save(part) for part in self.parts],
        ]

    @classmethod
    def load(cls, saved: Sequence[list[Any]], columns: int, parts: list[Part]) -> tuple[list[Key], Held]:
        """The keys by number, and all that was saved as these; `parts` are those of nothing."""
        keys: list[Key] = []
        tables: list[Held] = []
        for own, codes, *table, held in saved:
            numbers = np.frombuffer(codes, np.int64) + len(keys)
            keys += [tuples(key) for key in own]
            tables.append(
                cls(numbers, [np.frombuffer(each, np.int64) for each in table], [*map(aggregates.load, held)])
            )
        return keys, cls.chained(tables) if tables else cls.nothing(columns, parts)

    @classmethod
    def chained(cls, tables: Sequence[Held]) -> Held:
        """One after the other."""
        lengths = [len(table) for table in tables]
        return cls(
            np.concatenate([table.key for table in tables]),
            [np.concatenate(column) for column in zip(*[table.columns for table in tables], strict=True)],
            [aggregates.chained(part, lengths) for part in zip(*[table.parts for table in tables], strict=True)],
        )

    def of_keys(self, column: int) -> Array:
        """A number for each entry, the same for those of one key that have the same in a column, in order of both."""
        values, rank = np.unique(self.columns[column], return_inverse=True)
        codes: Array = self.key * (len(values) + 1) + rank
        return codes

    def merged(self, by: Array, operations: Sequence[np.ufunc]) -> tuple[Array, Array, list[Part]]:
        """Entries that have the same number: the numbers, an entry of each, and their parts together."""
        order = np.argsort(by, kind="stable")
        numbers, begins = np.unique(by[order], return_index=True)
        if not len(order):
            return numbers, order, self.parts
        found: list[Part] = []
        for part, operation in zip(self.parts, operations, strict=True):
            given = None if part is None else part[order]
            if operation is np.add:
                given = aggregates.roomy(given)
            found.append(None if given is None else operation.reduceat(given, begins))
        return numbers, order[begins], found

    def in_shards(
        self, known: Sequence[Key], shard_of: ShardOf, route: Sequence[int]
    ) -> Iterator[tuple[int, int, list[Any]]]:
        """Each shard, how many keys it has here, and what is saved there."""
        used, codes = np.unique(self.key, return_inverse=True)
        shards = [shard_of(tuple([known[number][field] for field in route])) for number in used.tolist()]
        for shard, which in by_shard(np.array(shards, np.int64)[codes]):
            saved = self.take(which).save(known)
            yield shard, len(saved[0]), saved
