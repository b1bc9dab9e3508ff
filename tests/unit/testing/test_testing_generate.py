"""Generated programs: they are programs, their text says all of them, and they do what they are generated for."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import HealthCheck, Phase, find, given, seed, settings
from hypothesis import strategies as st

from catchment.plan.history import Element
from catchment.program import steps
from catchment.testing.generate import ABOUT, Case, Generated, cases, histories, programs
from catchment.testing.generate.happenings import Entries

GENEROUS = [HealthCheck.too_slow, HealthCheck.large_base_example, HealthCheck.data_too_large]
modest = settings(max_examples=40, deadline=None, suppress_health_check=GENEROUS)


@modest
@given(generated=st.one_of([programs(about=about) for about in ABOUT]))
def test_the_text_is_the_program(generated: Generated) -> None:
    again = Generated(dict(generated.streams), generated.loop)
    assert [vertex.step for vertex in again.graph.vertices] == [vertex.step for vertex in generated.graph.vertices]
    assert all(name in repr(generated) for name in generated.streams)


def test_every_step_is_generated() -> None:
    found: Counter[str] = Counter()

    @seed(1)
    @settings(modest, max_examples=300, phases=[Phase.generate], database=None)
    @given(generated=st.one_of([programs(about=about) for about in ABOUT]))
    def look(generated: Generated) -> None:
        found.update(type(vertex.step).__name__ for vertex in generated.graph.vertices)

    look()
    outside = {"Sensor", "Timer", "External", "Deliver", "Sink"}  # what they do is not computed
    assert {kind.__name__ for kind in steps.Step.__args__} - outside == set(found)


def test_a_seed_gives_the_same_again() -> None:
    drawn: list[str] = []

    @seed(7)
    @settings(modest, max_examples=5, phases=[Phase.generate], database=None)
    @given(case=cases())
    def look(case: Case) -> None:
        drawn.append(repr(case))

    look()
    once = list(drawn)
    look()
    assert drawn == once * 2
    assert len(set(once)) > 1


def test_a_program_shrinks_to_what_matters() -> None:
    def has_a_join(generated: Generated) -> bool:
        return any(isinstance(vertex.step, steps.Join) for vertex in generated.graph.vertices)

    least = find(programs(), has_a_join, settings=settings(modest, max_examples=200, database=None), random=Random(1))
    assert len(least.streams) == 1


def test_a_history_shrinks_to_what_matters() -> None:
    def has_bob(history: Entries) -> bool:
        return any(isinstance(entry, Element) and entry.source.owner == "bob" for entry in history)

    graph = Generated({"s0": "fixes"}).graph
    least = find(
        histories(graph), has_bob, settings=settings(modest, max_examples=200, database=None), random=Random(1)
    )
    assert len([entry for entry in least if isinstance(entry, Element)]) == 1
