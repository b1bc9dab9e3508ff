"""Reliability levels as declared types: what an author promises about the output of a program.

A level limits up to three things, each against what the ideal system would have put out: *loss* (how much
may be missing or wrong), *delay* (how late) and *order* (within a stream, or across streams as well). `&` joins
levels. However a promise is written, it has one normal form: per dimension the strongest limit, with what follows
from it filled in. So equality is equality of meaning, and no combination contradicts itself.

>>> limited_loss(0.9, 0.1) & limited_loss(0.5) & limited_delay(Duration(60_000_000))
Reliability: limited_loss(0.9) & limited_delay(60 s)
>>> (LOSSLESS & DELAY_FREE).implies(limited_loss(0.9) & CROSS_STREAM_ORDER)
True
>>> LOSSLESS & DELAY_FREE == IDEAL, BEST_EFFORT & LOSSLESS == LOSSLESS
(True, True)

Knows only data and what the levels mean (the paper on ECOC, section 2.5, as repaired in docs/decisions/0041).
It knows no run, no engine and no strategy that could keep a promise.
"""

from __future__ import annotations

import math
from typing import Literal, NoReturn, TypeAlias

import msgspec
from msgspec.structs import force_setattr

from catchment.errors import ProgramError, author_line
from catchment.program.types import Duration

Order: TypeAlias = Literal["in-stream", "cross-stream"]
_ORDERS: tuple[Order | None, ...] = (None, "in-stream", "cross-stream")  # weakest first


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class LimitedLoss(msgspec.Struct, frozen=True):
    """At least `loss_factor` of the ideal elements arrive; at most `error_factor` as many others come besides.

    The loss factor is the share that must *arrive*: 1 loses nothing, 0.9 may lose a tenth.
    """

    loss_factor: float = 1.0
    error_factor: float = 0.0

    def __post_init__(self) -> None:
        if not (_is_number(self.loss_factor) and 0 < self.loss_factor <= 1):
            raise ProgramError(
                "C300",
                f"a loss factor of {self.loss_factor!r}",
                why="it is the share of the ideal output that must arrive: more than 0, at most 1",
                fix="write limited_loss(0.99) where one element in a hundred may be lost",
                at=author_line(),
            )
        if not (_is_number(self.error_factor) and 0 <= self.error_factor < math.inf):
            raise ProgramError(
                "C301",
                f"an error factor of {self.error_factor!r}",
                why="it limits the elements that are not in the ideal output, as a share of those that are: 0 or more",
                fix="write limited_loss(0.99, error_factor=0.01) for at most one wrong element per hundred ideal ones",
                at=author_line(),
            )
        # One meaning, one form: also in the bytes of a plan, where 1 and 1.0 or 0.0 and -0.0 would differ.
        force_setattr(self, "loss_factor", float(self.loss_factor))
        force_setattr(self, "error_factor", abs(float(self.error_factor)))


class LimitedDelay(msgspec.Struct, frozen=True):
    """No element comes before its ideal moment, and none later than `within_us` microseconds after it."""

    within_us: Duration

    def __post_init__(self) -> None:
        if not isinstance(self.within_us, int) or isinstance(self.within_us, bool) or self.within_us < 0:
            raise ProgramError(
                "C302",
                f"a delay of {self.within_us!r}",
                why="a delay is a duration, held in whole microseconds, and no result can be promised before it is due",
                fix="write limited_delay(seconds(60)), or DELAY_FREE for none at all",
                at=author_line(),
            )


class Reliability(msgspec.Struct, frozen=True, omit_defaults=True):
    """A promise: a limit on loss, on delay and on order, each of which may be absent.

    Written with the names below (`LOSSLESS & limited_delay(...)`), read by dimension: a dimension that is absent
    promises nothing. Reading it from JSON gives the same normal form as writing it.
    """

    loss: LimitedLoss | None = None
    delay: LimitedDelay | None = None
    order: Order | None = None

    def __post_init__(self) -> None:
        if (
            not isinstance(self.loss, LimitedLoss | None)
            or not isinstance(self.delay, LimitedDelay | None)
            or self.order not in _ORDERS
        ):
            raise ProgramError(
                "C303",
                f"a promise of loss={self.loss!r}, delay={self.delay!r}, order={self.order!r}",
                why="a promise is made of levels, not of bare values",
                fix="join levels by name, like LOSSLESS & limited_delay(seconds(60)) & IN_STREAM_ORDER",
                at=author_line(),
            )
        # What is never late is never out of order. Filled in here, so that a reader may look at one dimension alone.
        if self.delay is not None and self.delay.within_us == 0:
            force_setattr(self, "order", "cross-stream")

    def __and__(self, other: Reliability) -> Reliability:
        """Both promises: per dimension the stronger limit, and of loss the stronger of each factor."""
        if not isinstance(other, Reliability):
            self._refuse_operand(other)
        return Reliability(
            _both_losses(self.loss, other.loss),
            _shorter(self.delay, other.delay),
            _stricter(self.order, other.order),
        )

    def __rand__(self, other: object) -> NoReturn:
        self._refuse_operand(other)

    def _refuse_operand(self, other: object) -> NoReturn:
        raise ProgramError(
            "C304",
            f"{self} & {other!r}",
            why="& joins two reliability levels, and the other side is none",
            fix="join levels, like LOSSLESS & IN_STREAM_ORDER",
            at=author_line(),
        )

    def __bool__(self) -> NoReturn:
        raise ProgramError(
            "C305",
            f"{self} used as true or false",
            why="`a and b` keeps only b, which would silently drop the promise of a",
            fix="promise both with &, like LOSSLESS & IN_STREAM_ORDER, and ask with a.implies(b)",
            at=author_line(),
        )

    def implies(self, other: Reliability) -> bool:
        """Whether every run that keeps this promise keeps the other one too.

        >>> limited_delay(Duration(0)).implies(IN_STREAM_ORDER), LOSSLESS.implies(IN_STREAM_ORDER)
        (True, False)
        """
        return self & other == self

    def __str__(self) -> str:
        match (self.loss, self.delay, self.order):
            case (None, None, None):
                return "BEST_EFFORT"
            case (LimitedLoss(1.0, 0.0), LimitedDelay(0), _):
                return "IDEAL"
        parts = [_loss_text(self.loss), _delay_text(self.delay)]
        if "DELAY_FREE" not in parts and self.order is not None:
            parts.append({"in-stream": "IN_STREAM_ORDER", "cross-stream": "CROSS_STREAM_ORDER"}[self.order])
        return " & ".join(part for part in parts if part)

    def __repr__(self) -> str:
        return f"Reliability: {self}"


def duration_text(us: int) -> str:
    """A duration for people, exact to the microsecond.

    >>> duration_text(60_000_000), duration_text(1_500), duration_text(-3), duration_text(0)
    ('60 s', '1.5 ms', '-3 us', '0 s')
    """
    for unit, size in (("s", 1_000_000), ("ms", 1_000)):
        if us == 0 or abs(us) >= size:
            whole, rest = divmod(abs(us), size)
            fraction = f"{rest:0{len(str(size)) - 1}d}".rstrip("0")
            return f"{'-' * (us < 0)}{whole}{'.' * bool(fraction)}{fraction} {unit}"
    return f"{us} us"


def _both_losses(one: LimitedLoss | None, other: LimitedLoss | None) -> LimitedLoss | None:
    if one is None or other is None:
        return one or other
    return LimitedLoss(max(one.loss_factor, other.loss_factor), min(one.error_factor, other.error_factor))


def _shorter(one: LimitedDelay | None, other: LimitedDelay | None) -> LimitedDelay | None:
    if one is None or other is None:
        return one or other
    return min(one, other, key=lambda delay: delay.within_us)


def _stricter(one: Order | None, other: Order | None) -> Order | None:
    return one if _ORDERS.index(one) >= _ORDERS.index(other) else other


def _loss_text(loss: LimitedLoss | None) -> str:
    match loss:
        case None:
            return ""
        case LimitedLoss(1.0, 0.0):
            return "LOSSLESS"
        case LimitedLoss(loss_factor, 0.0):
            return f"limited_loss({loss_factor})"
    return f"limited_loss({loss.loss_factor}, {loss.error_factor})"


def _delay_text(delay: LimitedDelay | None) -> str:
    match delay:
        case None:
            return ""
        case LimitedDelay(0):
            return "DELAY_FREE"
    return f"limited_delay({duration_text(delay.within_us)})"


def limited_loss(loss_factor: float, error_factor: float = 0.0) -> Reliability:
    """At least this share of the ideal output arrives, with at most `error_factor` as many other elements besides.

    `limited_loss(0.99)` may lose one element in a hundred and adds none. Time and order do not matter to it.
    """
    return Reliability(loss=LimitedLoss(loss_factor, error_factor))


def limited_delay(within: Duration) -> Reliability:
    """No correct element comes early, and none later than this; what never comes is a matter of loss."""
    return Reliability(delay=LimitedDelay(within))


LOSSLESS = limited_loss(1.0)
"""Every ideal element arrives, and nothing else does."""
DELAY_FREE = limited_delay(Duration(0))
"""Every correct element comes at its ideal moment, and so in order."""
IN_STREAM_ORDER = Reliability(order="in-stream")
"""The correct elements of each stream come in the order of their sequence numbers."""
CROSS_STREAM_ORDER = Reliability(order="cross-stream")
"""In-stream order; and what is earlier, later or simultaneous of two streams ideally, is so in the real output."""
IDEAL = LOSSLESS & DELAY_FREE
"""The real output is the ideal output."""
BEST_EFFORT = Reliability()
"""No promise."""
