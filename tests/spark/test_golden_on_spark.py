"""Every golden vector on Spark: over columns, as generated code runs them, and over constants, which are folded.

Expressions are packed by the types that they take: one query computes all functions of a signature over all of its
vectors, which also shows that no value raises on another function's arguments.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from catchment.engines.spark.expressions import NO_REASON, SparkExpressions, is_native
from catchment.engines.spark.sql_text import spark_type
from catchment.errors import InternalError
from catchment.program.nodes import FieldRef, UserCall
from catchment.program.types import INT, Column, DataType, Schema
from catchment.testing.golden import Case, Vector, load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CASES = [case for file in load(Path(__file__).parents[1] / "golden") for case in file.cases]
GROUPS: dict[tuple[DataType, ...], list[Case]] = defaultdict(list)
for _case in CASES:
    GROUPS[_case.takes].append(_case)


def plain(value: Any) -> Any:
    """What Spark hands to Python, as our rows have it."""
    if isinstance(value, bytearray):
        return bytes(value)
    return tuple(map(plain, value)) if isinstance(value, list) else value


def mistakes(case: Case, vector: Vector, value: Any, reason: str | None, how: str) -> list[str]:
    if reason != vector.fails:
        return [f"{case} {how}: {vector}, got {value!r}, failed: {reason}"]
    if reason is None and not case.accepts(vector, plain(value)):
        return [f"{case} {how}: {vector}, got {value!r}"]
    return []


@pytest.mark.parametrize("takes", GROUPS, ids=lambda takes: ",".join(map(str, takes)) or "nothing")
def test_over_columns(spark: SparkSession, takes: tuple[DataType, ...]) -> None:
    cases = GROUPS[takes]
    schema = Schema("Args", tuple(Column(f"a{i}", kind, nullable=True) for i, kind in enumerate(takes)))
    written = SparkExpressions((schema,))
    columns = ["n"]
    for number, case in enumerate(cases):
        columns.append(f"{written.value(case.node)} AS v{number}")
        columns.append(f"{written.failure(case.node) or NO_REASON} AS f{number}")
    vectors = [(number, vector) for number, case in enumerate(cases) for vector in case.vectors]
    rows = [(n, *(list(a) if isinstance(a, tuple) else a for a in v.args)) for n, (_, v) in enumerate(vectors)]
    fields = "".join(f", a{i} {spark_type(kind)}" for i, kind in enumerate(takes))
    frame = spark.createDataFrame(spark.sparkContext.parallelize(rows, 1), f"n INT{fields}")
    found: list[str] = []
    for row in written.select(frame, *columns).collect():
        number, vector = vectors[row.n]
        found += mistakes(cases[number], vector, row[f"v{number}"], row[f"f{number}"], "over columns")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("takes", GROUPS, ids=lambda takes: ",".join(map(str, takes)) or "nothing")
def test_over_constants(spark: SparkSession, takes: tuple[DataType, ...]) -> None:
    """Constants leave out guards, and the optimizer computes them with other code than a query runs."""
    written = SparkExpressions((Schema("Nothing", ()),))
    tried: list[tuple[Case, Vector]] = []
    columns: list[str] = []
    for case in GROUPS[takes]:
        for vector in case.vectors:
            node = case.constant(vector)
            if node is not None:
                tried.append((case, vector))
                columns.append(f"{written.value(node)} AS v{len(tried) - 1}")
                columns.append(f"{written.failure(node) or NO_REASON} AS f{len(tried) - 1}")
    if not tried:
        return
    row = written.select(spark.range(1), *columns).collect()[0]
    found: list[str] = []
    for number, (case, vector) in enumerate(tried):
        found += mistakes(case, vector, row[f"v{number}"], row[f"f{number}"], "over constants")
    assert not found, "\n".join(found)


def test_a_declared_function_is_not_native() -> None:
    node = UserCall("package:function@1", (FieldRef("n"),), INT)
    assert not is_native(node)
    with pytest.raises(InternalError, match="is_native"):
        SparkExpressions((Schema("S", (Column("n", INT),)),)).value(node)
