"""Frames: what two ends of a sync stream say to each other, as values and as bytes.

Promises: `decode(encode(frame))` is the frame; bytes that are not a whole, sound frame raise a `PeerError` with a
code and never anything else; nothing is allocated by a length that the peer merely claims. Knows the layout and the
limits. Must not know who sent it, whether it may, or what is in a payload: that is the session's and the codec's.

A message is `magic(2) version(1) kind(1) header length(u16) payload length(u32) header payload crc32(u32)`, all
little-endian; the header is a MessagePack array whose positions only ever grow at the end. Messages follow
each other without separator in one HTTP body or one WebSocket message. docs/reference/sync-protocol.md has the rest.

>>> frame, end = decode(encode(Bye("asleep", sleep_us=60_000_000)))
>>> frame
Bye(reason='asleep', sleep_us=60000000)
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from catchment.errors import InternalError, PeerError
from catchment.sync.parts import (
    INTEGER_MAX,
    NO_LOSS,
    Clock,
    Count,
    Epoch,
    Gap,
    Lost,
    Mark,
    Micros,
    Name,
    Nonce,
    Offset,
    Part,
    Pressure,
    Promise,
    Text,
)

MAGIC = b"\xca\x7c"
VERSION = 1
VERSIONS: tuple[int, ...] = (1,)
"""Versions that this end speaks, the best first."""
FRAME_BYTES_MAX = 4 * 1024 * 1024
"""A larger message is refused unless the caller says otherwise."""
ROWS_MAX = 65_536
"""A data frame carries at most so many rows."""
_PREAMBLE = struct.Struct("<2sBBHI")
_CHECKSUM = struct.Struct("<I")
OVERHEAD_BYTES = _PREAMBLE.size + _CHECKSUM.size

_Marks: TypeAlias = Annotated[tuple[Mark, ...], Meta(max_length=1024)]
_Names: TypeAlias = Annotated[tuple[Name, ...], Meta(max_length=64)]


class Hello(Part, frozen=True, array_like=True):
    """The first message of a connection or of an HTTP body: who speaks, with what proof, and what it can do.

    `nonce` is random, and repeated until a welcome answers it; `token` is what the last welcome of this epoch gave, or
    the challenge being answered. Together they tell a retry from a second live copy of the device: see `admission`.
    """

    device: Name
    credential: Text
    epoch: Epoch
    nonce: Nonce
    token: Nonce = b""
    versions: Annotated[tuple[Annotated[int, Meta(ge=0, le=255)], ...], Meta(max_length=16)] = VERSIONS
    codecs: _Names = ("none",)
    compressions: _Names = ("deflate",)
    plan: Name = ""
    session: Nonce = b""
    reading_us: Micros = 0
    wall_us: Micros | None = None
    marks: _Marks = ()


class Welcome(Part, frozen=True, array_like=True):
    """The answer to a hello: what was chosen, where to resume, what to keep to.

    With a `challenge`, nothing is welcome yet: say hello again with it as `token`. `plan` is the fingerprint of
    the plan that the device should run.
    """

    nonce: Nonce
    token: Nonce = b""
    challenge: Nonce = b""
    version: Annotated[int, Meta(ge=0, le=255)] = VERSION
    codecs: _Names = ("none",)
    compressions: _Names = ("deflate",)
    marks: _Marks = ()
    offset: Offset | None = None
    pressure: Pressure | None = None
    plan: Name = ""
    window_frames: Count = 64
    frame_bytes_max: Count = FRAME_BYTES_MAX
    gateway: Name = ""
    generation: Count = 0


class Data(Part, frozen=True, array_like=True):
    """Elements of a stream, in either direction.

    The rows carry the numbers from `first` on, leaving out what `gaps` lists. `schema` is the schema's fingerprint as
    8 bytes, `codec` reads "delta/zstd": the codec's name and, after a slash, its compression. An empty `device` is the
    hello's. `promise_us` counts like the event-time column: once this frame is in, nothing older than it is unsent.
    """

    stream: Name
    epoch: Epoch
    first: Count
    count: Annotated[int, Meta(ge=0, le=ROWS_MAX)]
    schema: Annotated[bytes, Meta(max_length=8)]
    codec: Name
    clock: Clock | None = None
    promise_us: Micros | None = None
    lost: Lost = NO_LOSS
    gaps: Annotated[tuple[Gap, ...], Meta(max_length=65536)] = ()
    device: Name = ""
    payload: bytes = b""

    @property
    def fingerprint(self) -> str:
        """The schema's fingerprint as the 16 hex digits of `Schema.fingerprint`."""
        return self.schema.hex()

    @property
    def skipped(self) -> int:
        """How many numbers within this frame's range were given up."""
        return sum([gap.skipped * gap.rows for gap in self.gaps]) if self.gaps else 0

    @property
    def upto(self) -> int:
        """The number after the last that this frame accounts for."""
        return self.first + self.count + self.skipped

    def numbers(self) -> list[int]:
        """The sequence number of each row.

        >>> Data("s", Epoch(1, bytes(8)), 10, 4, b"", "none", gaps=(Gap(0, 2), Gap(2, 1, 2))).numbers()
        [12, 13, 15, 17]
        """
        if not self.gaps:
            return list(range(self.first, self.first + self.count))
        numbers: list[int] = []
        number = self.first
        for gap in self.gaps:
            until = number + gap.at - len(numbers)
            numbers.extend(range(number, until))
            number = until
            for _ in range(min(gap.rows, self.count - gap.at)):
                number += gap.skipped
                numbers.append(number)
                number += 1
        numbers.extend(range(number, number + self.count - len(numbers)))
        return numbers


class Ack(Part, frozen=True, array_like=True):
    """What is durable, cumulatively, with the session's offset and the pressure of the moment."""

    marks: _Marks = ()
    offset: Offset | None = None
    pressure: Pressure | None = None


class Error(Part, frozen=True, array_like=True):
    """A refusal: its code, what and how to repair it.

    `retry_after_us` of None means that the same bytes will be refused again. `mark` is set where resuming
    helps: send from `mark.upto` on. `nonce` echoes the hello being answered, if it was one.
    """

    code: Name
    what: Text
    fix: Text = ""
    retry_after_us: Count | None = None
    mark: Mark | None = None
    nonce: Nonce = b""
    challenge: Nonce = b""
    versions: Annotated[tuple[Annotated[int, Meta(ge=0, le=255)], ...], Meta(max_length=16)] = ()


class Moved(Part, frozen=True, array_like=True):
    """The device's partition lives at another gateway: ask there."""

    gateway: Text
    partition: Count = 0
    generation: Count = 0
    retry_after_us: Count = 0


class PlanOffer(Part, frozen=True, array_like=True):
    """A plan for the device, in the payload; part `part` of `parts` where it exceeds a frame."""

    fingerprint: Name
    part: Count = 0
    parts: Annotated[int, Meta(ge=1, le=65536)] = 1
    payload: bytes = b""


class Beat(Part, frozen=True, array_like=True):
    """A sign of life: the boot clock's reading as the message left, and promises of streams with nothing to send."""

    session: Nonce
    reading_us: Micros
    wall_us: Micros | None = None
    promises: Annotated[tuple[Promise, ...], Meta(max_length=1024)] = ()
    plan: Name = ""


class Bye(Part, frozen=True, array_like=True):
    """A clean end; `sleep_us` says after how long to expect the next hello, if that is known."""

    reason: Text = ""
    sleep_us: Count | None = None


Frame: TypeAlias = Hello | Welcome | Data | Ack | Error | Moved | PlanOffer | Beat | Bye

KINDS: dict[int, type[Frame]] = {
    1: Hello,
    2: Welcome,
    3: Data,
    4: Ack,
    5: Error,
    6: Moved,
    7: PlanOffer,
    8: Beat,
    9: Bye,
}
ADVISORY_KIND_MIN = 128
"""Unknown kinds from here on are skipped, so that later versions can add advice without breaking anyone."""

_KIND_OF: dict[type[Any], int] = {kind: number for number, kind in KINDS.items()}
_WITH_PAYLOAD = (Data, PlanOffer)
_DECODERS: dict[int, msgspec.msgpack.Decoder[Frame]] = {
    number: msgspec.msgpack.Decoder(kind) for number, kind in KINDS.items()
}
_ENCODER = msgspec.msgpack.Encoder()
_FIX_SENDER = "send frames as docs/reference/sync-protocol.md lays them out"


def encode(frame: Frame) -> bytes:
    """The frame's bytes."""
    payload = b""
    if isinstance(frame, _WITH_PAYLOAD):
        payload = frame.payload
        # The payload is the last field of the value but not of the header: it follows it, unescaped.
        header = _ENCODER.encode(msgspec.structs.astuple(frame)[:-1])
    else:
        header = _ENCODER.encode(frame)
    if len(header) > 0xFFFF or len(payload) > 0xFFFFFFFF:
        raise InternalError(
            "S400",
            f"a {type(frame).__name__} of {len(header)} header and {len(payload)} payload bytes has no frame",
            why="a header holds 65,535 bytes and a payload 4 GiB",
            fix="send fewer marks, gaps or rows per frame",
        )
    body = _PREAMBLE.pack(MAGIC, VERSION, _KIND_OF[type(frame)], len(header), len(payload)) + header + payload
    return body + _CHECKSUM.pack(zlib.crc32(body))


def encode_all(frames: Iterable[Frame]) -> bytes:
    """Several frames as one HTTP body or WebSocket message."""
    return b"".join([encode(frame) for frame in frames])


def decode(body: bytes, at: int = 0, *, frame_bytes_max: int = FRAME_BYTES_MAX) -> tuple[Frame | None, int]:
    """The frame that starts at that byte, and where the next one starts.

    None stands for an advisory kind that this version does not know.
    """
    available = len(body) - at
    if available < OVERHEAD_BYTES:
        raise _bad("S404", "a frame is cut short", f"{available} bytes remain at byte {at} and a frame has at least 14")
    magic, version, kind, header_bytes, payload_bytes = _PREAMBLE.unpack_from(body, at)
    if magic != MAGIC:
        raise _bad("S401", "this is not a frame", f"byte {at} starts with {magic.hex()}, a frame with {MAGIC.hex()}")
    if version not in VERSIONS:
        raise PeerError(
            "S402",
            f"version {version} of the protocol is not spoken here",
            why=f"this end speaks {', '.join(map(str, VERSIONS))}",
            fix="offer one of these in hello, or upgrade this end",
        )
    size = OVERHEAD_BYTES + header_bytes + payload_bytes
    if size > frame_bytes_max:
        raise PeerError(
            "S407",
            f"a frame of {size} bytes is too large",
            why=f"this end takes {frame_bytes_max} bytes per frame",
            fix="send fewer rows per frame: welcome.frame_bytes_max states the limit",
        )
    if size > available:
        raise _bad("S404", "a frame is cut short", f"it claims {size} bytes at byte {at} and {available} are there")
    end = at + size
    view = memoryview(body)
    (checksum,) = _CHECKSUM.unpack_from(body, end - 4)
    if zlib.crc32(view[at : end - 4]) != checksum:
        raise _bad(
            "S405", "a frame's checksum is wrong", f"the CRC-32 of bytes {at} to {end - 4} is not {checksum:08x}"
        )
    decoder = _DECODERS.get(kind)
    if decoder is None:
        if kind >= ADVISORY_KIND_MIN:
            return None, end
        raise _bad("S403", f"kind {kind} of frame is unknown", f"version {version} has kinds 1 to {max(KINDS)}")
    header_at = at + _PREAMBLE.size
    try:
        frame = decoder.decode(view[header_at : header_at + header_bytes])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _unreadable(KINDS[kind], str(error)) from None
    if isinstance(frame, _WITH_PAYLOAD):
        msgspec.structs.force_setattr(frame, "payload", body[header_at + header_bytes : end - 4])
    elif payload_bytes:
        raise _unreadable(KINDS[kind], f"it has no payload, and claims {payload_bytes} bytes of one")
    if isinstance(frame, Data) and (frame.gaps or frame.first + frame.count > INTEGER_MAX):
        _check(frame)
    return frame, end


def decode_all(body: bytes, *, frame_bytes_max: int = FRAME_BYTES_MAX) -> Iterator[Frame]:
    """The frames of a body, in order; raises at the first unsound one, after those before it."""
    at = 0
    while at < len(body):
        frame, at = decode(body, at, frame_bytes_max=frame_bytes_max)
        if frame is not None:
            yield frame


def _check(frame: Data) -> None:
    """What the types cannot say of a data frame."""
    taken = 0
    for gap in frame.gaps:
        if gap.rows < 1 or gap.at < taken or gap.at + gap.rows > frame.count + 1:
            raise _unreadable(Data, f"the gap at row {gap.at} of {frame.count} is out of place")
        taken = gap.at + gap.rows
    if frame.upto > INTEGER_MAX:
        raise _unreadable(Data, f"its numbers would end at {frame.upto}, beyond 2^53")


def _bad(code: str, what: str, why: str) -> PeerError:
    return PeerError(code, what, why=why, fix=_FIX_SENDER)


def _unreadable(kind: type[Frame], why: str) -> PeerError:
    return _bad("S406", f"the header of a {kind.__name__} cannot be read", why)


__all__ = [
    "ADVISORY_KIND_MIN",
    "FRAME_BYTES_MAX",
    "INTEGER_MAX",
    "KINDS",
    "MAGIC",
    "NO_LOSS",
    "OVERHEAD_BYTES",
    "ROWS_MAX",
    "VERSION",
    "VERSIONS",
    "Ack",
    "Beat",
    "Bye",
    "Clock",
    "Data",
    "Epoch",
    "Error",
    "Frame",
    "Gap",
    "Hello",
    "Lost",
    "Mark",
    "Moved",
    "Offset",
    "PlanOffer",
    "Pressure",
    "Promise",
    "Welcome",
    "decode",
    "decode_all",
    "encode",
    "encode_all",
]
