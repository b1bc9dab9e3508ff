"""What stories are made of: records, the sources that carry them, and what authors declare beside their expressions.

A story's `stream:` may use every name here. `SOURCES` are the streams that a reading can be sent to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import catchment as cm


class Fix(cm.Record):
    """A place of a user's phone, with what the phone knew besides. `distance_m` has a resolution, `speed_mps` none."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    speed_mps: cm.Field[float | None] = cm.field(default=None)
    distance_m: cm.Field[float | None] = cm.field(step=0.1, default=None)
    lat_deg: cm.Field[float | None] = cm.field(default=None)
    lon_deg: cm.Field[float | None] = cm.field(default=None)
    floor: cm.Field[int | None] = cm.field(default=None)
    place: cm.Field[str | None] = cm.field(default=None)


class Reading(cm.Record):
    """A sensor that belongs to nobody: it is known by its device."""

    device: cm.Field[str] = cm.key(stamp="device")
    at: cm.Field[cm.Instant] = cm.event_time()
    celsius: cm.Field[float]


class Visit(cm.Record):
    """Somebody was somewhere. Nothing says whose device may report a shop, so its windows wait for all."""

    shop: cm.Field[str | None] = cm.key()
    at: cm.Field[cm.Instant] = cm.event_time()
    amount: cm.Field[int | None] = cm.field(default=None)


class Order(cm.Record):
    """The left side of pairs."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    item: cm.Field[str]


class Payment(cm.Record):
    """The right side of pairs."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    cents: cm.Field[int]


class Price(cm.Record):
    """A right side whose key, an article, may be unknown."""

    article: cm.Field[str | None] = cm.key()
    at: cm.Field[cm.Instant] = cm.event_time()
    cents: cm.Field[int]


class Sale(cm.Record):
    """A left side whose key may be unknown."""

    article: cm.Field[str | None] = cm.key()
    at: cm.Field[cm.Instant] = cm.event_time()
    pieces: cm.Field[int]


SOURCES = {
    "fixes": Fix,
    "backfill": Fix,
    "readings": Reading,
    "visits": Visit,
    "orders": Order,
    "payments": Payment,
    "prices": Price,
    "sales": Sale,
}


class Speed(cm.Record):
    """A record to select into: an int may become its float, and what is left out has its default."""

    user: cm.Field[str]
    at: cm.Field[cm.Instant] = cm.event_time()
    level: cm.Field[float]
    unit: cm.Field[str] = cm.field(default="m/s")


class Step(cm.Record):
    """One of the steps that a fix stands for."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    number: cm.Field[int]


class Total(cm.Record):
    """What a fold remembers."""

    user: cm.Field[str]
    seconds: cm.Field[int]


class Note(cm.Record):
    """What a process says. Its time is the moment of the call."""

    text: cm.Field[str]


class Stamped(cm.Record):
    """What a process says about another moment."""

    at: cm.Field[cm.Instant] = cm.event_time()
    text: cm.Field[str]


@cm.function
def earlier(fix: Fix) -> Step:
    """The step that was taken ten seconds before."""
    return Step(user=fix.user, at=cm.Instant(fix.at - 10_000_000), number=fix.floor or 0)


@cm.function
def steps_of(fix: Fix) -> Iterable[Step]:
    """As many steps as the floor says, a second apart; it stumbles on the thirteenth floor, after the first step."""
    for number in range(fix.floor or 0):
        if fix.floor == 13 and number == 1:
            raise ValueError(fix.floor)
        yield Step(user=fix.user, at=cm.Instant(fix.at + number * 1_000_000), number=number)


@cm.function
def notice(fix: Fix) -> bool:
    """A subscriber that cannot bear the thirteenth floor."""
    if fix.floor == 13:
        raise ValueError(fix.floor)
    return True


@cm.function
def add_up(state: Total, fix: Fix) -> Total:
    """The sum of floors; it stumbles on the thirteenth."""
    if fix.floor == 13:
        raise ValueError(fix.floor)
    return Total(user=fix.user, seconds=state.seconds + (fix.floor or 0))


NOTHING_YET = Total(user="", seconds=0)


class Longest(cm.UserAggregate[str | None, str, str]):
    """The longest text; of equals the one that sorts first. Texts with a space do not count as places at all."""

    def lift(self, value: str | None) -> str:
        if value is None or " " in value:
            raise ValueError(value)
        return value

    def merge(self, left: str, right: str) -> str:
        return min(left, right, key=lambda text: (-len(text), text))


class Visits(cm.State):
    """What `Hello` remembers of a user."""

    count: int = 0


class Hello(cm.Process[Fix, Note, Visits]):
    """Counts the fixes of a user, and says so. On the thirteenth floor it counts, and then stumbles."""

    def on_element(self, element: Fix, state: Visits, context: cm.Context) -> Iterator[Note]:
        state.count += 1
        yield Note(text=f"{element.user} {state.count}")
        if element.floor == 13:
            context.wake("never", context.at)
            raise ValueError(element.floor)

    def on_timer(self, timer: str, state: Visits, context: cm.Context) -> list[Note]:
        return [Note(text=f"timer {timer}")]


class Gone(cm.Process[Fix, Stamped, Visits]):
    """Says when a user has not been heard of for `after`, in event time; each fix puts it off."""

    after: cm.Duration

    def on_element(self, element: Fix, state: Visits, context: cm.Context) -> None:
        state.count += 1
        context.wake("gone", context.at + self.after)

    def on_timer(self, timer: str, state: Visits, context: cm.Context) -> list[Stamped]:
        return [Stamped(at=context.at, text=f"{context.key[0]} {timer} after {state.count}")]


class Watch(cm.Process[Fix, Note, Visits]):
    """A watchdog on the clock. The floor says: 1 winds it up, 2 forgets the user, 3 stops it; each fix counts."""

    after: cm.Duration

    def on_element(self, element: Fix, state: Visits, context: cm.Context) -> None:
        state.count += 1
        if element.floor == 1:
            context.wake_after("dog", self.after)
        if element.floor == 2:
            context.forget()
        if element.floor == 3:
            context.cancel("dog")

    def on_timer(self, timer: str, state: Visits, context: cm.Context) -> list[Note]:
        return [Note(text=f"{context.key[0]} {timer} {state.count}")]


class Alarms(cm.Process[Fix, Stamped, Visits]):
    """Sets a timer for the event time that the floor says, in seconds, and reports everything that happens to it."""

    def on_element(self, element: Fix, state: Visits, context: cm.Context) -> list[Stamped]:
        if element.floor is not None:
            context.wake(element.place or "alarm", element.floor * 1_000_000)
        return [Stamped(at=element.at, text="fix")]

    def on_timer(self, timer: str, state: Visits, context: cm.Context) -> list[Stamped]:
        return [Stamped(at=context.at, text=timer)]
