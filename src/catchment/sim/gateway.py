"""A gateway in the simulator: the real service, application and log, on a simulated loop, disk and network.

What is replaced: the log's disk, the thread of each partition, the clock, the sockets. What is not simulated: enrolment
and downlink are SQLite and stay in memory for the whole world, as stores that many processes share do.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catchment.errors import CatchmentError
from catchment.gateway.app import Application
from catchment.gateway.downlink import Downlink
from catchment.gateway.enrolment import Enrolment
from catchment.gateway.exchange import Exchange
from catchment.gateway.limits import GatewayLimits
from catchment.gateway.log.files.commit import Deliver, Ticks
from catchment.gateway.log.files.disk import Disk
from catchment.gateway.log.files.log import FileLog
from catchment.gateway.log.files.partition import Limits
from catchment.gateway.plans import Plans
from catchment.gateway.quarantine import Quarantine
from catchment.gateway.service import Service
from catchment.gateway.stores import Options, Stores
from catchment.sim.asgi import serve
from catchment.sim.clock import HOUR_US, SECOND_US, Clock, WallClock
from catchment.sim.disk import MountedDisk
from catchment.sim.drive import ClockDrive
from catchment.sim.loop import VirtualLoop
from catchment.sim.medium import Medium
from catchment.sim.network import Network
from catchment.sim.process import Process
from catchment.sync.table import Watch

GRAIN_US = SECOND_US
"""How late a gateway's timers may be: its chores wake together, about once a second."""
RESTART_US = 2 * SECOND_US
LOG_LIMITS = Limits(segment_bytes=16_000, segment_us=HOUR_US // 6, reserve_bytes=20_000)
"""Small, so that segments roll and disks fill in a world of minutes."""
LIMITS = GatewayLimits(device_bytes_per_s=50_000, device_burst_bytes=200_000, pending_bytes=1 << 20)


class KeptAside(Quarantine):
    """What was refused, in memory."""

    def __init__(self) -> None:
        self.codes: list[str] = []

    def keep(self, body: bytes | memoryview, *, code: str, **said: Any) -> bool:
        self.codes.append(code)
        return True

    def trim(self, *, before_us: int) -> None:
        """Nothing: a world is short."""


@dataclass(slots=True)
class SharedStores:
    """What the gateways of a world share, besides the log's disk."""

    enrolment: Enrolment
    downlink: Downlink


class _Stores(Stores):
    """The stores of one life of a gateway; as `catchment.gateway.stores.Stores`."""

    def __init__(self, options: Options, log: FileLog, shared: SharedStores, disk: Disk, aside: Quarantine) -> None:
        self.options = options
        self.log = log
        self.enrolment = shared.enrolment
        # One store, and each process its own view of what is new in it.
        self.downlink = copy.copy(shared.downlink)
        self.plans = Plans(disk)
        self.quarantine = aside
        self._disk = disk

    def free_bytes(self) -> int:
        return self._disk.free_bytes()

    def close(self) -> None:
        """Let the log go; what is shared stays open."""
        self.log.close()


class GatewayNode:
    """One gateway of a world, through all its lives."""

    def __init__(
        self,
        name: str,
        *,
        clock: Clock,
        wall: WallClock,
        network: Network,
        medium: Medium,
        shared: SharedStores,
        partitions: int,
        luck: random.Random,
        tap: Callable[[GatewayNode, bytes], object],
        watch: Watch,
    ) -> None:
        """`tap` sees every message that it sends, just before; `watch` each rule that its machines take."""
        self.name = name
        self.address = f"http://{name}"
        self.medium = medium
        self.wall = wall
        self.aside = KeptAside()
        self.failed_starts: list[str] = []
        """Why lives of it ended as they began."""
        self.process: Process | None = None
        self.service: Service | None = None
        self.loop: VirtualLoop | None = None
        self._clock = clock
        self._network = network
        self._shared = shared
        self._partitions = partitions
        self._luck = luck
        self._tap = tap
        self._watch = watch
        self._grain_us = GRAIN_US
        self._asleep_until_us = 0

    @property
    def is_up(self) -> bool:
        """Whether it lives."""
        return self.process is not None and self.process.alive

    def how_it_is(self) -> str:
        """For people: whether it lives, and what its health says."""
        if not self.is_up or self.service is None or self.loop is None:
            return "down"
        failures = [f"{one.get('message')} {one.get('exception')!r}" for one in self.loop.failures]
        return f"{self.service.health()} {failures}"

    def start(self) -> None:
        """Begin another life."""
        if self.is_up:
            return
        process = Process(self.name, self._clock)
        self.process = process
        self._clock.after(0, lambda: self._begin(process), process.strand)
        if self._asleep_until_us > self._clock.now_us:
            process.stop(self._asleep_until_us - self._clock.now_us)

    def sleep(self, for_us: int) -> None:
        """Be suspended for so long, also where it is started anew meanwhile."""
        self._asleep_until_us = max(self._asleep_until_us, self._clock.now_us + for_us)
        if self.process is not None and self.process.alive:
            self.process.stop(for_us)

    def set_grain(self, grain_us: int) -> None:
        """Have its chores wake up as rarely as that, in this life and later ones."""
        self._grain_us = grain_us
        if self.loop is not None:
            self.loop.grain_us = grain_us

    def stop(self) -> None:
        """End in good order, as on a signal."""
        process, service, loop = self.process, self.service, self.loop
        if process is None or service is None or loop is None or not process.alive:
            return

        async def stop() -> None:
            await service.stop()
            process.kill()

        loop.start(stop())

    def kill(self) -> None:
        """End it now."""
        if self.process is not None:
            self.process.kill()

    def _begin(self, process: Process) -> None:
        loop = VirtualLoop(self._clock, process, grain_us=self._grain_us)
        process.at_end(loop.close)
        disk = MountedDisk(self.medium, process)
        options = Options(
            data=Path(self.name),
            name=self.name,
            address=self.address,
            partitions=self._partitions,
            limits=LIMITS,
            log=LOG_LIMITS,
            ticks=Ticks(every_us=5 * SECOND_US, horizon_us=60 * SECOND_US),
        )

        def stores(options: Options, *, clock_us: Callable[[], int], deliver: Deliver, **_: Any) -> _Stores:
            log = FileLog(
                disk,
                name=options.name,
                address=options.address,
                clock_us=clock_us,
                salt=lambda: self._luck.getrandbits(32),
                deliver=deliver,
                partitions=options.partitions,
                limits=options.log,
                ticks=options.ticks,
                drive=lambda: ClockDrive(self._clock, process, self._luck, clock_us),
            )
            return _Stores(options, log, self._shared, disk, self.aside)

        try:
            service = Service(options, clock_us=self.wall.now_us, stores=stores, watch=self._watch)
        except (CatchmentError, OSError) as error:
            self._failed_to_start(process, error)
            return
        exchange = Exchange(service)
        application = Application(service, exchange=exchange.post, talk=exchange.talk)
        self.service, self.loop = service, loop

        async def run() -> None:
            try:
                await service.start()
            except (CatchmentError, OSError) as error:
                self._failed_to_start(process, error)
                return
            serve(
                application,
                "/v1/sync",
                network=self._network,
                address=self.address,
                process=process,
                loop=loop,
                tap=lambda body: self._tap(self, body),
            )

        loop.start(run())

    def _failed_to_start(self, process: Process, error: CatchmentError | OSError) -> None:
        """As under a supervisor: it ends with its message, and is started again."""
        self.failed_starts.append(str(error))
        process.kill()
        self._clock.after(RESTART_US, self.start)
