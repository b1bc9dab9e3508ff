"""A gateway's word on who speaks: one live copy of a device at a time, told from retries, restarts and late messages.

A device opens a new epoch at each start, and each welcome hands it a token that its next hello shows, under a nonce that it
keeps until it was answered. So of a live copy, a hello either repeats the last nonce (its welcome was lost) or shows
the last token. One that does neither is a message that comes late, or another live copy; a challenge tells which, for a
message cannot answer. A new epoch has to answer one too before it supersedes the last, since a late first hello of a start
long gone would look the same.

Promises: a restart, a retry, a lost or repeated or reordered message never ends in quarantine; two copies that both stay
alive always do, whether the second came from a restored backup, a cloned disk or a resumed snapshot. An Admission lives as
long as its gateway owns the device's partition, and no longer: what another gateway saw meanwhile is not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

import msgspec

from catchment.errors import PeerError
from catchment.sync.frame import Epoch, Hello
from catchment.sync.table import Machine, Rule, Table, Watch

TABLE = Table(
    "admission",
    ("unheard", "admitted", "quarantined"),
    (
        Rule(
            "adopt",
            ("unheard",),
            "a hello of the newest known epoch, or of any if none is known",
            "admitted",
            "welcome",
        ),
        Rule("return", ("admitted",), "a hello with the last token", "", "welcome with a new token; it displaces"),
        Rule("retry", ("admitted",), "a hello with the last nonce", "", "the same welcome again"),
        Rule("challenge new", ("unheard", "admitted"), "a hello of an unknown epoch", "", "challenge it"),
        Rule("supersede", ("unheard", "admitted"), "an unknown epoch answers its challenge", "admitted", "welcome"),
        Rule("challenge old", ("unheard", "admitted"), "any other hello", "", "challenge it"),
        Rule("revive", ("unheard",), "an older epoch answers its challenge", "admitted", "welcome"),
        Rule("two copies", ("admitted",), "any other hello answers its challenge", "quarantined", "refuse both [S417]"),
        Rule("turn away", ("quarantined",), "a hello", "", "refuse [S417]"),
        Rule("release", ("quarantined",), "a person says which copy may live", "unheard", "as if never heard"),
    ),
)
"""Per device."""


class Admit(msgspec.Struct, frozen=True):
    """Welcome the device, with this token. Any other connection of it is over."""

    token: bytes
    supersedes: bool
    """Whether this is the first contact of a new epoch."""


class Challenge(msgspec.Struct, frozen=True):
    """Ask whether there is anybody: a welcome with this challenge, and nothing else of the message is heeded."""

    challenge: bytes


class TurnAway(msgspec.Struct, frozen=True):
    """Refuse the device, durably, until somebody releases it."""

    error: PeerError
    news: bool
    """Whether this is the moment of finding out."""


Decision: TypeAlias = Admit | Challenge | TurnAway


class _Asked(NamedTuple):
    challenge: bytes
    epoch: Epoch
    nonce: bytes


class Admission(Machine):
    """One device at one gateway. `epochs` are those in the log, in the order of first contact."""

    def __init__(
        self,
        *,
        fresh_token: Callable[[], bytes],
        epochs: Iterable[Epoch] = (),
        quarantined: bool = False,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(TABLE, "quarantined" if quarantined else "unheard", watch)
        self._fresh_token = fresh_token
        self._epochs = list(epochs)
        self._nonce = b""
        self._token = b""
        self._asked: _Asked | None = None

    @property
    def epoch(self) -> Epoch | None:
        """The newest epoch."""
        return self._epochs[-1] if self._epochs else None

    def hello(self, frame: Hello) -> Decision:
        """What to answer."""
        if self.state == "quarantined":
            self.take("turn away")
            return TurnAway(_two_copies(frame.device), news=False)
        if self.state == "unheard" and self.epoch in (None, frame.epoch):
            return self._admit("adopt", frame)
        if self.state == "admitted" and frame.epoch == self.epoch:
            if frame.nonce == self._nonce:
                self.take("retry")
                return Admit(self._token, supersedes=False)
            if frame.token == self._token:
                return self._admit("return", frame)
        if self._answers(frame):
            if frame.epoch not in self._epochs:
                return self._admit("supersede", frame)
            if self.state == "unheard":
                # An epoch that the log calls older is the one alive, and nobody else has spoken: a snapshot was resumed.
                # Its numbers are not to be trusted, but until a second copy speaks there is nobody to confuse it with.
                return self._admit("revive", frame)
            self.take("two copies")
            return TurnAway(_two_copies(frame.device), news=True)
        self.take("challenge new" if frame.epoch not in self._epochs else "challenge old")
        self._asked = _Asked(self._fresh_token(), frame.epoch, frame.nonce)
        return Challenge(self._asked.challenge)

    def release(self) -> None:
        """Somebody has seen to it that one copy is left."""
        self.take("release")
        self._nonce = self._token = b""
        self._asked = None

    def _answers(self, frame: Hello) -> bool:
        return self._asked is not None and self._asked == _Asked(frame.token, frame.epoch, frame.nonce)

    def _admit(self, rule: str, frame: Hello) -> Admit:
        self.take(rule)
        new = frame.epoch not in self._epochs
        if new:
            self._epochs.append(frame.epoch)
        # A challenge given before this moment proves nothing any more: whoever answers it may have died since.
        self._asked = None
        self._nonce, self._token = frame.nonce, self._fresh_token()
        return Admit(self._token, supersedes=new)


def _two_copies(device: str) -> PeerError:
    return PeerError(
        "S417",
        f"two live copies of {device} speak at once",
        why="its disk was cloned, a backup was restored beside the original, or a snapshot was resumed",
        fix="stop all copies but one, enrol the others as devices of their own, and release the device",
    )
