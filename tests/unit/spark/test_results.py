"""Results reach sinks as they were given, whether they travelled element by element or as columns."""

from __future__ import annotations

import msgspec

from catchment.engines.spark.results import Results
from catchment.engines.spark.rows import Rows
from catchment.plan.history import Source
from catchment.program.types import BOOL, FLOAT, INT, STR, Column, ListType, Schema

SCHEMA = Schema(
    "Seen",
    (
        Column("user", STR, nullable=True),
        Column("n", INT),
        Column("mean", FLOAT, nullable=True),
        Column("good", BOOL),
        Column("all", ListType(FLOAT)),
    ),
)
GIVEN = [
    (5, Source("", "ada"), ("ada", 2**62, None, True, (0.0, -0.0))),
    (4, Source("", None), (None, -1, 1.5, False, ())),
    (9, Source("d", "ada"), ("é", 0, float("inf"), True, (-0.0,))),
]
LISTED = msgspec.msgpack.encode([(at, *source, row) for at, source, row in GIVEN])
COLUMNS = Rows.of(GIVEN, [column.type for column in SCHEMA.fields]).pack()
PLAIN = [(at, *source, row) for at, source, row in GIVEN]


def test_both_kinds_of_packet_are_the_same_rows() -> None:
    results = Results([LISTED, COLUMNS], 6)
    assert len(results) == 6
    assert repr(list(results)) == repr(PLAIN * 2)
    assert repr(list(results.rows(SCHEMA))) == repr(PLAIN * 2)


def test_a_table_has_the_fields_after_what_is_about_them() -> None:
    table = Results([COLUMNS, LISTED], 6).table(SCHEMA)
    assert table.column_names == ["_at", "_device", "_owner", *SCHEMA.names]
    assert table["_owner"].to_pylist()[:3] == ["ada", None, "ada"]
    assert table["mean"].to_pylist()[3:] == [None, 1.5, float("inf")]
    assert repr(table["all"].to_pylist()[2]) == "[-0.0]"


def test_nothing_is_a_table_without_rows() -> None:
    assert Results([], 0).table(SCHEMA).num_rows == 0
