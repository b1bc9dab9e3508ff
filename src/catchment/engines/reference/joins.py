"""Joins: pairs of a left and a right element of one key, in one window, within an interval, or with the latest."""

from __future__ import annotations

from catchment.engines.reference.definition import Given, Place
from catchment.engines.reference.events import Arrival
from catchment.engines.reference.pairs import give_pair
from catchment.engines.reference.waiting import Taken, Waiting
from catchment.engines.reference.windows import Belonging, belonging, due
from catchment.program import steps
from catchment.program.window import TimeWindow


def join(place: Place, arrivals: list[Arrival]) -> Given:
    """Whichever join it is."""
    step = place.vertex.step
    assert isinstance(step, steps.Join)
    closing = step.window.closing if step.window is not None else step.closing
    waiting = Waiting(place, arrivals, closing, step.scope, step.keys, step.right_keys)
    match step.how:
        case "window":
            return _in_one_window(waiting, step)
        case "interval":
            return _within_an_interval(waiting, step)
        case "latest":
            return _with_the_latest(waiting, step)


def _pairs_with(left: Taken, right: Taken) -> bool:
    """Keys are equal; null equals nothing."""
    return left.key == right.key and None not in left.key


def _in_one_window(waiting: Waiting, step: steps.Join) -> Given:
    window = step.window
    assert isinstance(window, TimeWindow)
    assert window.closing.keep == 0
    for result in due(waiting, window, _of_both(belonging(waiting, window))):
        rights = [taken for taken in result.taken if taken.port == 1]
        for left in (taken for taken in result.taken if taken.port == 0):
            partners = [right for right in rights if _pairs_with(left, right)]
            for right in partners:
                give_pair(waiting, step, result.when, left, right)
            if step.outer and not partners:
                give_pair(waiting, step, result.when, left, None)
    return waiting.outputs(reach=window.size)


def _of_both(found: Belonging) -> Belonging:
    """Windows that hold a left element: the others pair nothing."""
    return {where: taken for where, taken in found.items() if any(each.port == 0 for each in taken)}


def _within_an_interval(waiting: Waiting, step: steps.Join) -> Given:
    released = waiting.released("event_time")
    due_at: list[tuple[int, bool, int, Taken, Taken | None]] = []
    paired: set[int] = set()
    for position, (when, taken) in enumerate(released):
        for _, other in released[:position]:
            left, right = (taken, other) if taken.port == 0 else (other, taken)
            apart = right.element.at - left.element.at
            if left.port != right.port and _pairs_with(left, right) and -step.before <= apart <= step.after:
                paired.add(left.number)
                due_at.append((when, False, position, left, right))
    for position, (when, taken) in enumerate(released):
        if step.outer and taken.port == 0 and taken.number not in paired:
            ends = taken.element.at + step.after + waiting.grace
            # The moment that released it may have gone past the end of its interval too.
            lonely = waiting.due(taken.group, ends, after=when - 1, past=True)
            if lonely is not None:
                due_at.append((lonely, True, position, taken, None))
    for when, _, _, left, right_or_none in sorted(due_at, key=lambda each: each[:3]):
        give_pair(waiting, step, when, left, right_or_none)
    return waiting.outputs(reach=max(step.before, step.after))


def _with_the_latest(waiting: Waiting, step: steps.Join) -> Given:
    # In order, but at one time the right side first.
    released = sorted(
        waiting.released("event_time"),
        key=lambda r: (r.when, r.taken.element.at, -r.taken.port, r.taken.element.source.device, r.taken.number),
    )
    for position, (when, left) in enumerate(released):
        if left.port == 1:
            continue
        rights = [taken for _, taken in released[:position] if taken.port == 1 and _pairs_with(left, taken)]
        if rights or step.outer:
            give_pair(waiting, step, when, left, rights[-1] if rights else None)
    return waiting.outputs()
