"""Windows: which elements are aggregated together, when the result is due, and for how long it may be revised.

A window of a key closes once the sources that can feed that key have promised past `end + grace`. A connected source
that is quiet for `idle` follows the clock, so a parked car's last window closes too. `offline` says what to do about
sources that are away. An element that comes after closing revises (key, window, revision) while the window is kept,
and goes to the late stream after that: nothing is dropped unseen.

>>> [w.start for w in hop(size=60, every=30).over(at=75)]
[30, 60]
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import msgspec

from catchment.errors import ProgramError, SourceLine, author_line
from catchment.program.reliability import duration_text
from catchment.program.types import Duration

MINUTE_US = 60_000_000


class Span(NamedTuple):
    """One window: from `start` up to, and without, `end`."""

    start: int
    end: int


class Offline(msgspec.Struct, frozen=True):
    """What a window does about sources that are away: wait for them, for ever or at most so long."""

    at_most: int | None = None


def wait(at_most: Duration | None = None) -> Offline:
    """Wait for sources that are offline, at most so long if told; late comers then revise or go to the late stream."""
    return Offline(at_most)


CLOSE_AND_REVISE = Offline(0)
"""Do not wait for sources that are offline."""


class Closing(msgspec.Struct, frozen=True):
    """When a window is due and how long it stays open to revision.

    `offline` None is resolved by the plan: a window over one's own devices waits for ever, one over
    many devices at most an hour.
    """

    grace: int = 0
    idle: int = MINUTE_US
    offline: Offline | None = None
    keep: int = 0


class TimeWindow(msgspec.Struct, frozen=True, tag_field="window", tag="time"):
    """Windows of `size`, one starting every `every`; tumbling where they are equal."""

    size: int
    every: int
    closing: Closing = Closing()

    def over(self, at: int) -> list[Span]:
        """The windows that an element of that time belongs to, earliest first.

        >>> TimeWindow(60, 60).over(-1)
        [Span(start=-60, end=0)]
        """
        last = at - at % self.every
        first = at - self.size + self.every - (at - self.size) % self.every
        return [Span(start, start + self.size) for start in range(first, last + 1, self.every)]


class SessionWindow(msgspec.Struct, frozen=True, tag_field="window", tag="session"):
    """Runs of elements with less than `gap` between them; a session ends `gap` after its last element."""

    gap: int
    closing: Closing = Closing()


class CountWindow(msgspec.Struct, frozen=True, tag_field="window", tag="count"):
    """The last `size` elements, each time that `every` more have come."""

    size: int
    every: int
    closing: Closing = Closing()


Window: TypeAlias = TimeWindow | SessionWindow | CountWindow


def tumble(
    size: Duration | int, *, grace: int = 0, idle: int = MINUTE_US, offline: Offline | None = None, keep: int = 0
) -> TimeWindow:
    """Windows one after the other, each of `size`."""
    return hop(size, size, grace=grace, idle=idle, offline=offline, keep=keep)


def hop(
    size: Duration | int,
    every: Duration | int,
    *,
    grace: int = 0,
    idle: int = MINUTE_US,
    offline: Offline | None = None,
    keep: int = 0,
) -> TimeWindow:
    """Overlapping windows: one opens each `every` and spans `size`."""
    _positive("size", size)
    _positive("every", every)
    if every > size:
        raise ProgramError(
            "C150",
            f"windows of {duration_text(size)} every {duration_text(every)} leave gaps",
            why="elements between two windows would be in none and vanish unseen",
            fix="use every <= size, or filter the elements that are not wanted with where()",
            at=author_line(),
        )
    return TimeWindow(size, every, _closing(grace, idle, offline, keep))


def session(
    gap: Duration | int, *, grace: int = 0, idle: int = MINUTE_US, offline: Offline | None = None, keep: int = 0
) -> SessionWindow:
    """A window for each run of elements with less than `gap` between neighbours."""
    _positive("gap", gap)
    return SessionWindow(gap, _closing(grace, idle, offline, keep))


def count(size: int, every: int | None = None, *, grace: int = 0, idle: int = MINUTE_US) -> CountWindow:
    """The last `size` elements in order of event time, each `every` elements (each `size` if not told)."""
    every = size if every is None else every
    _positive("size", size)
    _positive("every", every)
    if every > size:
        raise ProgramError(
            "C151",
            f"a count window of size={size} every={every} skips elements",
            why="the elements between would be in no window and vanish unseen",
            fix="use every <= size",
            at=author_line(),
        )
    return CountWindow(size, every, _closing(grace, idle, None, 0))


def _closing(grace: int, idle: int, offline: Offline | None, keep: int) -> Closing:
    for name, value in (("grace", grace), ("keep", keep)):
        if value < 0:
            raise ProgramError(
                "C152",
                f"{name}={value} is before the end of the window",
                why=f"{name} is how long after the end",
                fix=f"give {name} zero or more, such as seconds(10)",
                at=author_line(),
            )
    _positive("idle", idle)
    return Closing(grace, idle, offline, keep)


def closing_or_usual(closing: Closing | None, at: SourceLine) -> Closing:
    """What was said of how a step waits, or what is usual."""
    if closing is None or isinstance(closing, Closing):
        return closing or Closing()
    raise ProgramError(
        "C283",
        f"closing={closing!r} does not say how a step waits",
        why="it is made of grace, idle and offline, as a window's is",
        fix="write closing=cm.Closing(grace=cm.seconds(10)), or leave it out",
        at=at,
    )


def _positive(name: str, value: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ProgramError(
            "C153",
            f"{name}={value!r} is not a length",
            why="a window spans at least a microsecond, or one element",
            fix=f"write {name}=seconds(60), minutes(5), or a count of at least 1",
            at=author_line(),
        )
