"""What arrives at a part in one stretch of the log, and as the packet that brings a bucket its share of it.

Elements are columns, by the source step that they enter at, or uploads that nobody has decoded yet; what speaks of time
lies between them by place. A place is the number of an event in its stretch. Knows columns and MessagePack; not where
the log is, and not what a step does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, TypeAlias

import msgspec
import numpy as np

from catchment.engines.spark.rows import Array, Column, Rows, column_from_plain, joined, plain_column, taken, tuples

PROGRESS, PRESENCE, TICK, FORGET = 1, 2, 3, 4

Said: TypeAlias = tuple[Any, ...]
"""(place, PROGRESS, step, device, owner, at), (place, PRESENCE, device, owner, since), (place, TICK, now), or
(place, FORGET, device, owner, whether all of the owner's goes too)."""
Refused: TypeAlias = tuple[int, str, str, Any]
"""(place, step, reason, what): quarantined before it reached a bucket."""


NUMBERS = ("place", "count", "epoch", "first", "shift_us", "base_us", "promise_us")
NO_PROMISE = -(1 << 63)
"""As the log writes it."""
TEXTS = ("device", "user", "stream", "schema", "codec")


@dataclass(slots=True)
class Uploads:
    """Uploads as they came, in order: what the gateway wrote beside each, by name, and its payload."""

    numbers: dict[str, Array]
    texts: dict[str, Column]
    payloads: Column

    def __len__(self) -> int:
        return len(self.payloads.values)

    def take(self, which: Array) -> Uploads:
        """Those, by number, in that order."""
        return Uploads(
            {name: values[which] for name, values in self.numbers.items()},
            {name: taken(column, which) for name, column in self.texts.items()},
            taken(self.payloads, which),
        )

    def plain(self) -> list[Any]:
        """As plain data."""
        numbers = [self.numbers[name].tobytes() for name in NUMBERS]
        return [numbers, [plain_column(self.texts[name]) for name in TEXTS], plain_column(self.payloads)]

    @classmethod
    def from_plain(cls, saved: list[Any]) -> Uploads:
        """What `plain` gave."""
        numbers, texts, payloads = saved
        return cls(
            {name: np.frombuffer(data, np.int64) for name, data in zip(NUMBERS, numbers, strict=True)},
            {name: column_from_plain(column) for name, column in zip(TEXTS, texts, strict=True)},
            column_from_plain(payloads),
        )

    def promises(self, steps: Mapping[str, str]) -> list[Said]:
        """What they promise, each behind its elements; `steps` says where the elements of a stream enter."""
        promise = self.numbers["promise_us"]
        which = np.flatnonzero(promise != NO_PROMISE)
        places = (self.numbers["place"] + self.numbers["count"])[which].tolist()
        device, user, stream = (taken(self.texts[name], which).objects() for name in ("device", "user", "stream"))
        return [
            (place, PROGRESS, steps[name], of, owner or None, at)
            for place, name, of, owner, at in zip(places, stream, device, user, promise[which].tolist(), strict=True)
        ]

    @classmethod
    def concat(cls, parts: Sequence[Uploads]) -> Uploads:
        """One after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            {name: np.concatenate([part.numbers[name] for part in parts]) for name in NUMBERS},
            {name: joined([part.texts[name] for part in parts]) for name in TEXTS},
            joined([part.payloads for part in parts]),
        )


def by_place(said: Sequence[Said]) -> list[Said]:
    """In order."""
    return sorted(said, key=_PLACE)


@dataclass(slots=True)
class Arrived:
    """A stretch of the log, or a bucket's share of it: so many places, and what is at them."""

    count: int = 0
    rows: dict[str, Rows] = field(default_factory=dict)
    said: list[Said] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    uploads: Uploads | None = None

    def pack(self) -> bytes:
        """As bytes."""
        rows = {step: rows.plain(places=True) for step, rows in self.rows.items() if len(rows)}
        uploads = None if self.uploads is None else self.uploads.plain()
        return _ENCODER.encode([self.count, rows, self.said, self.refused, uploads])

    @classmethod
    def unpack(cls, packet: bytes) -> Arrived:
        """What `pack` wrote.

        >>> Arrived.unpack(Arrived(1, said=[(0, TICK, 5)], refused=[(0, "s", "why", (1, (2,)))]).pack()).refused
        [(0, 's', 'why', (1, (2,)))]
        """
        count, rows, said, refused, uploads = _DECODER.decode(packet)
        return cls(
            count,
            {step: Rows.from_plain(saved) for step, saved in rows.items()},
            [tuple(each) for each in said],
            [tuples(each) for each in refused],
            None if uploads is None else Uploads.from_plain(uploads),
        )

    @classmethod
    def joined(cls, parts: Sequence[Arrived]) -> Arrived:
        """One after the other."""
        if len(parts) == 1:
            return parts[0]
        whole = cls()
        rows: dict[str, list[Rows]] = {}
        uploads: list[Uploads] = []
        for part in parts:
            base = whole.count
            if part.uploads is not None:
                part.uploads.numbers["place"] = part.uploads.numbers["place"] + base
                uploads.append(part.uploads)
            for step, given in part.rows.items():
                given.place = given.place + np.int64(base)
                rows.setdefault(step, []).append(given)
            whole.said += [(place + base, *what) for place, *what in part.said]
            whole.refused += [(place + base, step, why, row) for place, step, why, row in part.refused]
            whole.count += part.count
        whole.rows = {step: Rows.concat(given) for step, given in rows.items()}
        whole.uploads = Uploads.concat(uploads) if uploads else None
        return whole

    @classmethod
    def together(cls, one: Arrived, other: Arrived) -> Arrived:
        """What is at the same places of one stretch, but for uploads."""
        rows = dict(one.rows)
        for step, given in other.rows.items():
            if step in rows:
                whole = Rows.concat([rows[step], given])
                given = whole.take(np.argsort(whole.place, kind="stable"))
            rows[step] = given
        refused = sorted([*one.refused, *other.refused], key=_PLACE)
        return cls(one.count, rows, by_place([*one.said, *other.said]), refused)


_PLACE = itemgetter(0)
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder()
