"""Forgetting a device: what it sent is taken out of every segment, and every offset stays what it was.

    p0003/forget/NAME.json      a request: which device, since when, and how far its forgetting has come

A request is a file, so whoever may write the partition finds it, now or after a crash, and does it again from its
beginning: twice is once. The writer begins a segment, logs that the device is forgotten, which queries read and let go
of its state, and begins another. Each segment before is written anew, whole or not at all, with the device's entries
emptied; when all readers have been told, so is the one that told them, and the request goes. A device that is still
connected is waited for: it would be named again when it leaves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec

from catchment.gateway.log.entry import forgotten
from catchment.gateway.log.files import block, layout, segment
from catchment.gateway.log.files.disk import Disk
from catchment.gateway.log.files.partition import Partition
from catchment.gateway.log.files.segment import PAGE, Segment
from catchment.gateway.log.marks import Marks

PATIENCE_US = 600_000_000
"""How long a device is waited for that was revoked and has not gone."""
UNREAD_US = 20 * 3_600_000_000
"""How long readers are waited for that have not been told."""


class Request(msgspec.Struct, frozen=True):
    """A device that is to be forgotten; `told` is where the log says so, `upto` where that ends, once it does."""

    device: str
    asked_us: int
    user: str = ""
    all_of_user: bool = False
    told: int | None = None
    upto: int = 0


def ask(disk: Disk, partition: int, device: str, *, now_us: int, user: str = "", all_of_user: bool = False) -> None:
    """Have the writer of a partition forget a device, and its user too if so said. Durable when this returns."""
    disk.make_directory(_folder(partition))
    _note(disk, partition, Request(device, now_us, user, all_of_user))


def asked(disk: Disk, partition: int) -> list[Request]:
    """What is still to be forgotten in a partition."""
    here = _folder(partition)
    return [
        msgspec.json.decode(disk.read(f"{here}/{name}", 0, 1 << 16), type=Request)
        for name in disk.list(here)
        if name.endswith(".json")
    ]


class Forgetting:
    """A writer's work on its requests, a segment at a time, so that uploads wait for no more than that."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._done: dict[str, set[Segment]] = {}

    def step(self, partition: Partition, *, now_us: int) -> bool:
        """Do a piece of what was asked; whether there is more that can be done now."""
        for request in asked(self._disk, partition.number):
            if request.told is None:
                mark = partition.marks.devices.get(request.device)
                if mark is not None and mark.online and now_us - request.asked_us < PATIENCE_US:
                    continue
                self._tell(partition, request, now_us)
                return True
            # Those that are told learn it from the log itself: it names the device until they have read it.
            is_read = self._is_read(partition.number, request, now_us)
            done = self._done.setdefault(request.device, set())
            for found in self._behind(partition.number, request.upto if is_read else request.told):
                if found not in done and (is_read or found.base < request.told):
                    self._rewrite(partition.number, found, request.device, request.upto)
                    done.add(found)
                    return True
            if is_read:
                self._disk.delete(_path(partition.number, request.device))
                self._disk.sync_directory(_folder(partition.number))
                del self._done[request.device]
                return True
        return False

    def _tell(self, partition: Partition, request: Request, now_us: int) -> None:
        partition.marks.devices.pop(request.device, None)
        partition.roll(now_us=now_us)
        told = partition.end
        notice = forgotten(device=request.device, user=request.user, all_of_user=request.all_of_user, now=now_us)
        partition.append([notice], now_us=now_us)
        partition.roll(now_us=now_us)
        _note(self._disk, partition.number, msgspec.structs.replace(request, told=told, upto=partition.end))

    def _is_read(self, partition: int, request: Request, now_us: int) -> bool:
        """Whether every reader has been told; one that reads no more is not waited for beyond a day."""
        least = min(layout.confirmed(self._disk, partition).values(), default=request.upto)
        return least >= request.upto or now_us - request.asked_us > UNREAD_US

    def _behind(self, partition: int, upto: int) -> list[Segment]:
        """Segments that begin up to an offset, those too that count no more; not the one that is being written."""
        names = self._disk.list(f"{layout.directory(partition)}/segments")
        found = sorted(this for this in map(Segment.named, names) if this is not None)
        return [this for this in found[:-1] if this.base <= upto]

    def _rewrite(self, partition: int, this: Segment, device: str, upto: int) -> None:
        path = layout.segment_path(partition, this)
        data = self._disk.read(path, 0, self._disk.size(path))
        opened = segment.open_header(self._disk, path, this)
        changed = bytearray(data)
        end, is_changed = PAGE, False
        for at, header in _blocks(data):
            if not block.intact(data, at, header, opened.salt):
                break
            # What lies behind is of another life of that name.
            whole = data[at : at + header.length]
            new = block.without(whole, header, opened.salt, device) if header.offset < upto else None
            if new is not None:
                changed[at : at + header.length] = new
                is_changed = True
            end = at + header.length
        # Behind the last intact block lies what a crash or a replaced writer left: it counts for nobody.
        if is_changed or end < len(data):
            self._disk.replace(path, bytes(changed[:end]))
        marks_path = f"{layout.directory(partition)}/segments/{this.marks_name}"
        try:
            marks = Marks.from_bytes(self._disk.read(marks_path, 0, self._disk.size(marks_path)))
        except (FileNotFoundError, ValueError):
            return
        if marks.devices.pop(device, None) is not None:
            self._disk.replace(marks_path, marks.to_bytes())


def _blocks(data: bytes) -> Iterator[tuple[int, block.Header]]:
    at = PAGE
    while (header := block.header_at(data, at)) is not None:
        yield at, header
        at += header.length


def _folder(partition: int) -> str:
    return f"{layout.directory(partition)}/forget"


def _path(partition: int, device: str) -> str:
    return f"{_folder(partition)}/{hashlib.sha256(device.encode()).hexdigest()[:32]}.json"


def _note(disk: Disk, partition: int, request: Request) -> None:
    disk.replace(_path(partition, request.device), msgspec.json.encode(request))
