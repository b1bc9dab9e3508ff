"""A gateway's word on who speaks: one live copy of a device at a time, told from retries, restarts and late messages.

A device opens a new epoch at each start. Its hellos have a random nonce, which it keeps until it was welcomed, and
bring the token of its last welcome, which is the nonce that was welcomed. So a live copy, and nobody else, brings the
nonce that was admitted last, as the one or the other: its history is a chain, and whatever of it is lost, late or
repeated, the device is at its end or one step before. A hello that brings neither is a message that comes late, or
another live copy; a challenge tells which, for a message cannot answer. A new epoch has to answer one too before it
supersedes the last, since a late first hello of a start long gone would look the same.

Promises: a restart, a retry, a lost or repeated or reordered message never ends in quarantine; two copies that both
speak on always do, whether the second came from a restored backup, a cloned disk or a resumed snapshot. An Admission
lives as long as its gateway owns the device's partition, and no longer: what another gateway saw meanwhile is not in
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import msgspec

from catchment.errors import PeerError
from catchment.sync.frame import Epoch, Hello
from catchment.sync.table import Machine, Rule, Table, Watch

TABLE = Table(
    "admission",
    ("unheard", "admitted", "quarantined"),
    (
        Rule("adopt", ("unheard",), "a first hello ever, or one that answers its challenge", "admitted", "welcome"),
        Rule("return", ("admitted",), "a hello with the last token", "", "welcome with its nonce as token"),
        Rule("retry", ("admitted",), "a hello with the last nonce", "", "the same welcome again"),
        Rule("challenge", ("unheard", "admitted"), "any other hello", "", "challenge it"),
        Rule("supersede", ("admitted",), "an epoch never met answers its challenge", "", "welcome; it displaces"),
        Rule(
            "two copies", ("admitted",), "an epoch that was met answers its challenge", "quarantined", "refuse [S417]"
        ),
        Rule("turn away", ("quarantined",), "a hello", "", "refuse [S417]"),
        Rule("release", ("quarantined",), "a person says which copy may live", "unheard", "as if never heard"),
    ),
)
"""Per device."""
CHALLENGES_KEPT = 8
"""So many challenges wait for an answer at a time; one that was forgotten is given anew."""


class Admit(msgspec.Struct, frozen=True):
    """Welcome the device, with this token. Any other connection of it is over."""

    token: bytes
    supersedes: bool
    """Whether this is the first contact of an epoch."""


class Challenge(msgspec.Struct, frozen=True):
    """Ask whether there is anybody: a welcome with this challenge, and nothing else of the message is heeded."""

    challenge: bytes


class TurnAway(msgspec.Struct, frozen=True):
    """Refuse the device, durably, until somebody releases it."""

    error: PeerError
    news: bool
    """Whether this is the moment of finding out."""


Decision: TypeAlias = Admit | Challenge | TurnAway


class Admission(Machine):
    """One device at one gateway. `epochs` are those that the log has of it, in any order."""

    def __init__(
        self,
        *,
        fresh_token: Callable[[], bytes],
        epochs: Iterable[Epoch] = (),
        quarantined: bool = False,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(TABLE, "quarantined" if quarantined else "unheard", watch)
        self.epoch: Epoch | None = None
        """The epoch of the copy that was admitted last."""
        self._fresh_token = fresh_token
        self._met = set(epochs)
        self._nonce = b""
        self._asked: dict[bytes, Epoch] = {}

    def hello(self, frame: Hello) -> Decision:
        """What to answer."""
        if self.state == "quarantined":
            self.take("turn away")
            return TurnAway(_two_copies(frame.device), news=False)
        if self.state == "unheard" and (not self._met or self._answers(frame)):
            # Of several epochs in a log, the order of their data does not say which one is alive: an answer does.
            return self._admit("adopt", frame)
        if self.state == "admitted" and frame.epoch == self.epoch:
            if frame.nonce == self._nonce:
                self.take("retry")
                return Admit(self._nonce, supersedes=False)
            if frame.token == self._nonce:
                return self._admit("return", frame)
        if self.state == "admitted" and self._answers(frame):
            if frame.epoch not in self._met:
                return self._admit("supersede", frame)
            self.take("two copies")
            return TurnAway(_two_copies(frame.device), news=True)
        self.take("challenge")
        return Challenge(self._ask(frame))

    def release(self) -> None:
        """Somebody has seen to it that one copy is left."""
        self.take("release")
        self.epoch, self._nonce = None, b""
        self._asked.clear()

    def _ask(self, frame: Hello) -> bytes:
        while len(self._asked) >= CHALLENGES_KEPT:
            del self._asked[next(iter(self._asked))]
        challenge = self._fresh_token()
        self._asked[challenge] = frame.epoch
        return challenge

    def _answers(self, frame: Hello) -> bool:
        return self._asked.get(frame.token) == frame.epoch

    def _admit(self, rule: str, frame: Hello) -> Admit:
        self.take(rule)
        new = frame.epoch not in self._met
        if frame.epoch != self.epoch:
            # A challenge of before proves nothing any more: whoever answered it may have died since.
            self._asked.clear()
        self._met.add(frame.epoch)
        self.epoch, self._nonce = frame.epoch, frame.nonce
        return Admit(self._nonce, supersedes=new)


def _two_copies(device: str) -> PeerError:
    return PeerError(
        "S417",
        f"two live copies of {device} speak at once",
        why="its disk was cloned, a backup was restored beside the original, or a snapshot was resumed",
        fix="stop all copies but one, enrol the others as devices of their own, and release the device",
    )
