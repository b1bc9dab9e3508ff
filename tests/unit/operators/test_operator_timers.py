"""What happens in event time happens in one order over the groups, and what became void takes no room."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import catchment as cm
from catchment.engines.edge import EdgeEngine
from catchment.operators.timers import ELEMENT, Happening, Schedule
from catchment.plan.graph import graph_of
from catchment.plan.history import Source
from catchment.testing import alone


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20), st.booleans()), max_size=30),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 25)),
)
def test_all_that_is_due_happens_once_and_in_order(
    entries: list[tuple[str, int, bool]], bounds: dict[str, int]
) -> None:
    void = {number for number, (_, _, is_void) in enumerate(entries) if is_void}
    schedule = Schedule(lambda happening: happening.number in void)
    for number, (group, at, _) in enumerate(entries):
        schedule.add(group, Happening(at, ELEMENT, (), number, None))
    happened: list[tuple[int, int]] = []
    schedule.happen(bounds, bounds.__getitem__, lambda _, happening: happened.append((happening.at, happening.number)))
    due = [(at, n) for n, (group, at, is_void) in enumerate(entries) if not is_void and at < bounds.get(group, 0)]
    assert happened == sorted(due)


def test_what_is_added_meanwhile_happens_in_its_turn() -> None:
    schedule = Schedule(lambda happening: False)
    happened: list[int] = []

    def take(group: Any, happening: Happening) -> None:
        happened.append(happening.at)
        if happening.at == 5:
            schedule.add(group, Happening(3, ELEMENT, (), 10, None))
            schedule.add(group, Happening(7, ELEMENT, (), 11, None))
            schedule.add(group, Happening(50, ELEMENT, (), 12, None))

    for number, at in enumerate((5, 9)):
        schedule.add("a", Happening(at, ELEMENT, (), number, None))
    schedule.add("b", Happening(6, ELEMENT, (), 2, None))
    schedule.happen(["a", "b"], lambda group: 10, take)
    assert happened == [5, 3, 6, 7, 9]


class Knock(cm.Record):
    """An element."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()


class Nothing(cm.State):
    """Remembers nothing."""


class Restless(cm.Process[Knock, Knock, Nothing]):
    """Sets the same far timers again with each element, and forgets now and then."""

    def on_element(self, element: Knock, state: Nothing, context: cm.Context) -> None:
        context.wake("far", element.at + 10**9 - element.at % 7)
        context.wake_after("far too", 10**9 - element.at % 7)
        if element.at % 50 == 0:
            context.cancel("far")
        if element.at % 90 == 0:
            context.forget()


def test_timers_set_again_and_again_take_no_room() -> None:
    graph = graph_of(alone(lambda knocks: knocks.key_by(Knock.user).process(Restless()), knocks=Knock))
    engine = EdgeEngine(graph)
    ada = Source("a1", "ada")
    engine.tick(1)
    for at in range(5000):
        engine.element("knocks/append", at, ada, ("ada", at))
        engine.progress("knocks/append", ada, at)
    operator: Any = engine.wiring.operators["alone/processed"]
    assert len(list(operator._schedule.entries())) < 300
    assert len(operator._clocks) < 300
