"""A step's state in pieces: what all keys share, and what each shard of keys holds, with when it has to be looked at.

Knows plain data and numpy; not what a piece means, which is its step's business, nor where it is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from zlib import crc32

import msgspec
import numpy as np

from catchment.engines.spark.rows import Array, Column
from catchment.engines.spark.vector.keys import column_values, distinct

NEVER_DUE = 2**63 - 1
_BITS = 8

Route: TypeAlias = tuple[Any, ...]
"""The values that decide the bucket of an element, and the shard of its state."""
ShardOf: TypeAlias = Callable[[Route], int]


@dataclass(slots=True)
class Pieces:
    """`parts` are by shard, and so is the rest.

    `alarm` is a time in the stream before which nothing of a shard is due as watermarks rise, `clock` a reading of the
    clock up to which no tick changes anything, and `count` how many keys there are.
    """

    shared: Any = None
    parts: dict[int, Any] = field(default_factory=dict)
    alarm: dict[int, int] = field(default_factory=dict)
    clock: dict[int, int] = field(default_factory=dict)
    count: dict[int, int] = field(default_factory=dict)

    def ring(self, alarms: dict[int, int], shard: int, at: int) -> None:
        """Something of a shard may be due from then on."""
        alarms[shard] = min(alarms.get(shard, NEVER_DUE), at)


def hashed(route: Route) -> int:
    """The number by which a key's values choose bucket and shard, the same for ever."""
    return crc32(msgspec.msgpack.encode(route))


def shard_of_route(route: Route, shards: int) -> int:
    """The shard of a key, of so many (a power of two): by other bits of the hash than choose the bucket.

    >>> shard_of_route(("ada",), 1), shard_of_route(("ada",), 64) in range(64)
    (0, True)
    """
    return hashed(route) >> _BITS & shards - 1


def shards_of_rows(columns: Sequence[Column], count: int, shard_of: ShardOf) -> Array:
    """The shard of each row, whose values in these columns decide it."""
    if not columns:
        return np.full(count, shard_of(()), np.int64)
    if not count:
        return np.zeros(0, np.int64)
    codes, firsts = distinct(columns, count)
    routes = zip(*[column_values(column, firsts) for column in columns], strict=True)
    return np.array([shard_of(route) for route in routes], np.int64)[codes]


def by_shard(shards: Array) -> Iterator[tuple[int, Array]]:
    """Each shard, and the numbers of what is in it, in order."""
    order = np.argsort(shards, kind="stable")
    found, starts = np.unique(shards[order], return_index=True)
    if not len(found):
        return iter(())
    return zip(found.tolist(), np.split(order, starts[1:]), strict=True)
