"""The sending end of sync streams: which numbers go next, which are under way, and when to ask again.

Promises: numbers of a stream leave in order; those of a later epoch only when the earlier one is acknowledged whole, so
that a receiver can order epochs by first contact; nothing is counted as delivered before an acknowledgement says so.
Knows numbers and times it is given. Must not know payloads, stores, sockets or clocks: a driver fetches what the sender
asks for, and tells it what it sent. The same class serves a device for uploads and the gateway for results.

>>> sender, epoch = Sender(), Epoch(1, b"one nonc")
>>> sender.opened((), window_frames=2, now_us=0)
()
>>> sender.filled("fixes", epoch, 0)
>>> sender.sent("fixes", 100, now_us=5)
>>> sender.position("fixes")[1], sender.in_flight, sender.acknowledged((Mark("fixes", epoch, 100),), now_us=9)[0].upto
(100, 1, 100)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from catchment.sync.frame import Epoch, Mark
from catchment.sync.table import Machine, Rule, Table, Watch

PATIENCE_US = 30_000_000
"""After so long without an acknowledgement of something under way, the connection is taken for dead."""

EPOCHS_KEPT = 16
"""Of so many epochs per stream the sender remembers what was acknowledged; the store knows the rest."""

TABLE = Table(
    "sender",
    ("resting", "flowing", "draining"),
    (
        Rule(
            "filled", ("resting",), "there is something to send", "flowing", "start at its first unacknowledged number"
        ),
        Rule("sent", ("flowing", "draining"), "a frame left", "flowing", "it is under way; go on after it"),
        Rule("ended", ("flowing",), "the epoch has no more, and something is under way", "draining", "wait"),
        Rule(
            "ended and settled", ("flowing",), "the epoch has no more, and nothing is under way", "resting", "look anew"
        ),
        Rule(
            "acknowledged",
            ("flowing", "draining"),
            "an acknowledgement, more is under way",
            "",
            "forget below the mark",
        ),
        Rule("settled", ("draining",), "an acknowledgement of all that was under way", "resting", "forget; look anew"),
        Rule(
            "refused",
            ("flowing", "draining"),
            "a refusal with a mark [S410]",
            "flowing",
            "go back, or ahead, to the mark",
        ),
        Rule(
            "repeated refusal", ("flowing", "draining"), "the same refusal again", "", "ignore: it answers older frames"
        ),
        Rule(
            "reset",
            ("resting", "flowing", "draining"),
            "a connection opens or closes",
            "resting",
            "nothing is under way",
        ),
    ),
)
"""Per stream."""


class _Flight(NamedTuple):
    upto: int
    sent_us: int
    records: int
    size: int


class _Lane(Machine):
    """One stream."""

    def __init__(self, watch: Watch | None) -> None:
        super().__init__(TABLE, "resting", watch)
        self.epoch: Epoch | None = None
        self.next = 0
        self.acknowledged: dict[Epoch, int] = {}
        self.flights: deque[_Flight] = deque()
        self.went_back_to: int | None = None
        self.paused_until_us = 0

    def reset(self) -> None:
        if self.state != "resting" or self.flights:
            self.take("reset")
        self.epoch, self.went_back_to = None, None
        self.flights.clear()


class Sender:
    """The streams of one end. `resting`, `flowing` and `draining` streams are told apart by `state`."""

    def __init__(self, *, patience_us: int = PATIENCE_US, watch: Watch | None = None) -> None:
        self._lanes: dict[str, _Lane] = {}
        self._patience_us = patience_us
        self._watch = watch
        self._window_frames = 0

    # -- what the driver asks ------------------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        """Frames under way."""
        return sum(len(lane.flights) for lane in self._lanes.values())

    @property
    def has_room(self) -> bool:
        """Whether the window lets another frame go."""
        return self.in_flight < self._window_frames

    def state(self, stream: str) -> str:
        """Where the stream stands in the table."""
        return self._lane(stream).state

    def position(self, stream: str) -> tuple[Epoch, int] | None:
        """What goes next, or None while the stream rests."""
        lane = self._lane(stream)
        return None if lane.epoch is None else (lane.epoch, lane.next)

    def acknowledged_upto(self, stream: str, epoch: Epoch) -> int:
        """What the receiver has confirmed of an epoch since this sender was made."""
        return self._lane(stream).acknowledged.get(epoch, 0)

    def may_send(self, stream: str, now_us: int) -> bool:
        """Whether a frame of that stream may go now."""
        return self.has_room and now_us >= self._lane(stream).paused_until_us

    def under_way(self, stream: str) -> tuple[int, int]:
        """Elements and bytes of that stream that are under way."""
        flights = self._lane(stream).flights
        return sum(flight.records for flight in flights), sum(flight.size for flight in flights)

    def paused_until_us(self, stream: str) -> int:
        """Until when the receiver asked the stream to wait."""
        return self._lane(stream).paused_until_us

    @property
    def overdue_at_us(self) -> int | None:
        """When what is under way will have been for longer than patience allows: then connect anew."""
        sent = [lane.flights[0].sent_us for lane in self._lanes.values() if lane.flights]
        return min(sent) + self._patience_us if sent else None

    # -- what the driver tells -----------------------------------------------------------------------------------

    def opened(self, marks: Iterable[Mark], *, window_frames: int, now_us: int) -> tuple[Mark, ...]:
        """A connection is there, and so much is durable at the other end. Returns the marks that were news."""
        self.closed()
        self._window_frames = window_frames
        for lane in self._lanes.values():
            lane.paused_until_us = 0
        return self.acknowledged(marks, now_us=now_us)

    def closed(self) -> None:
        """The connection is gone, and with it the knowledge of what was under way."""
        self._window_frames = 0
        for lane in self._lanes.values():
            lane.reset()

    def renewed(self) -> None:
        """The store is another one, which may know less: whatever is durable at the other end is news again."""
        for lane in self._lanes.values():
            lane.reset()
            lane.acknowledged.clear()

    def filled(self, stream: str, epoch: Epoch, number: int) -> None:
        """From this number on there is something to send."""
        lane = self._lane(stream)
        lane.take("filled")
        # The store may forget later than it is told, when its disk is in trouble.
        lane.epoch, lane.next = epoch, max(number, lane.acknowledged.get(epoch, 0))
        lane.went_back_to = None

    def sent(self, stream: str, upto: int, *, now_us: int, records: int = 0, size: int = 0) -> None:
        """A frame from the position up to there has left, with so many elements of so many bytes in the store."""
        lane = self._lane(stream)
        lane.take("sent")
        lane.flights.append(_Flight(upto, now_us, records, size))
        lane.next = upto

    def ended(self, stream: str) -> None:
        """At the position, the epoch has nothing more to send at the moment."""
        lane = self._lane(stream)
        if lane.state == "draining":
            return
        if lane.flights:
            lane.take("ended")
        else:
            lane.take("ended and settled")
            lane.epoch = None

    def acknowledged(self, marks: Iterable[Mark], *, now_us: int) -> tuple[Mark, ...]:
        """So much is durable at the other end. Returns the marks that were news, for the store to forget."""
        return tuple([mark for mark in marks if self._acknowledged(mark, now_us)])

    def refused(self, mark: Mark, *, retry_at_us: int | None = None) -> None:
        """The receiver wants the stream from that mark on; with `retry_at_us`, not before."""
        lane = self._lane(mark.stream)
        if lane.epoch != mark.epoch:
            return
        if retry_at_us is not None:
            lane.paused_until_us = max(lane.paused_until_us, retry_at_us)
        elif lane.went_back_to == mark.upto:
            # Every frame that was behind the missing one is refused in the same words. One answer is enough; if the
            # frame that was sent again is lost too, patience ends the connection.
            lane.take("repeated refusal")
            return
        lane.take("refused")
        lane.went_back_to = lane.next = mark.upto
        lane.flights = deque([flight for flight in lane.flights if flight.upto <= mark.upto])

    def pause(self, stream: str, until_us: int) -> None:
        """Let the stream wait."""
        self._lane(stream).paused_until_us = until_us

    # -- how -----------------------------------------------------------------------------------------------------

    def _lane(self, stream: str) -> _Lane:
        lane = self._lanes.get(stream)
        if lane is None:
            lane = self._lanes[stream] = _Lane(self._watch)
        return lane

    def _acknowledged(self, mark: Mark, now_us: int) -> bool:
        lane = self._lane(mark.stream)
        if mark.upto <= lane.acknowledged.get(mark.epoch, 0):
            return False
        lane.acknowledged[mark.epoch] = mark.upto
        while len(lane.acknowledged) > EPOCHS_KEPT:
            del lane.acknowledged[next(iter(lane.acknowledged))]
        if lane.epoch == mark.epoch:
            before = len(lane.flights)
            while lane.flights and lane.flights[0].upto <= mark.upto:
                lane.flights.popleft()
            # Progress: what is left gets its full patience again.
            lane.flights = deque([flight._replace(sent_us=max(flight.sent_us, now_us)) for flight in lane.flights])
            # A receiver that is ahead has what a power cut took from here.
            lane.next = max(lane.next, mark.upto)
            if lane.went_back_to is not None and mark.upto > lane.went_back_to:
                lane.went_back_to = None
            if before and not lane.flights and lane.state == "draining":
                lane.take("settled")
                lane.epoch = None
            else:
                lane.take("acknowledged")
        return True
