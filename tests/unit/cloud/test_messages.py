"""Messages as rows: what fits is taken as it is, and what does not is refused with its reason and its position."""

from __future__ import annotations

import datetime
import json
import math
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.cloud.sources.kafka import Messages
from catchment.cloud.sources.messages import FORMATS, JSON, reader
from catchment.engines.spark.events import Arrived
from catchment.plan.history import Source
from catchment.program.types import BYTES, FLOAT, INSTANT, INT, STR, Column, ListType, RecordType, Row, Schema
from tests.unit.sync.codec_strategies import data_types, rows_of, same, schemas

MARK = Schema("Mark", (Column("at", INSTANT), Column("weight_kg", FLOAT, nullable=True)))
SALE = Schema(
    "Sale",
    (
        Column("shop", STR, key=True),
        Column("at", INSTANT, event_time=True),
        Column("cents", INT),
        Column("note", STR, nullable=True),
        Column("marks", ListType(RecordType(MARK)), default=(), has_default=True),
    ),
)


def plain(kind: Any, value: Any, form: str) -> Any:
    """A value of a row as a producer writes it."""
    match kind, value:
        case _, None:
            return None
        case ListType(element), _:
            return [plain(element, each, form) for each in value]
        case RecordType(schema), _:
            return written(schema, value, form)
        case _:
            return value


def written(schema: Schema, row: Row, form: str) -> dict[str, Any]:
    return {field.name: plain(field.type, value, form) for field, value in zip(schema.fields, row, strict=True)}


def is_finite(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


@given(st.sampled_from(FORMATS), schemas(data_types, "Sent").flatmap(lambda s: st.tuples(st.just(s), rows_of(s))))
def test_what_a_producer_writes_of_a_row_is_the_row(form: str, case: tuple[Schema, Row]) -> None:
    schema, row = case
    if form == JSON and not is_finite(row):
        return  # JSON has no such number
    encode = msgspec.json.encode if form == JSON else msgspec.msgpack.encode
    assert same([reader(schema, form)(encode(written(schema, row, form)))], [row])


def test_a_moment_is_text_or_microseconds() -> None:
    read = reader(MARK, JSON)
    for text in ('"1970-01-01T00:00:01.5Z"', '"1970-01-01T01:00:01.5+01:00"', '"1970-01-01T00:00:01.5"', "1500000"):
        assert read(b'{"at": ' + text.encode() + b"}") == (1_500_000, None)
    moment = datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000, datetime.UTC)
    assert reader(MARK, "msgpack")(msgspec.msgpack.encode({"at": moment})) == (1_500_000, None)


def batch(*messages: tuple[int, bytes | None, bytes | None]) -> pa.RecordBatch:
    """Messages of partition 3 as Spark gives them: (offset, key, value)."""
    count = len(messages)
    columns = {
        "_file": pa.array(["sales"] * count),
        "_block": pa.array([3] * count, pa.int64()),
        "offset": pa.array([offset for offset, *_ in messages], pa.int64()),
        "key": pa.array([key for _, key, _ in messages], pa.binary()),
        "value": pa.array([value for *_, value in messages], pa.binary()),
        "timestamp": pa.array([7_000_000] * count, pa.int64()),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def arrived(said: dict[str, Any], *messages: tuple[int, bytes | None, bytes | None], record: Schema = SALE) -> Arrived:
    return Messages(record, said)(batch(*messages), "read", Source("read", None))


def test_fields_may_take_the_key_the_time_and_the_place() -> None:
    record = Schema(
        "Sent",
        (
            Column("who", BYTES, nullable=True),
            Column("at", INSTANT, event_time=True),
            Column("part", INT),
            Column("place", INT),
            Column("cents", INT),
        ),
    )
    said = {"key": "who", "timestamp": "at", "partition": "part", "offset": "place"}
    found = arrived(said, (41, b"\xff", b'{"cents": 5, "at": "whatever"}'), (42, None, b'{"cents": 6}'), record=record)
    assert found.rows["read"].objects() == [(b"\xff", 7_000_000, 3, 41, 5), (None, 7_000_000, 3, 42, 6)]
    assert found.rows["read"].at.tolist() == [7_000_000] * 2
    assert found.refused == []


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (b"mill", None, "it has no value"),
        (b"mill", b"", "truncated"),
        (b"mill", b"[1]", "Expected `object`, got `array`"),
        (b"mill", b'{"cents": 1}', "missing required field `at`"),
        (b"mill", b'{"at": 1, "cents": null}', "Expected `int`, got `null` - at `$.cents`"),
        (b"mill", b'{"at": 1, "cents": 9223372036854775808}', "at `$.cents`"),
        (b"mill", b'{"at": "yesterday", "cents": 1}', "at `$.at`"),
        (None, b'{"at": 1, "cents": 1}', "it has no key, which shop is"),
        (b"\xff", b'{"at": 1, "cents": 1}', "'utf-8' codec can't decode"),
    ],
)
def test_what_is_no_row_is_refused_with_its_place_and_the_others_go_on(
    key: bytes | None, value: bytes | None, reason: str
) -> None:
    good = json.dumps({"at": 5, "cents": 1}).encode()
    found = arrived({"key": "shop"}, (40, b"mill", good), (41, key, value), (43, b"mill", good))
    assert found.count == 3
    assert found.rows["read"].place.tolist() == [0, 2]
    ((number, step, why, given),) = found.refused
    assert (number, step) == (1, "read")
    assert why.startswith("the message is not a Sale: ")
    assert reason in why
    assert (given["topic"], given["partition"], given["offset"]) == ("sales", 3, 41)
    assert Arrived.unpack(found.pack()).refused[0][3]["offset"] == 41
