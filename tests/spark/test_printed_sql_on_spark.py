"""SQL printed for people, run on Spark: it differs from our meaning where `DIFFERENCES` says so, and nowhere else."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from catchment.engines.spark.sql_text import spark_type
from catchment.program.sql import to_sql
from catchment.program.sql.differences import DIFFERENCES
from catchment.program.types import DataType
from catchment.testing.golden import Case, load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CASES = [case for file in load(Path(__file__).parents[1] / "golden") for case in file.cases]
DECLARED = DIFFERENCES["spark"]


def plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def differing(spark: SparkSession, cases: list[Case]) -> set[str]:
    """Names of the functions that give something else for a vector that does not fail; all of one signature."""
    tried = [(n, v) for n, case in enumerate(cases) for v in case.vectors if v.fails is None]
    rows = [(i, n, *(list(a) if isinstance(a, tuple) else a for a in v.args)) for i, (n, v) in enumerate(tried)]
    fields = "".join(f", a{i} {spark_type(kind)}" for i, kind in enumerate(cases[0].takes))
    frame = spark.createDataFrame(spark.sparkContext.parallelize(rows, 1), f"i INT, n INT{fields}")
    # Each function sees its own rows only: printed for people, it may raise on another's.
    columns = [
        f"CASE WHEN n = {n} THEN {to_sql(case.node, 'spark', (case.schema,))} END" for n, case in enumerate(cases)
    ]
    found = set()
    for row in frame.selectExpr("i", "n", *columns).collect():
        case, vector = cases[row[1]], tried[row[0]][1]
        if not case.accepts(vector, plain(row[2 + row[1]])):
            found.add(case.name)
    return found


def test_what_is_not_declared_does_not_differ(spark: SparkSession) -> None:
    groups: dict[tuple[DataType, ...], list[Case]] = defaultdict(list)
    for case in CASES:
        if case.name not in DECLARED:
            groups[case.takes].append(case)
    assert set().union(*(differing(spark, cases) for cases in groups.values())) == set()


@pytest.mark.parametrize("name", DECLARED)
def test_what_is_declared_differs(spark: SparkSession, name: str) -> None:
    from pyspark.errors import PySparkException

    for case in CASES:
        if case.name == name:
            try:
                if differing(spark, [case]):
                    return
            except PySparkException:
                return
    pytest.fail(f"{name} means on Spark what it means here: take it from DIFFERENCES")
