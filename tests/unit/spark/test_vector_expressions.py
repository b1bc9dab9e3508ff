"""Expressions over columns are held to the golden vectors, like every engine; a loop does what numpy does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from catchment.engines.spark.rows import Rows
from catchment.engines.spark.vector_expressions import VectorExpressions
from catchment.plan.history import Source
from catchment.testing.golden import Case, load

CASES = [case for file in load(Path(__file__).parents[2] / "golden") for case in file.cases]
VECTORISED = {
    "add",
    "sub",
    "mul",
    "div",
    "and",
    "or",
    "not",
    "lt",
    "ge",
    "eq",
    "ne",
    "if_",
    "coalesce",
    "sqrt",
    "is_nan",
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_golden(case: Case) -> None:
    expressions = VectorExpressions(case.schema, (case.node,), (case.gives,))
    rows = Rows.of([(0, Source("d"), vector.args) for vector in case.vectors], case.takes)
    computed = expressions(rows)
    reasons = computed.reasons()
    values = computed.columns[0].objects()
    for number, vector in enumerate(case.vectors):
        assert reasons.get(number) == vector.fails, f"{case}: {vector}"
        if vector.fails is None:
            assert case.accepts(vector, values[number]), f"{case}: {vector}, got {values[number]!r}"


def test_what_counts_is_vectorised() -> None:
    """Were it looped over, the test above would hold all the same."""
    numeric = {"int", "float", "bool", "instant", "duration"}
    looped = {
        case.name
        for case in CASES
        if case.name in VECTORISED
        and {str(kind) for kind in (*case.takes, case.gives)} <= numeric
        and VectorExpressions(case.schema, (case.node,))._loops
    }
    assert not looped
