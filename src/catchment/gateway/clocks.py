"""Clocks: where a device's boot-clock readings lie on the gateway's time, decided once per segment and logged.

A message that left at reading r and arrived at t says that offset is at most t - r; the least over many messages is
the best that can be known without trusting the device. An offset that was logged is never changed: a clearly better
one, or one that drift asks for, opens a new segment of the session. A boot that never met a gateway is bridged by the
wall clock, and the error says so. No I/O, no clock: instants are arguments.

>>> clocks = Clocks(())
>>> clocks.heard("boot", 1_000, now_us=1_500_000).offset_us
1499000
>>> clocks.heard("boot", 2_000, now_us=1_500_900) is None, clocks.offset("boot").segment
(True, 0)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from catchment.gateway.log.marks import ClockMark
from catchment.sync.parts import INTEGER_MAX, Clock

DELAY_US = 1_000_000
"""What a message is taken to need at most on its way, for the error that an offset is given."""
BETTER_US = 50_000
"""An offset that is less by this much is worth a segment of its own."""
DRIFT_US = 500_000
"""So is one that has been more by this much through a whole window: crystals drift seconds per day."""
WINDOW_US = 600_000_000
BRIDGED_US = 60_000_000
"""The least error of a boot that is placed by the wall clock."""


class Placed(NamedTuple):
    """Where an upload's elements lie."""

    shift_us: int
    """Add this to the event-time column as encoded."""
    mark: ClockMark | None
    """The offset used; None where the event time is the author's own and the session is not known."""
    decided: bool
    """Whether it was decided just now, so that it must be logged first."""


class Clocks:
    """The sessions of one device."""

    def __init__(self, known: Iterable[ClockMark]) -> None:
        self._segments: dict[str, list[ClockMark]] = {}
        for mark in known:
            self._segments.setdefault(mark.session, []).append(mark)
        self._now: tuple[str, int | None] = ("", None)
        self._window_from_us: int | None = None
        self._window_least_us = 0

    def heard(self, session: str, reading_us: int, *, now_us: int, wall_us: int | None = None) -> ClockMark | None:
        """A message left at that reading and arrived now; a new segment, if this opens one (log it)."""
        if session != self._now[0]:
            self._window_from_us = None
        self._now = (session, wall_us)
        candidate_us = now_us - reading_us
        current = self.offset(session)
        if current is None or candidate_us < current.offset_us - BETTER_US:
            self._window_from_us = None
            return self._open(session, candidate_us, DELAY_US)
        return self._drift(current, candidate_us, now_us)

    def go_on_from(self, before: Clocks) -> None:
        """What was heard of the device's clocks before these were read from the log again."""
        self._now = before._now
        self._window_from_us, self._window_least_us = before._window_from_us, before._window_least_us

    def offset(self, session: str) -> ClockMark | None:
        """The newest segment of a session."""
        segments = self._segments.get(session)
        return segments[-1] if segments else None

    def place(self, clock: Clock | None, *, now_us: int) -> Placed:
        """Where an upload with that clock lies."""
        if clock is None or not clock.session:
            return Placed(0, None, False)
        session = clock.session.hex()
        if clock.offset_us is None:
            return Placed(0, self.offset(session), False)
        known = self._segments.get(session, [])
        for mark in reversed(known):
            if mark.offset_us == clock.offset_us:
                # The device knew the offset and computed with it: both sides agree to the microsecond.
                return Placed(0, mark, False)
        if known:
            return Placed(known[-1].offset_us - clock.offset_us, known[-1], False)
        mark = self._bridge(session, clock, now_us)
        return Placed(mark.offset_us - clock.offset_us, mark, True)

    def shift(self, session: str, offset_us: int | None) -> int | None:
        """What to add to instants that the device counted with that offset; None if the session is not known."""
        if offset_us is None:
            return 0
        known = self._segments.get(session)
        if not known:
            return None
        return 0 if any(mark.offset_us == offset_us for mark in known) else known[-1].offset_us - offset_us

    def _open(self, session: str, offset_us: int, error_us: int) -> ClockMark:
        segments = self._segments.setdefault(session, [])
        mark = ClockMark(session, segments[-1].segment + 1 if segments else 0, offset_us, error_us)
        segments.append(mark)
        return mark

    def _drift(self, current: ClockMark, candidate_us: int, now_us: int) -> ClockMark | None:
        if self._window_from_us is None:
            self._window_from_us, self._window_least_us = now_us, candidate_us
            return None
        self._window_least_us = min(self._window_least_us, candidate_us)
        if now_us - self._window_from_us < WINDOW_US:
            return None
        self._window_from_us = None
        if self._window_least_us > current.offset_us + DRIFT_US:
            return self._open(current.session, self._window_least_us, DELAY_US)
        return None

    def _bridge(self, session: str, clock: Clock, now_us: int) -> ClockMark:
        """The offset of a boot that ended before the device met a gateway."""
        # Its last element was read before now, whatever any clock says.
        latest_us = now_us - clock.reading_us - clock.span_us
        current = self.offset(self._now[0])
        wall_now_us = self._now[1]
        if clock.wall_us is None or wall_now_us is None or current is None:
            return self._open(session, latest_us, INTEGER_MAX)
        # How wrong the wall clock is now is taken for how wrong it was then.
        wrong_us = current.offset_us - wall_now_us
        return self._open(session, min(clock.wall_us + wrong_us, latest_us), max(BRIDGED_US, abs(wrong_us)))
