"""What a stream function may draw from at its site: sensors on a device, timers and sources anywhere, connectors in the
cloud. A stream that begins here knows the program that it is made for.
"""

from __future__ import annotations

from typing import Any, TypeVar

from catchment.errors import ProgramError, SourceLine, author_line
from catchment.program import steps
from catchment.program.declared import Declared, Made
from catchment.program.expression import Expr, field_of
from catchment.program.plain import plain
from catchment.program.record import Field, Record, event_time
from catchment.program.sampling import DEVICE_CONTEXT, Sampling, adaptive
from catchment.program.site import CLOUD, DEVICE, Site
from catchment.program.stream import Stream
from catchment.program.types import Duration, Instant, Schema

R = TypeVar("R", bound=Record)


class Beat(Record):
    """An element of a timer stream."""

    at: Field[Instant] = event_time()


class Battery:
    """What a device knows of its battery."""

    low: Expr[bool] = field_of("device", "battery_low", DEVICE_CONTEXT.column("battery_low").type)
    level: Expr[float] = field_of("device", "battery_level", DEVICE_CONTEXT.column("battery_level").type)


class Place:
    """What a stream function may draw from at its site."""

    site: Site

    def __init__(self, made: Made | None = None) -> None:
        self._made = made if made is not None else Made()

    def timer(self, every: Duration) -> Stream[Beat]:
        """An element each `every`."""
        at = author_line()
        if not isinstance(every, int) or every <= 0:
            raise ProgramError(
                "C281",
                f"a timer cannot beat every {every!r} microseconds",
                why="the interval is a length of time",
                fix="give seconds(30) or the like",
                at=at,
            )
        return self._begin(steps.Timer(Beat.schema, every), Beat, at)

    def source(self, record: type[R]) -> Stream[R]:
        """Elements that a program on the device appends, by the sensor of that name; in the cloud, a test's."""
        at = author_line()
        _needs_time(record, at)
        return self._begin(steps.Append(record.schema), record, at)

    def _begin(self, step: steps.Step, record: type[R], at: SourceLine) -> Stream[R]:
        return Stream(Declared(step, (), (record.schema,), at, made=self._made))


class DeviceSite(Place):
    """The device that a stream runs on."""

    site = DEVICE
    battery = Battery()
    indoors: Expr[bool] = field_of("device", "indoors", DEVICE_CONTEXT.column("indoors").type)
    connected: Expr[bool] = field_of("device", "connected", DEVICE_CONTEXT.column("connected").type)
    metered: Expr[bool] = field_of("device", "metered", DEVICE_CONTEXT.column("metered").type)
    pressure: Expr[float] = field_of("device", "pressure", DEVICE_CONTEXT.column("pressure").type)

    def sensor(
        self, record: type[R], name: str | None = None, *, every: Sampling | Duration | None = None
    ) -> Stream[R]:
        """Readings of a sensor, known by `name` or by the record's name: an active stream."""
        at = author_line()
        _needs_time(record, at)
        sampling = every if every is None or isinstance(every, Sampling) else adaptive(every)
        step = steps.Sensor(record.schema, name or record.schema.name, sampling)
        return self._begin(step, record, at)


class CloudSite(Place):
    """The cloud, where a program may also read sources of its own."""

    site = CLOUD

    def read(self, record: type[R], connector: str, **options: Any) -> Stream[R]:
        """A source that Spark reads itself: `cloud.read(Fix, "files", path=...)`, "kafka" or "rate"."""
        at = author_line()
        _needs_time(record, at)
        held = {name: plain(options[name], f"read({name}=)", at) for name in sorted(options)}
        return self._begin(steps.External(record.schema, connector, held), record, at)


PLACES: tuple[type[Place], ...] = (DeviceSite, CloudSite)


def _needs_time(record: type[Record], at: SourceLine) -> None:
    schema: Schema = record.schema
    if schema.event_time is None:
        raise ProgramError(
            "C239",
            f"{schema.name} has no event time",
            why="windows, order and lateness go by when an element happened",
            fix="declare at: cm.Field[cm.Instant] = cm.event_time()",
            at=at,
        )
