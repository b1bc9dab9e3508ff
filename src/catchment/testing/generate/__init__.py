"""Random programs and histories for property tests, as hypothesis strategies: what one engine gives, another must too.

    @given(case=cases())
    def test_edge_equals_reference(case: Case) -> None:
        assert_agree(case.on("reference"), case.on("edge"))

A program is drawn as the text of its streams, so that a failing example reads as an author would write it and can
become a transcript. Times are a few dozen microseconds, values are few and awkward (null, NaN, -0.0, the end of 64
bits), keys are shared by several devices. Everything is drawn by hypothesis: it shrinks, and a seed gives the same
again.

Floats are multiples of a quarter, so that they add up exactly in any order, and what a later step compares is never a
result that engines may round differently.
"""

from catchment.testing.generate.case import Case, cases
from catchment.testing.generate.generated import ABOUT, About, Generated, programs
from catchment.testing.generate.happenings import histories

__all__ = ["ABOUT", "About", "Case", "Generated", "cases", "histories", "programs"]
