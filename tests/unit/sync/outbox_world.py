"""What tests of the outbox share: a disk that can be wound back, a record, and a sender of the simplest kind."""

import sqlite3
from collections.abc import Callable, Iterator
from itertools import count

from catchment.program.types import FLOAT, INSTANT, INT, Column, Schema
from catchment.sync.frame import Mark
from catchment.sync.outbox import Appended, Outbox, Run, Stamp

FIX = Schema("Fix", (Column("at", INSTANT, event_time=True), Column("n", INT)))
OTHER = Schema("Other", (Column("x", FLOAT),))
BOOT = Stamp(b"boot-one")
LATER_BOOT = Stamp(b"boot-two", offset_us=5)


def nonces() -> Callable[[], bytes]:
    numbers = count(1)
    return lambda: next(numbers).to_bytes(8, "big")


def image(outbox: Outbox) -> bytes:
    """The database as bytes, as a disk would hold it."""
    opened = outbox._opened
    assert opened is not None
    opened.database.connection.execute("PRAGMA wal_checkpoint(FULL)")
    return opened.database.connection.serialize()


class Disk:
    """A disk that holds the last image, and one image per durable commit, to go back to."""

    def __init__(self) -> None:
        self.images: list[bytes] = []
        self.connection: sqlite3.Connection | None = None
        self.nonces = nonces()

    def connect(self) -> sqlite3.Connection:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        if self.images:
            self.connection.deserialize(self.images[-1])
        return self.connection

    def open(self) -> Outbox:
        outbox = Outbox.open(None, fresh_nonce=self.nonces, connect=self.connect)
        self.save(outbox)
        return outbox

    def save(self, outbox: Outbox) -> None:
        self.images.append(image(outbox))

    def lose(self, commits: int) -> None:
        """A power cut that loses the tail, or a backup that is restored."""
        del self.images[max(1, len(self.images) - commits) :]


def put(outbox: Outbox, *numbers: int, stream: str = "fixes", stamp: Stamp = BOOT) -> Appended:
    return outbox.append(
        stream, FIX, [(number, number) for number in numbers], stamp=stamp, readings_us=[n * 10 for n in numbers]
    )


def drain(outbox: Outbox, stream: str = "fixes", records_max: int = 1000, bytes_max: int = 1 << 20) -> Iterator[Run]:
    """Send everything as a sender would: acknowledge each epoch before the next one starts."""
    while (position := outbox.start(stream)) is not None:
        while (run := outbox.run(stream, position, records_max=records_max, bytes_max=bytes_max)) is not None:
            yield run
            position = run.after
        outbox.acknowledge([Mark(stream, outbox.epoch_of(position), position.number)])


def numbers_of(run: Run) -> list[int]:
    numbers, number = [], run.first
    before = {gap.at + row: gap.skipped for gap in run.gaps for row in range(gap.rows)}
    for index in range(len(run.packed)):
        number += before.get(index, 0)
        numbers.append(number)
        number += 1
    return numbers
