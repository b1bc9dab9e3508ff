"""Whether two engines gave the same, and where they first differ.

Results of a port agree one by one: number, time, source and row. Floats agree within a relative 1e-9, or within 1e-6
where small ones are the difference of large ones; an int is no float. What was quarantined agrees step by step.

>>> from catchment.plan.history import Outcome, Result, Source
>>> one = Outcome({("a", 0): (Result(0, 5, Source("d"), (0.1 + 0.2, None)),)})
>>> two = Outcome({("a", 0): (Result(0, 5, Source("d"), (0.3, None)),)})
>>> assert_agree(one, two)
>>> assert_agree(one, Outcome({("a", 0): ()}))
Traceback (most recent call last):
AssertionError: a:0 has 0 results, not 1; the first without its like: Result(number=0, at=5, ...
"""

from __future__ import annotations

import math
from typing import Any

from catchment.plan.history import Failure, Outcome, Result

RELATIVE = 1e-9
ABSOLUTE = 1e-6


def assert_agree(expected: Outcome, actual: Outcome) -> None:
    """Raise where they differ first, port by port."""
    assert expected.results.keys() == actual.results.keys(), "the ports differ"
    for (step, port), results in expected.results.items():
        _agree(f"{step}:{port}", results, actual.results[step, port])
    for step in sorted({failure.step for failure in (*expected.failures, *actual.failures)}):
        one, other = ([f for f in outcome.failures if f.step == step] for outcome in (expected, actual))
        assert len(one) == len(other), f"{step} quarantined {len(other)} rows, not {len(one)}: {other}, not {one}"
        for failure, its in zip(one, other, strict=True):
            assert _same_failure(failure, its), f"{step} quarantined {its}, not {failure}"


def _agree(name: str, expected: tuple[Result, ...], actual: tuple[Result, ...]) -> None:
    for one, other in zip(expected, actual, strict=False):
        said = (one.number, one.at, one.source) == (other.number, other.at, other.source)
        assert said and same(one.row, other.row), f"{name} gave {other}, not {one}"
    if len(expected) != len(actual):
        longer = max(expected, actual, key=len)[min(len(expected), len(actual))]
        raise AssertionError(
            f"{name} has {len(actual)} results, not {len(expected)}; the first without its like: {longer}"
        )


def _same_failure(one: Failure, other: Failure) -> bool:
    return one.reason == other.reason and same(one.row, other.row)


def same(one: Any, other: Any) -> bool:
    """Equal values of one type; floats nearly so, NaN as NaN, and -0.0 as 0.0."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        nan = math.isnan(one) and math.isnan(other)
        return nan or math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return bool(one == other)
