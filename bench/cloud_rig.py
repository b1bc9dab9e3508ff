"""What the benchmarks of a running cloud part share: a program, a log that grows as a fleet's does, and its query.

The writer of the log and Spark's driver are processes of their own, so that they can be killed and started again:

    python -m bench.cloud_rig feed  LOG  …     appends uploads at given rates, from where the log ends
    python -m bench.cloud_rig query LOG  …     runs the query, and prints a line for each batch that it has done

What is fed is a function of the upload's number alone, so what has to come out is known without a run.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import catchment as cm
from bench.peer import BENCH
from catchment.cloud.children import end_with_parent
from catchment.gateway.log.entry import Entry, Kind
from catchment.gateway.log.files import layout
from catchment.gateway.log.files.disk import LocalDisk
from catchment.gateway.log.files.partition import Limits, Partition
from catchment.gateway.log.files.reader import open_log
from catchment.gateway.pressure import Lag, pressure
from catchment.gateway.stores import open_downlink
from catchment.plan.physical import Part, Plan
from catchment.sync.codecs.codec import codec
from tests.thread.program import Reading, Total

POINTS = 50
"""In an upload."""
BEGIN_US = 1_700_000_000_000_000
GROUP = 64
READER = "query"

meter = cm.Program("meter")


@meter.stream(at=cm.DEVICE)
def readings(device: cm.DeviceSite) -> cm.Stream[Reading]:
    """All of them."""
    return device.sensor(Reading, "meter")


@meter.stream(at=cm.CLOUD)
def totals(readings: cm.Stream[Reading]) -> cm.Stream[Total]:
    """Count and sum per user after each reading."""
    return readings.key_by(Reading.user).state(Total, count=cm.count(), total=cm.sum(Reading.amount))


meter.deliver(totals, by=Total.user, keep="all")


def plan_and_part() -> tuple[Plan, Part]:
    """The program, built, and its cloud part."""
    plan = cm.build(meter)
    return plan, next(part for part in plan.at(cm.CLOUD) if part.inputs)


def results_of(home: Path, users: int) -> Iterator[tuple[str, int, int, int]]:
    """What came out into the downlink: by user, in order."""
    downlink = open_downlink(home)
    for user in range(users):
        name, have = f"user-{user:07d}", dict[tuple[str, bytes], int]()
        while found := downlink.pending(f"phone-{user:07d}", name, have, bytes_max=1 << 22):
            for out in found:
                yield from codec(out.codec).decode(Total.schema, out.payload)
                have[out.stream, out.epoch_nonce] = out.upto
    downlink.close()


def rows_of(upload: int, users: int) -> list[tuple[str, int, int]]:
    """What an upload holds: the next readings of one user."""
    user, turn = f"user-{upload % users:07d}", upload // users
    first = turn * POINTS
    return [(user, BEGIN_US + 1000 * (first + n), (upload * 7 + n) % 100) for n in range(POINTS)]


def expected(uploads: int, users: int) -> Iterator[tuple[str, int, int, int]]:
    """What has to come out for so many uploads: by user, in order."""
    for user in range(min(users, uploads)):
        count = total = 0
        for upload in range(user, uploads, users):
            for name, at, amount in rows_of(upload, users):
                count, total = count + 1, total + amount
                yield name, at, count, total


class Feed:
    """The writer of a log: it goes on after the last upload that is there."""

    def __init__(self, root: Path, users: int) -> None:
        plan, part = plan_and_part()
        self._users = users
        self._stream = plan.sync(part.inputs[0])
        self._schema = plan.schemas[self._stream.schema]
        self._name = f"{plan.program}/{self._stream.name}"
        self._encode = codec("delta").encode
        disk = LocalDisk(root)
        layout.create(disk, partitions=1)
        salts = itertools.count(time.time_ns() & 0xFFFF)
        self.writer = Partition(
            disk,
            0,
            holder="feed",
            address="",
            now_us=time.time_ns() // 1000,
            salt=lambda: next(salts),
            limits=Limits(reserve_bytes=0),
        )
        known = self.writer.marks.devices.values()
        rows = sum(mark.upto for device in known for stream in device.streams.values() for mark in stream.epochs)
        self.uploads = rows // POINTS

    def append(self, count: int) -> None:
        """The next uploads."""
        now_us = time.time_ns() // 1000
        for first in range(self.uploads, self.uploads + count, GROUP):
            numbers = range(first, min(first + GROUP, self.uploads + count))
            self.writer.append([self._entry(number, now_us) for number in numbers], now_us=now_us)
        self.uploads += count

    def _entry(self, upload: int, now_us: int) -> Entry:
        rows = rows_of(upload, self._users)
        first = upload // self._users * POINTS
        return Entry(
            kind=Kind.DATA,
            device=f"phone-{upload % self._users:07d}",
            user=rows[0][0],
            stream=self._name,
            schema=self._schema.fingerprint,
            codec="delta",
            first=first,
            count=POINTS,
            upto=first + POINTS,
            promise_us=rows[-1][1] + 1,
            base_us=now_us,
            received_us=now_us,
            payload=self._encode(self._schema, rows),
        )


@dataclass(frozen=True)
class Query:
    """How the query is run."""

    log: str
    home: str
    master: str = "local[2]"
    trigger_ms: int = 100
    target_ms: int = 1000
    quick: bool = True
    kept: bool = True
    """Whether results go to the downlink; otherwise they are counted."""
    spark: dict[str, str] = field(default_factory=dict)


class Child:
    """A process of this module, and what it prints."""

    def __init__(self, role: str, words: dict[str, Any], said: Path) -> None:
        self._said = said
        with said.open("ab") as out, said.with_suffix(".err").open("ab") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "bench.cloud_rig", role, json.dumps(words)],
                cwd=BENCH.parent,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                preexec_fn=end_with_parent,
            )

    def lines(self) -> list[dict[str, Any]]:
        """What it and those before it have printed so far."""
        whole = self._said.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def kill(self) -> None:
        """Kill -9."""
        self.process.kill()
        self.process.wait()

    def end(self, within_s: float = 300) -> None:
        """Let it finish."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(within_s)


def run_query(query: Query, said: Path) -> Child:
    """The query in a process of its own."""
    return Child("query", asdict(query), said)


def run_feed(log: Path, users: int, rates: list[tuple[float, float]], said: Path, calm_s: float = 0.0) -> Child:
    """The writer in a process of its own: for so many seconds, so many points a second; slower as told, if `calm_s`."""
    return Child("feed", {"log": str(log), "users": users, "rates": rates, "calm_s": calm_s}, said)


def _told() -> threading.Event:
    """Set when the parent wants this process to finish."""
    told = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        told.set()

    threading.Thread(target=listen, daemon=True).start()
    return told


def _feed(words: dict[str, Any]) -> None:
    feed = Feed(Path(words["log"]), words["users"])
    reader, lag, advice, told = open_log(words["log"]), Lag(), 1.0, _told()
    for lasts_s, rate in words["rates"]:
        begin, done = time.monotonic(), 0.0
        last = begin
        while (now := time.monotonic()) < begin + lasts_s and not told.is_set():
            if words["calm_s"]:
                now_us = time.time_ns() // 1000
                lag.observe(end=feed.writer.end, confirmed=reader.confirmed(0).get(READER), now_us=now_us)
                calm_us = round(words["calm_s"] * 1e6)
                advice = pressure(behind_us=lag.behind_us(now_us=now_us), waiting=0.0, calm_us=calm_us).slow_down
            done += (now - last) * rate / advice / POINTS
            last = now
            whole, done = int(done), done - int(done)
            feed.append(whole)
            _print({"at": time.time(), "uploads": feed.uploads, "wanted": rate, "slow_down": advice})
            time.sleep(0.05)
    feed.writer.close()


def _query(words: dict[str, Any]) -> None:
    from catchment.cloud.flow import OPTION
    from catchment.cloud.publish import Publisher, Store
    from catchment.cloud.query import results, start
    from catchment.cloud.sinks.downlink import DownlinkSink
    from catchment.engines.spark.session import start_session
    from catchment.plan import document

    asked = Query(**words)
    plan, part = plan_and_part()
    spark = start_session("bench", asked.master, asked.spark, quick=asked.quick)
    stores: list[Store] = [DownlinkSink(document.write(plan), asked.home, 1)] if asked.kept else []
    publish = Publisher(stores)
    frame = results(spark, plan, part, asked.log, {"reader": READER, OPTION: str(asked.target_ms)})
    running = start(frame, "bench", f"{asked.home}/checkpoint", publish, every_ms=asked.trigger_ms)
    _print({"at": time.time(), "started": True})
    seen = -1

    def say() -> None:
        nonlocal seen
        for report in running.recentProgress:
            source = report["sources"][0]
            if report["batchId"] <= seen or source["endOffset"] == source["startOffset"]:
                continue
            seen = report["batchId"]
            start, end, latest = (_bytes(source[name]) for name in ("startOffset", "endOffset", "latestOffset"))
            # Of a batch that runs again, Spark does not know where the log ends.
            behind = latest - end if latest >= end else end
            took_ms = report["durationMs"].get("triggerExecution", 0)
            given = (report.get("observedMetrics") or {}).get("catchment_results")
            _print(
                {"at": time.time(), "batch": seen, "ms": took_ms, "start": start, "end": end, "behind": behind}
                | {"results": (given["totals"] or 0) if given else 0}
            )

    told = _told()
    while running.isActive and not told.is_set():
        say()
        time.sleep(0.05)
    if running.isActive:
        running.processAllAvailable()
        say()
    error = running.exception()
    running.stop()
    spark.stop()
    if error is not None:
        raise SystemExit(str(error))


def _bytes(offset: Any) -> int:
    found = json.loads(offset) if isinstance(offset, str) else offset
    return sum(found.values()) if found else 0


def _print(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    {"feed": _feed, "query": _query}[sys.argv[1]](json.loads(sys.argv[2]))
