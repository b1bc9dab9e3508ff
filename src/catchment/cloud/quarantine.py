"""What a program's quarantine may grow to: so old, so many files, so many bytes; the oldest goes first.

A stream that brings nothing but rubbish for a year fills no disk. What goes is counted, and said in the journal.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Bounds:
    """What is kept at most."""

    days: float = 30.0
    files: int = 20_000
    bytes: int = 256 << 20


def trim(directory: Path, *, now_s: float, bounds: Bounds | None = None) -> int:
    """Delete what is beyond the bounds, in all parts of a program; how many files that were."""
    bounds = bounds or Bounds()
    found = []
    for path in directory.rglob("*.jsonl"):
        try:
            about = path.stat()
        except FileNotFoundError:
            continue
        found.append((about.st_mtime, about.st_size, path))
    found.sort(reverse=True)
    oldest_s = now_s - bounds.days * 86_400
    size = gone = 0
    for number, (written_s, length, path) in enumerate(found):
        size += length
        if written_s < oldest_s or number >= bounds.files or size > bounds.bytes:
            path.unlink(missing_ok=True)
            gone += 1
    return gone
