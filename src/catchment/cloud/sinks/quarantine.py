"""What failed, kept: one file of JSON lines per task and epoch, written whole or not at all.

A line has the step (or stream), the reason, and what was given. A replay writes the same file again.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from catchment.engines.spark.buckets import QUARANTINE
from catchment.engines.spark.results import Results


@dataclass(frozen=True)
class QuarantineSink:
    """The quarantine of a program, in a directory."""

    directory: str

    def takes(self, output: str) -> bool:
        """Whether that output is what failed."""
        return output == QUARANTINE

    def append(self, output: str, part: int, epoch: int, upto: str, results: Results) -> None:
        """The failures of one task of an epoch."""
        folder = Path(self.directory)
        folder.mkdir(parents=True, exist_ok=True)
        lines = [
            msgspec.json.encode({"step": step, "reason": reason, "given": given, "upto": upto})
            for step, reason, given in results
        ]
        path = folder / f"{epoch:012d}-{part:04d}.jsonl"
        fresh = path.with_suffix(".tmp")
        with fresh.open("wb") as file:
            file.write(b"".join(line + b"\n" for line in lines))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
