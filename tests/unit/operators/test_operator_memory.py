"""State grows with the keys that are live, not with those that ever were."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import catchment as cm
from catchment.engines.edge import EdgeEngine
from catchment.plan.graph import graph_of
from catchment.plan.history import Source
from catchment.testing import alone
from tests.unit.edge.generated_history import by_panes

PHONE = Source("phone", "ada")


class Fix(cm.Record):
    """A reading of one of many things."""

    thing: cm.Field[int] = cm.key()
    at: cm.Field[cm.Instant] = cm.event_time()
    n: cm.Field[int]


class Mine(cm.Record):
    """A reading of a user: each is a group of its own."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    n: cm.Field[int]


class Last(cm.State):
    """What the process remembers."""

    n: int = 0


class Remember(cm.Process[Fix, Fix, Last]):
    """Wakes after every element, in event time and by the clock."""

    def on_element(self, element: Fix, state: Last, context: cm.Context) -> None:
        state.n = element.n
        context.wake("soon", element.at + 5)
        context.wake_after("later", 5)


STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "hop": lambda a, b: a.window(cm.hop(20, 5)).agg(n=cm.sum(Fix.n), all=cm.collect(Fix.n)),
    "kept": lambda a, b: a.window(cm.hop(20, 5, keep=30)).agg(n=cm.sum(Fix.n)),
    "session": lambda a, b: a.window(cm.session(7)).agg(n=cm.max(Fix.n)),
    "top": lambda a, b: a.window(cm.hop(20, 5)).top(2, by=Fix.n),
    "window join": lambda a, b: a.join(b, within=cm.tumble(10), outer=True, n=Fix.n),
    "interval join": lambda a, b: a.join(b, within=(cm.microseconds(9), cm.microseconds(9)), outer=True, n=Fix.n),
    "zip": lambda a, b: a.zip(b, n=Fix.n),
    "process": lambda a, b: a.process(Remember(), ttl=cm.microseconds(20)),
}


def held(engine: EdgeEngine) -> int:
    """How many bytes its steps remember."""
    states = {name: state for name, state in engine.snapshot()["states"].items() if "keyby" not in name}
    return len(msgspec.msgpack.encode(states))


@pytest.mark.parametrize("panes", [False, True], ids=["whole", "panes"])
@pytest.mark.parametrize("name", sorted(STEPS))
def test_what_is_held_does_not_grow_with_the_keys_that_were(name: str, panes: bool) -> None:
    step = STEPS[name]
    graph = graph_of(alone(lambda a, b: step(a.key_by(Fix.thing), b.key_by(Fix.thing)), a=Fix, b=Fix))
    engine = EdgeEngine(by_panes(graph) if panes else graph)
    sizes = []
    for at in range(600):
        for start in ("a/append", "b/append"):
            engine.element(start, at, PHONE, (at // 3, at, at % 17))
            # Out of order too, for keys that were thought done with.
            engine.element(start, at - 12, PHONE, (at // 3 - 4, at - 12, 1))
        if at % 4 == 0:
            for start in ("a/append", "b/append"):
                engine.progress(start, PHONE, at - 15)
            engine.tick(at)
        if at % 100 == 99:
            sizes.append(held(engine))
    assert max(sizes) < 1.5 * sizes[0]
    for start in ("a/append", "b/append"):
        engine.progress(start, PHONE, 10**6)
    engine.tick(10**6)
    empty = EdgeEngine(graph)
    assert held(engine) < held(empty) + 150  # what is known of one source, at two ports


@pytest.mark.parametrize("panes", [False, True], ids=["whole", "panes"])
def test_a_group_without_an_open_window_takes_no_more_than_its_promise(panes: bool) -> None:
    graph = graph_of(alone(lambda mine: mine.key_by(Mine.user).window(cm.hop(20, 5)).agg(n=cm.count()), mine=Mine))
    engine = EdgeEngine(by_panes(graph) if panes else graph)
    for number in range(300):
        source = Source(f"phone {number}", f"user {number}")
        engine.element("mine/append", number, source, (f"user {number}", number, 1))
        engine.progress("mine/append", source, number + 1000)
    operator: Any = engine.wiring.operators["alone/aggregated"]
    assert operator._closing._groups == {}
    assert operator._final._groups == {}
    assert (operator._keys if panes else operator._windows) == {}


def test_an_engine_that_nobody_holds_is_gone() -> None:
    graph = graph_of(alone(lambda a: a.key_by(Fix.thing).window(cm.hop(20, 5)).agg(n=cm.sum(Fix.n)), a=Fix))
    gc.collect()
    before = _engines()
    for _ in range(3):
        engine = EdgeEngine(graph)
        engine.element("a/append", 1, PHONE, (1, 1, 1))
        del engine
    gc.collect()
    assert _engines() == before


def _engines() -> int:
    return sum(isinstance(each, EdgeEngine) for each in gc.get_objects())
