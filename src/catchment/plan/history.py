"""A history: the entries that a part is fed, in the log's order, and the results that it gives, as frozen data.

Every engine takes the same histories and gives the same results; transcripts and generated tests are made of them.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import msgspec

from catchment.program.types import Row


class Source(NamedTuple):
    """Who sent an element: the device, and the user it belongs to, as the gateway vouches."""

    device: str
    owner: str | None = None


class Element(msgspec.Struct, frozen=True, tag_field="entry", tag="element"):
    """An element of a source step of the graph (by its id)."""

    step: str
    at: int
    source: Source
    row: Row


class Progress(msgspec.Struct, frozen=True, tag_field="entry", tag="progress"):
    """The source's promise that nothing older than `at` is still to come at that step."""

    step: str
    source: Source
    at: int


class Presence(msgspec.Struct, frozen=True, tag_field="entry", tag="presence"):
    """The source went away at that moment of the clock, or came back (None)."""

    source: Source
    since: int | None


class Tick(msgspec.Struct, frozen=True, tag_field="entry", tag="tick"):
    """The clock of whoever keeps the log."""

    now: int


Entry: TypeAlias = Element | Progress | Presence | Tick
History: TypeAlias = tuple[Entry, ...]


class Result(msgspec.Struct, frozen=True):
    """An element that a port gave: its number on that port, counted from 0, its time, and the row."""

    number: int
    at: int
    source: Source
    row: Row


class Failure(msgspec.Struct, frozen=True):
    """An element that was quarantined: the step that failed, why, and what it was given."""

    step: str
    reason: str
    row: Row


class Outcome(msgspec.Struct, frozen=True):
    """What a run gave: results by port (`step id`, port number) of every vertex asked for, and failures."""

    results: dict[tuple[str, int], tuple[Result, ...]]
    failures: tuple[Failure, ...] = ()
