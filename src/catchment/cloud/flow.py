"""Flow control: how much of the log the next batch takes, so that a batch lasts about as long as was aimed at.

What comes faster than the cloud computes waits in the log, which is on disk; batches stay as long as they were, so
results keep coming and a lost batch costs little to run again. How fast the cloud computes is measured on the batches
themselves, in the process where Spark keeps the reader of a source: it is asked for the next range when the last one
is done. Only the bounds of batches follow from it, and no result depends on those.

>>> flow = Flow(Pace(target_s=1.0, least_bytes=1_000), limit_bytes=10_000)
>>> flow = flow.after(10_000, 0.25, left=True)
>>> flow.limit_bytes, flow.after(20_000, 5.0, left=True).limit_bytes
(20000, 10000)
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql.streaming.datasource import ReadLimit

from catchment.gateway.log.spark import BYTES_PER_BATCH, LogStream

OPTION = "batch_target_ms"
"""The option of the source that says how long a batch should last; without it, batches are bounded by bytes alone."""
PAUSE = "pause"
"""The option that names a file: while it is there, no batch begins. So a query can be stopped between two batches."""
COPY = "copy"
"""The option that names a file: the last range that was given out, as [start, end]. Spark's own note of it may be
damaged; see `checkpoint`."""
FIRST_BYTES = 4 << 20
"""What the first batch of a query may take, before anything was measured."""
_FIXED_SHARE = 0.25
_DECAY = 0.8
_LIKE = 0.1
_LONG = 1.25
_TICK_S = 1e-3


@dataclass(frozen=True)
class Cost:
    """What batches cost: so much whatever is in them, and so much per byte; a line through the last ten or so.

    >>> cost = Cost().after(1_000, 1.0).after(3_000, 2.0)
    >>> round(cost.fixed_s, 3), round(cost.bytes_per_s)
    (0.5, 2000)
    """

    fixed_s: float = 0.0
    bytes_per_s: float = 0.0
    are_alike: bool = True
    """Batches of one size: nothing can be said of the two parts, and what was learned from others stays."""
    _sums: tuple[float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0)

    def after(self, taken_bytes: int, lasted_s: float) -> Cost:
        """With one more batch known."""
        lasted_s = max(lasted_s, _TICK_S)
        newest = (1.0, taken_bytes, lasted_s, taken_bytes * taken_bytes, taken_bytes * lasted_s)
        n, b, t, bb, bt = sums = tuple(_DECAY * old + new for old, new in zip(self._sums, newest, strict=True))
        size, time_s = b / n, t / n
        spread = bb / n - size * size
        are_alike = spread <= (_LIKE * size) ** 2
        slope = 0.0 if are_alike else max(0.0, (bt / n - size * time_s) / spread)
        fixed_s = min(max(self.fixed_s if are_alike else time_s - slope * size, 0.0), 0.9 * time_s)
        return Cost(fixed_s, size / (time_s - fixed_s), are_alike, (sums[0], sums[1], sums[2], sums[3], sums[4]))


@dataclass(frozen=True)
class Pace:
    """How long a batch should last, and the least and the most that it may take."""

    target_s: float
    least_bytes: int = 64 << 10
    most_bytes: int = BYTES_PER_BATCH


@dataclass(frozen=True)
class Flow:
    """The bound on the next batch.

    Where what a batch costs at least is much of the time aimed at, on a slow or busy machine, batches last longer than
    that: cutting them shorter would only waste more, and the log would never be caught up with.
    """

    pace: Pace
    limit_bytes: int = FIRST_BYTES
    cost: Cost = Cost()

    def after(self, taken_bytes: int, lasted_s: float, *, left: bool) -> Flow:
        """A batch took so much and so long; `left` says that more was there than it was allowed to take."""
        cost = self.cost.after(taken_bytes, lasted_s)
        target_s = max(self.pace.target_s, cost.fixed_s / _FIXED_SHARE)
        if not left and (cost.are_alike or lasted_s <= target_s):
            # All that was there, in good time: no reason to change what could be taken.
            return replace(self, cost=cost)
        wanted = (target_s - cost.fixed_s) * cost.bytes_per_s
        least = self.limit_bytes <= self.pace.least_bytes and lasted_s > _LONG * target_s
        if cost.are_alike and (least or cost.fixed_s == 0.0):
            # A larger one shows whether a batch is long because of what is in it.
            wanted = self.limit_bytes * 2
        # A few batches prove little: twice or half is enough for one step.
        near = min(max(wanted, self.limit_bytes / 2), self.limit_bytes * 2)
        limit = min(max(near, self.pace.least_bytes), self.pace.most_bytes)
        return replace(self, limit_bytes=round(limit), cost=cost)


class Standing(msgspec.Struct, frozen=True):
    """How a query stands against its log, after a batch."""

    behind_bytes: int
    """Logged and not yet in a batch."""
    batch_bytes: int
    batch_ms: int


def standing(report: Mapping[str, Any]) -> Standing | None:
    """What Spark's report of a batch says of it.

    >>> standing({"durationMs": {"triggerExecution": 250}, "sources":
    ...     [{"startOffset": {"0": 10}, "endOffset": {"0": 110}, "latestOffset": {"0": 150}}]})
    Standing(behind_bytes=40, batch_bytes=100, batch_ms=250)
    """
    ends = [
        [_total(source.get(name)) for name in ("startOffset", "endOffset", "latestOffset")]
        for source in report["sources"]
    ]
    read = [(start or 0, end, latest) for start, end, latest in ends if end is not None and latest is not None]
    if not read:
        return None
    return Standing(
        behind_bytes=sum(max(0, latest - end) for _, end, latest in read if latest is not None and end is not None),
        batch_bytes=sum(end - start for start, end, _ in read if end is not None),
        batch_ms=report["durationMs"].get("triggerExecution", 0),
    )


def _total(offset: object) -> int | None:
    """Bytes over all partitions, of an offset as the log's source writes it; nothing of other sources' offsets."""
    found = json.loads(offset) if isinstance(offset, str) else offset
    return sum(found.values()) if isinstance(found, dict) and all(type(n) is int for n in found.values()) else None


class Admission:
    """Watches a query ask for ranges, and says how much it may have."""

    def __init__(self, pace: Pace, clock_s: Callable[[], float] = time.monotonic) -> None:
        self.flow = Flow(pace, min(FIRST_BYTES, pace.most_bytes))
        self._clock_s = clock_s
        self._given: tuple[dict[str, int], int, bool, float] | None = None
        self._is_warm = False

    def asked(self, start: dict[str, int]) -> int:
        """How many bytes it may have, now that it asks from `start`: what it was given before that is done."""
        if self._given is not None:
            end, taken, left, since_s = self._given
            # The first batch starts workers and loads classes and state: it says nothing of the next.
            if end == start and self._is_warm:
                self.flow = self.flow.after(taken, self._clock_s() - since_s, left=left)
            self._is_warm = self._is_warm or end == start
            self._given = None
        return self.flow.limit_bytes

    def gave(self, start: dict[str, int], end: dict[str, int], ends: dict[str, int]) -> None:
        """It was given the range from `start` to `end`, of a log that ends at `ends`."""
        taken = sum(end.values()) - sum(start.values())
        if taken > 0:
            self._given = (end, taken, end != ends, self._clock_s())


class PacedStream(LogStream):
    """The log, and of it as much per batch as is computed in good time, where `OPTION` says what that is.

    Asked by Spark in one process for as long as the query runs, which is where the measurements are kept.
    """

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._pause = Path(options[PAUSE]) if PAUSE in options else None
        self._copy = Path(options[COPY]) if COPY in options else None
        self._admission = None
        if OPTION in options:
            self._admission = Admission(Pace(int(options[OPTION]) / 1000, most_bytes=self.bytes_max))

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        if self._pause is not None and self._pause.exists():
            return start
        if self._admission is not None:
            self.bytes_max = self._admission.asked(start)
        end = super().latestOffset(start, limit)
        if self._admission is not None:
            self._admission.gave(start, end, self.reportLatestOffset())
        if self._copy is not None and end != start:
            fresh = self._copy.with_suffix(".tmp")
            fresh.write_text(json.dumps([start, end]))
            fresh.replace(self._copy)
        return end
