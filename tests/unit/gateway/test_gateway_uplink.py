"""An upload like those before it becomes the same entry as one that is looked at from the beginning."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from catchment.gateway.enrolment import Enrolled
from catchment.gateway.uplink import Turn, Uplink
from catchment.sync.frame import Beat, Data, Hello
from catchment.sync.parts import Clock, Epoch, Gap, Lost
from tests.unit.gateway.kit import BOOT, NOW, SECOND

_EPOCHS = (Epoch(1, b"epoch  1"), Epoch(2, b"epoch  2"))
_SCHEMAS = {"fixes": frozenset({"00" * 8, "11" * 8}), "steps": frozenset({"00" * 8})}
_clocks = st.builds(
    Clock,
    st.sampled_from([BOOT, BOOT, b"boot before", b""]),
    st.integers(0, 5 * SECOND),
    st.integers(0, SECOND),
    st.sampled_from([None, None, NOW, NOW - 1]),
    st.sampled_from([None, NOW - 7]),
)
_uploads = st.builds(
    Data,
    st.sampled_from(["fixes", "fixes", "steps", "other"]),
    st.sampled_from(_EPOCHS),
    st.just(0),
    st.integers(0, 3),
    st.sampled_from([bytes(8), bytes(8), b"\x11" * 8]),
    st.sampled_from(["delta/deflate", "none"]),
    clock=st.none() | _clocks,
    promise_us=st.none() | st.integers(NOW, NOW + SECOND),
    lost=st.sampled_from([Lost(), Lost(), Lost(dropped=1)]),
    gaps=st.sampled_from([(), (), (), (Gap(0, 2),)]),
    payload=st.sampled_from([b"rows", b"others"]),
)
_beats = st.builds(Beat, st.just(BOOT), st.integers(0, 10 * SECOND), st.sampled_from([None, NOW - 5]))


def _uplink() -> Uplink:
    return Uplink(Enrolled("phone", "ada", "peir", "", 0), None, streams_max=4, schemas=lambda look: _SCHEMAS)


@given(st.lists(st.tuples(st.sampled_from([0, 0, 0, 0, 1]), _uploads | _beats), max_size=30))
def test_what_goes_on_alike_is_logged_as_if_nothing_went_before(said: list[tuple[int, Data | Beat]]) -> None:
    short, long = _uplink(), _uplink()
    turns = Turn(), Turn()
    hello = Hello("phone", "", _EPOCHS[1], b"n", session=BOOT, reading_us=6 * SECOND)
    for uplink, turn in zip((short, long), turns, strict=True):
        uplink.greeted(hello, turn, now_us=NOW)
    upto: dict[tuple[str, Epoch], int] = {}
    for number, (skips, frame) in enumerate(said):
        now_us = NOW + number * SECOND
        if isinstance(frame, Beat):
            short.beat(frame, turns[0], now_us=now_us)
            long.beat(frame, turns[1], now_us=now_us)
            continue
        key = frame.stream, frame.epoch
        # Nearly always where the last one ended, so that it can go on from there.
        sent = replace(frame, first=upto.get(key, 0) + skips)
        refused = short.data(sent, turns[0], now_us=now_us)
        # A frame that names its device is looked at from the beginning.
        again = long.data(replace(sent, device="phone"), turns[1], now_us=now_us)
        assert (refused and refused.error.code) == (again and again.error.code)
        if refused is None:
            upto[key] = max(upto.get(key, 0), sent.upto)
    one, other = turns
    assert one.entries == other.entries
    assert (
        one.moved == other.moved and len(one.taken) == len(other.taken) and len(one.duplicates) == len(other.duplicates)
    )
    assert short.settle(one) == long.settle(other)


def test_a_schema_is_found_right_by_rows_and_not_by_a_frame_without_any() -> None:
    uplink, turn = _uplink(), Turn()
    uplink.greeted(Hello("phone", "", _EPOCHS[0], b"n", session=BOOT), turn, now_us=NOW)
    none = Data("fixes", _EPOCHS[0], 0, 0, b"\x22" * 8, "none", gaps=(Gap(0, 2),))
    assert uplink.data(none, turn, now_us=NOW) is None, "it says that numbers are given up, and has no rows to read"
    refused = uplink.data(replace(none, first=2, count=1, gaps=()), turn, now_us=NOW)
    assert refused is not None and refused.error.code == "G573"
