"""Durations and instants as an author writes them: `minutes(5)`, `instant("2026-01-01T00:00:00Z")`.

>>> minutes(5), hours(0.5), instant("1970-01-01T00:00:01Z"), iso(Instant(1_000_000))
(300000000, 1800000000, 1000000, '1970-01-01T00:00:01.000000Z')
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from catchment.errors import ProgramError, author_line
from catchment.program.types import Duration, Instant

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds(count: int) -> Duration:
    """A duration of so many microseconds."""
    return Duration(count)


def milliseconds(count: float) -> Duration:
    """A duration of so many milliseconds."""
    return Duration(round(count * 1_000))


def seconds(count: float) -> Duration:
    """A duration of so many seconds."""
    return Duration(round(count * 1_000_000))


def minutes(count: float) -> Duration:
    """A duration of so many minutes."""
    return seconds(count * 60)


def hours(count: float) -> Duration:
    """A duration of so many hours."""
    return seconds(count * 3_600)


def days(count: float) -> Duration:
    """A duration of so many days of 24 hours."""
    return seconds(count * 86_400)


def instant(text: str) -> Instant:
    """An instant from ISO 8601 text, which must say its zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ProgramError(
            "C129",
            f"{text!r} is not an instant",
            why="an instant is ISO 8601 text with a zone, for a local time alone names no moment",
            fix='write it like "2026-01-01T00:00:00Z"',
            at=author_line(),
        )
    return Instant((moment - _EPOCH) // timedelta(microseconds=1))


def iso(at: Instant) -> str:
    """The instant as ISO 8601 text in UTC, to the microsecond."""
    return (_EPOCH + timedelta(microseconds=at)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
