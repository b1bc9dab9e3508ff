"""A device's way to its gateways, for one life: a connection, or one post after the other, by what the exchange says.

It does what a device's transport and correspondent do: connects, sends what is due, wakes when the exchange asks to be
woken, and after parting tries again when and where it was told. Knows no outbox: its holder looks after what is kept.
"""

from __future__ import annotations

import random
from typing import Protocol

from catchment.sim.asgi import split
from catchment.sim.clock import SECOND_US, Clock, Timer
from catchment.sim.coverage import Coverage
from catchment.sim.network import Network, Outcome, Wire
from catchment.sim.process import Process
from catchment.sync.exchange import Exchange
from catchment.sync.happening import Arrived, Happening, Told, Trouble
from catchment.sync.session import Clocks, Joined, Parted


class Holder(Protocol):
    """Whose way it is."""

    def clocks(self) -> Clocks:
        """What its clocks say now."""
        ...

    def reading_us(self) -> int:
        """Its boot clock."""
        ...

    def acted(self) -> None:
        """It has done something."""
        ...

    def told(self, told: Told) -> None:
        """What a gateway says beside acknowledging."""
        ...

    def results_came(self) -> None:
        """Results are there to be read."""
        ...

    def in_trouble(self, trouble: Trouble) -> None:
        """It was told what it did wrong."""
        ...


class Link:
    """See the module."""

    def __init__(
        self,
        process: Process,
        exchange: Exchange,
        holder: Holder,
        *,
        clock: Clock,
        network: Network,
        place: str,
        addresses: tuple[str, ...],
        by_post: bool,
        luck: random.Random,
        coverage: Coverage,
    ) -> None:
        self._process = process
        self._exchange = exchange
        self._holder = holder
        self._clock = clock
        self._network = network
        self._place = place
        self._addresses = addresses
        self._address = addresses[0]
        self._by_post = by_post
        self._luck = luck
        self._coverage = coverage
        self._wire: Wire | None = None
        self._busy = False
        self._failures = 0
        self._retry: Timer | None = None
        self._due: Timer | None = None

    def how_it_is(self) -> str:
        """For people."""
        return f"{'a wire' if self._wire else 'no wire'}, {'will' if self._retry else 'will not'} try again"

    def connect(self) -> None:
        """Begin to talk, unless that has begun."""
        if self._wire is not None or self._busy:
            return
        if self._by_post:
            self._begin_post()
            return
        self._busy = True
        self._network.connect(self._process, self._place, self._address, self._opened, self._failed)

    def pump(self) -> None:
        """Send what is due, and plan when to look again."""
        if not self._process.alive:
            return
        exchange, holder = self._exchange, self._holder
        self._act(exchange.due(holder.clocks()))
        wire = self._wire
        if wire is not None:
            while wire is self._wire and (message := exchange.outgoing(holder.clocks())):
                wire.send(message)
        elif self._by_post and not self._busy and self._retry is None:
            self._begin_post()
        self._plan_due()
        holder.acted()

    @property
    def is_joined(self) -> bool:
        """Whether there is a connection on which the device was welcomed."""
        return self._wire is not None and self._exchange.session.is_joined

    def say(self, message: bytes) -> None:
        """Send something that the exchange knows nothing of, if there is a connection."""
        if self._wire is not None:
            self._wire.send(message)

    def leave(self, sleep_us: int) -> None:
        """Say goodbye, and for how long."""
        wire = self._wire
        last = self._exchange.leave(self._holder.clocks(), reason="asked to", sleep_us=sleep_us)
        if wire is not None and last:
            wire.send(last)

    # -- a connection ----------------------------------------------------------------------------------------------

    def _opened(self, wire: Wire) -> None:
        self._busy, self._wire, self._failures = False, wire, 0
        wire.listen(lambda body: self._heard(wire, body), lambda: self._closed(wire))
        self._act(self._exchange.connected(self._holder.clocks()))
        self.pump()

    def _failed(self, why: str) -> None:
        self._busy = False
        self._failures += 1
        longest_us = min(300 * SECOND_US, 10 * SECOND_US << min(self._failures, 10))
        self._retry_at(self._holder.reading_us() + self._luck.randint(SECOND_US, longest_us), "")

    def _heard(self, wire: Wire, body: bytes) -> None:
        if wire is self._wire:
            self._act(self._exchange.received(body, self._holder.clocks()))
            self.pump()

    def _closed(self, wire: Wire) -> None:
        if wire is self._wire:
            self._wire = None
            self._act(self._exchange.disconnected(self._holder.reading_us()))

    # -- posts -----------------------------------------------------------------------------------------------------

    def _begin_post(self) -> None:
        exchange = self._exchange
        if self._busy or exchange.session.state not in {"apart", "barred"}:
            return
        self._act(exchange.connected(self._holder.clocks()))
        self._post(exchange.outgoing(self._holder.clocks()))

    def _post(self, message: bytes) -> None:
        self._busy = True
        self._network.request(self._process, self._place, self._address, message, self._answered)

    def _answered(self, outcome: Outcome) -> None:
        self._busy = False
        exchange = self._exchange
        status, body = (0, b"") if outcome.body is None else split(outcome.body)
        if status != 200:
            if status:
                self._coverage.hit("device", f"HTTP status {status}")
            self._act(exchange.disconnected(self._holder.reading_us()))
            if self._retry is None:
                # It was given up before, and its time to be tried again came while this was still awaited.
                self._retry_soon()
            return
        self._act(exchange.received(body, self._holder.clocks()))
        if exchange.session.state == "proving":
            self._post(exchange.outgoing(self._holder.clocks()))
            return
        exchange.finished(self._holder.reading_us())
        if self._retry is None:
            self._retry_soon()
        self._holder.acted()

    # -- both ------------------------------------------------------------------------------------------------------

    def _plan_due(self) -> None:
        wake_us = self._exchange.wake_at_us(self._holder.clocks())
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if wake_us is not None:
            # The boot clock drifts against the true one: a little later is never early.
            delay_us = (wake_us - self._holder.reading_us()) * 1_001 // 1_000 + 1
            self._due = self._clock.after(delay_us, self._look, self._process.strand)

    def _look(self) -> None:
        self._due = None
        self.pump()

    def _retry_soon(self) -> None:
        self._retry_at(self._holder.reading_us() + self._luck.randint(SECOND_US // 2, 10 * SECOND_US), "")

    def _retry_at(self, reading_us: int, gateway: str) -> None:
        self._address = gateway if gateway in self._addresses else self._luck.choice(self._addresses)
        if self._retry is not None:
            self._retry.cancel()
        delay_us = max(0, reading_us - self._holder.reading_us()) + self._luck.randint(0, SECOND_US)
        self._retry = self._clock.after(delay_us, self._again, self._process.strand)

    def _again(self) -> None:
        self._retry = None
        self.connect()

    def _act(self, happenings: list[Happening]) -> None:
        for happening in happenings:
            match happening:
                case Parted():
                    wire, self._wire = self._wire, None
                    if wire is not None:
                        wire.close()
                    self._retry_at(happening.retry_at_us, happening.gateway)
                case Told():
                    self._holder.told(happening)
                case Arrived():
                    self._holder.results_came()
                case Joined():
                    self._coverage.hit("device", "joined by post" if self._by_post else "joined")
                case Trouble():
                    self._holder.in_trouble(happening)
                case _:
                    self._coverage.hit("device", f"heard {type(happening).__name__}")
