"""Frames: every frame survives its bytes, and no bytes can do worse than be refused."""

import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.errors import InternalError, PeerError
from catchment.sync import frame as f

counts = st.integers(0, f.INTEGER_MAX)
micros = st.integers(-f.INTEGER_MAX, f.INTEGER_MAX)
names = st.text(max_size=40)
nonces = st.binary(max_size=16)
epochs = st.builds(f.Epoch, counts, st.binary(min_size=8, max_size=8))
marks = st.lists(st.builds(f.Mark, names, epochs, counts), max_size=4).map(tuple)
clocks = st.builds(f.Clock, nonces, micros, micros, st.none() | micros, st.none() | micros)
offsets = st.builds(f.Offset, nonces, counts, micros, micros)
pressures = st.builds(f.Pressure, counts, st.floats(1, 1e6))


@st.composite
def data_frames(draw: st.DrawFn) -> f.Data:
    count = draw(st.integers(0, 50))
    gaps, taken = [], 0
    while taken <= count and draw(st.booleans()):
        at = draw(st.integers(taken, count))
        rows = draw(st.integers(1, count + 1 - at))
        gaps.append(f.Gap(at, draw(st.integers(0, 1000)), rows))
        taken = at + rows
    return f.Data(
        draw(names),
        draw(epochs),
        draw(st.integers(0, 2**52)),
        count,
        draw(st.binary(max_size=8)),
        draw(names),
        draw(st.none() | clocks),
        draw(st.none() | micros),
        draw(st.builds(f.Lost, counts, counts, counts)),
        tuple(gaps),
        draw(names),
        draw(st.binary(max_size=200)),
    )


frames = st.one_of(
    st.builds(f.Hello, names, names, epochs, nonces, nonces, marks=marks, reading_us=micros),
    st.builds(f.Welcome, nonces, nonces, nonces, marks=marks, offset=st.none() | offsets, pressure=pressures),
    data_frames(),
    st.builds(f.Ack, marks, st.none() | offsets, st.none() | pressures),
    st.builds(f.Error, names, names, names, st.none() | counts),
    st.builds(f.Moved, names, counts, counts, counts),
    st.builds(f.PlanOffer, names, counts, st.integers(1, 100), st.binary(max_size=200)),
    st.builds(f.Beat, nonces, micros, st.none() | micros),
    st.builds(f.Bye, names, st.none() | counts),
)


@given(st.lists(frames, max_size=5))
def test_a_body_of_frames_survives_its_bytes(sent: list[f.Frame]) -> None:
    assert list(f.decode_all(f.encode_all(sent))) == sent


@given(data_frames())
def test_every_row_has_its_number_and_every_given_up_number_is_left_out(frame: f.Data) -> None:
    numbers = frame.numbers()
    assert len(numbers) == frame.count
    assert numbers == sorted(set(numbers))
    assert all(frame.first <= number < frame.upto for number in numbers)
    given_up = frame.upto - frame.first - frame.count
    assert given_up == frame.skipped


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_refused_with_a_code(noise: bytes) -> None:
    try:
        list(f.decode_all(noise))
    except PeerError as error:
        assert error.code.startswith("S4")


@given(st.sampled_from(sorted(f.KINDS)), st.binary(max_size=120), st.binary(max_size=20))
def test_arbitrary_headers_with_a_sound_checksum_are_refused_or_read(kind: int, header: bytes, payload: bytes) -> None:
    body = f._PREAMBLE.pack(f.MAGIC, f.VERSION, kind, len(header), len(payload)) + header + payload
    body += zlib.crc32(body).to_bytes(4, "little")
    try:
        frame, end = f.decode(body)
    except PeerError as error:
        assert error.code == "S406"
    else:
        assert end == len(body)
        assert frame is not None
        assert f.decode(f.encode(frame))[0] == frame


@given(frames, st.data())
def test_one_flipped_bit_never_passes(frame: f.Frame, data: st.DataObject) -> None:
    body = bytearray(f.encode(frame))
    bit = data.draw(st.integers(0, len(body) * 8 - 1))
    body[bit // 8] ^= 1 << bit % 8
    with pytest.raises(PeerError):
        f.decode(bytes(body), frame_bytes_max=1 << 40)


@given(frames, st.data())
def test_a_cut_frame_never_passes(frame: f.Frame, data: st.DataObject) -> None:
    body = f.encode(frame)
    with pytest.raises(PeerError, match="S404"):
        f.decode(body[: data.draw(st.integers(0, len(body) - 1))])


BYE = f.encode(f.Bye("asleep"))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"GET / HTTP/1.1\r\n", "S401"),
        (BYE[:2] + b"\x02" + BYE[3:], "S402"),
        (BYE[:3] + b"\x63" + BYE[4:-4] + zlib.crc32(BYE[:3] + b"\x63" + BYE[4:-4]).to_bytes(4, "little"), "S403"),
        (BYE[:-1], "S404"),
        (BYE[:-1] + bytes([BYE[-1] ^ 1]), "S405"),
        (BYE[:6] + b"\xff\xff\xff\xff" + BYE[10:], "S407"),
    ],
)
def test_each_mistake_has_its_code(body: bytes, code: str) -> None:
    with pytest.raises(PeerError) as caught:
        f.decode(body)
    assert caught.value.code == code


def test_frames_before_an_unsound_one_are_still_read() -> None:
    frames_read = []
    with pytest.raises(PeerError):
        for frame in f.decode_all(BYE + BYE + BYE[:-1]):
            frames_read.append(frame)
    assert frames_read == [f.Bye("asleep"), f.Bye("asleep")]


def _with_kind(kind: int, header: bytes) -> bytes:
    body = f._PREAMBLE.pack(f.MAGIC, f.VERSION, kind, len(header), 0) + header
    return body + zlib.crc32(body).to_bytes(4, "little")


def test_unknown_advice_is_skipped() -> None:
    assert list(f.decode_all(BYE + _with_kind(200, b"\xc0") + BYE)) == [f.Bye("asleep")] * 2


def test_a_longer_header_from_a_later_version_is_read_and_a_shorter_one_takes_defaults() -> None:
    longer = msgspec.msgpack.encode(["asleep", None, "something new"])
    shorter = msgspec.msgpack.encode([])
    assert f.decode(_with_kind(9, longer))[0] == f.Bye("asleep")
    assert f.decode(_with_kind(9, shorter))[0] == f.Bye("")


def test_a_header_that_does_not_fit_is_our_error() -> None:
    mark = f.Mark("s" * 200, f.Epoch(1, bytes(8)), 0)
    with pytest.raises(InternalError, match="S400"):
        f.encode(f.Ack((mark,) * 1000))


@pytest.mark.parametrize(
    "gaps",
    [(f.Gap(4, 1),), (f.Gap(0, 1, 5),), (f.Gap(2, 1), f.Gap(1, 1)), (f.Gap(0, 1, 3), f.Gap(2, 1)), (f.Gap(0, 1, 0),)],
)
def test_gaps_out_of_place_are_refused(gaps: tuple[f.Gap, ...]) -> None:
    with pytest.raises(PeerError, match="S406"):
        f.decode(f.encode(f.Data("s", f.Epoch(1, bytes(8)), 0, 3, b"", "none", gaps=gaps)))


def test_a_claimed_row_count_allocates_nothing() -> None:
    with pytest.raises(PeerError, match="S406"):
        f.decode(f.encode(f.Data("s", f.Epoch(1, bytes(8)), 0, 2**40, b"", "none")))
