"""Every function and every cast has vectors, and every vector holds on the reference and on compiled Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from catchment.engines.reference.expressions import evaluate
from catchment.operators.expressions import compile_expression
from catchment.program.facts import Analysis
from catchment.program.functions import CASTS, FUNCTIONS
from catchment.program.nodes import FieldRef, children
from catchment.program.row_error import REASONS, RowError
from catchment.program.types import Column, Schema
from catchment.program.typing import infer
from catchment.testing.golden import Case, Golden, Vector, load

FILES = tuple(load(Path(__file__).parents[2] / "golden"))
CASES = [case for file in FILES for case in file.cases]


def outcome(compute: Callable[[], Any]) -> tuple[Any, str | None]:
    try:
        return compute(), None
    except RowError as error:
        return None, error.reason


def check(case: Case, vector: Vector, how: str, compute: Callable[[], Any]) -> None:
    value, reason = outcome(compute)
    assert reason == vector.fails, f"{case} {how}: {vector}, got {value!r} or failed: {reason}"
    assert case.accepts(vector, value), f"{case} {how}: {vector}, got {value!r}"


def test_each_function_and_each_cast_has_one_file_of_vectors() -> None:
    casts = {f"cast_{given}_to_{to}" for given, to in CASTS}
    names = [file.name for file in FILES]
    assert sorted(names) == sorted({*FUNCTIONS, *casts})


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_covers_null_and_every_way_to_fail(file: Golden) -> None:
    vectors = [vector for case in file.cases for vector in case.vectors]
    assert file.about
    assert {vector.fails for vector in vectors} - {None} <= REASONS
    if file.cases[0].takes:
        assert any(None in vector.args for vector in vectors), "no vector has a null"
    function = FUNCTIONS.get(file.name)
    if function is not None:
        assert function.may_fail == any(vector.fails for vector in vectors), "may_fail and the vectors disagree"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_type_is_the_declared_one(case: Case) -> None:
    assert infer(case.node, (case.schema,)).type == case.gives


@pytest.mark.parametrize("case", CASES, ids=str)
def test_reference(case: Case) -> None:
    for vector in case.vectors:
        check(case, vector, "evaluated", lambda v=vector: evaluate(case.node, (v.args,), (case.schema,)))  # type: ignore[misc]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_compiled_over_fields(case: Case) -> None:
    nullable = compile_expression(case.node, (case.schema,))
    required = Schema("Args", tuple(msgspec.structs.replace(column, nullable=False) for column in case.schema.fields))
    never_null = compile_expression(case.node, (required,))
    for vector in case.vectors:
        check(case, vector, "compiled", lambda v=vector: nullable(v.args))  # type: ignore[misc]
        if None not in vector.args:
            check(case, vector, "compiled for no nulls", lambda v=vector: never_null(v.args))  # type: ignore[misc]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_compiled_over_constants(case: Case) -> None:
    """Constants leave out checks and nulls; what is left must still give the same."""
    for vector in case.vectors:
        node = case.constant(vector)
        if node is not None:
            check(case, vector, "evaluated of constants", lambda n=node: evaluate(n, ((),), (Schema("E", ()),)))  # type: ignore[misc]
            compiled = compile_expression(node, (Schema("E", ()),))
            check(case, vector, "compiled of constants", lambda f=compiled: f(()))  # type: ignore[misc]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_compiled_over_a_field_and_constants(case: Case) -> None:
    """The common form: `Fix.speed % 3`, where the constant decides which checks remain."""
    for vector in case.vectors:
        constant = case.constant(vector)
        if constant is None or len(case.takes) < 2:
            continue
        schema = Schema("Args", (Column("a0", case.takes[0], nullable=vector.args[0] is None),))
        node = case.over((FieldRef("a0"), *children(constant)[1:]))
        compiled = compile_expression(node, (schema,))
        check(case, vector, "compiled of a field and constants", lambda f=compiled, v=vector: f(v.args[:1]))  # type: ignore[misc]
        if vector.fails:
            assert Analysis((schema,))[node].may_fail, f"{case}: {vector} fails, and the facts say that it cannot"
