"""Order across streams: whether any two elements of different streams kept their order in time.

The definition compares every pair: what is earlier ideally must be earlier really, and what is simultaneous
simultaneous. Instead, one sweep in ideal order holds each element against the latest one before it of another stream:
if any pair is out of order, then so is one that the sweep looks at. n elements take n log n (merging the streams), and
the memory of a few elements per stream.

>>> first_cross_disorder([Arrived(1, "a", 0, 9, 9), Arrived(2, "b", 0, 9, 9)]).kind
'joined'

Knows ideal and real instants only.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from catchment.reliability.comparison import Arrived
from catchment.reliability.report import Disorder


def first_cross_disorder(arrived: Iterable[Arrived]) -> Disorder | None:
    """The first element that is out of order with one before it in another stream; None if there is none.

    `arrived` is sorted, that is by ideal instant, stream and sequence number. The one before it that is named is the
    latest; of those at the same ideal instant, one that came at another instant.
    """
    latest = _Latest()
    for _, instant in groupby(arrived, key=lambda element: element.due_at):
        # Of the streams of this instant that are already passed.
        first: Arrived | None = None
        last: Arrived | None = None
        passed: list[Arrived] = []
        for stream, elements in groupby(instant, key=lambda element: element.stream):
            before = latest.outside(stream)
            own_first: Arrived | None = None
            own_last: Arrived | None = None
            for element in elements:
                if before is not None and before.last_at >= element.first_at:
                    return Disorder(
                        "joined" if before.last_at == element.first_at else "reversed",
                        before.witness(before.last_at),
                        element.witness(element.first_at),
                    )
                if first is not None and first.first_at < element.last_at:
                    return Disorder("parted", first.witness(first.first_at), element.witness(element.last_at))
                if last is not None and last.last_at > element.first_at:
                    return Disorder("parted", last.witness(last.last_at), element.witness(element.first_at))
                own_first, own_last = _earlier(own_first, element), _later(own_last, element)
            if own_first is not None and own_last is not None:
                first, last = _earlier(first, own_first), _later(last, own_last)
                passed.append(own_last)
        for element in passed:
            latest.add(element)
    return None


class _Latest:
    """The element that came last, and the last one of any other stream: enough to leave any one stream out."""

    def __init__(self) -> None:
        self._last: Arrived | None = None
        self._other: Arrived | None = None

    def outside(self, stream: str) -> Arrived | None:
        return self._other if self._last is not None and self._last.stream == stream else self._last

    def add(self, element: Arrived) -> None:
        if self._last is None or self._last.stream == element.stream:
            self._last = _later(self._last, element)
        elif element.last_at > self._last.last_at:
            self._last, self._other = element, self._last
        else:
            self._other = _later(self._other, element)


def _earlier(one: Arrived | None, other: Arrived) -> Arrived:
    return one if one is not None and one.first_at <= other.first_at else other


def _later(one: Arrived | None, other: Arrived) -> Arrived:
    return one if one is not None and one.last_at >= other.last_at else other
