"""Programs and histories drawn at random, one or two steps each, for comparing engines.

Times, gaps and graces are small numbers of microseconds, so that the interesting moments coincide often.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

import catchment as cm
from catchment.plan.graph import Graph, graph_of
from catchment.plan.history import Element, Entry, Outcome, Presence, Progress, Source, Tick
from catchment.program import steps
from catchment.testing import alone


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
    """A sum that can be undone, except where it was 13."""

    def merge(self, left: int, right: int) -> int:
        if left == 13:
            raise ValueError(left)
        return left + right

    def remove(self, summary: int, part: int) -> int:
        return summary - part


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


SPEED: Any = Fix.speed  # where it is null, it is passed over
KEYS = ((), (Fix.user,), (Fix.place,), (Fix.device,), (Fix.user, Fix.place))


def graph(draw: random.Random) -> Graph:
    """A graph with one or two interesting steps after two sources."""
    return graph_of(alone(_step(draw, _filtered(draw), _filtered(draw)), left=Fix, right=Fix))


class Step(cm.Record):
    """What goes round in a loop."""

    user: cm.Field[str | None] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    place: cm.Field[int]


def looped(draw: random.Random) -> Graph:
    """A graph in which elements come round until they come to rest, some more of them each time."""
    program = cm.Program("looped")
    end, by = draw.choice((0, 2, 5, 7)), draw.choice((1, 2))
    twice = draw.random() < 0.2 and end < 3

    @program.stream(at=cm.CLOUD)
    def left(cloud: cm.CloudSite) -> cm.Stream[Fix]:
        return cloud.source(Fix)

    @program.stream(at=cm.CLOUD)
    def right(cloud: cm.CloudSite) -> cm.Stream[Fix]:
        return cloud.source(Fix)

    again = program.loop(Step, "again")

    @program.stream(at=cm.CLOUD)
    def joined(left: cm.Stream[Fix], right: cm.Stream[Fix]) -> cm.Stream[Step]:
        return left.select(Step).union(again, *([again] if twice else []), right.select(Step))

    @program.stream(at=cm.CLOUD)
    def onward(joined: cm.Stream[Step]) -> cm.Stream[Step]:
        return joined.where(Step.place < end).select(Step, place=Step.place + by)

    @program.stream(at=cm.CLOUD)
    def kept(joined: cm.Stream[Step], left: cm.Stream[Fix]) -> cm.Stream[Any]:
        closing = _whole_closing(draw)
        match draw.choice(("zip", "count", "changes")):
            case "zip":
                return joined.zip(left, one=Step.place, other=Fix.place)
            case "count":
                return joined.key_by(Step.user).state(order="arrival", closing=closing, all=cm.collect(Step.place))
            case _:
                return joined.changes(Step.place)

    program.close_loop("again", onward)
    return graph_of(program)


def _filtered(draw: random.Random) -> Callable[[Any], Any]:
    return draw.choice(
        (
            lambda fixes: fixes,
            lambda fixes: fixes,
            lambda fixes: fixes.where(Fix.place != 3).select(
                Fix, speed=Fix.speed * 2, n=Fix.n // (Fix.place - 1), raw=Fix.raw + Fix.place
            ),
            lambda fixes: fixes.flat_map(copies),
            lambda fixes: fixes.where(Fix.flag),
        )
    )


def _step(draw: random.Random, first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Callable[..., Any]:
    keys = draw.choice(KEYS)

    def key(stream: Any) -> Any:
        return stream.key_by(*keys) if keys else stream

    kinds: dict[str, Callable[..., Any]] = {
        "time": lambda a, b: key(a.union(b)).window(_hop(draw)).agg(**_aggregates(draw)),
        "session": lambda a, b: (
            key(a).window(cm.session(draw.choice((1, 5, 20)), **_closing(draw))).agg(**_aggregates(draw))
        ),
        "count": lambda a, b: key(a).window(_counts(draw)).agg(**_aggregates(draw)),
        "top": lambda a, b: (
            key(a)
            .window(draw.choice((_hop, _session, _counts))(draw))
            .top(draw.choice((1, 2, 5)), by=draw.choice((Fix.speed, Fix.raw, Fix.n, Fix.tag, Fix.n // Fix.place)))
        ),
        "running": lambda a, b: key(a.union(b)).state(
            order=draw.choice(("event_time", "arrival")), closing=_whole_closing(draw), **_aggregates(draw)
        ),
        "fold": lambda a, b: key(a).fold(
            added,
            Total(at=cm.Instant(0), n=1),
            order=draw.choice(("event_time", "arrival")),
            closing=_whole_closing(draw),
        ),
        "changes": lambda a, b: key(a).changes(*draw.choice(((Fix.speed,), (Fix.raw, Fix.tag), ()))),
        "moved": lambda a, b: key(a).moved(by=draw.choice((1.0, 200_000.0)), lat_deg=Fix.raw, lon_deg=Fix.speed),
        "zip": lambda a, b: key(a).zip(key(b), **_pair(draw)),
        "combine": lambda a, b: key(a).combine(key(b), **_pair(draw)),
        "union": lambda a, b: a.union(b, a.where(Fix.flag)).where(Fix.place < 4),
    }
    if keys:
        kinds |= {
            "process": lambda a, b: key(a).process(
                Busy(gap=draw.choice((0, 3, 20))),
                order=draw.choice(("event_time", "arrival")),
                closing=_whole_closing(draw),
                ttl=draw.choice((None, cm.microseconds(1), cm.microseconds(10), cm.microseconds(40))),
            ),
            "window join": lambda a, b: key(a).join(
                key(b), within=_hop(draw, keep=False), outer=draw.random() < 0.5, **_pair(draw)
            ),
            "interval join": lambda a, b: key(a).join(
                key(b),
                within=(cm.microseconds(draw.choice((0, 7, 30))), cm.microseconds(draw.choice((0, 7, 30)))),
                outer=draw.random() < 0.5,
                closing=_whole_closing(draw),
                **_pair(draw),
            ),
            "latest join": lambda a, b: key(a).join_latest(
                key(b), outer=draw.random() < 0.5, closing=_whole_closing(draw), **_pair(draw)
            ),
            "two windows": lambda a, b: (
                key(a)
                .window(cm.hop(20, 10, **_closing(draw)))
                .agg(n=cm.count())
                .window(cm.tumble(40, **_closing(draw)))
                .agg(total=cm.sum(cm.col("n")))
            ),
            "window and join": lambda a, b: key(a.union(b)).join(
                key(b.where(Fix.flag)), within=_hop(draw, keep=False), left=Fix.n, other=cm.right(Fix.n)
            ),
        }
    name = draw.choice(sorted(kinds))
    return lambda left, right: kinds[name](first(left), second(right))


def _closing(draw: random.Random, *, keep: bool = True) -> dict[str, Any]:
    return {
        "grace": draw.choice((0, 0, 5, 20)),
        "idle": draw.choice((10, 40, 10**9)),
        "offline": draw.choice((None, cm.wait(), cm.wait(cm.microseconds(15)), cm.CLOSE_AND_REVISE)),
        "keep": draw.choice((0, 0, 15, 60)) if keep else 0,
    }


def _whole_closing(draw: random.Random) -> cm.Closing:
    return cm.Closing(**_closing(draw, keep=False))


def _hop(draw: random.Random, *, keep: bool = True) -> Any:
    size, every = draw.choice(((10, 10), (20, 10), (60, 5), (30, 20), (7, 3), (60, 60)))
    return cm.hop(size, every, **_closing(draw, keep=keep))


def _session(draw: random.Random) -> Any:
    return cm.session(draw.choice((1, 5, 20)), **_closing(draw))


def _counts(draw: random.Random) -> Any:
    size, every = draw.choice(((1, 1), (3, 3), (4, 2), (6, 1), (5, 2)))
    return cm.count_window(size, every, grace=draw.choice((0, 5)), idle=draw.choice((10, 10**9)))


def _aggregates(draw: random.Random) -> dict[str, Any]:
    known = {
        "rows": cm.count(),
        "sum_speed": cm.sum(Fix.speed),
        "mean_speed": cm.mean(Fix.speed),
        "variance_speed": cm.variance(Fix.speed),
        "sum_raw": cm.sum(Fix.raw),
        "mean_raw": cm.mean(Fix.raw),
        "variance_raw": cm.variance(Fix.raw),
        "sum_n": cm.sum(Fix.n),
        "mean_n": cm.mean(Fix.n),
        "variance_n": cm.variance(Fix.n),
        "least": cm.min(Fix.raw),
        "most": cm.max(Fix.raw),
        "least_tag": cm.min(Fix.tag),
        "first_n": cm.first(Fix.n),
        "last_tag": cm.last(Fix.tag),
        "tags": cm.collect(Fix.tag),
        "distinct": cm.count_distinct(Fix.raw),
        "frequent": cm.top(2, Fix.tag),
        "spectrum": cm.dft(SPEED, bins=3),
        "span": Span()(Fix.place),
        "plus": Plus()(Fix.place),
        "quotient": cm.max(Fix.n // (Fix.place - 2)),
    }
    chosen = draw.sample(sorted(known), draw.choice((1, 1, 2, 4)))
    return {name: known[name] for name in chosen}


def _pair(draw: random.Random) -> dict[str, Any]:
    columns = {
        "left_n": Fix.n,
        "right_n": cm.right(Fix.n),
        "place": Fix.place,
        "tag": cm.right(Fix.tag),
        "at_left": Fix.at,
    }
    if draw.random() < 0.3:
        columns["quotient"] = Fix.n // cm.right(Fix.n)
    return columns


SOURCES = (Source("a1", "ada"), Source("a2", "ada"), Source("b1", "bob"), Source("c1", None))
COLLAPSED = (Source("", "ada"), Source("", "bob"), Source("", None))


def history(draw: random.Random, drawn: Graph, size: int) -> list[Entry]:
    """Elements that come in time, late and very late, promises, silence, absence and ticks."""
    starts = [vertex.id for vertex in drawn.vertices if isinstance(vertex.step, steps.Append)]
    sources = [*draw.sample(SOURCES, draw.choice((1, 2, 4))), *draw.sample(COLLAPSED, draw.choice((0, 0, 1)))]
    now = 0
    found: list[Entry] = []
    for _ in range(size):
        now += draw.choice((0, 1, 2, 5, 20))
        source = draw.choice(sources)
        kind = draw.random()
        if kind < 0.6:
            found.append(_element(draw, draw.choice(starts), now - draw.choice((0, 0, 1, 5, 30, 100)), source))
        elif kind < 0.85:
            for start in draw.sample(starts, draw.choice((1, 2))):
                found.append(Progress(start, source, now - draw.choice((0, 3, 20))))
        elif kind < 0.9:
            found.append(Presence(source, draw.choice((None, now))))
        else:
            found.append(Tick(now + draw.choice((-5, 0, 10))))
    if draw.random() < 0.7:
        found += [Progress(start, source, now + 500) for start in starts for source in sources]
        found.append(Tick(now + 10**6))
    return found


def _element(draw: random.Random, start: str, at: int, source: Source) -> Element:
    row = (
        draw.choice((source.owner, source.owner, source.owner, "ada", None)),
        source.device or "a1",
        at,
        draw.choice((0, 1, 1, 2, 2, 3, 4, 5)),
        draw.choice((None, 0.0, 0.1, 2.5, -7.3, 12.0, 100.0, *((math.nan, math.inf) if draw.random() < 0.1 else ()))),
        draw.choice((None, 0.0, -0.0, 1.5, 2.25, -3.125, *((math.nan, -math.inf) if draw.random() < 0.1 else ()))),
        draw.choice((None, 0, 1, 7, -4, *((2**62, 2**63 - 1) if draw.random() < 0.1 else ()))),
        draw.choice((True, False)),
        draw.choice((None, "x", "y", "é", "")),
    )
    return Element(start, at, source, row)


def by_panes(drawn: Graph) -> Graph:
    """The graph with windows of time made of panes."""
    changed = [
        msgspec.structs.replace(vertex, step=msgspec.structs.replace(vertex.step, panes=True))
        for vertex in drawn.vertices
        if isinstance(vertex.step, steps.Aggregated)
    ]
    return drawn.replace(changed)


def ends(drawn: Graph) -> list[tuple[str, int]]:
    """The outputs that nothing in the graph reads, as far as a device would take them."""
    read = {edge for vertex in drawn.vertices for edge in vertex.inputs}
    known = [(vertex.id, port) for vertex in drawn.vertices for port in range(len(vertex.schemas))]
    return [edge for edge in known if edge not in read]


def differences(expected: Outcome, actual: Outcome, ports: Iterable[tuple[str, int]]) -> list[str]:
    """What differs, in words; floats may by a relative 1e-9."""
    found = []
    for edge in ports:
        wanted, given = expected.results[edge], actual.results[edge]
        if len(wanted) != len(given):
            found.append(f"{edge}: {len(wanted)} results and {len(given)}")
        for one, other in zip(wanted, given, strict=False):
            if (one.number, one.at, one.source) != (other.number, other.at, other.source) or not close(
                one.row, other.row
            ):
                found.append(f"{edge}: {one} and {other}")
                break
    wanted_failures = [(f.step, f.reason, f.row) for f in expected.failures]
    given_failures = [(f.step, f.reason, f.row) for f in actual.failures]
    if not close(tuple(wanted_failures), tuple(given_failures)):
        found.append(f"failures: {wanted_failures} and {given_failures}")
    return found


def close(one: Any, other: Any) -> bool:
    """Equal, but for what rounding may do to floats; NaN is NaN."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return (one != one and other != other) or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return type(one) is type(other) and bool(one == other)
