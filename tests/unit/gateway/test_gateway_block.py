"""Blocks: what goes in comes out, and harm anywhere is seen."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from catchment.gateway.log import Entry, Kind
from catchment.gateway.log.files import block

_text = st.text(max_size=12)
_number = st.integers(-(2**63), 2**63 - 1)
_entry = st.builds(
    Entry,
    kind=st.sampled_from(list(Kind)).map(int),
    payload=st.binary(max_size=40),
    **dict.fromkeys(block.STRINGS, _text),
    **dict.fromkeys(block.NUMBERS, _number),
)


def test_every_field_of_an_entry_has_a_column() -> None:
    fields = {field.name for field in msgspec.structs.fields(Entry)}
    assert fields == {"kind", "payload", *block.STRINGS, *block.NUMBERS}


@settings(max_examples=100, deadline=None)
@given(st.lists(_entry, min_size=1, max_size=8), st.integers(0, 2**60), st.integers(0, 2**32 - 1))
def test_a_block_gives_back_its_entries(entries: list[Entry], offset: int, salt: int) -> None:
    data = block.encode(entries, offset=offset, generation=3, salt=salt)
    header = block.header_at(data, 0)
    assert header is not None and header.length == len(data) and header.length % 8 == 0
    assert block.intact(data, 0, header, salt)
    assert not block.intact(data, 0, header, (salt + 1) % 2**32)
    assert list(block.entries_of(block.take_apart(data, 0, header))) == [(offset + i, e) for i, e in enumerate(entries)]


@settings(max_examples=100, deadline=None)
@given(st.lists(_entry, min_size=1, max_size=4), st.data())
def test_a_flipped_bit_anywhere_is_seen(entries: list[Entry], data: st.DataObject) -> None:
    whole = bytearray(block.encode(entries, offset=64, generation=1, salt=9))
    position = data.draw(st.integers(0, len(whole) - 1))
    whole[position] ^= 1 << data.draw(st.integers(0, 7))
    header = block.header_at(bytes(whole), 0)
    assert header is None or not block.intact(bytes(whole), 0, header, 9)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400))
def test_arbitrary_bytes_are_no_block(junk: bytes) -> None:
    header = block.header_at(block.MAGIC + junk, 0)
    assert header is None or not block.intact(block.MAGIC + junk, 0, header, 9)
