"""Windows of sessions: runs of elements of a key with less than a gap between neighbours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from catchment.engines.reference.aggregates import Member, member, results
from catchment.engines.reference.definition import Given, Place
from catchment.engines.reference.events import Arrival, ordering
from catchment.engines.reference.waiting import Taken, Waiting, in_order
from catchment.engines.reference.windows import give_or_fail, looked, ranked
from catchment.program import steps
from catchment.program.types import Row
from catchment.program.window import SessionWindow, Span


@dataclass
class Session:
    """A run of elements of a key."""

    key: Row
    group: Any
    first: int
    last: int
    taken: list[Taken]


def closed(waiting: Waiting, window: SessionWindow, look: Callable[[Taken], bool]) -> list[tuple[int, Session]]:
    """Every session that closes, with the arrival at which it does, in the order in which they are given."""
    gap, grace = window.gap, window.closing.grace
    open_: list[Session] = []
    found = []
    arriving = {taken.number: taken for taken in waiting.elements()}
    for number in range(len(waiting.arrivals)):
        taken = arriving.get(number)
        if taken is None:
            due = [s for s in open_ if waiting.watermark(number, s.group) >= s.last + gap + grace]
            found += [(number, s) for s in sorted(due, key=lambda s: (s.last + gap, ordering(s.key)))]
            open_ = [session for session in open_ if session not in due]
            continue
        at = taken.element.at
        near = [s for s in open_ if s.key == taken.key and s.first - gap < at < s.last + gap]
        if not near and waiting.watermark(number, taken.group) >= at + gap + grace:
            waiting.leave_late(taken)
        elif look(taken):
            merged = Session(
                taken.key,
                taken.group,
                min([at, *(s.first for s in near)]),
                max([at, *(s.last for s in near)]),
                [*(earlier for s in near for earlier in s.taken), taken],
            )
            open_ = [*(session for session in open_ if session not in near), merged]
    return found


def aggregated(place: Place, arrivals: list[Arrival]) -> Given:
    """Aggregates per key and session."""
    step = place.vertex.step
    assert isinstance(step, steps.Aggregated)
    assert isinstance(step.window, SessionWindow)
    waiting = Waiting(place, arrivals, step.window.closing, step.scope, step.keys)
    members: dict[int, Member] = {}

    def look(taken: Taken) -> bool:
        return looked(waiting, taken, members, lambda e: member(place, step.aggregates, e.at, e.row))

    for when, session in closed(waiting, step.window, look):
        span = Span(session.first, session.last + step.window.gap)
        values, failure = results(step.aggregates, [members[t.number] for t in sorted(session.taken, key=in_order)])
        row = (*session.key, *span, 0, span.end - 1, *values)
        give_or_fail(waiting, when, session.group, span.end - 1, row, failure)
    return waiting.outputs()


def top(place: Place, arrivals: list[Arrival]) -> Given:
    """The k elements with the largest value, per key and session."""
    step = place.vertex.step
    assert isinstance(step, steps.TopK)
    assert isinstance(step.window, SessionWindow)
    waiting = Waiting(place, arrivals, step.window.closing, step.scope, step.keys)
    ranks: dict[int, Any] = {}

    def look(taken: Taken) -> bool:
        return looked(waiting, taken, ranks, lambda e: place.value(step.by, e.row))

    for when, session in closed(waiting, step.window, look):
        end = session.last + step.window.gap
        candidates = [(ranks[t.number], t.element.row) for t in sorted(session.taken, key=in_order)]
        for row in ranked(place, step, (*session.key, session.first, end, 0, end - 1), candidates):
            waiting.give(when, session.group, end - 1, row)
    return waiting.outputs()
