"""A log as a gateway writes it, filled with the GPS uploads of a fleet: what the cloud's benchmarks read.

Each user walks another stretch of the same real tracks, all beginning at one moment; a last fix, a day later, ends what
is open. Uploads of `UPLOAD` points, if nothing else is said, come round by round, as those of a fleet would. The same
points are written flat, as Parquet, for peers that cannot read the log.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench import tracks
from catchment.gateway.log.entry import Entry, Kind
from catchment.gateway.log.files import layout
from catchment.gateway.log.files.disk import LocalDisk
from catchment.gateway.log.files.partition import Limits, Partition
from catchment.plan.physical import Plan
from catchment.sync.codecs.codec import codec

UPLOAD = 100
GROUP = 256
"""How many uploads the gateway commits together."""
PARTITIONS = 2
BEGIN_US = 1_700_000_000_000_000
DAY_US = 86_400_000_000

Walk: TypeAlias = Callable[[int, int], tuple[Any, ...]]
"""The points of a user by number, so many: their times, and what else they hold, as arrays."""


@dataclass(frozen=True)
class Fleet:
    """Where the points are, and how many: the log, and the same as one flat file in order of arrival."""

    log: Path
    flat: Path
    users: int
    points: int


def walk(user: int, count: int) -> tuple[Any, ...]:
    """A stretch of the tracks for one user, in time from the beginning on; the last fix is a day later."""
    at, lat, lon = points()
    begin = stretch(user, count)
    times = at[begin : begin + count] - at[begin] + BEGIN_US
    times[-1] = times[-2] + DAY_US
    return times, lat[begin : begin + count], lon[begin : begin + count]


def write(home: Path, plan: Plan, *, users: int, points_each: int, walk: Walk = walk, upload: int = UPLOAD) -> Fleet:
    """Make both, for a plan whose one sync stream toward the cloud carries the user, the time and what a walk gives."""
    stream = next(sync for sync in plan.syncs if plan.schemas[sync.schema].names[:2] == ("user", "at"))
    schema = plan.schemas[stream.schema]
    home.mkdir(exist_ok=True)
    disk = LocalDisk(home / "log")
    layout.create(disk, partitions=PARTITIONS)
    salts = itertools.count(1)
    writers = [
        Partition(
            disk, n, holder="bench", address="", now_us=0, salt=lambda: next(salts), limits=Limits(reserve_bytes=0)
        )
        for n in range(PARTITIONS)
    ]
    waiting: list[list[Entry]] = [[] for _ in writers]
    walks = [walk(user, points_each) for user in range(users)]
    flat: list[pa.RecordBatch] = []
    encode = codec("delta").encode

    def commit(number: int) -> None:
        writers[number].append(waiting[number], now_us=0)
        waiting[number].clear()

    for first in range(0, points_each, upload):
        for user, columns in enumerate(walks):
            name = f"user-{user:06d}"
            own = [column[first : first + upload].tolist() for column in columns]
            times = own[0]
            rows = list(zip(itertools.repeat(name), *own, strict=False))
            entry = Entry(
                kind=Kind.DATA,
                device=f"phone-{user:06d}",
                user=name,
                stream=f"{plan.program}/{stream.name}",
                schema=schema.fingerprint,
                codec="delta",
                first=first,
                count=len(rows),
                promise_us=times[-1] + 1,
                received_us=times[-1],
                payload=encode(schema, rows),
            )
            number = user % PARTITIONS
            waiting[number].append(entry)
            if len(waiting[number]) == GROUP:
                commit(number)
            names = pa.DictionaryArray.from_arrays(pa.array([0] * len(rows), pa.int32()), pa.array([name]))
            arrays = [names.dictionary_decode(), *map(pa.array, own)]
            flat.append(pa.RecordBatch.from_arrays(arrays, names=list(schema.names)))
        for number in range(PARTITIONS):
            if waiting[number]:
                commit(number)
    for writer in writers:
        writer.close()
    pq.write_table(pa.Table.from_batches(flat).combine_chunks(), home / "flat.parquet")
    return Fleet(home / "log", home / "flat.parquet", users, users * points_each)


def stretch(user: int, count: int) -> int:
    """Where on the track that user's points begin."""
    return (user * 7_919) % max(1, len(points()[0]) - count)


_KNOWN: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []


def points() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, latitudes and longitudes: all tracks one behind the other, as often as it takes, in rising time."""
    if not _KNOWN:
        at: list[int] = []
        lat: list[float] = []
        lon: list[float] = []
        loaded = tracks.load().tracks
        while len(at) < 100_000:
            for track in loaded:
                ordered = sorted(set(track))
                shift = (at[-1] + DAY_US if at else BEGIN_US) - ordered[0].at_us
                for point, after in zip(ordered, [*ordered[1:], None], strict=True):
                    if after is None or after.at_us > point.at_us:
                        at.append(point.at_us + shift)
                        lat.append(point.lat_deg)
                        lon.append(point.lon_deg)
        _KNOWN.append((np.array(at, np.int64), np.array(lat), np.array(lon)))
    return _KNOWN[0]
