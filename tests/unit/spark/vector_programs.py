"""Random programs of steps that have a vectorised form, alone and one behind the other."""

from __future__ import annotations

import random
from typing import Any

import catchment as cm
from catchment.plan.graph import Graph, graph_of
from catchment.testing import alone
from tests.unit.edge.generated_records import Busy, Fix
from tests.unit.spark.vector_processes import Stays, StaysAtOnce, Timely

KEYS = ((), (Fix.user,), (Fix.place,), (Fix.device,), (Fix.user, Fix.place), (Fix.tag, Fix.flag))
SPEED: Any = Fix.speed
N: Any = Fix.n
AGGREGATES: dict[str, Any] = {
    "elements": lambda: cm.count(),
    "speeds": lambda: cm.sum(SPEED),
    "mean_speed": lambda: cm.mean(SPEED),
    "ns": lambda: cm.sum(N),
    "mean_n": lambda: cm.mean(N),
    "least": lambda: cm.min(SPEED),
    "most": lambda: cm.max(SPEED),
    "last_at": lambda: cm.max(Fix.at),
    "first_raw": lambda: cm.min(Fix.raw),
    "inverse": lambda: cm.sum(N // Fix.place),
}


def vector_graph(draw: random.Random) -> Graph:
    """A window, a state or both after a filter."""
    return graph_of(alone(lambda left, right: _behind(draw, _step(draw, left)), left=Fix, right=Fix))


NAMES: tuple[tuple[str, ...], ...] = ((), ("user",), ("place",), ("device",), ("user", "place"), ("tag", "flag"))
"""The same, by name: what computed records have."""


def pair_graph(draw: random.Random) -> Graph:
    """Two inputs that meet, as they come or behind steps of their own, and perhaps something behind that."""
    return graph_of(alone(lambda left, right: _behind(draw, _pair(draw, left, right)), left=Fix, right=Fix))


def _pair(draw: random.Random, left: Any, right: Any) -> Any:
    names = draw.choice(NAMES)
    keys = [cm.col(name) for name in names]
    if draw.random() < 0.2:
        return left.where(Fix.place < 4).union(*draw.sample((right, left, right.where(Fix.flag)), draw.choice((1, 2))))
    if draw.random() < 0.3:
        left = left.union(right.where(Fix.flag))
    if keys:
        left, right = left.key_by(*keys), right.key_by(*keys)
    number = Fix.n
    if draw.random() < 0.3:
        left, number = left.state(order=draw.choice(("event_time", "arrival")), seen=cm.count()), cm.col("seen")
        left = left.key_by(*keys) if keys else left
    said: dict[str, Any] = {"n": number, "other": cm.right(Fix.n), "at_right": cm.right(Fix.at)}
    if draw.random() < 0.3:
        said["quotient"] = number // cm.right(Fix.n)
    if keys and draw.random() < 0.7:
        said = {names[0]: keys[0], **said}
    closing, outer = cm.Closing(**_closing(draw)), draw.random() < 0.5
    near = tuple(cm.microseconds(draw.choice((0, 4, 30))) for _ in range(2))
    match draw.choice(("zip", "combine", "window", "interval", "latest") if keys else ("zip", "combine")):
        case "zip":
            return left.zip(right, **said)
        case "combine":
            return left.combine(right, **said)
        case "window":
            size = draw.choice((4, 12, 60))
            every = draw.choice([each for each in (1, 3, 4, 12, 60) if each <= size])
            return left.join(right, within=cm.hop(size, every, **_closing(draw)), outer=outer, **said)
        case "interval":
            return left.join(right, within=near, outer=outer, closing=closing, **said)
    return left.join_latest(right, outer=outer, closing=closing, **said)


def _step(draw: random.Random, left: Any) -> Any:
    stream = left.where(Fix.place < draw.choice((3, 9))) if draw.random() < 0.5 else left
    if draw.random() < 0.3:
        stream = stream.where(N / Fix.place > -1.0)
    keys = draw.choice(KEYS)
    keyed = stream.key_by(*keys) if keys else stream
    if keys and draw.random() < 0.4:
        kind = draw.choice((Busy, Timely, Stays, StaysAtOnce))
        return keyed.process(
            kind(gap=draw.choice((0, 3, 20))),
            order=draw.choice(("event_time", "event_time", "event_time", "arrival")),
            closing=cm.Closing(**_closing(draw)),
            ttl=draw.choice((None, None, *map(cm.microseconds, (1, 10, 40)))),
        )
    chosen = {name: AGGREGATES[name]() for name in draw.sample(sorted(AGGREGATES), draw.choice((1, 2, 4)))}
    if draw.random() < 0.7:
        return keyed.window(_window(draw)).agg(**chosen)
    order = draw.choice(("event_time", "event_time", "arrival"))
    return keyed.state(order=order, closing=cm.Closing(**_closing(draw)), **chosen)


def _window(draw: random.Random) -> Any:
    """A window of any kind."""
    match draw.choice(("time", "kept", "session", "counts")):
        case "session":
            return cm.session(draw.choice((1, 5, 20, 50)), **_closing(draw))
        case "counts":
            size, every = draw.choice(((1, 1), (3, 3), (4, 2), (6, 1), (5, 2), (6, 4)))
            return cm.count_window(size, every, grace=draw.choice((0, 5)), idle=draw.choice((10, 10**9)))
        case kind:
            size = draw.choice((1, 4, 12, 60))
            every = draw.choice([each for each in (1, 3, 4, 12, 60) if each <= size])
            return cm.hop(size, every, keep=draw.choice((5, 15, 60)) if kind == "kept" else 0, **_closing(draw))


def _behind(draw: random.Random, stream: Any) -> Any:
    """Perhaps something behind it, that is vectorised or is not."""
    key = stream.given.schema.names[0]
    match draw.choice(("nothing", "nothing", "state", "window", "kept", "changes")):
        case "state":
            return (stream if key in ("at", "window_start") else stream.key_by(key)).state(again=cm.count())
        case "window":
            return stream.window(cm.tumble(draw.choice((5, 20)))).agg(results=cm.count())
        case "kept":
            return stream.window(cm.tumble(draw.choice((5, 20)), keep=draw.choice((0, 9)))).agg(results=cm.count())
        case "changes":
            return stream.changes()
    return stream


def _closing(draw: random.Random) -> dict[str, Any]:
    """When it closes."""
    said: dict[str, Any] = {"grace": draw.choice((0, 0, 3, 10)), "idle": draw.choice((5, 30, 10**9))}
    said["offline"] = draw.choice((None, cm.wait(), cm.wait(cm.Duration(20)), cm.CLOSE_AND_REVISE))
    return said
