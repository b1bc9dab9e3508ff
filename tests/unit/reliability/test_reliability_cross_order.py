"""The sweep for order across streams against every pair, on runs that are in order but for one element.

Where much is out of order, any sweep finds something. So one element of an orderly run is moved, or copied, and what
is out of order then is out of order with few others.
"""

from __future__ import annotations

import itertools

from hypothesis import example, given, settings
from hypothesis import strategies as st

from catchment.program.types import Instant
from catchment.reliability.comparison import Arrived
from catchment.reliability.cross_order import first_cross_disorder


def element(due_at: int, stream: str, sequence: int, first_at: int, last_at: int) -> Arrived:
    return Arrived(Instant(due_at), stream, sequence, Instant(first_at), Instant(last_at))


def disordered(before: Arrived, after: Arrived) -> bool:
    """Whether any copies of the two came otherwise than was due."""
    if before.stream == after.stream:
        return False
    if before.due_at == after.due_at:
        return len({before.first_at, before.last_at, after.first_at, after.last_at}) > 1
    return before.last_at >= after.first_at


@st.composite
def nearly_in_order(draw: st.DrawFn) -> list[Arrived]:
    """Elements of up to four streams, twice as far apart as they were due; one of them moved or copied."""
    due = sorted(draw(st.lists(st.tuples(st.integers(0, 6), st.sampled_from("abcd")), min_size=2, max_size=8)))
    run = [element(at, stream, number, 2 * at, 2 * at) for number, (at, stream) in enumerate(due)]
    chosen = draw(st.integers(0, len(run) - 1))
    earlier, later = draw(st.sampled_from([(0, 0), (1, 0), (0, 1), (0, 2), (2, 0), (5, -5), (-5, 5), (9, -4), (-4, 9)]))
    moved = run[chosen]
    run[chosen] = element(*moved[:3], moved.first_at - earlier, moved.last_at + later)
    return run


@settings(deadline=None)
@given(nearly_in_order())
@example([element(1, "a", 0, 5, 5), element(1, "b", 1, 5, 7)])
@example([element(1, "a", 0, 5, 5), element(2, "b", 1, 6, 6), element(3, "b", 2, 5, 5)])
@example([element(1, "b", 0, 9, 9), element(2, "a", 1, 5, 5), element(3, "b", 2, 4, 4)])
@example([element(1, "a", 0, 9, 9), element(2, "b", 1, 3, 3), element(3, "c", 2, 5, 5), element(4, "a", 3, 4, 4)])
def test_the_sweep_finds_the_first_pair_of_all(run: list[Arrived]) -> None:
    pairs = [(before, after) for before, after in itertools.combinations(run, 2) if disordered(before, after)]
    found = first_cross_disorder(run)
    if found is None:
        assert not pairs
        return
    named = (found.before.stream, found.before.sequence), (found.after.stream, found.after.sequence)
    assert named in {((a.stream, a.sequence), (b.stream, b.sequence)) for a, b in pairs}
    assert found.after.sequence == min(after.sequence for _, after in pairs)
