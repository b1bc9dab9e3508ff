"""Catchment: one stream program in Python, run across a fleet of devices and in the cloud.

Everything that an author writes is here; `import catchment as cm` and read it after `cm.`. The layers beneath, each
knowing only those before it: `program` (what an author writes), `plan` (what it becomes), `operators` (what a step
does), `engines` (what runs parts), then `device`, `gateway` and the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catchment.errors import CatchmentError, InternalError, PeerError, ProgramError
from catchment.program.aggregate import (
    Aggregate,
    UserAggregate,
    collect,
    count_distinct,
    dft,
    first,
    last,
    mean,
    top,
    variance,
)
from catchment.program.aggregate import count_ as count
from catchment.program.aggregate import max_ as max  # noqa: A004
from catchment.program.aggregate import min_ as min  # noqa: A004
from catchment.program.aggregate import sum_ as sum  # noqa: A004
from catchment.program.builtins import (
    atan2,
    ceil,
    concat,
    contains,
    cos,
    crc32,
    day,
    degrees,
    distance_m,
    ends_with,
    exp,
    floor,
    floor_to,
    greatest,
    hour,
    in_zone,
    is_nan,
    least,
    length,
    ln,
    lower,
    minute,
    month,
    null_if,
    radians,
    replace,
    round_to,
    second,
    sin,
    sqrt,
    starts_with,
    substring,
    trim,
    upper,
    weekday,
    year,
)
from catchment.program.builtins import round_ as round  # noqa: A004
from catchment.program.clock_units import days, hours, instant, iso, microseconds, milliseconds, minutes, seconds
from catchment.program.elements import Elements
from catchment.program.expression import Expr, col, right, when
from catchment.program.function import Function, function
from catchment.program.mark import Mark
from catchment.program.places import Beat, CloudSite, DeviceSite
from catchment.program.process import Context, Process, State
from catchment.program.program import Program
from catchment.program.record import Field, Record, event_time, field, key
from catchment.program.reliability import (
    BEST_EFFORT,
    CROSS_STREAM_ORDER,
    DELAY_FREE,
    IDEAL,
    IN_STREAM_ORDER,
    LOSSLESS,
    Reliability,
    limited_delay,
    limited_loss,
)
from catchment.program.sampling import Sampling, adaptive
from catchment.program.site import CLOUD, DEVICE, FLEET, REGION, Site
from catchment.program.stream import KeyedStream, Stream, WindowedStream
from catchment.program.sync import (
    BUFFER,
    DROP_OLDEST,
    NOTIFY,
    REFUSE,
    Batch,
    Bound,
    SampleDown,
    Sync,
    Thin,
    dead_reckoning,
    significant_change,
    trend,
    wait_when_metered,
)
from catchment.program.types import Duration, Instant, Schema
from catchment.program.window import CLOSE_AND_REVISE, Closing, hop, session, tumble, wait
from catchment.program.window import count as count_window

if TYPE_CHECKING:
    from catchment.plan.physical import Plan

__version__ = "0.1.0"


def metres(distance: float) -> float:
    """A distance in metres, named so that `moved(by=metres(10))` says its unit."""
    return float(distance)


def build(program: Program) -> Plan:
    """The plan of a program, ready to be shipped; refuses its first mistake with the line and a repair."""
    from catchment.plan.build import build as plan_of  # a device that is shipped a plan never builds one

    return plan_of(program)


__all__ = [
    "BEST_EFFORT",
    "BUFFER",
    "CLOSE_AND_REVISE",
    "CLOUD",
    "CROSS_STREAM_ORDER",
    "DELAY_FREE",
    "DEVICE",
    "DROP_OLDEST",
    "FLEET",
    "IDEAL",
    "IN_STREAM_ORDER",
    "LOSSLESS",
    "NOTIFY",
    "REFUSE",
    "REGION",
    "Aggregate",
    "Batch",
    "Beat",
    "Bound",
    "CatchmentError",
    "Closing",
    "CloudSite",
    "Context",
    "DeviceSite",
    "Duration",
    "Elements",
    "Expr",
    "Field",
    "Function",
    "Instant",
    "InternalError",
    "KeyedStream",
    "Mark",
    "PeerError",
    "Process",
    "Program",
    "ProgramError",
    "Record",
    "Reliability",
    "SampleDown",
    "Sampling",
    "Schema",
    "Site",
    "State",
    "Stream",
    "Sync",
    "Thin",
    "UserAggregate",
    "WindowedStream",
    "adaptive",
    "atan2",
    "build",
    "ceil",
    "col",
    "collect",
    "concat",
    "contains",
    "cos",
    "count",
    "count_distinct",
    "count_window",
    "crc32",
    "day",
    "days",
    "dead_reckoning",
    "degrees",
    "dft",
    "distance_m",
    "ends_with",
    "event_time",
    "exp",
    "field",
    "first",
    "floor",
    "floor_to",
    "function",
    "greatest",
    "hop",
    "hour",
    "hours",
    "in_zone",
    "instant",
    "is_nan",
    "iso",
    "key",
    "last",
    "least",
    "length",
    "limited_delay",
    "limited_loss",
    "ln",
    "lower",
    "max",
    "mean",
    "metres",
    "microseconds",
    "milliseconds",
    "min",
    "minute",
    "minutes",
    "month",
    "null_if",
    "radians",
    "replace",
    "right",
    "round",
    "round_to",
    "second",
    "seconds",
    "session",
    "significant_change",
    "sin",
    "sqrt",
    "starts_with",
    "substring",
    "sum",
    "top",
    "trend",
    "trim",
    "tumble",
    "upper",
    "variance",
    "wait",
    "wait_when_metered",
    "weekday",
    "when",
    "year",
]
