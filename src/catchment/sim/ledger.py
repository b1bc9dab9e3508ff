"""The ledger: what devices made, what became of it at their end, and so what the log must and may hold.

An element is named by its device, stream, copy of the device, and a serial number that counts what was made. After an
append it is *kept* (the outbox said so), *refused* (it said so too), or *in doubt* (the process ended, or the disk
failed, before it said anything). Where an append kept some of what it was given, each is in doubt, and how many were
kept is known: a `Batch`. What was kept is excused from arriving only by something that no software can help (a disk
that lied, an old backup, a device that never came back), or where its policy may give it up, and counts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class Name(NamedTuple):
    """A stream of a copy of a device."""

    device: str
    stream: str
    copy: int = 0


class Fate(Enum):
    """What is known of an element at its own end."""

    DOUBT = "in doubt"
    KEPT = "kept"
    REFUSED = "refused"


@dataclass(slots=True)
class Made:
    """An element as it was made."""

    serial: int
    true_us: int
    """When, by the true clock."""
    reading_us: int
    boot: int
    """Which boot of the device's."""
    fate: Fate = Fate.DOUBT
    excused: str = ""
    """Why it need not arrive, if so."""


class Batch(NamedTuple):
    """Elements of one append that kept some of them."""

    first: int
    """The serial number of the first."""
    made: int
    kept: int


@dataclass(slots=True)
class Account:
    """One stream of one copy of a device."""

    made: list[Made] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    given_up: int = 0
    """Kept elements that made room for others, as appends said."""
    refused: int = 0
    """Elements that were not taken, or left out on purpose, as appends said."""
    uncertain: int = 0
    """Losses whose count may have been lost with a process, or may be counted although its append never returned."""
    went_back: bool = False
    """Whether a disk of it went back in time or harmed what it held: what it reports counts another history too."""
    is_lossy: bool = False
    """Whether the stream's policy may give up what was kept."""

    def appended(self, made: Sequence[Made], kept: int, *, given_up: int) -> None:
        """An append took so many of these elements, and so many older ones made room."""
        self.given_up += given_up
        self.refused += len(made) - kept
        for one in made:
            # Sampling down keeps some of a batch, by position: which ones, the rows that arrive will say.
            one.fate = Fate.KEPT if kept == len(made) else Fate.REFUSED if kept == 0 else Fate.DOUBT
        if 0 < kept < len(made):
            self.batches.append(Batch(made[0].serial, len(made), kept))


class Ledger:
    """Of a whole world."""

    def __init__(self) -> None:
        self.accounts: dict[Name, Account] = {}

    def account(self, name: Name) -> Account:
        """The stream's account."""
        found = self.accounts.get(name)
        if found is None:
            found = self.accounts[name] = Account()
        return found

    def make(self, name: Name, *, true_us: int, reading_us: int, boot: int) -> Made:
        """A sensor has made an element, and is about to append it."""
        account = self.account(name)
        made = Made(len(account.made), true_us, reading_us, boot)
        account.made.append(made)
        return made

    def excuse(self, device: str, copy: int, why: str, *, since_us: int = 0) -> None:
        """Whatever that copy has made from that instant on need not arrive."""
        for name, account in self.accounts.items():
            if (name.device, name.copy) == (device, copy):
                for made in account.made:
                    if made.true_us >= since_us:
                        made.excused = made.excused or why
                account.went_back = True

    def went_back(self, device: str, stream: str) -> bool:
        """Whether the stream of any copy of the device did."""
        return any(account.went_back for name, account in self.accounts.items() if name[:2] == (device, stream))
