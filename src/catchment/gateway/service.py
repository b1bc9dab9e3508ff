"""The gateway's running parts: stores, devices that are there, and the chores between them.

One event loop decides, one thread per partition writes, and nothing is acknowledged before that thread has synced.
Chores run here: partitions change hands, absent devices are noticed, results from other processes are found, what is
old is let go. Knows asyncio; what a frame means is `exchange`'s business, what a request means is `app`'s.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from catchment.errors import CatchmentError
from catchment.gateway import programs
from catchment.gateway.journal import say
from catchment.gateway.limits import Rates
from catchment.gateway.log import Entry
from catchment.gateway.log.files.commit import Done, GroupCommit, Outcome, State
from catchment.gateway.log.files.disk import Disk
from catchment.gateway.metrics import GatewayMetrics
from catchment.gateway.presence import Presence
from catchment.gateway.pressure import Lag, pressure
from catchment.gateway.stores import Options, Stores, clock_us
from catchment.sync.parts import Pressure
from catchment.sync.table import Watch

TEND_US = 1_000_000
RESULTS_US = 25_000
"""How often results written by other processes are looked for: a lookup of an index's end."""
KEEP_US = 60_000_000


class Service:
    """One gateway process."""

    def __init__(
        self,
        options: Options,
        *,
        clock_us: Callable[[], int] = clock_us,
        log_disk: Disk | None = None,
        stores: Callable[..., Stores] = Stores,
        watch: Watch | None = None,
    ) -> None:
        """`stores` opens them, as `Stores` does; `watch` sees each rule that a device's machines take here."""
        self.options = options
        self.watch = watch
        self.clock_us = clock_us
        self.metrics = GatewayMetrics()
        self.presence = Presence()
        self.rates = Rates(options.limits)
        self.stores = stores(options, clock_us=clock_us, deliver=self._deliver, log_disk=log_disk)
        self.on_results: Callable[[list[str]], None] = lambda targets: None
        """Told which targets have new results."""
        self.on_given_up: Callable[[list[int]], None] = lambda partitions: None
        """Told which partitions other gateways write now."""
        self.on_sweep: Callable[[int], None] = lambda now_us: None
        """Called about once a second."""
        self._acknowledged: list[tuple[str, str, str, bytes, int]] = []
        self._repairs_said = 0
        self._lags: dict[int, Lag] = {}
        self._pressures: dict[int, Pressure] = {}
        self._held: Counter[str] = Counter()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._gauges()

    async def start(self) -> None:
        """Take partitions and begin the chores."""
        self._loop = asyncio.get_running_loop()
        await self._tend()
        self.stores.downlink.fresh()
        chores = [
            (self._tend, TEND_US),
            (self._results, RESULTS_US),
            (self._flush, TEND_US // 4),
            (self._let_go, KEEP_US),
        ]
        self._tasks = [asyncio.create_task(self._repeat(chore, every_us)) for chore, every_us in chores]
        say("started", gateway=self.options.name, partitions=sorted(self.stores.log.writers))

    async def stop(self) -> None:
        """End the chores, write what was submitted, let other gateways take over."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._flush()
        # In a thread: what the partitions still answer goes through this loop.
        await asyncio.to_thread(self.stores.close)
        await asyncio.sleep(0)
        say("stopped", gateway=self.options.name)

    async def log(self, writer: GroupCommit, entries: list[Entry]) -> Outcome:
        """Have entries logged; once they are durable, their offsets, or why they are not in the log."""
        answered: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def done(outcome: Outcome) -> None:
            if not answered.done():
                answered.set_result(outcome)

        writer.submit(entries, done)
        return await answered

    def note(self, entries: list[Entry]) -> None:
        """Have entries logged that nobody waits for: presence."""
        for entry in entries:
            writer = self.stores.log.writers.get(self.stores.log.partition_of(entry.device))
            if writer is not None:
                writer.submit((entry,), _unheard)

    def acknowledge(self, device: str, user: str, stream: str, nonce: bytes, upto: int) -> None:
        """A device holds these results: written down soon, together with those of others."""
        self._acknowledged.append((device, user, stream, nonce, upto))

    def pending_bytes(self) -> int:
        """Payload that waits for the disk."""
        return sum([writer.pending_bytes for writer in self.stores.log.writers.values()])

    def pressure(self, partition: int) -> Pressure | None:
        """How far behind the readers of a partition are, and what devices should do about it; as of a second ago."""
        return self._pressures.get(partition)

    def health(self) -> dict[str, object]:
        """What there is to say about this gateway's health."""
        log = self.stores.log
        return {
            "gateway": self.options.name,
            "partitions": {number: writer.state.value for number, writer in sorted(log.writers.items())},
            "failures": {number: error.what for number, error in sorted(log.failures.items())},
            "repaired": [f"{one.path}: {one.bytes} bytes at {one.position}" for one in log.repaired],
            "free_bytes": self.stores.free_bytes(),
            "held_bytes": dict(self._held.most_common()),
        }

    def ready(self) -> bool:
        """Whether it can take uploads for every partition that it should write."""
        log = self.stores.log
        states = [writer.state for writer in log.writers.values()]
        return bool(states) and not log.failures and all(state is State.WRITING for state in states)

    def _deliver(self, answers: list[tuple[Done, Outcome]]) -> None:
        """From a partition's thread: one hop to the loop for the whole group."""
        loop = self._loop
        assert loop is not None, "nothing is submitted before the start"
        loop.call_soon_threadsafe(_answer, answers)

    async def _repeat(self, chore: Callable[[], Coroutine[Any, Any, None]], every_us: int) -> None:
        while True:
            await asyncio.sleep(every_us / 1e6)
            try:
                await chore()
            except (CatchmentError, OSError, sqlite3.Error) as error:
                say("chore failed", level=logging.ERROR, chore=chore.__name__, why=str(error))
            except Exception:
                # A chore that ended would be missed only much later; its trace is in the journal now.
                logging.getLogger("catchment.gateway").exception("chore failed unexpectedly: %s", chore.__name__)

    async def _tend(self) -> None:
        now = self.clock_us()
        known_failures = set(self.stores.log.failures)
        tended = await asyncio.to_thread(self.stores.log.tend)
        for number, online in tended.taken.items():
            say("partition taken", partition=number, online=len(online))
            self.presence.adopt(online, now_us=now)
        for repaired in self.stores.log.repaired[self._repairs_said :]:
            self._repairs_said += 1
            say("torn tail cut off", path=repaired.path, position=repaired.position, bytes=repaired.bytes)
        if tended.given_up:
            say("partitions given up", partitions=tended.given_up)
            partition_of = self.stores.log.partition_of
            self.presence.release(lambda device: partition_of(device) in tended.given_up)
            self.on_given_up(tended.given_up)
        for number in set(self.stores.log.failures) - known_failures:
            say("partition failed", level=logging.ERROR, partition=number, why=str(self.stores.log.failures[number]))
        self.note(self.presence.due(now_us=now))
        await asyncio.to_thread(self._look_at_readers, now)
        self.rates.tidy(now_us=now)
        self.on_sweep(now)

    def _look_at_readers(self, now_us: int) -> None:
        log = self.stores.log
        held: Counter[str] = Counter()
        for number, writer in list(log.writers.items()):
            held.update(log.held(number))
            confirmed = log.confirmed(number)
            lag = self._lags.setdefault(number, Lag())
            lag.observe(end=writer.partition.end, confirmed=confirmed, now_us=now_us)
        self._held = held
        self._lags = {number: lag for number, lag in self._lags.items() if number in log.writers}
        waiting = self.pending_bytes() / self.options.limits.pending_bytes
        self._pressures = {
            number: pressure(behind_us=lag.behind_us(now_us=now_us), waiting=waiting, calm_us=self.options.calm_us)
            for number, lag in self._lags.items()
        }

    async def _results(self) -> None:
        self.stores.enrolment.refresh()
        fresh = self.stores.downlink.fresh()
        if fresh:
            self.on_results(fresh)

    async def _flush(self) -> None:
        """Write down what devices acknowledged: late is no harm, they are asked what they hold anyway."""
        await asyncio.to_thread(self.stores.enrolment.write_down)
        if self._acknowledged:
            batch, self._acknowledged = self._acknowledged, []
            await asyncio.to_thread(self.stores.downlink.acknowledge, batch)

    async def _let_go(self) -> None:
        now = self.clock_us()
        day_us = 86_400_000_000
        before_us = now - self.options.result_days * day_us
        _, old = await asyncio.to_thread(self.stores.downlink.trim, self._devices_of, before_us=before_us)
        if old:
            self.metrics.results_expired.add(by=old)
            say("results grew too old", results=old, days=self.options.result_days)
        await asyncio.to_thread(self.stores.quarantine.trim, before_us=now - self.options.quarantine_days * day_us)

    def _devices_of(self, target: str) -> list[str]:
        kind, _, name = target.partition(":")
        if kind == "device":
            return [name]
        return [device.device for device in self.stores.enrolment.devices(name) if device.revoked_us is None]

    def _gauges(self) -> None:
        gauge, log = self.metrics.gauge, self.stores.log
        gauge("free_bytes", "Bytes that can still be written to the log's disk.", (), self._ask(self.stores.free_bytes))
        gauge("pending_bytes", "Bytes of payload that wait for the disk.", (), self._ask(self.pending_bytes))
        gauge("devices_connected", "Devices with a connection.", (), self._ask(lambda: self.presence.connected))
        gauge("ready", "Whether the gateway takes uploads for all its partitions.", (), self._ask(self.ready))
        gauge(
            "partition_state",
            "Partitions written here, by state.",
            ("partition", "state"),
            lambda: {(str(number), writer.state.value): 1 for number, writer in list(log.writers.items())},
        )
        gauge(
            "log_end_offset",
            "The offset after the last durable entry, by partition.",
            ("partition",),
            lambda: {(str(number),): writer.partition.end for number, writer in list(log.writers.items())},
        )
        gauge(
            "log_groups",
            "Groups committed since this gateway took the partition, which is syncs.",
            ("partition",),
            lambda: {(str(number),): writer.groups for number, writer in list(log.writers.items())},
        )
        gauge(
            "reader_lag_seconds",
            "How long the oldest entry that not every reader confirmed has waited, by partition.",
            ("partition",),
            lambda: {(str(number),): lag.behind_us(now_us=self.clock_us()) / 1e6 for number, lag in self._lags.items()},
        )
        gauge(
            "log_held_bytes",
            "What a reader keeps of the log from being deleted, in the partitions written here; (nobody): what is kept "
            "because no reader has confirmed anything.",
            ("reader",),
            lambda: {(reader,): held for reader, held in self._held.items()},
        )
        self.metrics.gauges += programs.gauges(self.options.data)
        gauge("results_waiting", "Results kept for devices.", (), self._ask(lambda: self.stores.downlink.size()[0]))

    @staticmethod
    def _ask(value: Callable[[], float]) -> Callable[[], dict[tuple[str, ...], float]]:
        return lambda: {(): float(value())}


def _answer(answers: list[tuple[Done, Outcome]]) -> None:
    for done, outcome in answers:
        done(outcome)


def _unheard(outcome: Outcome) -> None:
    """Presence that could not be logged shows in the partition's state; a later word of the device says it again."""
