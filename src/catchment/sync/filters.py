"""Filters of sync streams: which elements are worth a number, within a bound that the receiver can rely on.

A filter stands before the outbox, so what it leaves out was never appended and is not lost: it can be told from what
is kept. Its state is data, to be stored with the elements it let through. Knows elements and their event times; must
not know the outbox, links or clocks.

>>> from catchment.program.sync import trend
>>> from catchment.program.types import FLOAT, INSTANT, Column
>>> schema = Schema("T", (Column("at", INSTANT, event_time=True), Column("celsius", FLOAT)))
>>> steady = DeadReckoner(trend("celsius", within=0.5), schema)
>>> [len(steady.offer(Element((at, value), at, at))) for at, value in enumerate([1.0, 2.0, 3.2, 4.1, 9.0])]
[1, 0, 0, 0, 1]
>>> steady.flush()[0].row
(4, 9.0)
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import msgspec

from catchment.errors import ProgramError
from catchment.program.sync import DeadReckoning, Filter, SignificantChange
from catchment.program.types import Row, Schema
from catchment.sync.codecs.packed import pack_row, unpack_row

METRES_PER_DEGREE = math.pi * 6_371_008.8 / 180
"""Along a meridian, on the sphere of the Earth's mean radius."""


class Element(NamedTuple):
    """A row, its event time, the reading at which it came to be, and whatever its owner wants back with it."""

    row: Row
    at_us: int
    reading_us: int
    tag: bytes = b""


class _Packed(msgspec.Struct, array_like=True):
    row: bytes
    at_us: int
    reading_us: int
    tag: bytes


class _Reckoning(msgspec.Struct, array_like=True):
    anchor: _Packed | None
    candidate: _Packed | None
    cone: list[tuple[float, float]]


class DeadReckoner:
    """Keeps only the elements from which straight motion in time gives back all others within a bound.

    From the last element kept, each one since allows a cone of velocities that pass it within the bound. An element
    whose own velocity lies in all the cones can stand for the others; when one comes that cannot, the one before it,
    which could, is kept. That takes a few multiplications per element and remembers two of them.
    """

    def __init__(self, declared: DeadReckoning, schema: Schema) -> None:
        self.declared = declared
        self._schema = schema
        self._places = tuple([schema.position(name) for name in declared.fields])
        steps = [schema.column(name).step or 0.0 for name in declared.fields]
        scale = METRES_PER_DEGREE if declared.geographic else 1.0
        # What is kept is rounded to its steps on the way, which may move the line by half a step in each field.
        slack = math.hypot(*[step * scale / 2 for step in steps])
        if slack >= declared.within:
            raise ProgramError(
                "S451",
                f"a filter within {declared.within} over fields whose steps round by up to {slack:.3g}",
                why="the bound holds for what arrives, and rounding alone would use all of it",
                fix="give the fields a finer step, or the filter a wider bound",
            )
        self._bound = (declared.within - slack) * (1 - 1e-9)
        self._directions, share = _directions(len(declared.fields))
        self._width = self._bound * share
        self._anchor: Element | None = None
        self._candidate: Element | None = None
        self._cone: list[tuple[float, float]] = []

    @property
    def held(self) -> Element | None:
        """The element that waits to learn whether it is needed."""
        return self._candidate

    def offer(self, element: Element) -> list[Element]:
        """Take an element in; returns those that are to be kept now, in order."""
        anchor, candidate = self._anchor, self._candidate
        point = self._point(element)
        if anchor is None or point is None or element.at_us <= (candidate or anchor).at_us:
            # Nothing to draw a line from, or nothing that a line in time could say of it.
            self._anchor, self._candidate = (None if point is None else element), None
            self._cone = []
            return [*([candidate] if candidate is not None else []), element]
        if element.at_us - anchor.at_us <= self.declared.hold and self._fits(anchor, element):
            self._candidate = element
            return []
        if candidate is None:
            self._anchor, self._cone = element, []
            return [element]
        self._anchor, self._candidate, self._cone = candidate, None, []
        return [candidate, *self.offer(element)]

    def flush(self) -> list[Element]:
        """Give up waiting: what is held is kept, and the next line starts at it."""
        if self._candidate is None:
            return []
        self._anchor, self._candidate, self._cone = self._candidate, None, []
        return [self._anchor]

    def state(self) -> bytes:
        """What to restore from."""
        elements = _pack(self._schema, self._anchor), _pack(self._schema, self._candidate)
        return msgspec.msgpack.encode(_Reckoning(*elements, self._cone))

    def restore(self, state: bytes) -> None:
        """Go on from a state."""
        before = msgspec.msgpack.decode(state, type=_Reckoning)
        self._anchor, self._candidate = _unpack(self._schema, before.anchor), _unpack(self._schema, before.candidate)
        self._cone = before.cone

    def _point(self, element: Element) -> tuple[float, ...] | None:
        values = tuple([element.row[place] for place in self._places])
        return values if all(value is not None and math.isfinite(value) for value in values) else None

    def _fits(self, anchor: Element, element: Element) -> bool:
        """Whether the line from the anchor to the element passes all since; if so, whoever follows must pass it too."""
        here, there = self._point(anchor), self._point(element)
        assert here is not None
        assert there is not None
        offset = [b - a for a, b in zip(here, there, strict=True)]
        width = self._width
        if self.declared.geographic:
            if abs(offset[1]) > 180.0:
                return False  # over the antimeridian a line in degrees goes the wrong way round the Earth
            near, far = math.cos(math.radians(here[0])), math.cos(math.radians(there[0]))
            offset = [offset[0] * METRES_PER_DEGREE, offset[1] * METRES_PER_DEGREE * near]
            # Degrees of longitude are longer nearer the equator than they are at the anchor.
            width *= min(1.0, near / far) if far > 0 else 0.0
        elapsed = element.at_us - anchor.at_us
        slopes = [
            sum(u * x for u, x in zip(direction, offset, strict=True)) / elapsed for direction in self._directions
        ]
        if not self._cone:
            self._cone = [(slope - width / elapsed, slope + width / elapsed) for slope in slopes]
            return True
        if not all(low <= slope <= high for slope, (low, high) in zip(slopes, self._cone, strict=True)):
            return False
        self._cone = [
            (max(low, slope - width / elapsed), min(high, slope + width / elapsed))
            for slope, (low, high) in zip(slopes, self._cone, strict=True)
        ]
        return True


class ChangeFilter:
    """Keeps an element when a field has moved far enough since the last one kept, or enough time has passed."""

    def __init__(self, declared: SignificantChange, schema: Schema) -> None:
        self.declared = declared
        self._schema = schema
        self._places = tuple([schema.position(name) for name in declared.fields])
        self._last: Element | None = None

    @property
    def held(self) -> Element | None:
        """Nothing ever waits."""
        return None

    def offer(self, element: Element) -> list[Element]:
        """Take an element in; returns it if it is to be kept."""
        last, declared = self._last, self.declared
        if last is not None and not any(
            _moved(last.row[place], element.row[place], declared.by) for place in self._places
        ):
            quiet = declared.at_least_every is None or element.at_us - last.at_us < declared.at_least_every
            if quiet:
                return []
        self._last = element
        return [element]

    def flush(self) -> list[Element]:
        """Nothing waits."""
        return []

    def state(self) -> bytes:
        """What to restore from."""
        return msgspec.msgpack.encode(_pack(self._schema, self._last))

    def restore(self, state: bytes) -> None:
        """Go on from a state."""
        self._last = _unpack(self._schema, msgspec.msgpack.decode(state, type=_Packed | None))


StreamFilter: TypeAlias = DeadReckoner | ChangeFilter


def make_filter(declared: Filter, schema: Schema) -> StreamFilter:
    """The filter that a policy declares, for rows of that schema."""
    if isinstance(declared, DeadReckoning):
        return DeadReckoner(declared, schema)
    return ChangeFilter(declared, schema)


def _moved(before: Any, now: Any, by: float) -> bool:
    if before is None or now is None or before != before or now != now:
        return (before is None) != (now is None) or (before == before) != (now == now)
    return bool(abs(now - before) >= by)


def _directions(dimensions: int) -> tuple[list[tuple[float, ...]], float]:
    """Directions in which to measure, and the share of the bound to allow in each so that all together keep it."""
    if dimensions == 1:
        return [(1.0,)], 1.0
    if dimensions == 2:
        # An octagon inscribed in the circle: 92 % of its radius in the worst direction, where a square has 71 %.
        angles = [math.pi * k / 4 for k in range(4)]
        return [(math.cos(angle), math.sin(angle)) for angle in angles], math.cos(math.pi / 8)
    axes = [tuple([1.0 if i == k else 0.0 for i in range(dimensions)]) for k in range(dimensions)]
    return axes, 1 / math.sqrt(dimensions)


def _pack(schema: Schema, element: Element | None) -> _Packed | None:
    return None if element is None else _Packed(pack_row(schema, element.row), *element[1:])


def _unpack(schema: Schema, packed: _Packed | None) -> Element | None:
    return (
        None if packed is None else Element(unpack_row(schema, packed.row), packed.at_us, packed.reading_us, packed.tag)
    )
