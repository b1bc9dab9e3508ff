"""SQL printed for other databases: DuckDB is a witness for the reference, and differs only where it is said to."""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot

from catchment.engines.reference.expressions import evaluate
from catchment.errors import ProgramError
from catchment.program.functions import CASTS, FUNCTIONS
from catchment.program.nodes import Call, Cast, FieldRef, GetField, Literal, Node, UserCall, walk
from catchment.program.row_error import RowError
from catchment.program.sql import parse, to_sql
from catchment.program.sql.differences import DIFFERENCES, UNWRITABLE
from catchment.program.sql.writing import DIALECTS
from catchment.program.types import FLOAT, INT, STR, Column, ListType, RecordType, Schema
from catchment.program.typing import infer
from catchment.testing.golden import Case, Vector, load
from catchment.testing.random_expressions import SAMPLE, RandomExpressions

FILES = tuple(load(Path(__file__).parents[2] / "golden"))
FIX = Schema(
    "Fix",
    (
        Column("user", STR),
        Column("speed", FLOAT),
        Column("n", INT),
        Column("place", RecordType(Schema("Place", (Column("name", STR),)))),
    ),
)
SPEED, N = FieldRef("speed"), FieldRef("n")

_TYPES = {
    "bool": "BOOLEAN",
    "int": "BIGINT",
    "float": "DOUBLE",
    "str": "VARCHAR",
    "bytes": "BLOB",
    "instant": "BIGINT",
    "duration": "BIGINT",
}


def sql_type(kind: Any) -> str:
    name = str(kind)
    return f"{_TYPES[name[5:-1]]}[]" if name.startswith("list[") else _TYPES[name]


def same_on_duckdb(connection: duckdb.DuckDBPyConnection, case: Case, vector: Vector) -> bool:
    columns = ", ".join(f"CAST(? AS {sql_type(kind)}) AS a{i}" for i, kind in enumerate(case.takes))
    query = f"SELECT {to_sql(case.node, 'duckdb', (case.schema,))} FROM (SELECT {columns or '1'})"
    args = [list(arg) if isinstance(arg, tuple) else arg for arg in vector.args]
    try:
        row = connection.execute(query, args).fetchone()
    except duckdb.Error:
        return False
    return row is not None and case.accepts(vector, row[0])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_duckdb_gives_the_same_or_is_said_to_differ(file: Any) -> None:
    if file.name in UNWRITABLE["duckdb"]:
        with pytest.raises(ProgramError, match="C139"):
            to_sql(file.cases[0].node, "duckdb", (file.cases[0].schema,))
        return
    with duckdb.connect() as connection:
        differing = [
            f"{case}: {vector}"
            for case in file.cases
            for vector in case.vectors
            if vector.fails is None and not same_on_duckdb(connection, case, vector)
        ]
    if file.name in DIFFERENCES["duckdb"]:
        assert differing, "DuckDB means the same now: take it from DIFFERENCES"
    else:
        assert not differing


def test_differences_are_about_functions_that_exist() -> None:
    names = {*FUNCTIONS, *(f"cast_{given}_to_{to}" for given, to in CASTS)}
    for dialect in DIALECTS:
        assert set(DIFFERENCES[dialect]) | UNWRITABLE[dialect] <= names


PRINTED: list[tuple[Node, dict[str, str]]] = [
    (
        Call("gt", (Call("mul", (SPEED, Literal(3.6, FLOAT))), Literal(50, INT))),
        dict.fromkeys(DIALECTS, '("speed" * 3.6) > 50.0'),
    ),
    (
        Call("div", (N, Literal(2, INT))),
        {
            "duckdb": 'CAST("n" AS DOUBLE) / 2.0',
            "postgres": 'CAST("n" AS DOUBLE PRECISION) / 2.0',
            "spark": "CAST(`n` AS DOUBLE) / 2.0",
        },
    ),
    (
        Call("if_", (Call("is_null", (FieldRef("user"),)), Literal("it's", STR), GetField(FieldRef("place"), "name"))),
        {"duckdb": 'CASE WHEN "user" IS NULL THEN \'it\'\'s\' ELSE "place"."name" END'},
    ),
    (Cast(SPEED, INT), {"postgres": 'CAST(TRUNC("speed") AS BIGINT)', "spark": "CAST(`speed` AS BIGINT)"}),
    (Call("add", (Literal(0.1, FLOAT), Literal(0.2, FLOAT))), {"duckdb": "CAST(0.1 AS DOUBLE) + CAST(0.2 AS DOUBLE)"}),
]


@pytest.mark.parametrize(("node", "texts"), PRINTED, ids=[str(node)[:40] for node, _ in PRINTED])
def test_what_is_printed(node: Node, texts: dict[str, str]) -> None:
    for dialect, text in texts.items():
        assert to_sql(node, dialect, (FIX,)) == text.replace('"', "`" if dialect == "spark" else '"')


def test_the_sides_of_a_join_are_tables() -> None:
    same_user = Call("eq", (FieldRef("user"), FieldRef("user", side=1)))
    assert to_sql(same_user, "postgres", (FIX, FIX)) == '"left"."user" = "right"."user"'
    assert to_sql(same_user, "postgres", (FIX, FIX), ("f", "t")) == '"f"."user" = "t"."user"'


@pytest.mark.parametrize(
    "text",
    [
        "speed * 3.6 > 50 AND NOT n = 1",
        "coalesce(speed, 0.0) + n",
        "CASE WHEN n > 1 THEN 'a' ELSE user END",
        "user IN ('a', 'b') OR n IS NULL",
        "upper(trim(user)) || '!'",
        "nullif(n, 0) * -5",
    ],
)
def test_printed_and_read_again_it_is_the_same(text: str) -> None:
    def promoted(node: Node) -> list[str]:
        """Casts to float are written out; beyond them the two are alike."""
        return [part.function for part in walk(node) if isinstance(part, Call)]

    node = parse(text, (FIX,))
    again = parse(to_sql(node, "duckdb", (FIX,)), (FIX,))
    assert promoted(again) == promoted(node)
    assert infer(again, (FIX,)) == infer(node, (FIX,))


def test_all_that_is_printed_can_be_read() -> None:
    """Random trees, each in every dialect: SQLGlot takes back what it printed."""
    generated = RandomExpressions(random.Random(5), (SAMPLE,))
    printed = 0
    for node in well_typed(generated, 150):
        for dialect in DIALECTS:
            try:
                text = to_sql(node, dialect, (SAMPLE,))
            except ProgramError as refused:
                assert refused.code == "C139"
                continue
            sqlglot.parse_one(text, read=dialect)
            printed += 1
    assert printed > 300


COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "in_", "null_if"))


def test_duckdb_computes_random_trees_as_the_reference_does() -> None:
    """Brackets stand where they must. Of numbers that databases treat in their own way there are none in the rows."""
    plain = Schema("Sample", tuple(c for c in SAMPLE.fields if not isinstance(c.type, ListType | RecordType)))
    generated = RandomExpressions(random.Random(6), (plain,), exact=True)
    excluded = (set(DIFFERENCES["duckdb"]) | UNWRITABLE["duckdb"] | {"in_zone", "nan", "infinity"}) - COMPARISONS
    columns = ", ".join(f"CAST(? AS {sql_type(column.type)}) AS {column.name}" for column in plain.fields)
    compared = 0
    with duckdb.connect() as connection:
        for node in well_typed(generated, 600, (plain,)):
            used = {part.function for part in walk(node) if isinstance(part, Call)}
            if used & excluded or any(isinstance(part, Cast) and part.to == STR for part in walk(node)):
                continue
            row = generated.row()
            if any(isinstance(value, float) and not math.isfinite(value) for value in row):
                continue
            try:
                expected = evaluate(node, (row,), (plain,))
            except RowError:
                continue
            query = f"SELECT {to_sql(node, 'duckdb', (plain,))} FROM (SELECT {columns})"
            given = connection.execute(query, list(row)).fetchone()
            assert given is not None
            assert given[0] == expected or expected != expected, f"{node} over {row}: {query}"
            compared += 1
    assert compared > 100


def well_typed(generated: RandomExpressions, count: int, schemas: tuple[Schema, ...] = (SAMPLE,)) -> Iterator[Node]:
    for _ in range(count):
        node = generated.expression(depth=4)
        with contextlib.suppress(ProgramError):
            infer(node, schemas)
            yield node


def test_what_has_no_sql_is_refused() -> None:
    with pytest.raises(ProgramError, match="C138"):
        to_sql(N, "oracle", (FIX,))
    with pytest.raises(ProgramError, match="C139"):
        to_sql(UserCall("package:f@1", (N,), INT), "postgres", (FIX,))
