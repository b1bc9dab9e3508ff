"""How often a sensor is read: a base interval, and rules that slow it down or pause it while a condition holds.

Conditions are expressions over what a device knows of itself (`device.battery.low`, `device.indoors`) and over the
cloud's pressure advice.

>>> rule = adaptive(seconds(5), slow_down=4, when=BATTERY_LOW)
>>> rule.every, rule.rules[0].slow_down
(5000000, 4)
"""

from __future__ import annotations

import msgspec

from catchment.errors import ProgramError, author_line
from catchment.program.clock_units import seconds
from catchment.program.expression import Expr, field_of, literal
from catchment.program.nodes import Node
from catchment.program.types import BOOL, FLOAT, Column, Duration, Schema
from catchment.program.typing import infer

DEVICE_CONTEXT = Schema(
    "device",
    (
        Column("battery_level", FLOAT),
        Column("battery_low", BOOL),
        Column("indoors", BOOL),
        Column("connected", BOOL),
        Column("metered", BOOL),
        Column("pressure", FLOAT),
    ),
)
"""What a device knows of itself. `pressure` is 0 while the cloud keeps up and grows to 1 as it falls behind."""

INFERRED = ("battery_level", "battery_low", "indoors", "metered")
"""What of it a program may say by `sink(stream, "surroundings")`; the rest is the link's to know."""

BATTERY_LOW: Expr[bool] = field_of("device", "battery_low", BOOL)


class SlowDown(msgspec.Struct, frozen=True):
    """While `when` holds, read `slow_down` times less often; 0 means not at all."""

    when: Node
    slow_down: int


class Sampling(msgspec.Struct, frozen=True):
    """A sensor's interval and the rules that stretch it; of those that hold, the strongest counts."""

    every: int
    rules: tuple[SlowDown, ...] = ()

    def while_(self, when: Expr[bool] | str, slow_down: int) -> Sampling:
        """A further rule."""
        return Sampling(self.every, (*self.rules, _rule(when, slow_down)))

    def unless(self, when: Expr[bool] | str) -> Sampling:
        """Do not read at all while this holds."""
        return self.while_(when, 0)


def adaptive(every: Duration, *, slow_down: int = 1, when: Expr[bool] | str | None = None) -> Sampling:
    """Read each `every`, `slow_down` times less often while `when` holds; also see `.unless(...)`."""
    if not isinstance(every, int) or every <= 0:
        raise ProgramError(
            "C174",
            f"a sensor cannot be read every {every!r} microseconds",
            why="the interval is a length of time",
            fix="give seconds(5) or the like",
            at=author_line(),
        )
    return Sampling(every, (_rule(when, slow_down),) if when is not None else ())


def _rule(when: Expr[bool] | str, slow_down: int) -> SlowDown:
    at = author_line()
    if isinstance(when, str):
        from catchment.program.sql import parse  # sqlglot is loaded only where SQL is written

        node = parse(when, (DEVICE_CONTEXT,), at)
    else:
        node = when.node if isinstance(when, Expr) else literal(when)
    kind = infer(node, (DEVICE_CONTEXT,), at).type
    if kind != BOOL or slow_down < 0:
        raise ProgramError(
            "C175",
            f"slow_down={slow_down} with a condition of type {kind} is not a rule",
            why="a rule is a condition on the device, and a factor of 0 (pause) or more",
            fix="write slow_down=4, when=device.battery.low",
            at=at,
        )
    return SlowDown(node, slow_down)


__all__ = ["BATTERY_LOW", "DEVICE_CONTEXT", "Sampling", "SlowDown", "adaptive", "seconds"]
