"""Random programs and histories: the edge engine gives what the reference engine gives.

A failure prints the program as an author would write it, and its history: shrink it further by hand into a transcript,
and put the blob that hypothesis prints above the test until it is mended.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catchment.engines import edge
from catchment.plan.history import Entry, Outcome
from catchment.testing.agreement import assert_agree
from catchment.testing.engines import Restart
from catchment.testing.generate import ABOUT, About, Case, cases

# A whole program and a history to draw: large by nature, and none is thrown away.
GENEROUS = [HealthCheck.too_slow, HealthCheck.large_base_example, HealthCheck.data_too_large]
modest = settings(max_examples=25, deadline=None, suppress_health_check=GENEROUS, print_blob=True)


@pytest.mark.parametrize("about", ABOUT)
def test_every_port_gives_the_same(about: About) -> None:
    @modest
    @given(case=cases(about=about))
    def agree(case: Case) -> None:
        assert_agree(case.on("reference"), case.on("edge"))

    agree()


@modest
@given(case=cases(about="windows", panes=True))
def test_panes_give_the_same(case: Case) -> None:
    assert_agree(case.on("reference"), case.on("edge"))


@modest
@given(case=cases())
def test_fused_as_on_a_device_it_gives_the_same(case: Case) -> None:
    ends = [port for _, port in case.graph.streams[-1:]]
    entries = [entry for entry in case.history if not isinstance(entry, Restart)]
    assert_agree(case.on("reference", watch=ends), _fused(case, entries, ends))


def _fused(case: Case, entries: list[Entry], ends: list[tuple[str, int]]) -> Outcome:
    return edge.run(case.graph, entries, ends)


@modest
@given(case=cases(), data=st.data())
def test_a_restart_before_any_entry_changes_nothing(case: Case, data: st.DataObject) -> None:
    before = data.draw(st.sets(st.integers(0, len(case.history))), label="restart before")
    virtual = edge.Virtual(case.graph)
    for number, entry in enumerate(case.history):
        if number in before:
            virtual.restart()
        if not isinstance(entry, Restart):
            virtual.feed(entry)
    assert_agree(case.on("edge", restarts=False), virtual.outcome())
