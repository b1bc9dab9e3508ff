"""A phone for benchmarks: a real device's agent, outbox and power meter on a clock that jumps, fed with a GPS track.

What it talks to are the gateway's own judges and placement, in memory: see `tests/unit/device/device_world.py`. Virtual
are the clocks, the way between the two and the disk below SQLite; every byte that is counted would have been sent.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import catchment as cm
from bench import tracks
from catchment.device.correspondent import HEAD_BYTES
from catchment.device.power import RADIO, Used
from catchment.device.transport import Request
from tests.unit.device.device_world import BEGIN_US, SECOND_US, World


class Fix(cm.Record):
    """Where a phone is: the columns of bench/wire.py."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    lat_deg: cm.Field[float] = cm.field(step=1e-6)
    lon_deg: cm.Field[float] = cm.field(step=1e-6)


def following(policy: cm.Sync, *, every_s: float) -> cm.Program:
    """A program that reads the GPS so often, and sends each fix to the cloud by that policy."""
    program = cm.Program("peir")

    @program.stream(at=cm.DEVICE, sync=policy)
    def fixes(device: cm.DeviceSite) -> cm.Stream[Fix]:
        """What the GPS says."""
        return device.sensor(Fix, "gps", every=cm.adaptive(cm.seconds(every_s)))

    @program.stream(at=cm.CLOUD)
    def seen(fixes: cm.Stream[Fix]) -> cm.Stream[Fix]:
        """Somebody reads them."""
        return fixes.where(Fix.lat_deg >= -90.0)

    return program


def track_file(path: Path, points: int) -> Path:
    """So many positions of a real track, to be played at the program's pace. One that is too short is walked back and
    forth."""
    track = max(tracks.load(points).tracks, key=len)
    walk = itertools.chain(track, reversed(track))
    lines = [f"{lat:.6f},{lon:.6f}\n" for _, lat, lon in itertools.islice(itertools.cycle(walk), points)]
    path.write_text("lat_deg,lon_deg\n" + "".join(lines), encoding="ascii")
    return path


class Phone(World):
    """A phone with that program, behind a link of the energy model's throughput."""

    def __init__(self, program: cm.Program, *sensors: str) -> None:
        super().__init__(program, *sensors)
        self.delay_us = 100_000
        self.bytes_per_s = RADIO.bytes_per_s
        self.carried_bytes = self.requests = 0
        """All that got through to a gateway, with what HTTP adds to it; and how often it was tried."""

    def start_request(self, request: Request) -> None:
        """A link that is down carries nothing."""
        self.requests += 1
        if not self.gateway.away:
            self.carried_bytes += len(request.body) + HEAD_BYTES
        super().start_request(request)

    @property
    def elapsed_s(self) -> float:
        """Since the beginning."""
        return (self.machine.true_us - BEGIN_US) / SECOND_US

    @property
    def used(self) -> Used:
        """What the run took by the model of energy."""
        assert self.agent is not None
        return self.agent.meter.used(self.machine.reading_us())

    def logged(self, stream: str) -> int:
        """How many elements of a stream are in the log."""
        name = f"{self.plan.program}/{stream}"
        return sum([entry.count for entry in self.gateway.entries if entry.stream == name])

    def positions(self) -> list[tuple[float, ...]]:
        """Latitude and longitude of all fixes that were logged, in order."""
        return [row[2:4] for row in self.gateway.rows(self.plan, "fixes")]


__all__ = ["SECOND_US", "Fix", "Phone", "following", "track_file"]
