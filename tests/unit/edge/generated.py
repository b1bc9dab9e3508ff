"""Programs drawn at random, one or two steps each, for comparing engines.

Times, gaps and graces are small numbers of microseconds, so that the interesting moments coincide often.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import catchment as cm
from catchment.plan.graph import Graph, graph_of
from catchment.testing import alone
from tests.unit.edge.generated_records import Busy, Fix, Plus, Span, Step, Total, added, copies

SPEED: Any = Fix.speed  # where it is null, it is passed over
KEYS = ((), (Fix.user,), (Fix.place,), (Fix.device,), (Fix.user, Fix.place))


def graph(draw: random.Random) -> Graph:
    """A graph with one or two interesting steps after two sources."""
    return graph_of(alone(_step(draw, _filtered(draw), _filtered(draw)), left=Fix, right=Fix))


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
