"""kill -9 of a writing process, again and again: every acknowledged entry is in the log, once."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from catchment.gateway.log.files.reader import open_log

# A writer that behaves as the gateway does: it asks the marks where to go on, acknowledges on its standard output
# only after `append` has returned, and rolls its segments often.
WRITER = """
import secrets, sys, time
from pathlib import Path
from catchment.gateway.log import Entry, Kind
from catchment.gateway.log.files import layout
from catchment.gateway.log.files.disk import LocalDisk
from catchment.gateway.log.files.partition import Limits, Partition

disk = LocalDisk(Path(sys.argv[1]))
layout.create(disk, partitions=1)
writer = Partition(
    disk, 0, holder="one", address="", now_us=time.time_ns() // 1000, salt=lambda: secrets.randbits(32),
    limits=Limits(segment_bytes=20_000, reserve_bytes=0),
)
next_number = writer.marks.upto("phone", "fixes", 1, 2)
while True:
    count = 1 + next_number % 7
    entries = [
        Entry(kind=Kind.DATA, device="phone", stream="fixes", epoch_counter=1, epoch_nonce=2, first=n, count=1,
              upto=n + 1, received_us=0, payload=b"%d" % n * 40)
        for n in range(next_number, next_number + count)
    ]
    writer.append(entries, now_us=time.time_ns() // 1000)
    next_number += count
    print(next_number, flush=True)
"""


@pytest.mark.process
def test_every_acknowledged_entry_survives_kill_9_once(tmp_path: Path) -> None:
    moments = random.Random(7)
    acknowledged = 0
    for _ in range(12):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "log")], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(moments.uniform(0, 0.05))
            process.kill()
            lines = process.stdout.read().split("\n")[:-1]
        acknowledged = max([acknowledged, *map(int, lines)])
    reader = open_log(tmp_path / "log")
    # Begin again, so that a block which the last writer had synced but not marked is adopted.
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "log")], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
    numbers = [entry.first for _, entry in reader.read(0, 0)]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= acknowledged > 100
