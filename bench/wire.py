"""Bytes per GPS point on the wire: JSON, JSON and gzip, MessagePack and zstd, Arrow and zstd, and ours.

The columns are fixed: time in ms, latitude and longitude at 1e-6 degrees, nothing else. Everyone gets the same batches
of consecutive points. Ours are the payloads of the data frames that a device's outbox and uplink give, in whichever
compression the sender finds smallest; what the frame adds (a header with numbers, clock and promise, a checksum) is
shown beside, since the others would need something like it too.

Then the same tracks pass through the dead-reckoning filter with a bound of 10 m. The frames are decoded, every original
point is placed on the straight line between the points that arrived before and after it *at its own time*, and the
distance between there and where it really was is the synchronised error.
"""

from __future__ import annotations

import bisect
import gzip
import itertools
import json
import math
import sqlite3
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec
import zstandard

from bench import harness, tracks
from bench.harness import Bar
from bench.tracks import Point
from catchment.program.sync import Batch, Sync, dead_reckoning
from catchment.program.types import FLOAT, INSTANT, INT, Column, Row, Schema
from catchment.sync.codecs import codec
from catchment.sync.filters import METRES_PER_DEGREE
from catchment.sync.frame import Data, Welcome, decode
from catchment.sync.outbox import Outbox, Stamp
from catchment.sync.parts import Mark
from catchment.sync.session import Clocks
from catchment.sync.uplink import Uplink

SIZES = (10, 100, 1000)
WITHIN_M = 10.0
FIX = Schema(
    "Fix",
    (
        Column("at", INSTANT, event_time=True, step=1000),
        Column("lat_deg", FLOAT, step=1e-6),
        Column("lon_deg", FLOAT, step=1e-6),
    ),
)
# For those that have no steps: the same columns as integers, which is the best that a person can do for them.
SCALED = Schema("Scaled", (Column("at_ms", INT), Column("lat_e6", INT), Column("lon_e6", INT)))
# Smaller and slower than what ours uses: the others get the best that there is.
ZSTD = zstandard.ZstdCompressor(level=19)
SESSION = b"one boot of many"


def plain_json(points: list[Point]) -> bytes:
    """Objects, as a web developer would send them."""
    rows = [{"at_ms": at // 1000, "lat_deg": lat, "lon_deg": lon} for at, lat, lon in points]
    return json.dumps(rows, separators=(",", ":")).encode()


def scaled(points: list[Point]) -> list[Row]:
    return [(at // 1000, round(lat * 1e6), round(lon * 1e6)) for at, lat, lon in points]


def columns_json(points: list[Point]) -> bytes:
    """What is left to gain within JSON: columns of integers."""
    return json.dumps(list(zip(*scaled(points), strict=True)), separators=(",", ":")).encode()


PEERS: dict[str, Callable[[list[Point]], bytes]] = {
    "JSON": plain_json,
    "JSON+gzip": lambda points: gzip.compress(plain_json(points), 9, mtime=0),
    "JSON columns+gzip": lambda points: gzip.compress(columns_json(points), 9, mtime=0),
    "msgpack+zstd": lambda points: ZSTD.compress(msgspec.msgpack.encode(points)),
    "msgpack integers+zstd": lambda points: ZSTD.compress(msgspec.msgpack.encode(scaled(points))),
    "Arrow+zstd": lambda points: ZSTD.compress(codec("arrow").encode(FIX, [*points])),
    "Arrow integers+zstd": lambda points: ZSTD.compress(codec("arrow").encode(SCALED, scaled(points))),
}


class Device:
    """A device's outbox and uplink with a gateway that has everything at once."""

    def __init__(self, policy: Sync) -> None:
        nonces = itertools.count(1)
        self._outbox = Outbox.open(
            None,
            fresh_nonce=lambda: next(nonces).to_bytes(8, "big"),
            connect=lambda: sqlite3.connect(":memory:", isolation_level=None),
        )
        self._uplink = Uplink(self._outbox)
        self._intake = self._uplink.add("peir/fixes", FIX, policy, 0)
        self._welcome = Welcome(b"", codecs=("delta", "msgpack", "none"), compressions=("zstd", "deflate"))
        self._uplink.opened(self._welcome, (), 0)

    def send(self, points: list[Point]) -> Iterator[bytes]:
        """Record points; gives the frames that leave."""
        readings = [at_us for at_us, *_ in points]
        self._intake.append([*points], stamp=Stamp(SESSION), readings_us=readings)
        yield from self._leave(points[-1].at_us)

    def stop(self, now_us: int) -> Iterator[bytes]:
        """What is left."""
        self._intake.release()
        self._intake.change(Sync(batch=Batch(records=1)))
        yield from self._leave(now_us)

    def _leave(self, now_us: int) -> Iterator[bytes]:
        while frames := self._uplink.frames(self._welcome, Clocks(SESSION, now_us, None), 1 << 20):
            for encoded in frames:
                yield encoded
                sent = _data(encoded)
                mark = Mark(sent.stream, sent.epoch, sent.upto)
                self._uplink.acknowledged(self._uplink.sender.acknowledged([mark], now_us=now_us))


def whole_batches(track: list[Point], size: int) -> Iterator[list[Point]]:
    """Consecutive batches; what is left over at the end is nobody's."""
    for start in range(0, len(track) - size + 1, size):
        yield track[start : start + size]


def measure(data: tracks.Tracks, size: int) -> dict[str, float]:
    """Bytes per point of each side, in batches of that size; ours without its frame, and with it."""
    bytes_of = dict.fromkeys([*PEERS, "ours", "ours, whole frames"], 0)
    points = 0
    for track in data.tracks:
        device = Device(Sync(batch=Batch(records=size, within=None)))
        for batch in whole_batches(track, size):
            points += size
            for name, encode in PEERS.items():
                bytes_of[name] += len(encode(batch))
            (frame,) = device.send(batch)
            sent = _data(frame)
            if codec(sent.codec).decode(FIX, sent.payload) != [*batch]:
                raise AssertionError(f"a frame of {size} points is not the points that were recorded")
            bytes_of["ours"] += len(sent.payload)
            bytes_of["ours, whole frames"] += len(frame)
    return {name: found / points for name, found in bytes_of.items()}


class Reckoned(NamedTuple):
    """What the filter leaves."""

    payload_bytes: float
    """Per original point."""
    frame_bytes: float
    share: float
    """Of the points that were sent."""
    error_m: float
    """The largest synchronised one."""


def reckoned(data: tracks.Tracks, size: int) -> Reckoned:
    """The tracks with the filter, in frames of about so many points."""
    payload_bytes = frame_bytes = kept = 0
    worst_m = 0.0
    filter_ = dead_reckoning("lat_deg", "lon_deg", within=WITHIN_M)
    for track in data.tracks:
        device = Device(Sync(batch=Batch(records=size, within=None), filter=filter_))
        # A device reads one point at a time; a tenth of a frame at a time makes the same frames, a little larger.
        at_a_time = size // 10
        starts = range(0, len(track), at_a_time)
        frames = [frame for start in starts for frame in device.send(track[start : start + at_a_time])]
        frames += device.stop(track[-1].at_us)
        sent = list(map(_data, frames))
        frame_bytes += sum(map(len, frames))
        payload_bytes += sum([len(one.payload) for one in sent])
        arrived = [Point(*row) for one in sent for row in codec(one.codec).decode(FIX, one.payload)]
        kept += len(arrived)
        worst_m = max([worst_m, *errors_m(track, arrived)])
    return Reckoned(payload_bytes / data.points, frame_bytes / data.points, kept / data.points, worst_m)


def errors_m(track: list[Point], arrived: list[Point]) -> Iterator[float]:
    """How far each original point lies from where what arrived puts it at that time."""
    # Between two points that arrived, time runs forward, or nothing was left out: such runs are looked through apart.
    runs = [[arrived[0]]]
    for point in arrived[1:]:
        if point.at_us <= runs[-1][-1].at_us:
            runs.append([])
        runs[-1].append(point)
    times = [[point.at_us for point in run] for run in runs]
    current = 0
    for point in track:
        here = []
        # A recorder's clock may go back: a point belongs to this run of the times, or to the next.
        for number in range(current, min(current + 2, len(runs))):
            error_m = _error_m(point, runs[number], times[number])
            if error_m is not None:
                here.append((error_m, number))
        error_m, number = min(here, default=(math.inf, current))
        current = number
        yield error_m


def _error_m(point: Point, run: list[Point], times: list[int]) -> float | None:
    after = bisect.bisect_left(times, point.at_us)
    if after == len(run) or (after == 0 and times[0] != point.at_us):
        return None
    late = run[after]
    if late.at_us == point.at_us:
        return distance_m(point, late.lat_deg, late.lon_deg)
    early = run[after - 1]
    share = (point.at_us - early.at_us) / (late.at_us - early.at_us)
    lat_deg = early.lat_deg + share * (late.lat_deg - early.lat_deg)
    return distance_m(point, lat_deg, early.lon_deg + share * (late.lon_deg - early.lon_deg))


def distance_m(point: Point, lat_deg: float, lon_deg: float) -> float:
    """Along a great circle."""
    radius_m = METRES_PER_DEGREE * 180 / math.pi
    one, other = math.radians(point.lat_deg), math.radians(lat_deg)
    across = math.radians(lon_deg - point.lon_deg)
    half = math.sin((other - one) / 2) ** 2 + math.cos(one) * math.cos(other) * math.sin(across / 2) ** 2
    return 2 * radius_m * math.asin(math.sqrt(half))


def _data(frame: bytes) -> Data:
    decoded, end = decode(frame)
    assert isinstance(decoded, Data)
    assert end == len(frame)
    return decoded


def main() -> int:
    quick = harness.arguments(__doc__).parse_args().quick
    data = tracks.load(8_000 if quick else None)
    print(f"{data.points:,} points of {data.source}: time in ms, latitude and longitude at 1e-6 degrees\n")
    sizes = [size for size in SIZES if any(len(track) >= size for track in data.tracks)]
    found = {size: measure(data, size) for size in sizes}
    plain = found[100]["JSON"]
    rows = [
        [name, *(f"{found[size][name]:.2f}" for size in sizes), f"-{1 - found[100][name] / plain:.1%}"]
        for name in found[100]
    ]
    headings = ["bytes per point, in batches of", *(str(size) for size in sizes), "against JSON, at 100"]
    print(harness.table(headings, rows))
    thin = {size: reckoned(data, size) for size in sizes}
    print(f"\nwith dead_reckoning(lat_deg, lon_deg, within={WITHIN_M:g}):\n")
    headings = ["points per frame", "bytes per original point", "in whole frames", "points sent", "largest error"]
    rows = [
        [str(size), f"{one.payload_bytes:.2f}", f"{one.frame_bytes:.2f}", f"{one.share:.1%}", f"{one.error_m:.2f} m"]
        for size, one in thin.items()
    ]
    print(harness.table(headings, rows) + "\n")
    ours = found[100]["ours"]
    best = min(found[100][name] for name in PEERS)
    return harness.conclude(
        "wire",
        quick=quick,
        ratios={name: found[100][name] / ours for name in PEERS},
        bars=[
            Bar("bytes per point in batches of 100", ours, at_most=4.0),
            Bar("saved against plain JSON (Sonora's zip: 0.81)", 1 - ours / plain, at_least=0.812),
            Bar("times smaller than the best of the others", best / ours, at_least=1.0),
            Bar("bytes per original point, dead reckoning, at 100", thin[100].payload_bytes, at_most=1.5),
            Bar("synchronised error in m", max(one.error_m for one in thin.values()), at_most=WITHIN_M),
        ],
        figures={
            "source": data.source,
            "points": data.points,
            "bytes_per_point": {str(size): {k: round(v, 3) for k, v in found[size].items()} for size in sizes},
            "dead_reckoning": {str(size): thin[size]._asdict() for size in sizes},
        },
    )


if __name__ == "__main__":
    sys.exit(main())
