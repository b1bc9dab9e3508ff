"""Windows of time: who belongs to which, when each is due, its revisions, and its aggregates or top elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from catchment.engines.reference.aggregates import Member, member, results
from catchment.engines.reference.definition import Given, Place
from catchment.engines.reference.events import Arrival, ordering
from catchment.engines.reference.waiting import Taken, Waiting, in_order
from catchment.engines.reference.watermarks import Moment
from catchment.program import steps
from catchment.program.row_error import RowError
from catchment.program.types import Row
from catchment.program.window import Span, TimeWindow


class Due(NamedTuple):
    """A result of a window: at which arrival, which revision, of which of its elements (in order)."""

    when: int
    revision: int
    key: Row
    span: Span
    group: Any
    taken: list[Taken]


Belonging = dict[tuple[Row, Span], list[Taken]]


def belonging(waiting: Waiting, window: TimeWindow, look: Callable[[Taken], bool] = lambda taken: True) -> Belonging:
    """The elements of each window of each key, as they arrived. Elements too late for any of theirs leave.

    `look` takes an element, once it has a window: it answers whether the element can take part.
    """
    found: Belonging = {}
    for taken in waiting.elements():
        mark = waiting.watermark(taken.number, taken.group)
        spans = window.over(taken.element.at)
        open_ = [span for span in spans if not _too_late(mark, span, window)]
        if len(open_) < len(spans):
            waiting.leave_late(taken)
        if open_ and look(taken):
            for span in open_:
                found.setdefault((taken.key, span), []).append(taken)
    return found


def _too_late(mark: Moment, span: Span, window: TimeWindow) -> bool:
    return mark >= span.end + window.closing.grace + window.closing.keep


def due(waiting: Waiting, window: TimeWindow, belonging: Belonging) -> list[Due]:
    """All results in the order in which they are given: at one arrival revisions first, then by (end, key)."""
    found = []
    for (key, span), taken in belonging.items():
        group = taken[0].group
        closes = waiting.due(group, span.end + window.closing.grace)
        if closes is None:
            continue
        # What came before the window closed is due as it closes; what came after, at the next moment.
        whens = {closes if each.number < closes else next(iter(waiting.moments(each.number)), None) for each in taken}
        for revision, when in enumerate(sorted(when for when in whens if when is not None)):
            holds = sorted((each for each in taken if each.number < when), key=in_order)
            found.append((when, when == closes, span.end, ordering(key), Due(when, revision, key, span, group, holds)))
    return [each[-1] for each in sorted(found, key=lambda each: each[:-1])]


def aggregated(place: Place, arrivals: list[Arrival]) -> Given:
    """Aggregates per key and window of time."""
    step = place.vertex.step
    assert isinstance(step, steps.Aggregated)
    assert isinstance(step.window, TimeWindow)
    waiting = Waiting(place, arrivals, step.window.closing, step.scope, step.keys)
    members: dict[int, Member] = {}

    def look(taken: Taken) -> bool:
        return looked(waiting, taken, members, lambda e: member(place, step.aggregates, e.at, e.row))

    for result in due(waiting, step.window, belonging(waiting, step.window, look)):
        values, failure = results(step.aggregates, [members[t.number] for t in result.taken], result.span)
        at = result.span.end - 1
        row = (*result.key, *result.span, result.revision, at, *values)
        give_or_fail(waiting, result.when, result.group, at, row, failure)
    return waiting.outputs()


def top(place: Place, arrivals: list[Arrival]) -> Given:
    """The k elements with the largest value, per key and window of time."""
    step = place.vertex.step
    assert isinstance(step, steps.TopK)
    assert isinstance(step.window, TimeWindow)
    waiting = Waiting(place, arrivals, step.window.closing, step.scope, step.keys)
    ranks: dict[int, Any] = {}

    def look(taken: Taken) -> bool:
        return looked(waiting, taken, ranks, lambda e: place.value(step.by, e.row))

    for result in due(waiting, step.window, belonging(waiting, step.window, look)):
        begins = (*result.key, *result.span, result.revision, result.span.end - 1)
        for row in ranked(place, step, begins, [(ranks[t.number], t.element.row) for t in result.taken]):
            waiting.give(result.when, result.group, result.span.end - 1, row)
    return waiting.outputs()


def looked(waiting: Waiting, taken: Taken, into: dict[int, Any], look: Callable[[Any], Any]) -> bool:
    """Look at an element's expressions as it arrives: remember what they give, or quarantine it."""
    try:
        into[taken.number] = look(taken.element)
    except RowError as error:
        waiting.fail(taken.number, error, taken.element.row)
        return False
    return True


def ranked(place: Place, step: steps.TopK, begins: Row, candidates: list[tuple[Any, Row]]) -> list[Row]:
    """The rows of the k largest, largest first; of equals the earlier in order, which is how they are given."""
    names = step.record.names[len(begins) + 1 :]
    positions = [place.inputs[0].position(name) for name in names]
    first = sorted(candidates, key=lambda candidate: ordering(candidate[0]), reverse=True)[: step.k]
    return [(*begins, rank, *(row[i] for i in positions)) for rank, (_, row) in enumerate(first, start=1)]


def give_or_fail(waiting: Waiting, when: int, group: Any, at: int, row: Row, failure: RowError | None) -> None:
    """A result, or its row in quarantine where an aggregate failed."""
    if failure is None:
        waiting.give(when, group, at, row)
    else:
        waiting.fail(when, failure, row)
