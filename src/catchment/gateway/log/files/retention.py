"""Retention: delete whole segments that every reader has confirmed, and nothing else.

A log that nobody has confirmed is kept whole: silence is not consent. What is deleted first is the oldest, one
segment at a time, so that a crash in between leaves a log that merely begins earlier. `held` says who keeps how much.
"""

from __future__ import annotations

from catchment.gateway.log.files import layout, segment
from catchment.gateway.log.files.disk import Disk
from catchment.gateway.log.files.segment import PAGE, Segment

NOBODY = "(nobody)"
"""Holds back a partition that no reader has confirmed. No reader can be called so."""


def trim(disk: Disk, partition: int, *, keep_from: int | None = None) -> list[Segment]:
    """Delete what no reader needs; the segments deleted.

    `keep_from` keeps everything from that offset on, whatever readers confirmed.
    """
    here = f"{layout.directory(partition)}/segments"
    present = [found for found in map(Segment.named, disk.list(here)) if found is not None]
    links = segment.chain(present)
    confirmed = list(layout.confirmed(disk, partition).values())
    if keep_from is not None and confirmed:
        confirmed.append(keep_from)
    needed = min(confirmed, default=0)
    # The last segment is the writer's, whatever was confirmed.
    gone = [link.segment for link in links[:-1] if link.end is not None and link.end <= needed]
    counting = {link.segment for link in links}
    oldest_kept = links[len(gone)].segment.base if links else 0
    # Segments that never counted: left by writers that were replaced. They may still be open, which does no harm.
    # They go first: without the segment that overtook them they would count.
    stale = [found for found in present if found not in counting and found.base < oldest_kept]
    gone = stale + gone
    for found in gone:
        disk.delete(f"{here}/{found.name}")
        disk.sync_directory(here)
        disk.delete(f"{here}/{found.marks_name}")
    return gone


def held(disk: Disk, partition: int) -> dict[str, int]:
    """How many bytes each reader keeps from being deleted, whoever else keeps them too; `NOBODY`, if none reads."""
    names = disk.list(f"{layout.directory(partition)}/segments")
    ended = [link for link in segment.chain(filter(None, map(Segment.named, names))) if link.end is not None]
    confirmed = layout.confirmed(disk, partition) or {NOBODY: 0}
    return {
        reader: sum(PAGE + link.end - link.segment.base for link in ended if link.end is not None and link.end > offset)
        for reader, offset in confirmed.items()
    }
