"""Several gateways on one log: partitions are shared, taken over and handed back, and never written by two."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from catchment.errors import PeerError
from catchment.gateway.log import Entry, Kind
from catchment.gateway.log.files import lease
from catchment.gateway.log.files.disk import LocalDisk
from catchment.gateway.log.files.log import FileLog
from catchment.gateway.log.files.partition import Limits
from catchment.gateway.log.files.reader import LogReader


class Place:
    """A directory, a clock, and gateways in it."""

    def __init__(self, root: Path) -> None:
        self.disk = LocalDisk(root)
        self.now_us = 0
        self._salts = itertools.count(1)

    def gateway(self, name: str) -> FileLog:
        return FileLog(
            self.disk,
            name=name,
            address=f"http://{name}",
            clock_us=lambda: self.now_us,
            salt=lambda: next(self._salts),
            limits=Limits(reserve_bytes=0),
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def tend(log: FileLog) -> tuple[list[int], list[int]]:
    tended = log.tend()
    return list(tended.taken), tended.given_up


def _upload(first: int) -> Entry:
    return Entry(kind=Kind.DATA, device="d", stream="s", first=first, count=1, upto=first + 1, received_us=0)


def test_one_gateway_writes_everything(place: Place) -> None:
    one = place.gateway("one")
    assert tend(one) == ([0, 1, 2, 3], [])
    assert tend(one) == ([], [])
    one.close()


def test_a_second_gateway_gets_its_share_and_gives_it_back(place: Place) -> None:
    one, two = place.gateway("one"), place.gateway("two")
    one.tend()
    assert tend(two) == ([], []), "its partitions are still held"
    assert tend(one) == ([], [1, 3])
    assert tend(two) == ([1, 3], [])
    assert one.holder(1).address == "http://two" and two.holder(0).address == "http://one"
    two.close()
    assert tend(one) == ([1, 3], [])
    one.close()


def test_what_a_dead_gateway_held_is_taken_over_with_its_marks(place: Place) -> None:
    one, two = place.gateway("one"), place.gateway("two")
    one.tend()
    two.tend()
    one.tend()
    two.tend()
    two.writers[1].append([_upload(0)])
    place.now_us += lease.LEASE_US + 1
    assert tend(one)[0] == [1, 3], "two gave no sign of life"
    assert one.writers[1].partition.marks.upto("d", "s", 0, 0) == 1
    with pytest.raises(PeerError, match="G505"):
        two.writers[1].append([_upload(1)])
    one.writers[1].append([_upload(1)])
    logged = [entry for _, entry in LogReader(place.disk).read(1, 0)]
    assert [entry.first for entry in logged if entry.kind == Kind.DATA] == [0, 1]
    # It was only slow: it notices, gives up what it lost and gets its share again in the ordinary way.
    assert tend(two) == ([], [1, 3])
    assert tend(one) == ([], [1, 3])
    assert tend(two) == ([1, 3], [])
    one.close()
    two.close()


def test_a_damaged_partition_is_shown_and_the_others_go_on(place: Place) -> None:
    one = place.gateway("one")
    one.tend()
    one.writers[2].append([_upload(0)])
    one.close()
    file = next(iter(sorted((place.disk.root / "p0002" / "segments").glob("*.seg"))))
    data = bytearray(file.read_bytes())
    data[4096 + 80] ^= 1
    file.write_bytes(data)
    again = place.gateway("one")
    assert tend(again) == ([0, 1, 3], [])
    assert again.failures[2].code == "G501"
    again.close()


def test_a_gateways_name_is_a_plain_one(place: Place) -> None:
    with pytest.raises(PeerError, match="G519"):
        place.gateway("../one")
