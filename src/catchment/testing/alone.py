"""One step tested alone: a program of its sources and of the stream that it makes of them.

>>> from catchment.program.aggregate import count_
>>> from catchment.program.record import Field, Record, event_time
>>> from catchment.program.types import Instant
>>> class Knock(Record):
...     at: Field[Instant] = event_time()
>>> program = alone(lambda knocks: knocks.state(n=count_()), knocks=Knock)
>>> sorted(program.streams)
['alone', 'knocks']
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from catchment.program.places import CloudSite
from catchment.program.program import Program
from catchment.program.record import Record
from catchment.program.site import CLOUD
from catchment.program.stream import Stream


def alone(step: Callable[..., Stream[Any]], /, **sources: type[Record]) -> Program:
    """A program with one source for each record, named as it is, and the stream `alone` that the step makes of them."""
    program = Program("alone")
    for name, record in sources.items():
        add_source(program, name, record)
    add_stream(program, "alone", lambda: step(**{name: program.streams[name] for name in sources}))
    return program


def add_source(program: Program, name: str, record: type[Record]) -> Stream[Any]:
    """A stream of what a test sends there."""

    def source(cloud: CloudSite) -> Any:
        return cloud.source(record)

    source.__name__ = name
    return program.stream(at=CLOUD)(source)


def add_stream(program: Program, name: str, make: Callable[[], Stream[Any]]) -> Stream[Any]:
    """A stream made of those before it."""

    def stream() -> Any:
        return make()

    stream.__name__ = name
    return program.stream(at=CLOUD)(stream)
