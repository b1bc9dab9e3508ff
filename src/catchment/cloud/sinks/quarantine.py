"""What failed, kept: one file of JSON lines per task and epoch, written whole or not at all.

A line has the step (or stream), the reason, and what was given. A replay writes the same file again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from catchment.engines.spark.buckets import QUARANTINE
from catchment.engines.spark.results import Results
from catchment.gateway.log.files.disk import LocalDisk


@dataclass(frozen=True)
class QuarantineSink:
    """The quarantine of a program, in a directory."""

    directory: str

    def takes(self, output: str) -> bool:
        """Whether that output is what failed."""
        return output == QUARANTINE

    def append(self, output: str, part: int, epoch: int, upto: str, results: Results) -> None:
        """The failures of one task of an epoch."""
        lines = [{"step": step, "reason": reason, "given": given, "upto": upto} for step, reason, given in results]
        keep_lines(self.directory, f"{epoch:012d}-{part:04d}", lines)


def keep_lines(directory: str, name: str, lines: Sequence[dict[str, Any]]) -> None:
    """A file of lines, on the medium when this returns; the same name again is the same file again."""
    disk = LocalDisk(Path(directory))
    encoded = b"".join([msgspec.json.encode(line) + b"\n" for line in lines])
    disk.replace(f"{name}.jsonl", encoded)
