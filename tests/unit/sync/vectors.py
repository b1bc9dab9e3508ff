"""The test vectors of the sync protocol, as data for clients in any language.

`python -m tests.unit.sync.vectors` writes them; a test holds the files to what is built here, so that no byte of the
protocol changes unseen. Bytes stand as hex, integers that JSON's numbers cannot hold as strings.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from catchment.program.types import (
    BOOL,
    BYTES,
    DURATION,
    FLOAT,
    INSTANT,
    INT,
    STR,
    Column,
    ListType,
    RecordType,
    Row,
    Schema,
)
from catchment.sync import frame as f
from catchment.sync.codecs import codec
from catchment.sync.frame import Epoch

ROOT = Path(__file__).resolve().parents[2] / "vectors" / "sync"
EPOCH = Epoch(7, bytes.fromhex("0102030405060708"))
DOWN = Epoch(1, b"downlink")
BOOT = bytes.fromhex("b0071d00b0071d00")
FIX = Schema(
    "Fix",
    (
        Column("user", STR, key=True),
        Column("at", INSTANT, event_time=True, step=1000),
        Column("lat_deg", FLOAT, step=1e-6),
        Column("lon_deg", FLOAT, step=1e-6),
        Column("accuracy_m", FLOAT, nullable=True, step=0.1),
    ),
)
ALL = Schema(
    "All",
    (
        Column("n", INT),
        Column("x", FLOAT),
        Column("ok", BOOL),
        Column("raw", BYTES),
        Column("word", STR, nullable=True),
        Column("for_us", DURATION),
        Column("tags", ListType(STR)),
        Column("at", RecordType(Schema("Place", (Column("lat", FLOAT), Column("lon", FLOAT))))),
    ),
)
WALK: list[Row] = [
    ("ada", 1_700_000_000_000_000 + n * 5_000_000, 48.1 + n * 1e-5, 11.5 + n * n * 2e-6, None if n == 3 else 4.2)
    for n in range(6)
]
EVERYTHING: list[Row] = [
    (2**53, math.nan, True, b"\x00\xff", "grün", -5, ("a", "b"), (48.1, 11.5)),
    (-(2**63), -math.inf, False, b"", None, 2**63 - 1, (), (-0.0, 1e300)),
]


def frames() -> list[dict[str, Any]]:
    """One or more of every kind, with the least and with the most in it."""
    mark = f.Mark("peir/fixes", EPOCH, 1300)
    fingerprint = bytes.fromhex(FIX.fingerprint)
    named: list[tuple[str, f.Frame]] = [
        (
            "the first hello of a start",
            f.Hello("phone-1", "secret", EPOCH, b"nonce-01", session=BOOT, reading_us=5_000_000),
        ),
        (
            "a hello that answers a challenge, with all there is to say",
            f.Hello(
                "phone-1",
                "secret",
                EPOCH,
                b"nonce-01",
                token=b"challenge",
                codecs=("delta", "msgpack", "none"),
                compressions=("zstd", "deflate"),
                plan="5b0c",
                session=BOOT,
                reading_us=9_007_199_254_740_991,
                wall_us=-1,
                marks=(f.Mark("peir/trips", DOWN, 12),),
            ),
        ),
        ("a welcome that is a challenge", f.Welcome(b"nonce-01", challenge=b"challenge")),
        (
            "a welcome",
            f.Welcome(
                b"nonce-01",
                token=b"nonce-01",
                codecs=("delta", "msgpack", "none"),
                compressions=("zstd", "deflate"),
                marks=(mark,),
                offset=f.Offset(BOOT, 0, 1_699_999_995_000_000, 1_000_000),
                pressure=f.Pressure(2_500_000, 2.0),
                plan="5b0c",
                gateway="one",
                generation=3,
            ),
        ),
        ("a beat", f.Beat(BOOT, 6_000_000)),
        (
            "a beat with promises",
            f.Beat(BOOT, 6_000_000, 1_699_999_994_999_000, (f.Promise("peir/fixes", 42, 7),), "5b0c"),
        ),
        (
            "six rows, as JSON",
            f.Data(
                "peir/fixes",
                EPOCH,
                1300,
                6,
                fingerprint,
                "none",
                f.Clock(BOOT, 5_000_000, 25_000_000, 1_699_999_995_000_000),
                1_700_000_025_000_000,
                payload=codec("none").encode(FIX, WALK),
            ),
        ),
        (
            "six rows in columns, with numbers that were given up before and between them",
            f.Data(
                "peir/fixes",
                EPOCH,
                1300,
                6,
                fingerprint,
                "delta",
                f.Clock(BOOT, 5_000_000, 25_000_000),
                lost=f.Lost(refused=1, dropped=4, thinned=2),
                gaps=(f.Gap(0, 4), f.Gap(2, 1, 2), f.Gap(6, 1)),
                payload=codec("delta").encode(FIX, WALK),
            ),
        ),
        (
            "nothing but numbers given up",
            f.Data("peir/fixes", EPOCH, 1313, 0, b"", "none", lost=f.Lost(9), gaps=(f.Gap(0, 3),)),
        ),
        ("an acknowledgement", f.Ack((mark,))),
        ("an acknowledgement with offset and pressure", f.Ack((mark,), f.Offset(BOOT, 1, 5, 2), f.Pressure(0, 1.0))),
        ("a refusal with where to go on", f.Error("S410", "a gap", "send from 1300 on", 0, mark)),
        ("a refusal of a hello", f.Error("G523", "unknown device", "enrol it", nonce=b"nonce-01", versions=(1,))),
        ("moved", f.Moved("wss://two.example/v1/sync", 5, 4, 0)),
        ("half a plan", f.PlanOffer("5b0c", 0, 2, b'{"plan":')),
        ("goodbye", f.Bye("asleep", 60_000_000)),
        ("goodbye, with nothing said", f.Bye()),
    ]
    return [
        {"name": name, "kind": type(frame).__name__, "fields": plain(frame), "hex": f.encode(frame).hex()}
        for name, frame in named
    ]


def refused() -> list[dict[str, Any]]:
    """Bytes that are not frames, each with the code that says why."""
    good = f.encode(f.Bye("asleep"))

    def sealed(body: bytes) -> bytes:
        return body + zlib.crc32(body).to_bytes(4, "little")

    def with_header(kind: int, header: object) -> bytes:
        packed = msgspec.msgpack.encode(header)
        return sealed(f._PREAMBLE.pack(f.MAGIC, f.VERSION, kind, len(packed), 0) + packed)

    cases = [
        ("an HTTP request", b"GET / HTTP/1.1\r\n", "S401"),
        ("a version that is not spoken", sealed(good[:2] + b"\x02" + good[3:-4]), "S402"),
        ("an unknown kind", with_header(99, []), "S403"),
        ("a frame that is cut short", good[:-1], "S404"),
        ("nearly nothing", good[:5], "S404"),
        ("a wrong checksum", good[:-1] + bytes([good[-1] ^ 1]), "S405"),
        ("a header that is a map", with_header(9, {"reason": "asleep"}), "S406"),
        ("an integer beyond 2^53 - 1", with_header(9, ["asleep", 2**53]), "S406"),
        ("a nonce of seven bytes", with_header(4, [[["s", [1, b"7 bytes"], 0]]]), "S406"),
        ("a payload where none belongs", sealed(good[:6] + b"\x01\0\0\0" + good[10:-4] + b"x"), "S406"),
        ("a frame that claims four gigabytes", good[:6] + b"\xff\xff\xff\xff" + good[10:], "S407"),
    ]
    return [{"name": name, "hex": body.hex(), "code": code} for name, body, code in cases]


def skipped() -> list[dict[str, Any]]:
    """What a client of this version has to read past."""
    packed = msgspec.msgpack.encode(["asleep", None, "something that a later version says"])
    body = f._PREAMBLE.pack(f.MAGIC, f.VERSION, 9, len(packed), 0) + packed
    longer = body + zlib.crc32(body).to_bytes(4, "little")
    body = f._PREAMBLE.pack(f.MAGIC, f.VERSION, 200, 1, 3) + b"\xc0" + b"???"
    advice = body + zlib.crc32(body).to_bytes(4, "little")
    return [
        {
            "name": "a header with more fields than are known",
            "hex": longer.hex(),
            "kind": "Bye",
            "fields": ["asleep", None],
        },
        {"name": "advice of an unknown kind", "hex": advice.hex(), "kind": None, "fields": None},
    ]


def payloads() -> list[dict[str, Any]]:
    """Rows and what each codec makes of them. Where `exact` is false, other bytes may stand for the same rows."""
    found = []
    cases = [
        (FIX, WALK, ("none", "msgpack", "delta", "none/deflate", "delta/deflate", "delta/zstd")),
        (ALL, EVERYTHING, ("none", "msgpack", "delta")),
        (FIX, [], ("none", "msgpack", "delta")),
    ]
    for schema, rows, names in cases:
        for name in names:
            payload = codec(name).encode(schema, rows)
            found.append(
                {
                    "schema": json.loads(msgspec.json.encode(schema)),
                    "fingerprint": schema.fingerprint,
                    "codec": name,
                    "rows": plain(codec(name).decode(schema, payload)),
                    "hex": payload.hex(),
                    "exact": "/" not in name,
                }
            )
    return found


def plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    match value:
        case msgspec.Struct():
            return [plain(each) for each in msgspec.structs.astuple(value)]
        case bytes():
            return {"hex": value.hex()}
        case bool() | str() | None:
            return value
        case int():
            return value if abs(value) <= f.INTEGER_MAX else str(value)
        case float():
            return value if math.isfinite(value) else {"float": repr(value)}
        case _ if isinstance(value, Sequence):
            return [plain(each) for each in value]
    raise TypeError(type(value))


FILES = {"frames.json": frames, "refused.json": refused, "skipped.json": skipped, "payloads.json": payloads}


def text(name: str) -> str:
    """A file as it should be."""
    return json.dumps(FILES[name](), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    ROOT.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        (ROOT / name).write_text(text(name), encoding="utf-8")
