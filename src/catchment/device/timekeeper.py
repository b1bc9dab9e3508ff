"""Where a device's readings belong in time: at *reading + offset*, with one offset for each stretch of a session.

A session is one boot, for which the gateway says an offset in its acknowledgements. Until it has, the session is
bridged: from the wall clock, less what that was found to be wrong by when a gateway was last heard, and never before
a moment that has been placed already. A later offset counts for readings from then on; what was placed stays. A
slightly smaller one waits until nothing that was promised would be broken by it.

Knows numbers that it is given, and gives its memory as bytes to be kept with what was placed by it.

>>> keeper = Timekeeper(b"", boot=b"boot one", reading_us=5_000_000, wall_us=1_000_005_000_000)
>>> keeper.place(6_000_000), keeper.bridged
(1000006000000, True)
>>> keeper.learn(Offset(keeper.session, 0, 1_000_002_000_000, 40_000), reading_us=6_000_000, wall_us=1_000_006_000_000)
True
>>> keeper.place(7_000_000), keeper.bridged, keeper.wall_error_us
(1000009000000, False, -2000000)
"""

from __future__ import annotations

import hashlib

import msgspec

from catchment.sync.frame import Offset
from catchment.sync.outbox import Stamp

PATIENT_US = 60_000_000
"""A smaller offset waits for its moment if that comes within so long; a larger correction is made at once."""
WALL_MOVED_US = 2_000_000
"""The wall clock is noted anew when it moved by so much against the boot clock."""
BRIDGE_ERROR_US = 300_000_000
"""The bound of a bridge whose wall clock was compared with a gateway's before: clocks drift, seldom by minutes."""
UNKNOWN_US = 1 << 52
"""The bound of a bridge that rests on nothing but the wall clock's word."""


class _Memory(msgspec.Struct):
    """What survives a restart."""

    boot: bytes
    stretch: int
    reading_us: int
    offset_us: int
    error_us: int
    wall_us: int
    segment: int | None = None
    """Of the gateway's offset; None while the session is bridged."""
    wall_error_us: int | None = None
    """How far the wall clock was ahead when an offset was last learnt."""
    placed_us: int | None = None
    """The latest moment that a reading was placed at."""


class Timekeeper:
    """The offset of the current session. Readings are of one boot clock, and only rise within a boot."""

    def __init__(self, memory: bytes, *, boot: bytes, reading_us: int, wall_us: int) -> None:
        known = msgspec.msgpack.decode(memory, type=_Memory) if memory else None
        if known is not None and known.boot == boot and reading_us >= known.reading_us:
            self._memory = known
        else:
            # A boot clock that went back within a boot is that of a machine restored from an image: another session.
            stretch = known.stretch + 1 if known is not None and known.boot == boot else 0
            self._memory = _bridge(known, boot, stretch, reading_us, wall_us)
        self._waiting: Offset | None = None
        self._name = _session(self._memory)
        self.changed = known is None or self._memory is not known
        """Whether there is something to keep that was not kept yet."""

    @property
    def session(self) -> bytes:
        """The session's name on the wire."""
        return self._name

    @property
    def bridged(self) -> bool:
        """Whether no gateway has placed this session yet."""
        return self._memory.segment is None

    @property
    def offset_us(self) -> int:
        """What is added to readings."""
        return self._memory.offset_us

    @property
    def error_us(self) -> int:
        """How far from true placed moments may be."""
        return self._memory.error_us

    @property
    def wall_error_us(self) -> int | None:
        """How far the wall clock was ahead of the gateway's when they were last compared."""
        return self._memory.wall_error_us

    def place(self, reading_us: int) -> int:
        """The moment of that reading."""
        memory = self._memory
        waiting = self._waiting
        if waiting is not None and reading_us + waiting.offset_us >= (memory.placed_us or 0):
            self._adopt(waiting)
        if reading_us > memory.reading_us:
            memory.reading_us = reading_us
        at = reading_us + memory.offset_us
        if memory.placed_us is None or at > memory.placed_us:
            memory.placed_us = at
        self.changed = True
        return at

    def stamp(self, *, recorded: bool = False) -> Stamp:
        """What entries are stamped with; `recorded` ones brought their moments with them, which nobody is to shift."""
        memory = self._memory
        return Stamp(self._name, None if recorded else memory.offset_us, memory.wall_us)

    def learn(self, offset: Offset, *, reading_us: int, wall_us: int) -> bool:
        """The gateway says where the session stands. Returns whether that is news."""
        memory = self._memory
        newest = self._waiting.segment if self._waiting is not None else memory.segment
        if offset.session != self._name or (newest is not None and offset.segment <= newest):
            return False
        memory.wall_error_us = wall_us - (reading_us + offset.offset_us)
        back_us = (memory.placed_us or 0) - (reading_us + offset.offset_us)
        if 0 < back_us <= PATIENT_US:
            self._waiting = offset
        else:
            self._adopt(offset)
        self.changed = True
        return True

    def look(self, *, reading_us: int, wall_us: int) -> None:
        """Note what the wall clock claims, if it moved."""
        if abs(wall_us - reading_us - self._memory.wall_us) > WALL_MOVED_US:
            self._memory.wall_us = wall_us - reading_us
            self.changed = True

    def memory(self) -> bytes:
        """To be kept, and given to the next start."""
        self.changed = False
        return msgspec.msgpack.encode(self._memory)

    def _adopt(self, offset: Offset) -> None:
        memory = self._memory
        if memory.segment is None and memory.placed_us is not None:
            # What the bridge placed too late says nothing of the time from now on.
            memory.placed_us = None
        memory.segment, memory.offset_us, memory.error_us = offset.segment, offset.offset_us, offset.error_us
        self._waiting = None


def _bridge(before: _Memory | None, boot: bytes, stretch: int, reading_us: int, wall_us: int) -> _Memory:
    """A new session, placed as well as can be until a gateway places it."""
    wall_error_us = None if before is None else before.wall_error_us
    now_us = wall_us - (wall_error_us or 0)
    if before is not None and before.placed_us is not None:
        # A clock without a battery begins in 1970: this boot is in any case after the last.
        now_us = max(now_us, before.placed_us)
    return _Memory(
        boot=boot,
        stretch=stretch,
        reading_us=reading_us,
        offset_us=now_us - reading_us,
        error_us=UNKNOWN_US if wall_error_us is None else BRIDGE_ERROR_US,
        wall_us=wall_us - reading_us,
        wall_error_us=wall_error_us,
        placed_us=None if before is None else before.placed_us,
    )


def _session(memory: _Memory) -> bytes:
    # A name that tells boots apart, and tells nobody the kernel's own name of the boot.
    return hashlib.blake2b(memory.boot + memory.stretch.to_bytes(4, "little"), digest_size=16).digest()
