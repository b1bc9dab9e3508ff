"""A device's conversation with a gateway: greeting, proof of life, moves, refusals, signs of life, goodbye.

Promises: credentials go out in the first frame and nowhere else; nothing is sent before a gateway welcomed this start
of the device, unless it welcomed it before and the driver is eager; a gateway that refuses is asked again only when it
allows. Knows times and nonces it is given. Must not know streams' contents, stores, sockets or clocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from catchment.sync.frame import VERSIONS, Beat, Bye, Epoch, Error, Frame, Hello, Mark, Moved, Welcome
from catchment.sync.table import Machine, Rule, Table, Watch

BACK_OFF_US = 1_000_000
BACK_OFF_US_MAX = 300_000_000
BARRED_US = 3_600_000_000
"""A refusal that names no time to try again is tried again after this: somebody may have put it right."""
ANSWER_US = 30_000_000
"""A hello that has no answer by then gets none."""
BEAT_US = 60_000_000
"""With nothing else to say, a connection shows signs of life this often."""

TABLE = Table(
    "session",
    ("apart", "greeting", "proving", "joined", "barred"),
    (
        Rule("connect", ("apart", "barred"), "a transport is there", "greeting", "say hello"),
        Rule("welcome", ("greeting", "proving"), "a welcome for this hello", "joined", "resume from its marks"),
        Rule("challenge", ("greeting",), "a challenge", "proving", "say hello again with it"),
        Rule("challenge again", ("proving",), "another challenge", "", "say hello again with the newer one"),
        Rule("moved", ("greeting", "proving", "joined"), "a moved", "apart", "connect to the gateway that it names"),
        Rule("refused", ("greeting", "proving", "joined"), "an error, with a time", "apart", "try again at that time"),
        Rule("barred", ("greeting", "proving"), "an error, without a time", "barred", "try again in an hour"),
        Rule("rebuked", ("joined",), "an error, without a time", "apart", "try again, ever less often"),
        Rule("bye", ("greeting", "proving", "joined"), "a bye from the gateway", "apart", "try again soon"),
        Rule("lost", ("greeting", "proving", "joined"), "the transport is gone", "apart", "try again, ever less often"),
        Rule(
            "finished", ("greeting", "proving", "joined"), "a single exchange is over", "apart", "connect when needed"
        ),
        Rule("leave", ("greeting", "proving", "joined"), "the device stops", "apart", "say bye"),
        Rule(
            "stale", ("apart", "greeting", "proving", "joined", "barred"), "an answer to another hello", "", "ignore it"
        ),
    ),
)


class Identity(msgspec.Struct, frozen=True):
    """Who this device is, and what it can do. `versions` and the like are offered, the best first."""

    device: str
    credential: str
    codecs: tuple[str, ...] = ("none",)
    compressions: tuple[str, ...] = ("deflate",)
    versions: tuple[int, ...] = VERSIONS


class Clocks(msgspec.Struct, frozen=True):
    """What the clocks of the device say at the moment a message leaves."""

    session: bytes
    reading_us: int
    wall_us: int | None = None
    """The wall clock less the boot clock."""


class Send(msgspec.Struct, frozen=True):
    """Put this frame on the transport."""

    frame: Frame


class Joined(msgspec.Struct, frozen=True):
    """The gateway welcomed us: resume from its marks."""

    welcome: Welcome


class Parted(msgspec.Struct, frozen=True):
    """Let go of the transport. Connect again at that reading; to that gateway, where one is named."""

    retry_at_us: int
    gateway: str = ""
    error: Error | None = None


Action: TypeAlias = Send | Joined | Parted


class Session(Machine):
    """The device's end. Data, acknowledgements and refusals with a mark are not its business: see `Sender`."""

    def __init__(
        self,
        identity: Identity,
        *,
        fresh_nonce: Callable[[], bytes],
        jitter: Callable[[], float] = lambda: 1.0,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(TABLE, "apart", watch)
        self.identity = identity
        self.welcome: Welcome | None = None
        """What was agreed last."""
        self._fresh_nonce = fresh_nonce
        self._jitter = jitter
        self._epoch: Epoch | None = None
        self._nonce = b""
        self._token = b""
        self._attempts = 0
        self._hello: Hello | None = None
        self._said_us = 0

    @property
    def is_joined(self) -> bool:
        """Whether the gateway has welcomed us on this connection."""
        return self.state == "joined"

    @property
    def was_joined(self) -> bool:
        """Whether a gateway has welcomed this start of the device before."""
        return self.welcome is not None and bool(self._token)

    @property
    def expects_welcome(self) -> bool:
        """Whether an eager device need not wait for one: it was welcomed before, and the last attempt did not fail.

        While nobody answers, a hello goes alone: what has gathered in hours would be paid for with every attempt.
        """
        return self.was_joined and not self._attempts

    def connected(self, epoch: Epoch, clocks: Clocks, *, plan: str = "", marks: tuple[Mark, ...] = ()) -> list[Action]:
        """A transport is there: the hello to begin with."""
        self.take("connect")
        if epoch != self._epoch:
            # Another start: it has no history with anyone.
            self._epoch, self._nonce, self._token, self.welcome = epoch, b"", b"", None
        if not self._nonce:
            self._nonce = self._fresh_nonce()
        who = self.identity
        self._hello = Hello(
            device=who.device,
            credential=who.credential,
            epoch=epoch,
            nonce=self._nonce,
            token=self._token,
            versions=who.versions,
            codecs=who.codecs,
            compressions=who.compressions,
            plan=plan,
            session=clocks.session,
            reading_us=clocks.reading_us,
            wall_us=clocks.wall_us,
            marks=marks,
        )
        self._said_us = clocks.reading_us
        return [Send(self._hello)]

    def disconnected(self, now_us: int) -> list[Action]:
        """The transport is gone."""
        if self.state in {"apart", "barred"}:
            return []
        self.take("lost")
        return [Parted(self._later(now_us))]

    def finished(self) -> None:
        """A transport that carries one exchange has carried it: an HTTP request was answered. Nothing is wrong."""
        if self.state not in {"apart", "barred"}:
            self.take("finished")

    def leave(self, now_us: int, *, reason: str = "", sleep_us: int | None = None) -> list[Action]:
        """Stop in good order."""
        if self.state in {"apart", "barred"}:
            return []
        self.take("leave")
        return [Send(Bye(reason, sleep_us)), Parted(now_us + (sleep_us or 0))]

    def heard(self, frame: Frame, clocks: Clocks) -> list[Action]:
        """A frame from the gateway about the conversation itself; of any other, nothing follows here."""
        if not isinstance(frame, Welcome | Error | Moved | Bye):
            return []
        if self.state in {"apart", "barred"}:
            self.take("stale")
            return []
        match frame:
            case Welcome():
                return self._welcomed(frame, clocks)
            case Error():
                return self._refused(frame, clocks.reading_us)
            case Moved():
                self.take("moved")
                return [Parted(clocks.reading_us + frame.retry_after_us, frame.gateway)]
            case Bye():
                self.take("bye")
                return [Parted(clocks.reading_us + (frame.sleep_us or BACK_OFF_US))]

    @property
    def overdue_at_us(self) -> int | None:
        """When a hello has waited too long for its answer: the connection is taken for dead."""
        return self._said_us + ANSWER_US if self.state in {"greeting", "proving"} else None

    @property
    def beat_at_us(self) -> int:
        """When a sign of life is due, if nothing else is said."""
        return self._said_us + BEAT_US

    def stamp(self, clocks: Clocks) -> Beat:
        """What a message begins with: the boot clock as it leaves."""
        self._said_us = clocks.reading_us
        return Beat(clocks.session, clocks.reading_us, clocks.wall_us)

    def _welcomed(self, frame: Welcome, clocks: Clocks) -> list[Action]:
        if frame.nonce != self._nonce or self._hello is None or self.state == "joined":
            self.take("stale")
            return []
        if frame.challenge:
            self.take("challenge" if self.state == "greeting" else "challenge again")
            self._hello = msgspec.structs.replace(
                self._hello, token=frame.challenge, reading_us=clocks.reading_us, wall_us=clocks.wall_us
            )
            self._said_us = clocks.reading_us
            return [Send(self._hello)]
        self.take("welcome")
        self._token, self._nonce, self._attempts = frame.token, b"", 0
        self.welcome = frame
        return [Joined(frame)]

    def _refused(self, frame: Error, now_us: int) -> list[Action]:
        if frame.nonce and frame.nonce != self._nonce:
            self.take("stale")
            return []
        if frame.retry_after_us is None and self.state == "joined":
            self.take("rebuked")
            return [Parted(self._later(now_us), error=frame)]
        if frame.retry_after_us is None:
            self.take("barred")
            return [Parted(now_us + BARRED_US, error=frame)]
        self.take("refused")
        return [Parted(now_us + frame.retry_after_us, error=frame)]

    def _later(self, now_us: int) -> int:
        """Each attempt that fails doubles the wait, up to a limit; jitter keeps a fleet from coming back as one."""
        wait_us = min(BACK_OFF_US << min(self._attempts, 20), BACK_OFF_US_MAX)
        self._attempts += 1
        return now_us + int(wait_us * self._jitter())
