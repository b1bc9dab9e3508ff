"""Forgetting a device or a user, wherever something of it is kept: who did it, in which order, and how much it was.

First the credential, so that nothing new comes; then the log, by whoever writes it; then what waits for a device, what
waits for sinks, what sinks keep, and what was quarantined. What sinks keep is found by the fields that a gateway
vouches for: a result that names nobody is of nobody. State of operators goes by what the log tells them. Everything
may be done again: what is gone is not found.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from catchment.cloud import materialised
from catchment.cloud.keeping import TABLES
from catchment.cloud.sinks.declared import sinks_of
from catchment.cloud.sinks.parquet import forget as parquet
from catchment.cloud.sinks.parquet.sink import ParquetSink
from catchment.cloud.sinks.postgres import forget as postgres
from catchment.cloud.sinks.postgres.sink import PostgresSink
from catchment.errors import PeerError
from catchment.gateway.downlink import to_device, to_user
from catchment.gateway.log.files import forgetting, layout
from catchment.gateway.log.files.disk import LocalDisk
from catchment.gateway.log.files.partition import Partition
from catchment.gateway.stores import open_accounts, open_downlink, open_enrolment
from catchment.plan import document
from catchment.program.site import CLOUD

PASSES = 5
"""Tables that a program merges meanwhile are looked at again so often."""


@dataclass(frozen=True)
class Whom:
    """Who is forgotten."""

    devices: dict[str, str]
    """With the user of each."""
    users: frozenset[str]

    @property
    def stamped(self) -> dict[str, frozenset[str]]:
        """By the stamp of the fields that name them."""
        return {"device": frozenset(self.devices), "user": self.users}

    @property
    def named(self) -> re.Pattern[bytes]:
        """Finds any of their names as a word of its own."""
        names = b"|".join(re.escape(name.encode()) for name in sorted(self.users.union(self.devices)))
        return re.compile(rb"(?<![\w.@:-])(?:" + names + rb")(?![\w.@:-])")


@dataclass
class Done:
    """What was forgotten."""

    devices: int = 0
    partitions: list[int] = field(default_factory=list)
    """Those of the log that are rewritten."""
    left: list[int] = field(default_factory=list)
    """Those that are not done: their gateway has yet to come to it, or queries to read that they forget."""
    tables: dict[str, int] = field(default_factory=dict)
    """Rows deleted, by sink."""
    results: int = 0
    """Results deleted that waited for sinks."""
    lines: int = 0
    """Lines of quarantine deleted."""


def whom(data: Path, *, device: str | None, user: str | None) -> Whom:
    """Who that is: a user with all devices, or a device, and its user with it if it is the last one of that user."""
    store = open_enrolment(data)
    try:
        if user is not None:
            return Whom({one.device: user for one in store.devices(user)}, frozenset([user]))
        assert device is not None
        known = store.find(device)
        others = [] if known is None else [one for one in store.devices(known.user) if one.device != device]
        owner = "" if known is None else known.user
        return Whom({device: owner}, frozenset([owner]) if owner and not others else frozenset())
    finally:
        store.close()


def forget(data: Path, who: Whom, *, wait_s: float, pause: Callable[[float], None] = time.sleep) -> Done:
    """Forget them; what a running gateway has yet to do is waited for so long."""
    done = Done()
    store = open_enrolment(data)
    done.devices = sum([store.forget(device) for device in sorted(who.devices)])
    store.close()
    accounts = open_accounts(data)
    for user in sorted(who.users):
        accounts.remove(user)
    accounts.close()
    if (data / "log" / "log.json").exists():
        _forget_in_log(data / "log", who, done, wait_s, pause)
    downlink = open_downlink(data)
    for target in (*map(to_device, sorted(who.devices)), *map(to_user, sorted(who.users))):
        downlink.forget(target)
    downlink.close()
    for home in sorted((data / "programs").glob("*/plan.json")):
        _forget_in_program(data, home.parent, who, done)
    named = who.named
    for path in sorted((data / "quarantine").rglob("*.jsonl")):
        done.lines += _without_lines(path, named)
    return done


def _forget_in_log(root: Path, who: Whom, done: Done, wait_s: float, pause: Callable[[float], None]) -> None:
    disk = LocalDisk(root)
    partitions = layout.open_layout(disk).partitions
    numbers = sorted({layout.partition_of(device, partitions) for device in who.devices})
    for device, user in sorted(who.devices.items()):
        number = layout.partition_of(device, partitions)
        forgetting.ask(disk, number, device, now_us=_now_us(), user=user, all_of_user=user in who.users)
    until = time.monotonic() + wait_s
    for number in numbers:
        while forgetting.asked(disk, number) and not _write_anew(disk, number):
            if time.monotonic() >= until:
                break
            pause(0.5)
        (done.left if forgetting.asked(disk, number) else done.partitions).append(number)


def _write_anew(disk: LocalDisk, number: int) -> bool:
    """Do what is asked of a partition, if no gateway writes it."""
    try:
        writer = Partition(
            disk, number, holder="forget", address="", now_us=_now_us(), salt=lambda: secrets.randbits(32)
        )
    except PeerError as error:
        if error.code == "G504":  # held: its writer does what is asked within a minute or two
            return False
        raise
    work = forgetting.Forgetting(disk)
    try:
        # Nobody is connected where no gateway writes.
        later_us = _now_us() + forgetting.PATIENCE_US
        while work.step(writer, now_us=later_us):
            writer.renew(now_us=_now_us())
    finally:
        writer.close()
    return True


def _forget_in_program(data: Path, home: Path, who: Whom, done: Done) -> None:
    plan = document.read((home / "plan.json").read_bytes())
    for part in plan.at(CLOUD):
        here = home / part.name
        done.results += _forget_waiting(here / "results" / "files", who)
        tables = msgspec.json.decode((here / TABLES).read_bytes()) if (here / TABLES).exists() else {}
        for sink in sinks_of(plan, part, here, data / "quarantine" / "programs" / plan.program / part.name):
            match sink:
                case ParquetSink() if sink.name in tables and Path(tables[sink.name]).is_dir():
                    done.tables[sink.name] = _until_none(Path(tables[sink.name]), who.stamped)
                case PostgresSink():
                    done.tables[sink.name] = postgres.forget_rows(sink, os.environ, who.stamped)
                case _:
                    pass


def _until_none(directory: Path, stamped: Mapping[str, frozenset[str]]) -> int:
    rows = 0
    for _ in range(PASSES):
        found = parquet.forget_rows(directory, stamped)
        if not found:
            break
        rows += found
    return rows


def _forget_waiting(files: Path, who: Whom) -> int:
    """Results that wait for a sink, of these devices and users."""
    return sum([materialised.without(str(path), frozenset(who.devices), who.users) for path in sorted(files.glob("*"))])


def _without_lines(path: Path, named: re.Pattern[bytes]) -> int:
    lines = path.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if named.search(line) is None]
    if len(kept) < len(lines):
        LocalDisk(path.parent).replace(path.name, b"".join(kept))
    return len(lines) - len(kept)


def _now_us() -> int:
    return time.time_ns() // 1000
