"""A gateway's hold on the log: the partitions that it writes, taken and handed over as gateways come and go.

`tend` is called about once a second, from one thread: it gives a sign of life, takes what this gateway should write
and nobody holds, and hands over what another should write. One gateway alone is the same thing with one member.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from catchment.errors import CatchmentError, PeerError
from catchment.gateway.log.files import layout, lease, members, retention
from catchment.gateway.log.files.commit import TICKS, Deliver, Drive, GroupCommit, State, Ticks
from catchment.gateway.log.files.disk import Disk
from catchment.gateway.log.files.lease import Lease
from catchment.gateway.log.files.partition import Limits, Partition, Repaired

_NAME = re.compile(r"^[A-Za-z0-9_.-]{1,80}$")

RETRY_US = 30_000_000
"""When a partition that could not be taken is looked at again: reading a damaged one costs a scan."""


class Tended(NamedTuple):
    """What changed hands."""

    taken: dict[int, dict[str, str]]
    """The partitions taken; of each, the devices that its log says are there, with their users."""
    given_up: list[int]


class FileLog:
    """The log in a directory, as one gateway writes it."""

    def __init__(
        self,
        disk: Disk,
        *,
        name: str,
        address: str,
        clock_us: Callable[[], int],
        salt: Callable[[], int],
        deliver: Deliver | None = None,
        partitions: int = layout.PARTITIONS,
        limits: Limits | None = None,
        ticks: Ticks = TICKS,
        drive: Callable[[], Drive] | None = None,
    ) -> None:
        """`drive` gives the writer of a partition its turns; a thread of its own, unless said otherwise."""
        if not _NAME.match(name):
            raise PeerError(
                "G519",
                f"{name!r} cannot be a gateway's name",
                why="it names a file: letters, digits, '.', '_' and '-', at most 80",
                fix="choose such a name with --name",
            )
        self.name = name
        self.partitions = layout.create(disk, partitions=partitions).partitions
        self.writers: dict[int, GroupCommit] = {}
        """The partitions that this gateway writes now. Replaced, never changed in place: other threads look at it."""
        self.failures: dict[int, CatchmentError] = {}
        """The partitions that it should write and cannot, with the reason."""
        self.repaired: list[Repaired] = []
        """Torn tails that were cut off when partitions were taken."""
        self._disk = disk
        self._address = address
        self._clock_us = clock_us
        self._salt = salt
        self._deliver = deliver
        self._limits = limits
        self._ticks = ticks
        self._drive = drive
        self._retry_us: dict[int, int] = {}

    def tend(self) -> Tended:
        """Take and hand over what is due."""
        now = self._clock_us()
        members.announce(self._disk, name=self.name, address=self._address, now_us=now)
        names = {self.name, *(member.name for member in members.alive(self._disk, now_us=now))}
        mine = {p for p, name in members.assigned(names, self.partitions).items() if name == self.name}
        given_up = []
        for partition, writer in list(self.writers.items()):
            # Its own thread sees this at its next write or renewal; here it is seen within a second.
            replaced = self.holder(partition).holder != self.name
            if partition not in mine or replaced or writer.state in (State.REPLACED, State.CLOSED):
                self.writers = {number: one for number, one in self.writers.items() if number != partition}
                writer.close()
                given_up.append(partition)
        taken: dict[int, dict[str, str]] = {}
        # Not those just given up: whoever knew them by the old writer must hear of it first.
        for number in sorted(mine - set(self.writers) - set(given_up)):
            opened = self._take(number, now)
            if opened is not None:
                # Asked of the marks before the partition's thread begins to change them.
                taken[number] = {name: mark.user for name, mark in opened.marks.devices.items() if mark.online}
                self._start(opened)
        return Tended(taken, given_up)

    def partition_of(self, device: str) -> int:
        """Where a device's uploads go."""
        return layout.partition_of(device, self.partitions)

    def holder(self, partition: int) -> Lease:
        """Who writes it now, by its lease."""
        return lease.read(self._disk, layout.directory(partition))

    def confirmed(self, partition: int) -> int | None:
        """What the slowest reader of a partition has confirmed; None if nobody reads it."""
        return min(layout.confirmed(self._disk, partition).values(), default=None)

    def held(self, partition: int) -> dict[str, int]:
        """How many bytes of a partition each reader keeps from being deleted."""
        return retention.held(self._disk, partition)

    def close(self) -> None:
        """Write what was submitted and let others take over at once."""
        for writer in self.writers.values():
            writer.close()
        self.writers = {}
        members.leave(self._disk, self.name)

    def _take(self, number: int, now_us: int) -> Partition | None:
        # A clock that was set back makes nobody wait for longer.
        if 0 < self._retry_us.get(number, now_us) - now_us <= RETRY_US:
            return None
        try:
            partition = Partition(
                self._disk,
                number,
                holder=self.name,
                address=self._address,
                now_us=now_us,
                salt=self._salt,
                limits=self._limits,
            )
        except CatchmentError as error:
            # Held by a gateway that has yet to hand it over: expected for a moment. Anything else is shown as it is.
            if error.code == "G504":
                self.failures.pop(number, None)
            else:
                self.failures[number] = error
                self._retry_us[number] = now_us + RETRY_US
            return None
        self.failures.pop(number, None)
        if partition.repaired is not None:
            self.repaired.append(partition.repaired)
        return partition

    def _start(self, partition: Partition) -> None:
        writer = GroupCommit(
            partition,
            self._disk,
            clock_us=self._clock_us,
            deliver=self._deliver,
            ticks=self._ticks,
            drive=None if self._drive is None else self._drive(),
        )
        self.writers = {**self.writers, partition.number: writer}
