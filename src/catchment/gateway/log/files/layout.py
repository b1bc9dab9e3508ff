"""Where things lie in a log's directory, and what the log is.

    log.json                            the format and the number of partitions, fixed for the log's life
    p0000/lease, lease.lock             who writes
    p0000/segments/OFFSET-GENERATION.seg, .marks
    p0000/readers/NAME.json             what each reader has confirmed
    readers/NAME                        who runs as that reader, where it is a program: locked while it lives

Names only: what the files hold is said where it is written.
"""

from __future__ import annotations

import zlib

import msgspec

from catchment.errors import InternalError, PeerError
from catchment.gateway.log.files.disk import Disk
from catchment.gateway.log.files.segment import Segment

FORMAT = 1
PARTITIONS = 4
"""Of a new log, unless said otherwise: enough for four gateways; reading in parallel needs none, ranges are split."""


class Layout(msgspec.Struct, frozen=True):
    """What log.json says."""

    format: int
    partitions: int


class Confirmed(msgspec.Struct, frozen=True):
    """What a reader's file says: it needs nothing before this offset."""

    offset: int


def create(disk: Disk, *, partitions: int = PARTITIONS) -> Layout:
    """Make the log, or open the one that is there (whose number of partitions stays)."""
    try:
        return open_layout(disk)
    except PeerError:
        layout = Layout(FORMAT, partitions)
        disk.replace("log.json", msgspec.json.encode(layout))
        return layout


def open_layout(disk: Disk) -> Layout:
    """What the log is; refused if there is none, or one of another format."""
    try:
        layout = msgspec.json.decode(disk.read("log.json", 0, 1 << 16), type=Layout)
    except FileNotFoundError:
        raise PeerError(
            "G513",
            "there is no log here",
            why="the directory has no log.json",
            fix="name the directory `log` inside the gateway's data directory, once a gateway has started there",
        ) from None
    except msgspec.DecodeError as error:
        raise InternalError(
            "G514",
            "log.json cannot be read",
            why=str(error),
            fix='write it anew: {"format":1,"partitions":N}, N being the number of directories p0000, p0001, …',
        ) from error
    if layout.format != FORMAT:
        raise InternalError(
            "G515",
            f"this is a log of format {layout.format}",
            why=f"this version of Catchment reads format {FORMAT}",
            fix="run the version that wrote the log, or a newer one",
        )
    return layout


def directory(partition: int) -> str:
    """Where a partition lives.

    >>> directory(3)
    'p0003'
    """
    return f"p{partition:04d}"


def segment_path(partition: int, segment: Segment) -> str:
    """A segment's file."""
    return f"{directory(partition)}/segments/{segment.name}"


def readers(partition: int) -> str:
    """Where a partition's readers confirm."""
    return f"{directory(partition)}/readers"


def confirmed(disk: Disk, partition: int) -> dict[str, int]:
    """What each reader has confirmed of a partition."""
    here = readers(partition)
    found: dict[str, int] = {}
    for name in disk.list(here):
        if name.endswith(".json"):
            try:
                found[name[:-5]] = msgspec.json.decode(disk.read(f"{here}/{name}", 0, 1 << 16), type=Confirmed).offset
            except FileNotFoundError:
                continue  # it left between the two looks
            except msgspec.DecodeError as error:
                raise InternalError(
                    "G516",
                    f"{here}/{name} cannot be read",
                    why=str(error),
                    fix="let that reader confirm again, or delete the file if the reader is gone for good",
                ) from error
    return found


def partition_of(device: str, partitions: int) -> int:
    """The partition that a device's uploads go to, for the log's life.

    >>> partition_of("phone-1", 4)
    0
    """
    return zlib.crc32(device.encode()) % partitions
