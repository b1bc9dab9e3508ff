"""What generated programs are made of: a record, functions, aggregates and a process; some fail now and then."""

from __future__ import annotations

import catchment as cm


class Fix(cm.Record):
    """What all generated programs read."""

    user: cm.Field[str | None] = cm.key(stamp="user")
    device: cm.Field[str] = cm.key(stamp="device")
    at: cm.Field[cm.Instant] = cm.event_time()
    place: cm.Field[int]
    speed: cm.Field[float | None] = cm.field(step=0.1)
    raw: cm.Field[float | None]
    n: cm.Field[int | None]
    flag: cm.Field[bool]
    tag: cm.Field[str | None]


class Total(cm.Record):
    """What the fold keeps."""

    at: cm.Field[cm.Instant] = cm.event_time()
    n: cm.Field[int]


@cm.function
def added(total: Total, fix: Fix) -> Total:
    """Fails on a null."""
    return Total(at=fix.at, n=total.n + fix.n)  # type: ignore[operator]


@cm.function
def copies(fix: Fix) -> list[Fix]:
    """As many as its place, and fails beyond two."""
    if fix.place > 2:
        raise ValueError(fix.place)
    return [fix.replace(at=fix.at + i) for i in range(fix.place)]


class Span(cm.UserAggregate[int, tuple[int, int], int]):
    """The largest less the smallest; fails where that is seven."""

    def lift(self, value: int) -> tuple[int, int]:
        if value == 5:
            raise ValueError(value)
        return value, value

    def merge(self, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
        return min(left[0], right[0]), max(left[1], right[1])

    def lower(self, summary: tuple[int, int]) -> int:
        if summary[1] - summary[0] == 7:
            raise ValueError(summary)
        return summary[1] - summary[0]


class Plus(cm.UserAggregate[int, int, int]):
    """A sum that can be undone, except of 4; it fails where it is 13.

    It may not fail in `merge`: which sums there are on the way depends on what is merged first.
    """

    def merge(self, left: int, right: int) -> int:
        return left + right

    def remove(self, summary: int, part: int) -> int:
        if part == 4:
            raise ValueError(part)
        return summary - part

    def lower(self, summary: int) -> int:
        if summary == 13:
            raise ValueError(summary)
        return summary


class Seen(cm.State):
    """What the process remembers."""

    count: int = 0
    tags: list[str] = []  # noqa: RUF012  a field of a struct, which copies it


class Busy(cm.Process[Fix, Total, Seen]):
    """Sets, replaces and cancels timers of both kinds, forgets, and fails now and then."""

    gap: int

    def on_element(self, element: Fix, state: Seen, context: cm.Context) -> list[Total] | None:
        state.count += 1
        state.tags.append(element.tag or "")
        match element.place:
            case 0:
                context.wake("a", element.at + self.gap)
            case 1:
                context.wake("b", element.at - self.gap)
            case 2:
                context.wake_after("a", self.gap)
                context.wake_after("c", 2 * self.gap)
            case 3:
                context.cancel("a")
            case 4:
                context.forget()
            case _:
                context.wake("a", element.at)
                raise ValueError(element.place)
        return [Total(at=element.at, n=state.count), Total(at=cm.Instant(context.now or 0), n=len(state.tags))]

    def on_timer(self, timer: str, state: Seen, context: cm.Context) -> list[Total] | None:
        state.count += 100
        if timer == "b" and state.count % 3:
            context.wake("a", context.at + 1)
        if timer == "c":
            context.wake("b", 0)
            context.wake_after("d", self.gap)
        if state.count % 7 == 0:
            raise ValueError(timer)
        return [Total(at=context.at, n=state.count + len(timer))]


class Step(cm.Record):
    """What goes round in a loop."""

    user: cm.Field[str | None] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    place: cm.Field[int]
