"""A device's end of all its sync streams: conversation, uploads and results put together.

Promises: what `outgoing` gives is all that a transport has to carry, what `received` takes is all that it brings, and
in between nothing is lost, repeated or reordered, whichever of the two fails and whenever the process dies. Knows the
time when it is told. Must not know sockets, clocks, or what the program does with results.

A driver connects a transport and calls `connected`; then, for every message, `received`, and whenever something was
appended, received or due, `outgoing` until it is empty; `wake_at_us` says when that is without being asked. Over
HTTP, one exchange is `connected`, one `outgoing`, the answer's `received`, and `finished`; an eager one may send data
beside its hello once it was welcomed, as long as it is answered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from catchment.errors import PeerError
from catchment.program.sync import NOTIFY, Sync
from catchment.program.types import Row, Schema
from catchment.sync.downlink import RETRY_US, Downlink
from catchment.sync.frame import (
    Ack,
    Data,
    Error,
    Frame,
    Mark,
    Offset,
    PlanOffer,
    Pressure,
    decode_all,
    encode,
    encode_all,
)
from catchment.sync.happening import Happening, Noticed, PlanArrived, Told, Trouble, trouble
from catchment.sync.intake import Intake
from catchment.sync.outbox import Outbox, OutboxError
from catchment.sync.receiver import SUPERSEDED
from catchment.sync.session import Action, Clocks, Identity, Joined, Parted, Send, Session
from catchment.sync.table import Watch
from catchment.sync.uplink import Uplink

MESSAGE_BYTES = 256 * 1024
"""A message is closed once it has so many bytes."""


class Exchange:
    """See the module."""

    def __init__(
        self,
        outbox: Outbox,
        identity: Identity,
        *,
        fresh_nonce: Callable[[], bytes],
        jitter: Callable[[], float] = lambda: 1.0,
        eager: bool = False,
        watch: Watch | None = None,
    ) -> None:
        self.outbox = outbox
        self.session = Session(identity, fresh_nonce=fresh_nonce, jitter=jitter, watch=watch)
        self.uplink = Uplink(outbox, watch)
        self.downlink = Downlink(outbox, watch)
        self._eager = eager
        self._openings = outbox.openings
        self._queued: list[Frame] = []
        self._troubles: list[Happening] = []
        self._plan_parts: dict[tuple[str, int], bytes] = {}

    # -- streams -------------------------------------------------------------------------------------------------

    def up(self, stream: str, schema: Schema, policy: Sync, *, now_us: int = 0) -> Intake:
        """A stream of uploads. What earlier starts left of it goes out by this policy too."""
        return self.uplink.add(stream, schema, policy, now_us)

    def change(self, stream: str, policy: Sync) -> None:
        """Follow another policy from now on."""
        self.uplink.intakes[stream].change(policy)

    def down(self, stream: str, schemas: Sequence[Schema], *, key: Callable[[Row], bytes] | None = None) -> None:
        """A stream of results, in any of these shapes. With `key`, only the latest of each key is kept."""
        self.downlink.add(stream, schemas, key)

    # -- the link ------------------------------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        """Whether a gateway is there, as the program may see it."""
        return self.uplink.link.connected

    def metered(self, is_metered: bool) -> None:
        """What the system says of the link it uses."""
        self.uplink.link = msgspec.structs.replace(self.uplink.link, metered=is_metered)

    def connected(self, clocks: Clocks, *, plan: str = "") -> list[Happening]:
        """A transport to a gateway is there."""
        epoch = self.outbox.epoch
        if epoch is None:
            return [
                Trouble("S432", "the outbox cannot be written", "make its directory writable, or free some space"),
                Parted(clocks.reading_us + RETRY_US),
            ]
        if self._openings != self.outbox.openings:
            self._openings = self.outbox.openings
            self.uplink.sender.renewed()
        self._queued.clear()
        happenings = self._act(self.session.connected(epoch, clocks, plan=plan, marks=self.downlink.begin()), clocks)
        if self._eager and self.session.expects_welcome:
            happenings.extend(self._open((), clocks))
        return happenings

    def disconnected(self, now_us: int) -> list[Happening]:
        """The transport is gone."""
        parted = [action for action in self.session.disconnected(now_us) if isinstance(action, Parted)]
        return [*self._close(now_us), *parted]

    def finished(self, now_us: int) -> None:
        """A single exchange is over, such as an HTTP request that was answered. The link is as good as before."""
        self.uplink.closed(now_us, away=False)
        self._queued.clear()
        self.session.finished()

    def leave(self, clocks: Clocks, *, reason: str = "", sleep_us: int | None = None) -> bytes:
        """Let filters go of what they hold, and say goodbye: the last message."""
        for intake in self.uplink.intakes.values():
            intake.release()
        last = self.outgoing(clocks)
        actions = self.session.leave(clocks.reading_us, reason=reason, sleep_us=sleep_us)
        self._close(clocks.reading_us)
        return last + encode_all([action.frame for action in actions if isinstance(action, Send)])

    # -- messages ------------------------------------------------------------------------------------------------

    def received(self, message: bytes, clocks: Clocks) -> list[Happening]:
        """A message from the gateway."""
        happenings: list[Happening] = []
        results: list[Data] = []
        unsound: PeerError | None = None
        try:
            for frame in decode_all(message):
                if isinstance(frame, Data):
                    results.append(frame)
                else:
                    happenings.extend(self._heard(frame, clocks))
        except PeerError as error:
            unsound = error
        # What came before an unsound frame is good; what comes after it cannot be told from noise.
        answers, arrived = self.downlink.take(results)
        self._queued.extend(answers)
        happenings.extend(arrived)
        if unsound is not None:
            happenings.extend([trouble(unsound), *self.disconnected(clocks.reading_us)])
        return happenings

    def outgoing(self, clocks: Clocks) -> bytes:
        """The next message to send; empty when there is nothing to say for now."""
        message = encode_all(self._queued)
        self._queued.clear()
        welcome = self.session.welcome
        if welcome is None or not self._may_send or self._openings != self.outbox.openings:
            return message
        try:
            frames = self.uplink.frames(welcome, clocks, MESSAGE_BYTES - len(message))
        except OutboxError as failure:
            # Damage found while reading: the outbox is another by now, which `due` will see.
            self._troubles.append(trouble(failure))
            return message
        promises = self.uplink.promises(clocks)
        # A connection beats now and then; beside the hello of a single exchange, promises are news each time. Beside it
        # only: a driver asks until there is nothing more to say.
        is_time = clocks.reading_us >= self.session.beat_at_us if self.session.is_joined else bool(promises and message)
        if frames or is_time:
            beat = msgspec.structs.replace(self.session.stamp(clocks), promises=promises)
            message += encode(beat) + b"".join(frames)
        return message

    def due(self, clocks: Clocks) -> list[Happening]:
        """What time alone brings: filters that have held long enough, a connection that has gone quiet."""
        for intake in self.uplink.intakes.values():
            at_us = intake.release_at_us()
            if at_us is not None and clocks.reading_us >= at_us:
                intake.release()
        waiting = [self.uplink.sender.overdue_at_us, self.session.overdue_at_us]
        is_quiet = any(at_us is not None and clocks.reading_us >= at_us for at_us in waiting)
        # An outbox that was opened anew has another epoch: the gateway has to be told by another hello.
        happenings, self._troubles = self._troubles, []
        if is_quiet or self._openings != self.outbox.openings:
            happenings.extend(self.disconnected(clocks.reading_us))
        return happenings

    def wake_at_us(self, clocks: Clocks) -> int | None:
        """The reading at which `due` and `outgoing` have something to do, if nothing happens before."""
        times = [intake.release_at_us() for intake in self.uplink.intakes.values()]
        times.append(self.session.overdue_at_us)
        if self._may_send:
            times.extend([self.session.beat_at_us, self.uplink.sender.overdue_at_us, *self.uplink.wake_times(clocks)])
        return min([at_us for at_us in times if at_us is not None and at_us > clocks.reading_us], default=None)

    # -- how -----------------------------------------------------------------------------------------------------

    @property
    def _may_send(self) -> bool:
        return self.session.is_joined or (
            self._eager and self.session.expects_welcome and self.session.state == "greeting"
        )

    def _heard(self, frame: Frame, clocks: Clocks) -> list[Happening]:
        match frame:
            case Ack():
                self.uplink.acknowledged(self.uplink.sender.acknowledged(frame.marks, now_us=clocks.reading_us))
                return _told(frame.offset, frame.pressure)
            case Error(code=code, mark=Mark() as mark) if code == SUPERSEDED:
                return [trouble(frame), *self._superseded(mark)]
            case Error(mark=Mark() as mark):
                retry_at_us = clocks.reading_us + frame.retry_after_us if frame.retry_after_us else None
                self.uplink.sender.refused(mark, retry_at_us=retry_at_us)
                return [trouble(frame)]
            case PlanOffer():
                return self._plan(frame)
            case _:
                return self._act(self.session.heard(frame, clocks), clocks)

    def _superseded(self, ended: Mark) -> list[Happening]:
        """An epoch is over: number what it has left anew. `due` sees the other epoch and greets with it."""
        try:
            self.outbox.supersede(ended)
        except OutboxError as failure:
            return [trouble(failure)]
        return []

    def _act(self, actions: Sequence[Action], clocks: Clocks) -> list[Happening]:
        happenings: list[Happening] = []
        for action in actions:
            match action:
                case Send():
                    self._queued.append(action.frame)
                case Joined():
                    happenings.extend([action, *self._open(action.welcome.marks, clocks)])
                    happenings.extend(_told(action.welcome.offset, action.welcome.pressure))
                case Parted():
                    happenings.extend([] if action.error is None else [trouble(action.error)])
                    happenings.extend([*self._close(clocks.reading_us), action])
        return happenings

    def _open(self, marks: Sequence[Mark], clocks: Clocks) -> list[Happening]:
        was_connected, welcome = self.is_connected, self.session.welcome
        assert welcome is not None
        self.uplink.opened(welcome, marks, clocks.reading_us)
        return [] if was_connected else self._notices()

    def _close(self, now_us: int) -> list[Happening]:
        was_connected = self.is_connected
        self.uplink.closed(now_us)
        self._queued.clear()
        return self._notices() if was_connected else []

    def _notices(self) -> list[Happening]:
        return [
            Noticed(stream, self.is_connected)
            for stream, intake in self.uplink.intakes.items()
            if intake.policy.on_disconnect == NOTIFY
        ]

    def _plan(self, offer: PlanOffer) -> list[Happening]:
        """Gather the parts of a plan; those of another are of no use any more."""
        self._plan_parts = {key: part for key, part in self._plan_parts.items() if key[0] == offer.fingerprint}
        self._plan_parts[offer.fingerprint, offer.part] = offer.payload
        if any((offer.fingerprint, index) not in self._plan_parts for index in range(offer.parts)):
            return []
        whole = b"".join([self._plan_parts[offer.fingerprint, index] for index in range(offer.parts)])
        self._plan_parts.clear()
        return [PlanArrived(offer.fingerprint, whole)]


def _told(offset: Offset | None, pressure: Pressure | None) -> list[Happening]:
    return [] if offset is None and pressure is None else [Told(offset, pressure)]


__all__ = ["Clocks", "Exchange", "Identity", "Joined", "Parted"]
