"""Sync policies as an author declares them: how elements travel from one site to the next.

A policy binds to the next crossing of sites downstream of the stream that carries it; where nothing is crossed it is
inert. It is pure data, carried in the plan, and may be replaced while a device runs. What it means is done by `sync`.

>>> policy = Sync(batch=Batch(records=100, within=Duration(60_000_000)), filter=trend("celsius", within=0.5))
>>> policy.filter
DeadReckoning(fields=('celsius',), within=0.5, geographic=False, hold=300000000)
>>> Batch(records=0)
Traceback (most recent call last):
...
catchment.errors.ProgramError: ProgramError[S440] ...: Batch(records=0) never fills
  why: a batch is sent when it holds so many records or bytes, or after so long
  fix: give records, bytes and within a positive size, or leave out the ones that do not matter
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import msgspec

from catchment.errors import ProgramError, author_line
from catchment.program.expression import Expr
from catchment.program.nodes import FieldRef
from catchment.program.reliability import LOSSLESS, Reliability
from catchment.program.types import Duration

SECOND_US = Duration(1_000_000)
_HOLD_US = Duration(300_000_000)


class Batch(msgspec.Struct, frozen=True, omit_defaults=True):
    """When what has gathered is sent: at so many records, at so many bytes, or `within` so long of the oldest.

    Whichever comes first counts. With `on_reconnect`, whatever has gathered goes out when a connection comes back.
    """

    records: int | None = 100
    within: Duration | None = SECOND_US
    bytes: int | None = None
    on_reconnect: bool = True

    def __post_init__(self) -> None:
        for name in ("records", "within", "bytes"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ProgramError(
                    "S440",
                    f"Batch({name}={value}) never fills",
                    why="a batch is sent when it holds so many records or bytes, or after so long",
                    fix="give records, bytes and within a positive size, or leave out the ones that do not matter",
                    at=author_line(),
                )
        if self.records is None and self.bytes is None and self.within is None:
            raise ProgramError(
                "S441",
                "this batch is never sent",
                why="it has no size and no time",
                fix="write Batch(records=100, within=seconds(60)) or one of the two",
                at=author_line(),
            )


class DeadReckoning(msgspec.Struct, frozen=True, tag_field="filter", tag="dead_reckoning"):
    """Keep only the elements from which straight motion in time gives back all others `within` a bound.

    An element left out lies, at its own event time, within the bound of the straight line between the elements kept
    before and after it. `geographic` fields are a latitude and a longitude in degrees and the bound is metres;
    otherwise it is the Euclidean distance in the fields' own units. No element waits longer than `hold` for its turn.
    """

    fields: tuple[str, ...]
    within: float
    geographic: bool
    hold: Duration


class SignificantChange(msgspec.Struct, frozen=True, tag_field="filter", tag="significant_change"):
    """Keep an element when a field has moved at least `by` since the last one kept, or after `at_least_every`."""

    fields: tuple[str, ...]
    by: float
    at_least_every: Duration | None = None


Filter: TypeAlias = DeadReckoning | SignificantChange


def dead_reckoning(
    lat_deg: Expr[Any] | str, lon_deg: Expr[Any] | str, *, within: float, hold: Duration = _HOLD_US
) -> DeadReckoning:
    """Thin a track so that every position left out can be told `within` so many metres from those kept."""
    _bound("within", within)
    return DeadReckoning((_name(lat_deg), _name(lon_deg)), float(within), True, hold)


def trend(*fields: Expr[Any] | str, within: float, hold: Duration = _HOLD_US) -> DeadReckoning:
    """Thin numbers that move steadily: each one left out can be told `within` that distance from those kept."""
    _bound("within", within)
    return DeadReckoning(_names(fields), float(within), False, hold)


def significant_change(
    *fields: Expr[Any] | str, by: float, at_least_every: Duration | None = None
) -> SignificantChange:
    """Keep an element only when one of these fields moved at least `by` since the last one kept."""
    _bound("by", by)
    return SignificantChange(_names(fields), float(by), at_least_every)


class SampleDown(msgspec.Struct, frozen=True, tag_field="on_disconnect", tag="sample_down"):
    """Once away for `after`, keep one element in `keep_one_in`; the others are counted as lost and reported."""

    keep_one_in: int
    after: Duration = Duration(0)

    def __post_init__(self) -> None:
        if self.keep_one_in < 2 or self.after < 0:
            raise ProgramError(
                "S442",
                f"SampleDown(keep_one_in={self.keep_one_in}, after={self.after}) does not sample down",
                why="it keeps one element in two or more, from some time after the connection went",
                fix="write SampleDown(keep_one_in=10, after=minutes(5)), or on_disconnect=BUFFER to keep all",
                at=author_line(),
            )


OnDisconnect: TypeAlias = Literal["buffer", "notify"] | SampleDown
BUFFER: Literal["buffer"] = "buffer"
"""Keep everything, tell nobody: a disconnection is not visible to the program."""
NOTIFY: Literal["notify"] = "notify"
"""Keep everything, and tell the program when the connection goes and when it is back."""


class Thin(msgspec.Struct, frozen=True, tag_field="when_full", tag="thin"):
    """When full, give up all but one in `keep_one_in` of the oldest half."""

    keep_one_in: int = 2

    def __post_init__(self) -> None:
        if self.keep_one_in < 2:
            raise ProgramError(
                "S443",
                f"Thin(keep_one_in={self.keep_one_in}) frees nothing",
                why="thinning keeps one element in two or more",
                fix="write Thin(2) to keep every other element",
                at=author_line(),
            )


WhenFull: TypeAlias = Literal["refuse", "drop_oldest"] | Thin
REFUSE: Literal["refuse"] = "refuse"
"""When full, new elements are refused, and the program is told."""
DROP_OLDEST: Literal["drop_oldest"] = "drop_oldest"
"""When full, the oldest elements make room."""


class Bound(msgspec.Struct, frozen=True, omit_defaults=True):
    """How much of a stream the outbox holds, and what gives way when it is full. Each lost element is counted."""

    records: int | None = None
    bytes: int | None = 64 * 1024 * 1024
    when_full: WhenFull = "refuse"

    def __post_init__(self) -> None:
        for name in ("records", "bytes"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ProgramError(
                    "S444",
                    f"Bound({name}={value}) holds nothing",
                    why="an outbox keeps each element until it is acknowledged",
                    fix="give it a positive size, or None for as much as the disk holds",
                    at=author_line(),
                )


class Metered(msgspec.Struct, frozen=True, omit_defaults=True):
    """What happens while the link is metered or expensive: wait for a better one, for ever or at most so long."""

    wait: bool = False
    at_most: Duration | None = None


SEND_METERED = Metered()
"""A metered link is as good as any."""


def wait_when_metered(at_most: Duration | None = None) -> Metered:
    """Wait for a link that is not metered; with `at_most`, only so long after the oldest element came."""
    if at_most is not None and at_most <= 0:
        raise ProgramError(
            "S445",
            f"wait_when_metered(at_most={at_most}) does not wait",
            why="at_most is how long the oldest element may wait for a better link",
            fix="give it a duration such as hours(6), or leave the policy's metered= out",
            at=author_line(),
        )
    return Metered(True, at_most)


class Sync(msgspec.Struct, frozen=True, omit_defaults=True):
    """The policy of a sync stream.

    `codec` is "delta", "msgpack", "none", "arrow" or one that the author registered; `compression` None takes the best
    that both ends have. Streams of higher `priority` go first. `reliability` None promises no loss, unless the policy
    itself says that elements may be given up; to promise both is refused.
    """

    batch: Batch = Batch()
    reliability: Reliability | None = None
    codec: str = "delta"
    compression: Literal["zstd", "deflate", "off"] | None = None
    filter: Filter | None = None
    on_disconnect: OnDisconnect = "buffer"
    outbox: Bound = Bound()
    metered: Metered = Metered()
    priority: int = 0

    def __post_init__(self) -> None:
        if not self.codec or "/" in self.codec:
            raise ProgramError(
                "S446",
                f"codec={self.codec!r} names no codec",
                why="a codec is named without its compression",
                fix='write codec="delta", and compression="zstd" beside it if it matters',
                at=author_line(),
            )
        if self.gives_up and self.reliability is not None and self.reliability.implies(LOSSLESS):
            raise ProgramError(
                "S450",
                f"a policy that is {self.reliability} gives elements up",
                why=f"{self.gives_up} loses elements, counted, where LOSSLESS promises that none is",
                fix="promise what it can keep, like reliability=limited_loss(0.5), or keep all: REFUSE and BUFFER",
                at=author_line(),
            )

    @property
    def gives_up(self) -> str:
        """The part of the policy that may give elements up, in words; empty if there is none."""
        if isinstance(self.on_disconnect, SampleDown):
            return f"on_disconnect={self.on_disconnect}"
        if self.outbox.when_full != REFUSE:
            return f"when_full={self.outbox.when_full}"
        return ""


def _bound(name: str, value: float) -> None:
    if not value > 0 or math.isinf(value):
        raise ProgramError(
            "S447",
            f"a filter with {name}={value} has no meaning",
            why="the bound is how far an element may lie from what is already known",
            fix=f"write {name}=metres(10), or a positive number in the field's own unit",
            at=author_line(),
        )


def _names(fields: tuple[Expr[Any] | str, ...]) -> tuple[str, ...]:
    if not fields:
        raise ProgramError(
            "S448",
            "a filter that looks at no field",
            why="it compares fields of an element with those of the last one kept",
            fix="name at least one: significant_change(Fix.speed_mps, by=0.5)",
            at=author_line(),
        )
    return tuple([_name(field) for field in fields])


def _name(field: Expr[Any] | str) -> str:
    if isinstance(field, str):
        return field
    if isinstance(field.node, FieldRef):
        return field.node.name
    raise ProgramError(
        "S449",
        f"{field!r} is not a field",
        why="a sync filter compares fields as they are, so that the receiver can tell what was left out",
        fix="name the field, and compute what you need of it in a select() before the crossing",
        at=author_line(),
    )
