"""What every definition owes: causes before effects, one effect for each cause, and outcomes that can be told apart."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catchment.engines.reference import evaluate
from catchment.plan.history import Element, Entry, Presence, Progress, Tick
from catchment.program import steps
from catchment.testing.engines import Restart
from catchment.testing.generate import Case, cases
from catchment.testing.generate.happenings import SOURCES

modest = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example, HealthCheck.data_too_large],
)

STEPS = ("fixes/append", "pings/append")


def entries_of(case: Case) -> tuple[Entry, ...]:
    return tuple(entry for entry in case.history if not isinstance(entry, Restart))


@modest
@given(case=cases(), data=st.data())
def test_what_was_given_stays_given(case: Case, data: st.DataObject) -> None:
    """What comes later adds to an outcome, and changes nothing of it: a definition may not look ahead."""
    entries = entries_of(case)
    known = data.draw(st.integers(0, len(entries)), label="known")
    before, after = evaluate(case.graph, entries[:known]), evaluate(case.graph, entries)
    for port, results in before.results.items():
        assert repr(after.results[port][: len(results)]) == repr(results)
    assert repr(after.failures[: len(before.failures)]) == repr(before.failures)


@modest
@given(case=st.one_of([cases(about=about) for about in ("state", "fold", "pairs")]))
def test_nothing_is_silently_lost(case: Case) -> None:
    """Once everything is promised, each element of a step that gives one for each was given, was late, or failed."""
    everything = tuple(Progress(step, source, 10**9) for step in STEPS for source in SOURCES)
    outcome = evaluate(case.graph, (*entries_of(case), *everything))
    for vertex in case.graph.vertices:
        if isinstance(vertex.step, steps.Running | steps.Fold | steps.Combine):
            taken = sum(len(outcome.results[port]) for port in vertex.inputs)
            given_ = sum(len(outcome.results[vertex.id, port]) for port in range(len(vertex.schemas)))
            failed = sum(failure.step == vertex.id for failure in outcome.failures)
            assert taken == given_ + failed, vertex.id


@modest
@given(case=cases(about="state"))
def test_ticks_and_presence_alone_give_nothing(case: Case) -> None:
    quiet = tuple(entry for entry in entries_of(case) if isinstance(entry, Tick | Presence | Progress))
    outcome = evaluate(case.graph, quiet)
    assert not any(outcome.results.values())
    assert not outcome.failures


@modest
@given(case=cases())
def test_every_element_that_a_source_was_sent_is_there(case: Case) -> None:
    entries = entries_of(case)
    outcome = evaluate(case.graph, entries)
    for step in STEPS:
        sent = [entry.row for entry in entries if isinstance(entry, Element) and entry.step == step]
        assert repr([result.row for result in outcome.results[step, 0]]) == repr(sent)
