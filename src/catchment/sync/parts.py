"""The parts that frames are made of: epochs, clocks, marks, gaps, losses, offsets, promises.

Frozen values whose bounds are checked while they are decoded. They know nothing of bytes, sessions or stores; all of
`sync` and the gateway speak in them.

>>> str(Epoch(3, b"nonce-8b"))
'3-6e6f6e63652d3862'
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

INTEGER_MAX = 2**53 - 1
"""Every integer of a header lies within ±this, so that a browser's numbers hold it exactly."""

# The bounds are checked in C while decoding: a hostile header cannot even become a value.
Count: TypeAlias = Annotated[int, Meta(ge=0, le=INTEGER_MAX)]
Micros: TypeAlias = Annotated[int, Meta(ge=-INTEGER_MAX, le=INTEGER_MAX)]
Name: TypeAlias = Annotated[str, Meta(max_length=255)]
Text: TypeAlias = Annotated[str, Meta(max_length=4096)]
Nonce: TypeAlias = Annotated[bytes, Meta(max_length=32)]


class Part(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A piece of a header: an array by position. No cycle can go through frozen values, so none is looked for."""


class Epoch(Part, frozen=True, array_like=True):
    """One start of a sender: a counter that its store increments, and a nonce that no restored backup repeats."""

    counter: Count
    nonce: Annotated[bytes, Meta(min_length=8, max_length=8)]

    def __str__(self) -> str:
        return f"{self.counter}-{self.nonce.hex()}"


class Clock(Part, frozen=True, array_like=True):
    """Where a frame's elements stand on the sender's boot clock.

    `session` names the boot. The first element was read at `reading_us`, the last at `reading_us + span_us`.
    With `offset_us`, the event-time column holds *reading + offset_us*, so the receiver can take the offset out and put
    its own logged one in; without it the column is the author's data and stays as it is. `wall_us` is what the wall
    clock claimed as (wall − reading): data, used to bridge a boot that never met a gateway.
    """

    session: Nonce
    reading_us: Micros
    span_us: Micros = 0
    offset_us: Micros | None = None
    wall_us: Micros | None = None


class Lost(Part, frozen=True, array_like=True):
    """Elements that the sender gave up, by reason, cumulative over (stream, epoch).

    `refused` never got a number; `dropped` and `thinned` had one, and a `Gap` says which.
    """

    refused: Count = 0
    dropped: Count = 0
    thinned: Count = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.refused + self.dropped + self.thinned


class Gap(Part, frozen=True, array_like=True):
    """Numbers that will never come: before each of `rows` rows from position `at`, `skipped` numbers were given up.

    `at == count` with `rows == 1` speaks of numbers after the last row. The gaps of a frame are in order and do not
    overlap.
    """

    at: Count
    skipped: Count
    rows: Count = 1


NO_LOSS = Lost()


class Mark(Part, frozen=True, array_like=True):
    """Of (stream, epoch), every number below `upto` is durable at the receiver."""

    stream: Name
    epoch: Epoch
    upto: Count


class Offset(Part, frozen=True, array_like=True):
    """The least-delay offset of a session: an element read at r belongs at r + offset_us, give or take error_us.

    A better offset is a new `segment` of the session, never a rewrite of the last.
    """

    session: Nonce
    segment: Count
    offset_us: Micros
    error_us: Micros = 0


class Pressure(Part, frozen=True, array_like=True):
    """Advice to adaptive streams: the cloud is `lag_us` behind; sample `slow_down` times as rarely."""

    lag_us: Count = 0
    slow_down: Annotated[float, Meta(ge=1.0, le=1e6)] = 1.0


class Promise(Part, frozen=True, array_like=True):
    """Nothing of the stream older than `until_us` is unsent here.

    `until_us` counts like the event-time column of frames with the same `offset_us`: see `Clock`.
    """

    stream: Name
    until_us: Micros
    offset_us: Micros | None = None
