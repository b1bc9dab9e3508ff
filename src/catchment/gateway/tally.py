"""The tally: what passed through a gateway, counted, and what was refused, put aside.

Names in counters come from devices, so they are bounded: beyond so many streams, the rest count together.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter

from catchment.errors import CatchmentError
from catchment.gateway.service import Service
from catchment.gateway.uplink import Turn
from catchment.sync.frame import Data, Frame
from catchment.sync.parts import NO_LOSS, Epoch, Lost

_STREAM, _COUNT = attrgetter("stream"), attrgetter("count")
LABELS_MAX = 500
_LOST_KEPT = 100_000


class Tally:
    """Counts for one gateway."""

    def __init__(self, service: Service) -> None:
        self._metrics = service.metrics
        self._quarantine = service.stores.quarantine
        self._clock_us = service.clock_us
        self._labels: set[str] = set()
        self._lost: dict[tuple[str, str, Epoch], Lost] = {}

    def label(self, stream: str) -> str:
        """The stream as counters name it."""
        if stream in self._labels:
            return stream
        if len(self._labels) >= LABELS_MAX:
            return "(others)"
        self._labels.add(stream)
        return stream

    def frames(self, frames: Iterable[Frame]) -> None:
        """A message arrived."""
        counts: dict[type[Frame], int] = {}
        for kind in map(type, frames):
            counts[kind] = counts.get(kind, 0) + 1
        for kind, count in counts.items():
            self._metrics.frames.add(kind.__name__.lower(), by=count)

    def logged(self, device: str, turn: Turn, took_us: int) -> None:
        """A turn is durable."""
        metrics = self._metrics
        metrics.duplicates.add(by=len(turn.duplicates))
        if not turn.taken:
            return
        metrics.acknowledge.observe(took_us / 1e6, len(turn.taken))
        metrics.uploads.add(by=len(turn.taken))
        metrics.payload_bytes.add(by=sum([len(frame.payload) for frame in turn.taken]))
        for stream, frames in groupby(turn.taken, key=_STREAM):
            label = self.label(stream)
            metrics.elements.add(label, by=sum(map(_COUNT, frames)))
        for frame in turn.taken:
            if frame.lost != NO_LOSS:
                self._count_lost(device, frame, self.label(frame.stream))

    def refused(self, error: CatchmentError) -> None:
        """Something was refused."""
        self._metrics.refused.add(error.code)

    def put_aside(self, error: CatchmentError, raw: bytes, *, device: str, peer: str) -> None:
        """Keep what was refused for a person to look at."""
        kept = self._quarantine.keep(
            raw, code=error.code, why=error.why, device=device, peer=peer, now_us=self._clock_us()
        )
        self._metrics.quarantined.add(error.code, "yes" if kept else "no")

    def _count_lost(self, device: str, frame: Data, label: str) -> None:
        """Devices report losses as sums over an epoch; a counter wants what is new."""
        key = (device, frame.stream, frame.epoch)
        before = self._lost.pop(key, Lost())
        if len(self._lost) >= _LOST_KEPT:
            del self._lost[next(iter(self._lost))]
        self._lost[key] = frame.lost
        for reason in ("refused", "dropped", "thinned"):
            news = getattr(frame.lost, reason) - getattr(before, reason)
            if news > 0:
                self._metrics.lost.add(label, reason, by=news)
