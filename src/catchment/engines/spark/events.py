"""What arrives at a part in one stretch of the log, and as the packet that brings a bucket its share of it.

Elements are columns, by the source step that they enter at; what speaks of time lies between them by place. A place is
the number of an event in its stretch. Knows columns and MessagePack; not where the log is, and not what a step does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec
import numpy as np

from catchment.engines.spark.rows import Rows, tuples

PROGRESS, PRESENCE, TICK, FORGET = 1, 2, 3, 4

Said: TypeAlias = tuple[Any, ...]
"""(place, PROGRESS, step, device, owner, at), (place, PRESENCE, device, owner, since), (place, TICK, now), or
(place, FORGET, device, owner, whether all of the owner's goes too)."""
Refused: TypeAlias = tuple[int, str, str, Any]
"""(place, step, reason, what): quarantined before it reached a bucket."""


@dataclass(slots=True)
class Arrived:
    """A stretch of the log, or a bucket's share of it: so many places, and what is at them."""

    count: int = 0
    rows: dict[str, Rows] = field(default_factory=dict)
    said: list[Said] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)

    def pack(self) -> bytes:
        """As bytes."""
        rows = {step: rows.plain(places=True) for step, rows in self.rows.items() if len(rows)}
        return _ENCODER.encode([self.count, rows, self.said, self.refused])

    @classmethod
    def unpack(cls, packet: bytes) -> Arrived:
        """What `pack` wrote.

        >>> Arrived.unpack(Arrived(1, said=[(0, TICK, 5)], refused=[(0, "s", "why", (1, (2,)))]).pack()).refused
        [(0, 's', 'why', (1, (2,)))]
        """
        count, rows, said, refused = _DECODER.decode(packet)
        return cls(
            count,
            {step: Rows.from_plain(saved) for step, saved in rows.items()},
            [tuple(each) for each in said],
            [tuples(each) for each in refused],
        )

    @classmethod
    def joined(cls, parts: Sequence[Arrived]) -> Arrived:
        """One after the other."""
        if len(parts) == 1:
            return parts[0]
        whole = cls()
        rows: dict[str, list[Rows]] = {}
        for part in parts:
            base = whole.count
            for step, given in part.rows.items():
                given.place = given.place + np.int64(base)
                rows.setdefault(step, []).append(given)
            whole.said += [(place + base, *what) for place, *what in part.said]
            whole.refused += [(place + base, step, why, row) for place, step, why, row in part.refused]
            whole.count += part.count
        whole.rows = {step: Rows.concat(given) for step, given in rows.items()}
        return whole


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder()
