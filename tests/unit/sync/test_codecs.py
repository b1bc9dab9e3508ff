"""Codecs: rows survive, hostile payloads are refused, names are found or refused."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catchment.errors import PeerError, ProgramError
from catchment.program.types import FLOAT, INSTANT, INT, Column, Row, Schema
from catchment.sync.codecs import available, codec, register
from catchment.sync.codecs.compress import PAYLOAD_BYTES_MAX, compression
from tests.unit.sync.codec_strategies import data_types, same, schema_and_rows, schemas

LOSSLESS = ["none", "msgpack", "delta", "arrow", "none/deflate", "msgpack/zstd", "delta/deflate", "delta/zstd"]


@pytest.mark.parametrize("name", LOSSLESS)
@given(case=schema_and_rows())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_rows_survive(name: str, case: tuple[Schema, list[Row]]) -> None:
    schema, rows = case
    if name == "arrow" and not schema.fields:
        return
    found = codec(name)
    assert found.name == name
    assert same(found.decode(schema, found.encode(schema, rows)), rows)


@pytest.mark.parametrize("name", ["none", "msgpack", "delta", "arrow", "none/deflate", "msgpack/zstd"])
@given(schema=schemas(data_types, "Outer"), noise=st.binary(max_size=200))
@settings(max_examples=60)
def test_arbitrary_bytes_are_refused_or_are_rows(name: str, schema: Schema, noise: bytes) -> None:
    try:
        rows = codec(name).decode(schema, noise)
    except PeerError as error:
        assert error.code in {"S423", "S425"}
    else:
        assert same(codec(name).decode(schema, codec(name).encode(schema, rows)), rows)


FIX = Schema("Fix", (Column("at", INSTANT), Column("lat_deg", FLOAT), Column("n", INT)))


def test_json_has_a_defined_form_for_what_its_numbers_cannot_hold() -> None:
    rows: list[Row] = [(2**53 - 1, math.nan, -(2**63)), (2**53, -math.inf, 1)]
    text = b'[[9007199254740991,"NaN","-9223372036854775808"],["9007199254740992","-Infinity",1]]'
    assert codec("none").encode(FIX, rows) == text
    assert same(codec("none").decode(FIX, text), rows)


@pytest.mark.parametrize(
    "text",
    [
        b'[["9223372036854775808",1.0,1]]',
        b'[["' + b"9" * 100_000 + b'",1.0,1]]',
        b'[[1,"nan",1]]',
        b'[[1,"",1]]',
        b"[[1,1.0]]",
        b"[[1,1.0,1,1]]",
        b'[["x",1.0,1]]',
        b"[[1.5,1.0,1]]",
        b"[" * 100_000,
    ],
)
def test_json_of_another_shape_is_refused(text: bytes) -> None:
    with pytest.raises(PeerError, match="S425"):
        codec("none").decode(FIX, text)


@pytest.mark.parametrize("name", ["none", "msgpack", "delta", "arrow"])
@pytest.mark.parametrize("row", [(2**64, 1.0, 1), (1, 1.0, "\ud800"), (object(), 1.0, 1)])
def test_a_value_that_no_wire_holds_is_the_authors_error(name: str, row: Row) -> None:
    with pytest.raises(ProgramError, match="S424"):
        codec(name).encode(FIX, [row])


@pytest.mark.parametrize("name", ["deflate", "zstd"])
def test_a_payload_that_grows_too_large_is_refused_before_it_does(name: str) -> None:
    packing = compression(name)
    bomb = packing.compress(bytes(PAYLOAD_BYTES_MAX + 1))
    assert len(bomb) < PAYLOAD_BYTES_MAX // 100
    with pytest.raises(PeerError, match="S423"):
        packing.decompress(bomb)


@pytest.mark.parametrize("name", ["deflate", "zstd"])
@given(data=st.binary(max_size=300))
@settings(max_examples=50)
def test_compression_takes_back_what_it_gave_and_nothing_cut_or_trailed(name: str, data: bytes) -> None:
    packing = compression(name)
    packed = packing.compress(data)
    assert packing.decompress(packed) == data
    for wrong in (packed[:-1], packed + b"x") if packed else (b"x",):
        with pytest.raises(PeerError, match="S423"):
            packing.decompress(wrong)


@pytest.mark.parametrize(("name", "code"), [("morse", "S421"), ("none/lzw", "S422"), ("", "S421"), ("none/", "S422")])
def test_an_unknown_name_is_refused(name: str, code: str) -> None:
    with pytest.raises(PeerError, match=code):
        codec(name)


class Upside:
    """An author's codec: the rows from last to first."""

    name = "upside"

    def encode(self, schema: Schema, rows: Sequence[Row]) -> bytes:
        return codec("msgpack").encode(schema, list(reversed(rows)))

    def decode(self, schema: Schema, data: bytes) -> list[Row]:
        return list(reversed(codec("msgpack").decode(schema, data)))


def test_an_authors_codec_is_found_by_name_alone_and_compressed() -> None:
    register(Upside())
    assert "upside" in available()
    rows: list[Row] = [(1, 1.0, 1), (2, 2.0, 2)]
    for name in ("upside", "upside/deflate"):
        assert codec(name).decode(FIX, codec(name).encode(FIX, rows)) == rows


@pytest.mark.parametrize("name", ["", "none", "a/b"])
def test_an_author_cannot_take_a_name_that_has_a_meaning(name: str) -> None:
    mine = Upside()
    mine.name = name
    with pytest.raises(ProgramError, match="S420"):
        register(mine)
