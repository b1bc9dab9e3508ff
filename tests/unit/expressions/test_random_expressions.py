"""Random well-typed expressions over random rows: compiled Python gives and fails as the reference does."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catchment.engines.reference.expressions import evaluate
from catchment.errors import ProgramError
from catchment.operators.expressions import Emitter, compile_expression, compile_predicate, compile_row, define
from catchment.program.facts import INT64_MAX, Analysis
from catchment.program.nodes import Call, FieldRef, Literal, Node, UserCall
from catchment.program.row_error import RowError
from catchment.program.types import BOOL, INT, Schema
from catchment.program.typing import infer
from catchment.testing.golden import agrees
from catchment.testing.random_expressions import SAMPLE, RandomExpressions

OTHER = Schema("Other", SAMPLE.fields)
Rng = st.randoms(use_true_random=False)


def outcome(compute: Callable[[], Any]) -> tuple[str, Any]:
    try:
        return "is", compute()
    except RowError as error:
        return "fails", error.reason


def same_outcome(one: tuple[str, Any], two: tuple[str, Any]) -> bool:
    if one[0] == two[0] == "is" and isinstance(one[1], float) and isinstance(two[1], float) and math.isfinite(one[1]):
        # Mathematics libraries may differ in the last digits, and what follows may enlarge that.
        return agrees(one[1], two[1]) or math.isclose(one[1], two[1], rel_tol=1e-9)
    return one[0] == two[0] and agrees(one[1], two[1])


def well_typed(generated: RandomExpressions, schemas: tuple[Schema, ...], depth: int, kind: Any = None) -> Node:
    """The first of a few drawn that typing accepts: a bare null beside an instant is refused, for one."""
    for _ in range(20):
        node = generated.expression(depth, kind)
        try:
            infer(node, schemas)
        except ProgramError:
            continue
        return node
    return Literal(True, BOOL) if kind == BOOL else Literal(1, INT)


@given(Rng)
@settings(max_examples=100, deadline=None)
def test_compiled_is_the_reference(rng: random.Random) -> None:
    generated = RandomExpressions(rng, (SAMPLE,))
    node = well_typed(generated, (SAMPLE,), depth=5)
    compiled = compile_expression(node, (SAMPLE,))
    facts = Analysis((SAMPLE,))[node]
    for _ in range(5):
        row = generated.row()
        expected = outcome(lambda: evaluate(node, (row,), (SAMPLE,)))  # noqa: B023
        actual = outcome(lambda: compiled(row))  # noqa: B023
        assert same_outcome(expected, actual), (node, row, expected, actual)
        if expected[0] == "fails":
            assert facts.may_fail
        elif expected[1] is None:
            assert facts.nullable
        elif facts.whole:
            assert facts.low <= expected[1] <= facts.high
        elif facts.never_nan:
            assert expected[1] == expected[1]


@given(Rng)
@settings(max_examples=50, deadline=None)
def test_both_sides_of_a_join(rng: random.Random) -> None:
    schemas = (SAMPLE, OTHER)
    generated = RandomExpressions(rng, schemas)
    node = well_typed(generated, schemas, depth=4)
    left, right = generated.row(0), generated.row(1)
    expected = outcome(lambda: evaluate(node, (left, right), schemas))
    assert same_outcome(expected, outcome(lambda: compile_expression(node, schemas)(left, right)))


@given(Rng)
@settings(max_examples=50, deadline=None)
def test_a_predicate_is_true_where_the_boolean_is(rng: random.Random) -> None:
    generated = RandomExpressions(rng, (SAMPLE,))
    node = well_typed(generated, (SAMPLE,), depth=5, kind=BOOL)
    keeps = compile_predicate(node, (SAMPLE,))
    for _ in range(5):
        row = generated.row()
        value = outcome(lambda: evaluate(node, (row,), (SAMPLE,)))  # noqa: B023
        expected = value if value[0] == "fails" else ("is", value[1] is True)
        assert same_outcome(expected, outcome(lambda: keeps(row))), (node, row)  # noqa: B023


@given(Rng)
@settings(max_examples=50, deadline=None)
def test_columns_that_share_parts_compute_them_once_and_right(rng: random.Random) -> None:
    """Each column is built from a few common parts, some of them reached on one branch only."""
    generated = RandomExpressions(rng, (SAMPLE,))
    parts = [well_typed(generated, (SAMPLE,), 3, INT) for _ in range(3)]
    tests = [well_typed(generated, (SAMPLE,), 2, BOOL) for _ in range(2)]
    columns: list[Node] = []
    for _ in range(4):
        name = rng.choice(["add", "sub", "mul", "floordiv", "mod", "coalesce", "if_", "least", "null_if"])
        two = (rng.choice(parts), rng.choice([*parts, *columns]))
        column = Call(name, (rng.choice(tests), *two) if name == "if_" else two)
        columns.append(column)
    build = compile_row(columns, (SAMPLE,))
    for _ in range(5):
        row = generated.row()
        expected = outcome(lambda: tuple(evaluate(column, (row,), (SAMPLE,)) for column in columns))  # noqa: B023
        assert same_outcome(expected, outcome(lambda: build(row))), (columns, row)  # noqa: B023


def test_an_equal_part_is_computed_once() -> None:
    calls: list[int] = []

    def counted(value: int) -> int:
        calls.append(value)
        return value

    part = UserCall("package:counted@1", (FieldRef("int_1"),), INT)
    columns = (Call("add", (part, Literal(1, INT))), Call("mul", (part, part)))
    row = RandomExpressions(random.Random(1), (SAMPLE,)).row()
    row = tuple(7 if column.name == "int_1" else value for column, value in zip(SAMPLE.fields, row, strict=True))
    assert compile_row(columns, (SAMPLE,), {"package:counted@1": counted})(row) == (8, 49)
    assert calls == [7]


@pytest.mark.parametrize("depth", [10, 40, 120])
def test_a_deep_expression_compiles(depth: int) -> None:
    node: Node = FieldRef("int_or_null")
    for level in range(depth):
        node = Call(("add", "sub", "if_")[level % 3], _deeper(node, level))
    generated = RandomExpressions(random.Random(depth), (SAMPLE,))
    compiled = compile_expression(node, (SAMPLE,))
    for _ in range(20):
        row = generated.row()
        assert outcome(lambda: compiled(row)) == outcome(lambda: evaluate(node, (row,), (SAMPLE,)))  # noqa: B023


def _deeper(node: Node, level: int) -> tuple[Node, ...]:
    if level % 3 == 2:
        return (FieldRef("bool_or_null"), node, Literal(level, INT))
    return (node, FieldRef("int_1" if level % 2 else "int_or_null"))


def test_a_fused_loop_takes_filter_and_columns_as_source() -> None:
    """What the edge engine does: one emitter, fields as local names, the filter first, then the columns."""
    schema = Schema("S", SAMPLE.fields[:4])
    names = {name: f"v_{name}" for name in schema.names}
    emitter = Emitter((schema,), field=lambda ref: names[ref.name], prefix="k")
    total = Call("add", (FieldRef("int_1"), FieldRef("int_2")))
    test = Call("gt", (total, Literal(10, INT)))
    emitter.share(test, total)
    condition, column = emitter.truth(test), emitter.value(total)
    assert column.isidentifier(), "the filter has computed it already"
    step = define(", ".join(names.values()), f"({column},) if {condition} else None", emitter.bindings)
    assert step(True, False, 7, 8) == (15,)
    assert step(True, False, 1, 2) is None
    with pytest.raises(RowError, match="overflow"):
        step(True, False, INT64_MAX, 1)
