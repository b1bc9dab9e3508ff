"""When what has gathered is sent: batches, links and reconnections, as the author's policy says.

Pure decisions over numbers: no clock, no store, no link is touched here. A policy may be replaced between any two
decisions, and the next one follows the new one.

>>> from catchment.program.sync import Batch, Sync
>>> policy, link = Sync(batch=Batch(records=100, within=Duration(60_000_000))), Link(connected=True)
>>> decide(policy, Gathered(records=3, bytes=90, oldest_us=0), link, now_us=10_000_000)
Decision(send=False, again_at_us=60000000, why='gathering')
>>> decide(policy, Gathered(records=100, bytes=3000, oldest_us=0), link, now_us=10_000_000).why
'100 records'
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from catchment.program.sync import SampleDown, Sync
from catchment.program.types import Duration

RECORDS_PER_FRAME_MAX = 1000
"""A frame takes whatever has gathered, up to so many elements: a backlog drains in large frames."""


class Link(msgspec.Struct, frozen=True):
    """What is known of the way to the gateway."""

    connected: bool = False
    metered: bool = False
    """Metered or expensive, as the operating system or the author's own code says."""


class Gathered(msgspec.Struct, frozen=True):
    """What of a stream is neither sent nor acknowledged."""

    records: int
    bytes: int
    oldest_us: int | None
    """The reading of the oldest, on the clock that now runs; None where it is from an earlier boot: long ago."""
    since_reconnect: bool = False
    """Whether it was there when the connection came back."""
    is_leaving: bool = False
    """Whether the device is about to stop: what gathers now would wait for its next start."""


class Decision(msgspec.Struct, frozen=True):
    """Whether to send; if not, when to ask again, unless something changes before."""

    send: bool
    again_at_us: int | None
    why: str


def decide(policy: Sync, gathered: Gathered, link: Link, now_us: int) -> Decision:
    """What the policy says of one stream at this moment."""
    batch = policy.batch
    if not gathered.records:
        return Decision(False, None, "nothing gathered")
    if not link.connected:
        return Decision(False, None, "no connection")
    if link.metered and policy.metered.wait:
        patience = policy.metered.at_most
        if patience is None:
            return Decision(False, None, "waiting for a link that is not metered")
        if gathered.oldest_us is not None and now_us < gathered.oldest_us + patience:
            return Decision(False, gathered.oldest_us + patience, "waiting for a link that is not metered")
        return Decision(True, None, "waited long enough for a better link")
    if gathered.is_leaving:
        return Decision(True, None, "leaving")
    if batch.on_reconnect and gathered.since_reconnect:
        return Decision(True, None, "reconnected")
    if batch.records is not None and gathered.records >= batch.records:
        return Decision(True, None, f"{batch.records} records")
    if batch.bytes is not None and gathered.bytes >= batch.bytes:
        return Decision(True, None, f"{batch.bytes} bytes")
    if batch.within is None:
        return Decision(False, None, "gathering")
    if gathered.oldest_us is None or now_us >= gathered.oldest_us + batch.within:
        return Decision(True, None, "gathered long enough")
    return Decision(False, gathered.oldest_us + batch.within, "gathering")


def codec_choice(
    policy: Sync, codecs: Sequence[str], compressions: Sequence[str], here: Sequence[str]
) -> tuple[str, tuple[str, ...]]:
    """The codec of a stream's frames, the author's where the other end reads it; and the compressions to choose from.

    `codecs` and `compressions` are what the other end reads, `here` the compressions of this one. Which of them makes a
    frame smallest depends on the frame; "" stands for none.

    >>> codec_choice(Sync(), ("none", "msgpack", "delta"), ("zstd", "deflate"), ("deflate",))
    ('delta', ('', 'deflate'))
    >>> codec_choice(Sync(codec="mine", compression="zstd"), ("none", "msgpack"), ("zstd", "deflate"), ("zstd",))
    ('msgpack', ('zstd',))
    """
    named = next((name for name in (policy.codec, "msgpack") if name in codecs), "none")
    both = [name for name in compressions if name in here]
    match policy.compression:
        case None:
            return named, ("", *both)
        case "off":
            return named, ("",)
        case wanted:
            return named, ((wanted,) if wanted in both else ("deflate",))


class Door(msgspec.Struct, frozen=True):
    """Sampling down while away: which of the elements that come are let in."""

    away_since_us: int | None = None
    passed: int = 0

    def link(self, *, connected: bool, now_us: int) -> Door:
        """The connection came or went."""
        if connected:
            return Door()
        return self if self.away_since_us is not None else Door(now_us)

    def admit(self, policy: Sync, count: int, now_us: int) -> tuple[Door, list[int]]:
        """Which of so many new elements are kept, by position; the others are given up, counted.

        >>> Door(0).admit(Sync(on_disconnect=SampleDown(3)), 7, 1)[1]
        [0, 3, 6]
        """
        rule = policy.on_disconnect
        if not isinstance(rule, SampleDown) or self.away_since_us is None or now_us < self.away_since_us + rule.after:
            return self, list(range(count))
        kept = [index for index in range(count) if (self.passed + index) % rule.keep_one_in == 0]
        return msgspec.structs.replace(self, passed=self.passed + count), kept


__all__ = ["RECORDS_PER_FRAME_MAX", "Decision", "Door", "Duration", "Gathered", "Link", "codec_choice", "decide"]
