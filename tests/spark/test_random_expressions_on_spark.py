"""Random well-typed expressions over random rows: Spark gives what the reference gives, and fails the same rows.

Many expressions share a query, so that a few queries hold a corpus. It is drawn from fixed seeds: `random_expressions`
shrinks under hypothesis, which runs on the compiled engine; what differs there alone would differ here too. Functions
whose last digits depend on a library are left to the golden vectors, so all else must agree to the bit.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from catchment.engines.reference.expressions import evaluate
from catchment.engines.spark.expressions import NO_REASON, SparkExpressions
from catchment.engines.spark.sql_text import spark_type
from catchment.errors import ProgramError
from catchment.program.nodes import Node
from catchment.program.row_error import RowError
from catchment.program.types import RecordType, Row, Schema
from catchment.program.typing import infer
from catchment.testing.golden import agrees
from catchment.testing.random_expressions import SAMPLE, RandomExpressions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

OTHER = Schema("Other", SAMPLE.fields)
ROWS = 60
PER_QUERY = 20


def drawn(rng: random.Random, schemas: tuple[Schema, ...], count: int) -> list[Node]:
    generated = RandomExpressions(rng, schemas, exact=True)
    nodes: list[Node] = []
    while len(nodes) < count:
        node = generated.expression(depth=4)
        try:
            infer(node, schemas)
        except ProgramError:
            continue
        nodes.append(node)
    return nodes


def frame_of(spark: SparkSession, schema: Schema, rows: list[Row]) -> DataFrame:
    fields = ", ".join(f"{column.name} {spark_type(column.type)}" for column in schema.fields)
    given = [
        (n, *(list(v) if isinstance(v, tuple) and not nested(schema, i) else v for i, v in enumerate(row)))
        for n, row in enumerate(rows)
    ]
    return spark.createDataFrame(spark.sparkContext.parallelize(given, 1), f"row_number INT, {fields}")


def nested(schema: Schema, index: int) -> bool:
    return isinstance(schema.fields[index].type, RecordType)


def expected(node: Node, rows: tuple[Row, ...], schemas: tuple[Schema, ...]) -> tuple[str, Any]:
    try:
        return "is", evaluate(node, rows, schemas)
    except RowError as error:
        return "fails", error.reason


def same_outcome(one: tuple[str, Any], two: tuple[str, Any]) -> bool:
    return one[0] == two[0] and agrees(one[1], two[1])


@pytest.mark.parametrize("seed", range(4))
def test_spark_is_the_reference(spark: SparkSession, seed: int) -> None:
    rng = random.Random(seed)
    nodes = drawn(rng, (SAMPLE,), PER_QUERY)
    generated = RandomExpressions(rng, (SAMPLE,))
    rows = [generated.row() for _ in range(ROWS)]
    written = SparkExpressions((SAMPLE,))
    columns = ["row_number"]
    for n, node in enumerate(nodes):
        columns += [f"{written.value(node)} AS v{n}", f"{written.failure(node) or NO_REASON} AS f{n}"]
    found = []
    for row in written.select(frame_of(spark, SAMPLE, rows), *columns).collect():
        given = rows[row.row_number]
        for n, node in enumerate(nodes):
            actual = ("fails", row[f"f{n}"]) if row[f"f{n}"] is not None else ("is", row[f"v{n}"])
            wanted = expected(node, (given,), (SAMPLE,))
            if not same_outcome(wanted, actual):
                found.append(f"{node}\n over {given}\n gives {wanted}, Spark {actual}")
    assert not found, f"{len(found)} differ\n" + "\n".join(found[:3])


def test_both_sides_of_a_join(spark: SparkSession) -> None:
    rng = random.Random(99)
    schemas = (SAMPLE, OTHER)
    nodes = drawn(rng, schemas, 10)
    generated = RandomExpressions(rng, schemas)
    pairs = [(generated.row(0), generated.row(1)) for _ in range(20)]
    written = SparkExpressions(schemas)
    columns = ["left.row_number"]
    for n, node in enumerate(nodes):
        columns += [f"{written.value(node)} AS v{n}", f"{written.failure(node) or NO_REASON} AS f{n}"]
    left = frame_of(spark, SAMPLE, [pair[0] for pair in pairs]).alias("left")
    right = frame_of(spark, OTHER, [pair[1] for pair in pairs]).alias("right")
    from pyspark.sql.functions import expr

    joined = left.join(right, expr("left.row_number = right.row_number"))
    found = []
    for row in written.select(joined, *columns).collect():
        for n, node in enumerate(nodes):
            actual = ("fails", row[f"f{n}"]) if row[f"f{n}"] is not None else ("is", row[f"v{n}"])
            wanted = expected(node, pairs[row.row_number], schemas)
            if not same_outcome(wanted, actual):
                found.append(f"{node}\n over {pairs[row.row_number]}\n gives {wanted}, Spark {actual}")
    assert not found, f"{len(found)} differ\n" + "\n".join(found[:3])


def test_what_fails_is_kept_apart_and_the_query_goes_on(spark: SparkSession) -> None:
    """How a step is meant to be written: reason and values in one select, then two ways out."""
    from catchment.program.nodes import Call, FieldRef, Literal
    from catchment.program.types import INT, Column

    schema = Schema("Pair", (Column("x", INT), Column("y", INT)))
    columns = (Call("floordiv", (FieldRef("x"), FieldRef("y"))), Call("mul", (FieldRef("x"), FieldRef("x"))))
    keep = Call("ge", (Call("mod", (FieldRef("x"), FieldRef("y"))), Literal(0, INT)))
    written = SparkExpressions((schema,))
    reason = written.row_failure((keep, *columns)) or NO_REASON
    rows = [(7, 2), (1, 0), (2**62, 3), (-7, -2)]
    frame = spark.createDataFrame(spark.sparkContext.parallelize(rows, 1), "x BIGINT, y BIGINT")
    judged = written.select(
        frame,
        "x",
        "y",
        f"{reason} AS reason",
        f"{written.value(keep)} AS keep",
        *(f"{written.value(column)} AS c{n}" for n, column in enumerate(columns)),
    )
    good = judged.where("reason IS NULL AND keep").select("c0", "c1").collect()
    failed = judged.where("reason IS NOT NULL").select("x", "y", "reason").collect()
    assert [tuple(row) for row in good] == [(3, 49)]
    assert [tuple(row) for row in failed] == [(1, 0, "division by zero"), (2**62, 3, "overflow")]
