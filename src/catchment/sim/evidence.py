"""Evidence: what is certainly in the log at any moment, read from what a power cut right now would leave.

Promises: `upto` never says more than a gateway would find that starts on this disk after the worst power cut. It reads
on from where it stopped, so asking at every acknowledgement is cheap; when segments were overtaken it begins anew.
Knows the log's format through the log's own code, and nothing of gateways.
"""

from __future__ import annotations

from catchment.errors import InternalError
from catchment.gateway.log import Marks
from catchment.gateway.log.files import block, layout, segment
from catchment.gateway.log.files.segment import PAGE, Link, Segment
from catchment.sim.disk import SafeDisk
from catchment.sync.parts import Mark


class _Partition:
    def __init__(self, disk: SafeDisk, number: int) -> None:
        self._disk = disk
        self._number = number
        self._names: tuple[str, ...] = ()
        self._links: tuple[Link, ...] = ()
        self._salts: dict[Segment, int] = {}
        self._at = 0
        self._trimmed_to = 0
        self.marks = Marks()
        self.end = 0

    def read_on(self) -> None:
        """Take in what has become safe since."""
        names = self._disk.list(f"{layout.directory(self._number)}/segments")
        if names != self._names:
            self._names = names
            links = segment.chain(filter(None, map(Segment.named, names)))
            if not _goes_on(self._links, links, self.end):
                # A successor began before what was read here: what lies behind it never counted.
                self.marks, self.end, self._at = self._marks_before(links), links[0].segment.base if links else 0, 0
            self._links = links
        for link in self._links:
            if link.end is not None and link.end <= self.end:
                continue
            self._read(link)

    def _read(self, link: Link) -> None:
        path = layout.segment_path(self._number, link.segment)
        salt = self._salts.get(link.segment)
        try:
            if salt is None:
                salt = segment.open_header(self._disk, path, link.segment).salt  # type: ignore[arg-type]
                self._salts[link.segment] = salt
            size = self._disk.size(path)
        except (InternalError, FileNotFoundError):
            return
        limit = link.segment.base + max(0, size - PAGE) if link.end is None else link.end
        start = max(self.end, link.segment.base)
        for found in segment.blocks(self._disk, path, link.segment, salt, start, limit):  # type: ignore[arg-type]
            for _, entry in block.entries_of(block.take_apart(found.data, found.at, found.header)):
                self.marks.apply(entry)
            self.end = found.header.end

    def _marks_before(self, links: tuple[Link, ...]) -> Marks:
        """What is known of entries before the first segment that is kept."""
        if not links or links[0].segment.base == 0:
            return Marks()
        path = f"{layout.directory(self._number)}/segments/{links[0].segment.marks_name}"
        return Marks.from_bytes(self._disk.read(path, 0, self._disk.size(path)))


class Evidence:
    """All partitions of a log."""

    def __init__(self, disk: SafeDisk, partitions: int) -> None:
        self._partitions = [_Partition(disk, number) for number in range(partitions)]

    def upto(self, device: str, mark: Mark) -> int:
        """Of that epoch, every number below this is safe."""
        partition = self._of(device)
        nonce = int.from_bytes(mark.epoch.nonce, "little", signed=True)
        found = partition.marks.upto(device, mark.stream, mark.epoch.counter, nonce)
        if found < mark.upto:
            partition.read_on()
            found = partition.marks.upto(device, mark.stream, mark.epoch.counter, nonce)
        return found

    def end(self, number: int) -> int:
        """The offset up to which a partition is safe."""
        self._partitions[number].read_on()
        return self._partitions[number].end

    def _of(self, device: str) -> _Partition:
        return self._partitions[layout.partition_of(device, len(self._partitions))]


def _goes_on(before: tuple[Link, ...], now: tuple[Link, ...], read_to: int) -> bool:
    """Whether everything read so far still counts: the same segments, more of them, or fewer at the front."""
    kept = {link.segment for link in now}
    start = now[0].segment.base if now else 0
    for link in before:
        end = min(read_to, link.end if link.end is not None else read_to)
        if link.segment in kept:
            after = next(one for one in now if one.segment == link.segment)
            if after.end is not None and after.end < end:
                return False
        elif link.segment.base < read_to and end > start:
            return False
    return True
