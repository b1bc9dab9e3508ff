"""The network: what is sent may come late, twice, out of order, in part, or never, and links may be cut.

Three ways to send. `cast` is a datagram: each of those things may happen to it. `request` is one exchange over HTTP:
the request or its answer may be lost, an impatient proxy may deliver the request again much later, and after
`patience_us` the caller gives up. `connect` opens a connection: in order and whole until it breaks, and when it does,
what was under way is gone and each end hears of it in its own time, or never, if its machine is cut off.

Promises: everything follows from the seed and the conditions. Knows names, bytes and time; must not know frames.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from catchment.sim.clock import SECOND_US, Clock, Timer
from catchment.sim.coverage import Coverage
from catchment.sim.process import Process

FAULTS = (
    "delay",
    "loss",
    "duplicate",
    "reorder",
    "partition",
    "refused",
    "request lost",
    "answer lost",
    "request repeated late",
    "connection broken",
    "half open",
    "garbled",
)
"""What can happen here, as it is counted."""


BACKLOG_US = 120 * SECOND_US
"""So long a message that nobody waits for any more may lie before a process that stands still."""


class Conditions(msgspec.Struct, frozen=True):
    """How a link is at the moment. Shares are of messages."""

    delay_us: tuple[int, int] = (5_000, 80_000)
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    """So many messages take a much longer way."""
    detour_us: int = 30 * SECOND_US
    """How long that may be."""
    garble: float = 0.0
    """So many messages over a connection or a request arrive with a bit turned, as a broken proxy does it."""
    cut: bool = False


FINE = Conditions()


class Outcome(msgspec.Struct, frozen=True):
    """How a request ended: an answer, or none."""

    body: bytes | None
    why: str = ""


Reply: TypeAlias = Callable[[bytes], None]


class Listener(msgspec.Struct):
    """What a process offers at an address."""

    process: Process
    on_request: Callable[[bytes, Reply], object]
    on_connection: Callable[[Wire], object]


class Network:
    """All links of a world."""

    def __init__(self, clock: Clock, luck: random.Random, coverage: Coverage) -> None:
        self._clock = clock
        self._luck = luck
        self._coverage = coverage
        self._conditions: dict[frozenset[str], Conditions] = {}
        self._listeners: dict[str, Listener] = {}
        self.usual = FINE
        """How links are for which nothing else is set."""

    # -- how links are ---------------------------------------------------------------------------------------------

    def set(self, one: str, other: str, conditions: Conditions | None) -> None:
        """From now on the link between two places is like that; None for as usual."""
        key = frozenset((one, other))
        if conditions is None:
            self._conditions.pop(key, None)
        else:
            self._conditions[key] = conditions

    def between(self, one: str, other: str) -> Conditions:
        """How that link is."""
        return self._conditions.get(frozenset((one, other)), self.usual)

    def heal(self) -> None:
        """Every link works from now on."""
        self._conditions.clear()
        self.usual = FINE

    # -- sending ---------------------------------------------------------------------------------------------------

    def listen(self, address: str, listener: Listener) -> None:
        """Answer at an address, until the process ends."""
        self._listeners[address] = listener

        def close() -> None:
            if self._listeners.get(address) is listener:
                del self._listeners[address]

        listener.process.at_end(close)

    def cast(self, sender: Process, source: str, target: str, arrive: Callable[[], object], at: Process) -> None:
        """Send a datagram: `arrive` happens at the other process, once, or not, or twice."""
        sender.act()
        link, luck = self.between(source, target), self._luck
        if link.cut:
            self._coverage.hit("network", "partition")
            return
        if luck.random() < link.loss:
            self._coverage.hit("network", "loss")
            return
        self._clock.after(self._delay(link), arrive, at.strand)
        if luck.random() < link.duplicate:
            self._coverage.hit("network", "duplicate")
            self._clock.after(self._delay(link), arrive, at.strand)

    def request(
        self,
        sender: Process,
        source: str,
        address: str,
        body: bytes,
        on_outcome: Callable[[Outcome], object],
        *,
        patience_us: int = 30 * SECOND_US,
    ) -> None:
        """One exchange. `on_outcome` is told exactly once, unless the sender ends before."""
        sender.act()
        told = False
        deadline: Timer | None = None

        def tell(outcome: Outcome) -> None:
            nonlocal told
            if not told:
                told = True
                if deadline is not None:
                    deadline.cancel()
                on_outcome(outcome)

        def answered(answer: bytes) -> None:
            back = self.between(source, address)
            if back.cut or self._luck.random() < back.loss:
                self._coverage.hit("network", "answer lost")
                return
            answer = self._garbled(back, answer)
            self._clock.after(self._delay(back), lambda: tell(Outcome(answer)), sender.strand)

        link = self.between(source, address)
        deadline = self._clock.after(patience_us, lambda: tell(Outcome(None, "no answer in time")), sender.strand)
        if link.cut or self._luck.random() < link.loss:
            self._coverage.hit("network", "partition" if link.cut else "request lost")
            return
        body = self._garbled(link, body)

        def arrive() -> None:
            listener = self._listeners.get(address)
            if listener is None:
                self._coverage.hit("network", "refused")
                self._clock.after(self._delay(link), lambda: tell(Outcome(None, "connection refused")), sender.strand)
                return

            def hand_over() -> None:
                # What waited for a process that stood still is closed by its sender and dropped by the kernel in time.
                if not told or self._clock.now_us - sent_us < BACKLOG_US:
                    listener.on_request(body, answered)

            self._clock.after(0, hand_over, listener.process.strand)

        sent_us = self._clock.now_us
        self._clock.after(self._delay(link), arrive)
        if self._luck.random() < link.duplicate:
            self._coverage.hit("network", "request repeated late")
            self._clock.after(self._luck.randint(1, link.detour_us), arrive)

    def connect(
        self,
        sender: Process,
        source: str,
        address: str,
        on_open: Callable[[Wire], object],
        on_failure: Callable[[str], object],
        *,
        patience_us: int = 10 * SECOND_US,
    ) -> None:
        """Open a connection: one of the two is called, once, unless the sender ends before."""
        sender.act()
        link = self.between(source, address)
        if link.cut or self._luck.random() < link.loss:
            self._coverage.hit("network", "partition" if link.cut else "loss")
            self._clock.after(patience_us, lambda: on_failure("no answer in time"), sender.strand)
            return

        def arrive() -> None:
            listener = self._listeners.get(address)
            if listener is None:
                self._coverage.hit("network", "refused")
                self._clock.after(self._delay(link), lambda: on_failure("connection refused"), sender.strand)
                return
            here, there = Wire(self, sender, source, address), Wire(self, listener.process, source, address)
            here.other, there.other = there, here

            def hand_over() -> None:
                if here.is_open or self._clock.now_us - sent_us < BACKLOG_US:
                    listener.on_connection(there)

            self._clock.after(0, hand_over, listener.process.strand)
            self._clock.after(self._delay(link), lambda: on_open(here), sender.strand)

        sent_us = self._clock.now_us
        self._clock.after(self._delay(link), arrive)

    # -- how -------------------------------------------------------------------------------------------------------

    def _delay(self, link: Conditions) -> int:
        least_us, most_us = link.delay_us
        delay_us = self._luck.randint(least_us, most_us)
        if link.reorder and self._luck.random() < link.reorder:
            self._coverage.hit("network", "reorder")
            delay_us += self._luck.randint(0, link.detour_us)
        if delay_us > SECOND_US:
            self._coverage.hit("network", "delay")
        return delay_us

    def _garbled(self, link: Conditions, body: bytes) -> bytes:
        if not link.garble or not body or self._luck.random() >= link.garble:
            return body
        self._coverage.hit("network", "garbled")
        turned = bytearray(body)
        turned[self._luck.randrange(len(turned))] ^= 1 << self._luck.randrange(8)
        return bytes(turned)

    def carry(self, wire: Wire, body: bytes) -> None:
        """A message over a connection."""
        link, other = self.between(wire.source, wire.address), wire.other
        if link.cut or self._luck.random() < link.loss:
            # Nothing comes through any more. The sender notices when its kernel has tried for long enough.
            self._coverage.hit("network", "connection broken")
            wire.broken = other.broken = True
            self.hang_up(wire, self._luck.randint(SECOND_US, 60 * SECOND_US))
            if self._luck.random() < 0.5:
                self.hang_up(other, self._luck.randint(SECOND_US, 60 * SECOND_US))
            else:
                self._coverage.hit("network", "half open")
            return
        body = self._garbled(link, body)
        wire.clear_us = max(wire.clear_us, self._clock.now_us + self._delay(link))
        self._clock.at(wire.clear_us, lambda: other.arrive(body), other.process.strand)

    def close(self, wire: Wire) -> None:
        """One end closes: the other hears of it behind everything that was sent, if the link is there."""
        link, other = self.between(wire.source, wire.address), wire.other
        if wire.broken:
            return
        if link.cut:
            self._coverage.hit("network", "half open")
            wire.broken = other.broken = True
            return
        wire.clear_us = max(wire.clear_us, self._clock.now_us + self._delay(link))
        self._clock.at(wire.clear_us, other.hung_up, other.process.strand)

    def hang_up(self, wire: Wire, delay_us: int) -> None:
        """One end hears that the connection is gone."""
        self._clock.after(delay_us, wire.hung_up, wire.process.strand)


class Wire:
    """One end of a connection."""

    def __init__(self, network: Network, process: Process, source: str, address: str) -> None:
        self.process = process
        self.source = source
        self.address = address
        self.other: Wire = self
        self.broken = False
        """Nothing comes through any more, whether or not this end knows."""
        self.is_open = True
        """As far as this end knows."""
        self.clear_us = 0
        """When what this end sent has arrived: what it sends later arrives later."""
        self.on_message: Callable[[bytes], object] = _ignore
        self.on_close: Callable[[], object] = lambda: None
        self._network = network
        self._early: list[bytes] = []
        process.at_end(self._process_ended)

    def listen(self, on_message: Callable[[bytes], object], on_close: Callable[[], object]) -> None:
        """Hear what comes, also what came before this."""
        self.on_message, self.on_close = on_message, on_close
        early, self._early = self._early, []
        for body in early:
            on_message(body)

    def send(self, body: bytes) -> None:
        """Send a message; lost if the connection turns out to be gone."""
        self.process.act()
        if self.is_open and not self.broken:
            self._network.carry(self, body)

    def close(self) -> None:
        """Let go of it."""
        if self.is_open:
            self.is_open = False
            self._network.close(self)

    def arrive(self, body: bytes) -> None:
        """A message of the other end is here."""
        if not self.is_open or self.broken:
            return
        if self.on_message is _ignore:
            self._early.append(body)
        else:
            self.on_message(body)

    def hung_up(self) -> None:
        """The connection is gone."""
        if self.is_open:
            self.is_open = False
            self.on_close()

    def _process_ended(self) -> None:
        # The kernel closes what a dead process had open; a machine without power closes nothing.
        if self.is_open and self.process.lost_power:
            self.is_open, self.broken, self.other.broken = False, True, True
        self.close()


def _ignore(body: bytes) -> None:
    """Before anybody listens."""
