"""What generated programs are made of: two records, and functions, folds, processes and aggregates that an author
might have declared. All are pure; some fail for some elements, which is part of what they are for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from catchment.program.aggregate import UserAggregate
from catchment.program.function import function
from catchment.program.process import Context, Process, State
from catchment.program.record import Field, Record, event_time, field, key
from catchment.program.types import Instant


class Fix(Record):
    """What devices send."""

    user: Field[str | None] = key(stamp="user")
    device: Field[str] = field(stamp="device")
    at: Field[Instant] = event_time()
    floor: Field[int | None]
    speed_mps: Field[float | None]
    walked_m: Field[float | None] = field(step=0.25)
    place: Field[str | None]


class Ping(Record):
    """What some of them send besides."""

    user: Field[str | None] = key(stamp="user")
    at: Field[Instant] = event_time()
    n: Field[int]


class Tally(Record):
    """What a fold remembers."""

    count: Field[int]
    place: Field[str | None]


class Note(Record):
    """What a process gives: at the moment of the call."""

    text: Field[str]
    count: Field[int]


SOURCES: dict[str, type[Record]] = {"fixes": Fix, "pings": Ping}
NOBODY = Tally(count=0, place=None)
STUMBLES_ON = 7
"""The floor on which functions fail."""


def _stumble(fix: Fix) -> None:
    if fix.floor == STUMBLES_ON:
        raise ValueError(fix.floor)


@function
def delayed(fix: Fix) -> Fix:
    """The fix, some time before or after."""
    _stumble(fix)
    return fix.replace(at=Instant(fix.at + (fix.floor or 0)))


@function
def doubled(fix: Fix) -> Iterable[Fix]:
    """The fix as often as its floor says, at most thrice."""
    for number in range(min(fix.floor or 0, 3)):
        yield fix.replace(place=f"{number}")
    _stumble(fix)


@function
def looked_at(fix: Fix) -> bool:
    """A subscriber."""
    _stumble(fix)
    return True


@function
def tallied(state: Tally, fix: Fix) -> Tally:
    """How many there were, and where the last one was."""
    _stumble(fix)
    return Tally(count=state.count + 1, place=fix.place)


class Places(UserAggregate[str | None, str, str]):
    """All texts, sorted and joined: in any order it is the same."""

    def lift(self, value: str | None) -> str:
        if value is None or value == "b":
            raise ValueError(value)
        return value

    def merge(self, left: str, right: str) -> str:
        return "".join(sorted(left + right))


class Seen(State):
    """What `Busy` remembers of a key."""

    count: int = 0
    places: list[str] = msgspec.field(default_factory=list)


class Busy(Process[Fix, Note, Seen]):
    """Does whatever the floor says: sets timers of both kinds, cancels, forgets, yields much or nothing, stumbles."""

    def on_element(self, element: Fix, state: Seen, context: Context) -> Iterator[Note]:
        state.count += 1
        state.places.append(element.place or "")
        match element.floor:
            case 0:
                context.wake("later", context.at + 5)
            case 1:
                context.wake("before", context.at - 5)
                context.wake("same", context.at)
            case 2:
                context.wake_after("later", 10)
            case 3:
                context.wake_after("now", 0)
            case -1:
                context.cancel("later")
            case -2:
                context.forget()
            case _:
                yield Note(text="".join(state.places), count=state.count)
        _stumble(element)
        yield Note(text=f"{context.key} {context.now}", count=state.count)

    def on_timer(self, timer: str, state: Seen, context: Context) -> list[Note]:
        state.count += 100
        if timer == "same" and state.count % 3 == 0:
            raise ValueError(timer)
        if timer == "now" and state.count < 500:
            context.wake_after("now", 3)
        return [Note(text=f"{timer} {context.at} {context.now}", count=state.count)]
