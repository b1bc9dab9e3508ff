"""`delta`: rounding to steps, escapes, sizes, and numpy reading the same bytes the same way."""

import math
import struct
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catchment.errors import PeerError, ProgramError
from catchment.program.resolution import scale, unscale
from catchment.program.types import BOOL, FLOAT, INSTANT, INT, STR, Column, ListType, Row, Schema
from catchment.sync.codecs import codec
from catchment.sync.codecs.arrow import arrow_array, arrow_schema
from catchment.sync.codecs.delta import STEPS_MAX, DeltaCodec
from catchment.sync.codecs.delta_numpy import read_frames
from catchment.sync.codecs.integers import pack, unpack
from catchment.sync.codecs.reader import Reader
from catchment.sync.frame import ROWS_MAX
from tests.unit.sync.codec_strategies import data_types, int64s, rows_of, same, schema_and_rows, schemas

DELTA = DeltaCodec()


@given(
    st.lists(int64s | st.integers(-3, 3), max_size=40)
    | st.lists(st.integers(0, 50).map(lambda n: n * 1000), max_size=40)
)
def test_every_list_of_integers_comes_back(values: list[int]) -> None:
    reader = Reader(pack(values))
    assert unpack(reader, len(values)) == values
    assert reader.at == len(reader.data)


@pytest.mark.parametrize(
    ("values", "size"),
    [
        ([7] * 1000, 2),
        (list(range(0, 5_000_000, 5000)), 6),
        ([-(2**63), 2**63 - 1, -(2**63)], 30),
        ([0, 1, 4, 9, 16, 25, 36], 8),
    ],
)
def test_steady_motion_costs_next_to_nothing(values: list[int], size: int) -> None:
    assert len(pack(values)) <= size


steps = st.sampled_from([1e-6, 0.1, 0.25, 1.0, 3.0, 1e-7, 0.3, 2.5, 1000.0])


@given(steps, st.lists(st.floats(-1e9, 1e9) | st.floats(), max_size=20))
def test_a_float_with_a_step_comes_back_as_its_nearest_multiple_and_stays_it(step: float, values: list[float]) -> None:
    schema = Schema("S", (Column("x", FLOAT, step=step),))
    rows: list[Row] = [(value,) for value in values]
    once = DELTA.decode(schema, DELTA.encode(schema, rows))
    for value, (told,) in zip(values, once, strict=True):
        if math.isfinite(value) and abs(value) / step < STEPS_MAX / 2:
            assert told == unscale(scale(value, step), step)
            assert abs(told - value) <= step * 0.5000001 + abs(value) * 2**-50
        elif not math.isfinite(value) or abs(value) / step > 2 * STEPS_MAX:
            assert struct.pack("<d", told) == struct.pack("<d", value)
    assert same(DELTA.decode(schema, DELTA.encode(schema, once)), once)


@given(st.sampled_from([2, 10, 1000, 7]), st.lists(int64s | st.integers(-5000, 5000), max_size=20))
def test_an_integer_with_a_whole_step_is_rounded_to_it_half_to_even(step: int, values: list[int]) -> None:
    schema = Schema("S", (Column("at", INSTANT, step=step),))
    once = DELTA.decode(schema, DELTA.encode(schema, [(value,) for value in values]))
    for value, (told,) in zip(values, once, strict=True):
        assert told % step == 0
        if abs(value) < 2**62:
            assert abs(told - value) * 2 <= step
            assert abs(told - value) * 2 < step or (told // step) % 2 == 0
        else:
            assert abs(told - value) <= step
    assert DELTA.decode(schema, DELTA.encode(schema, once)) == once


def test_what_no_step_can_tell_comes_back_bit_by_bit() -> None:
    schema = Schema("S", (Column("x", FLOAT, nullable=True, step=1e-6),))
    payload_nan = struct.unpack("<d", b"\x01\x02\x03\x04\x05\x06\xf8\x7f")[0]
    values = [1.0, None, payload_nan, math.inf, -math.inf, 1e300, -5e-324, 2.0, None]
    told = [row[0] for row in DELTA.decode(schema, DELTA.encode(schema, [(value,) for value in values]))]
    assert struct.pack("<d", told[2]) == struct.pack("<d", payload_nan)
    assert told[:2] + told[3:6] + told[7:] == values[:2] + values[3:6] + values[7:]
    assert told[6] == 0.0


def test_floats_that_were_written_as_decimals_cost_what_integers_cost() -> None:
    random = Random(1)
    schema = Schema("S", (Column("x", FLOAT),))
    decimal = [(round(48 + random.gauss(0, 1e-4), 6),) for _ in range(200)]
    binary = [(48 + random.gauss(0, 1e-4),) for _ in range(200)]
    assert len(DELTA.encode(schema, decimal)) < 500
    assert len(DELTA.encode(schema, binary)) > 1000
    for rows in (decimal, binary):
        assert DELTA.decode(schema, DELTA.encode(schema, rows)) == rows


def test_words_that_repeat_are_told_once() -> None:
    schema = Schema("S", (Column("user", STR),))
    rows: list[Row] = [("ada" * 100,)] * 50 + [("bob",)] * 50
    assert len(DELTA.encode(schema, rows)) < 500
    assert DELTA.decode(schema, DELTA.encode(schema, rows)) == rows


def test_a_row_of_another_width_is_the_authors_error() -> None:
    schema = Schema("S", (Column("n", INT),))
    for rows in ([(1,), (1, 2)], [(1, 2)], [(None,)], [(1.5,)], [(True,)], [(1,)] * (ROWS_MAX + 1)):
        with pytest.raises((ProgramError, ValueError), match=r"S424|zip"):
            DELTA.encode(schema, rows)


FIX = Schema(
    "Fix", (Column("at", INSTANT, step=1000), Column("lat", FLOAT, step=1e-6), Column("who", STR, nullable=True))
)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x02\x00",
        b"\x01\xff\xff\xff\xff\x0f",
        b"\x01\x05",
        b"\x01\x01\x81\x01",
        b"\x01\x01\x02\x00",
        b"\x01\x01\x01\x7f",
        DELTA.encode(FIX, [(1000, 1.0, "x")]) + b"x",
        DELTA.encode(FIX, [(1000, 1.0, "x")])[:-1],
        b"\x01\x01\x01\x00" + b"\xff" * 9 + b"\x01" + b"\x02\x00\x00\x00\x05\x92\x01",
    ],
)
def test_bytes_of_another_make_are_refused(payload: bytes) -> None:
    with pytest.raises(PeerError, match="S425"):
        DELTA.decode(FIX, payload)
    with pytest.raises(PeerError, match="S425"):
        read_frames(FIX, [("delta", payload)])


def with_steps(schema: Schema) -> Schema:
    fields = []
    for index, column in enumerate(schema.fields):
        step = [None, 0.1, 1e-6, 3.0, 2.0][index % 5] if column.type in (FLOAT, INT, INSTANT) else None
        fields.append(Column(column.name, column.type, nullable=column.nullable, step=step))
    return Schema(schema.name, tuple(fields))


@st.composite
def stepped_frames(draw: st.DrawFn) -> tuple[Schema, list[tuple[str, list[Row]]]]:
    schema = with_steps(draw(schemas(data_types, "Outer").filter(lambda s: s.fields)))
    name = st.sampled_from(["delta", "delta", "delta/deflate", "msgpack", "none/zstd"])
    return schema, draw(st.lists(st.tuples(name, st.lists(rows_of(schema), max_size=7)), max_size=5))


@given(stepped_frames())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_numpy_reads_the_same_values(case: tuple[Schema, list[tuple[str, list[Row]]]]) -> None:
    schema, frames = case
    payloads = [(name, codec(name).encode(schema, rows)) for name, rows in frames]
    expected = [codec(name).decode(schema, payload) for name, payload in payloads]
    read = read_frames(schema, payloads)
    assert read.counts.tolist() == [len(rows) for rows in expected]
    rows = [row for part in expected for row in part]
    columns = [column.objects() for column in read.columns]
    assert same(list(zip(*columns, strict=True)) if rows else [], rows)
    for place, (field, column) in enumerate(zip(schema.fields, read.columns, strict=True)):
        array = arrow_array(field.type, column)
        assert array.type == arrow_schema(schema).field(place).type
        assert array.null_count == sum(row[place] is None for row in rows)


@given(schemas(data_types, "Outer"), st.binary(max_size=120), st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_numpy_refuses_what_python_refuses(schema: Schema, noise: bytes, data: st.DataObject) -> None:
    schema = with_steps(schema)
    if data.draw(st.booleans()):
        # Nearly sound: a payload with some bytes changed.
        good = bytearray(DELTA.encode(schema, data.draw(st.lists(rows_of(schema), max_size=6))))
        for _ in range(data.draw(st.integers(1, 3))):
            good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
        noise = bytes(good)
    try:
        rows: list[Row] | None = DELTA.decode(schema, noise)
    except PeerError as error:
        assert error.code == "S425"
        rows = None
    try:
        read = read_frames(schema, [("delta", noise)])
    except PeerError as error:
        assert error.code == "S425"
        assert rows is None
    else:
        assert rows is not None
        columns = [column.objects() for column in read.columns]
        assert same(list(zip(*columns, strict=True)) if columns else [()] * len(rows), rows)


def test_a_long_list_of_frames_of_every_order_and_width() -> None:
    random = Random(7)
    schema = Schema("S", (Column("n", INT), Column("x", FLOAT), Column("tags", ListType(INT))))
    frames = []
    for _ in range(200):
        size = random.choice([0, 1, 2, 3, 50])
        wide = random.choice([1, 100, 10**6, 2**62])
        frames.append(
            [(random.randrange(-wide, wide), random.random(), (1,) * random.randrange(3)) for _ in range(size)]
        )
    read = read_frames(schema, [("delta", DELTA.encode(schema, rows)) for rows in frames])
    assert list(zip(*[column.objects() for column in read.columns], strict=True)) == [row for f in frames for row in f]
    assert read.columns[0].values.dtype == np.int64
    assert read.columns[1].values.dtype == np.float64


@given(schema_and_rows())
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_no_frame_at_all_has_columns_of_nothing(case: tuple[Schema, list[Row]]) -> None:
    schema, _ = case
    read = read_frames(schema, [])
    assert [len(column.values) for column in read.columns] == [0] * len(schema.fields)


@given(stepped_frames(), st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_some_columns_are_what_they_are_among_all(
    case: tuple[Schema, list[tuple[str, list[Row]]]], data: st.DataObject
) -> None:
    schema, frames = case
    payloads = [(name, codec(name).encode(schema, rows)) for name, rows in frames]
    wanted = data.draw(st.sets(st.sampled_from(schema.names)))
    whole, some = read_frames(schema, payloads), read_frames(schema, payloads, wanted=wanted)
    assert some.counts.tolist() == whole.counts.tolist()
    picked = [column for name, column in zip(schema.names, whole.columns, strict=True) if name in wanted]
    assert same([column.objects() for column in some.columns], [column.objects() for column in picked])


def test_what_stands_in_a_column_that_nobody_wants_is_not_looked_at() -> None:
    schema = Schema("S", (Column("sure", BOOL), Column("n", INT), Column("name", STR)))
    payload = bytearray(DELTA.encode(schema, [(True, 5, "ada")]))
    payload[payload.index(b"ada")] = 0xFF  # no text
    with pytest.raises(PeerError, match="S425"):
        read_frames(schema, [("delta", bytes(payload))])
    (n,) = read_frames(schema, [("delta", bytes(payload))], wanted={"n"}).columns
    assert n.objects() == [5]
    with pytest.raises(PeerError, match="S425"):  # where it ends is still known
        read_frames(schema, [("delta", bytes(payload) + b"x")], wanted={"n"})
