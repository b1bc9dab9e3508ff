"""Random histories: four devices of three owners, punctual and late, away and silent, on a clock that may jump back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from catchment.plan.graph import Graph
from catchment.plan.history import Element, Entry, Presence, Progress, Source, Tick
from catchment.program.types import Row
from catchment.testing.engines import RESTART, Restart

Draw = Callable[[st.SearchStrategy[Any]], Any]
Entries = tuple[Entry | Restart, ...]

SOURCES = (Source("d1", "ada"), Source("d2", "ada"), Source("d3", "bob"), Source("d4", None))
# Often on the ends of windows, where a microsecond decides.
_TIMES = st.one_of(st.sampled_from(range(0, 45, 5)), st.integers(0, 30))
_SOURCE = st.sampled_from(SOURCES)
_FLOORS = st.one_of(st.integers(-2, 7), st.sampled_from([None, 1, 2, 2**63 - 1]))
_SPEEDS = st.one_of(
    st.integers(-8, 8).map(lambda quarters: quarters / 4),
    st.sampled_from([None, -0.0, float("nan"), float("inf"), float("-inf")]),
)
_WALKED = st.one_of(st.integers(-8, 80).map(lambda eighths: eighths / 8), st.sampled_from([None, float("nan")]))
_PLACES = st.sampled_from(["a", "b", "aa", "", None])
_PUNCTUAL = st.sampled_from([True, True, True, False])


def _fix(said: tuple[Source, int, Any, Any, Any, Any, bool]) -> list[Entry | Restart]:
    source, at, floor, speed, walked, place, punctual = said
    row = (source.owner, source.device, at, floor, speed, walked, place)
    return _reading("fixes/append", source, at, row, punctual)


def _ping(said: tuple[Source, int, int, bool]) -> list[Entry | Restart]:
    source, at, n, punctual = said
    return _reading("pings/append", source, at, (source.owner, at, n), punctual)


def _reading(step: str, source: Source, at: int, row: Row, punctual: bool) -> list[Entry | Restart]:
    return [Element(step, at, source, row), *([Progress(step, source, at)] if punctual else [])]


_HAPPENS: st.SearchStrategy[list[Entry | Restart]] = st.one_of(
    st.tuples(_SOURCE, _TIMES, _FLOORS, _SPEEDS, _WALKED, _PLACES, _PUNCTUAL).map(_fix),
    st.tuples(_SOURCE, _TIMES, _FLOORS, _SPEEDS, _WALKED, _PLACES, _PUNCTUAL).map(_fix),
    st.tuples(_SOURCE, _TIMES, st.integers(0, 3), _PUNCTUAL).map(_ping),
    st.tuples(st.sampled_from(["fixes/append", "pings/append"]), _SOURCE, _TIMES).map(lambda said: [Progress(*said)]),
    st.one_of(st.sampled_from(range(0, 60, 5)), st.integers(0, 60)).map(lambda now: [Tick(now)]),
    st.tuples(_SOURCE, st.sampled_from([None, 10, None, 10, 11])).map(lambda said: [Presence(*said)]),
    st.just([RESTART]),
)


@st.composite
def histories(draw: Draw, graph: Graph) -> Entries:
    """Histories for a generated program; at the end of most, everyone promises that nothing more is to come."""
    # Counted, for a list would seldom be longer than five, and what waits needs more to show itself.
    entries = [entry for _ in range(draw(st.integers(0, 30))) for entry in draw(_HAPPENS)]
    if draw(st.integers(0, 3)):
        known = [vertex.id for vertex in graph.vertices if vertex.id in ("fixes/append", "pings/append")]
        entries += [Progress(step, source, 1000) for source in SOURCES for step in known]
        entries += [Tick(1000)]
    return tuple(entries)
