"""An upload like those before it becomes the same entry as one that is looked at from the beginning."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from catchment.gateway.enrolment import Enrolled
from catchment.gateway.uplink import Turn, Uplink
from catchment.sync.frame import Beat, Data, Hello
from catchment.sync.parts import Clock, Epoch, Gap, Lost
from tests.unit.gateway.kit import BOOT, NOW, SECOND

_EPOCHS = (Epoch(1, b"epoch  1"), Epoch(2, b"epoch  2"))
_SCHEMAS = {"fixes": frozenset({"00" * 8, "11" * 8}), "steps": frozenset({"00" * 8})}
_CLOCK = Clock(BOOT, SECOND, SECOND // 10)
_FIRST = Data("fixes", _EPOCHS[0], 0, 2, bytes(8), "none", clock=_CLOCK, payload=b"rows")
_LASTING: list[dict[str, Any]] = [
    {"stream": "steps"},
    {"stream": "fixes"},
    {"epoch": _EPOCHS[1]},
    {"schema": b"\x11" * 8},
    {"codec": "delta/deflate"},
    {"lost": Lost(dropped=1)},
    {"clock": None},
    {"clock": _CLOCK},
    {"clock": replace(_CLOCK, session=b"boot before")},
    {"clock": replace(_CLOCK, offset_us=NOW)},
    {"clock": replace(_CLOCK, wall_us=NOW - 7)},
]
"""What a device may say otherwise from some frame on."""
_ONCE: list[dict[str, Any]] = [
    {"gaps": (Gap(0, 2),)},
    {"count": 0},
    {"clock": replace(_CLOCK, reading_us=90 * SECOND)},
    {"epoch": _EPOCHS[0]},
    {"schema": b"\x22" * 8},
    {"promise_us": NOW},
    {"promise_us": NOW + SECOND},
    {"clock": replace(_CLOCK, reading_us=2 * SECOND, span_us=5)},
    {"clock": replace(_CLOCK, wall_us=NOW - 9)},
]
"""What it may say otherwise in one frame."""
_alike: st.SearchStrategy[tuple[int, dict[str, Any], dict[str, Any]]] = st.just((0, {}, {}))
_uploads = st.one_of(
    _alike,
    _alike,
    st.tuples(st.sampled_from([0, 0, 0, -1, 1, 3]), st.sampled_from([{}, *_LASTING]), st.sampled_from([{}, *_ONCE])),
)
_beats = st.builds(
    Beat, st.just(BOOT), st.sampled_from([0, 40 * SECOND, 80 * SECOND]), st.sampled_from([None, NOW - 5])
)


def _uplink() -> Uplink:
    return Uplink(Enrolled("phone", "ada", "peir", "", 0), None, streams_max=4, schemas=lambda look: _SCHEMAS)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.one_of(_uploads, _uploads, _uploads, _beats), max_size=30))
def test_what_goes_on_alike_is_logged_as_if_nothing_went_before(said: list[tuple[int, Any, Any] | Beat]) -> None:
    short, long = _uplink(), _uplink()
    one, other = Turn(), Turn()
    for uplink, turn in ((short, one), (long, other)):
        uplink.greeted(Hello("phone", "", _EPOCHS[1], b"n", session=BOOT, reading_us=6 * SECOND), turn, now_us=NOW)
    like = _FIRST
    upto: dict[tuple[str, Epoch], int] = {}
    for number, what in enumerate(said):
        now_us = NOW + number * SECOND
        if isinstance(what, Beat):
            short.beat(what, one, now_us=now_us)
            long.beat(what, other, now_us=now_us)
            continue
        skips, lasting, once = what
        like = replace(like, **lasting)
        frame = replace(like, payload=b"rows %d" % number, **once)
        frame = replace(frame, first=max(0, upto.get((frame.stream, frame.epoch), 0) + skips))
        refused = short.data(frame, one, now_us=now_us)
        # A frame that names its device is looked at from the beginning.
        again = long.data(replace(frame, device="phone"), other, now_us=now_us)
        assert (refused and refused.error.code) == (again and again.error.code)
        upto = dict(one.moved)
    assert one.entries == other.entries
    assert one.moved == other.moved
    assert [frame.payload for frame in one.taken] == [frame.payload for frame in other.taken]
    assert [frame.payload for frame in one.duplicates] == [frame.payload for frame in other.duplicates]
    assert short.settle(one) == long.settle(other)


def test_a_schema_is_found_right_by_rows_and_not_by_a_frame_without_any() -> None:
    uplink, turn = _uplink(), Turn()
    uplink.greeted(Hello("phone", "", _EPOCHS[0], b"n", session=BOOT), turn, now_us=NOW)
    none = Data("fixes", _EPOCHS[0], 0, 0, b"\x22" * 8, "none", gaps=(Gap(0, 2),))
    assert uplink.data(none, turn, now_us=NOW) is None, "it says that numbers are given up, and has no rows to read"
    refused = uplink.data(replace(none, first=2, count=1, gaps=()), turn, now_us=NOW)
    assert refused is not None and refused.error.code == "G573"
