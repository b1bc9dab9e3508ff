"""A cloud part on Spark: the same results whatever the batches are, also when the query starts anew."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import catchment as cm
from catchment.cloud.publish import Publisher
from catchment.cloud.sinks.downlink import DownlinkSink
from catchment.cloud.sinks.quarantine import QuarantineSink
from catchment.engines.spark.buckets import BUCKETS, STATE
from catchment.engines.spark.state.lookup import look_up
from catchment.gateway.log.entry import Entry, Kind, forgotten, tick
from catchment.gateway.log.files import layout
from catchment.gateway.log.files.disk import LocalDisk
from catchment.gateway.log.files.partition import Limits, Partition
from catchment.gateway.stores import open_downlink
from catchment.plan import document
from catchment.plan.physical import Plan
from catchment.program.types import Schema
from catchment.sync.codecs.codec import codec
from tests.thread.program import Total, thread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
USERS = ("ada", "bob", "cyd")


class Log:
    """A log that a test writes by hand."""

    def __init__(self, root: Path, plan: Plan) -> None:
        self.path = str(root)
        self._plan = plan
        self._disk = LocalDisk(root)
        layout.create(self._disk, partitions=1)
        self._salts = itertools.count(1)
        self._first: Counter[str] = Counter()
        self.reopen()

    def reopen(self) -> None:
        """Write on, after another has written."""
        salt, limits = partial(next, self._salts), Limits(reserve_bytes=0)
        self._writer = Partition(self._disk, 0, holder="w", address="", now_us=0, salt=salt, limits=limits)

    def upload(self, user: str, *rows: tuple[Any, ...], written: Schema | None = None) -> None:
        stream = self._plan.syncs[0]
        schema = written or self._plan.schemas[stream.schema]
        entry = Entry(
            kind=Kind.DATA,
            device=f"{user}-1",
            user=user,
            stream=f"{self._plan.program}/{stream.name}",
            schema=schema.fingerprint,
            codec="msgpack",
            first=self._first[user],
            count=len(rows),
            promise_us=rows[-1][1],
            received_us=rows[-1][1],
            payload=codec("msgpack").encode(schema, rows),
        )
        self._first[user] += len(rows)
        self._writer.append([entry], now_us=0)

    def append(self, entry: Entry) -> None:
        self._writer.append([entry], now_us=0)

    def tick(self, now: int) -> None:
        self._writer.append([tick(now=now, reached={})], now_us=now)

    def close(self) -> None:
        self._writer.close()


def test_totals_are_right_whatever_the_batches(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql.classic.dataframe import DataFrame

    from catchment.cloud.leaving import stages_of
    from catchment.cloud.query import results

    collected: set[tuple[str, ...]] = set()

    def collect(frame: DataFrame, collect: Any = DataFrame.collect) -> Any:
        collected.add(tuple(frame.columns))
        return collect(frame)

    monkeypatch.setattr(DataFrame, "collect", collect)

    plan = cm.build(thread)
    part = next(part for part in plan.parts if part.site == cm.CLOUD)
    log = Log(tmp_path / "log", plan)
    publish = Publisher(
        [
            DownlinkSink(document.write(plan), str(tmp_path), generation=1),
            QuarantineSink(str(tmp_path / "quarantine")),
        ]
    )

    def run() -> None:
        frame = results(spark, plan, part, log.path, {"bytes_per_batch": "8192"})
        writer = frame.writeStream.foreachBatch(publish).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination(180)

    sums = dict.fromkeys(USERS, 0)
    for n in range(1, 41):
        for user in USERS:
            log.upload(user, (user, 1000 * n, n), (user, 1000 * n + 1, 2 * n))
            sums[user] += 3 * n
        if n == 20:
            run()
    log.upload("ada", ("mallory", 50_000, 1_000_000))
    for n in range(100):
        log.upload(f"user-{n}", (f"user-{n}", 60_000, n))
    for user in USERS:
        log.upload(user, (user, 60_000, 0))
    log.tick(60_000_000)
    log.tick(200_000_000)
    log.append(forgotten(device="ada-1", user="ada", all_of_user=True, now=200_000_001))
    run()
    log.close()

    assert collected == {("output", "count", "file")}, "of records, none passed through the driver"
    downlink = open_downlink(tmp_path)
    for user in USERS:
        found = downlink.pending(f"{user}-1", user, {}, bytes_max=1 << 20)
        rows = [row for out in found for row in codec(out.codec).decode(Total.schema, out.payload)]
        assert rows == [(user, 60_000, 81, sums[user])], "one result is kept, and it is the last"
    downlink.close()

    def kept(user: str) -> dict[str, Any]:
        stages = stages_of(document.write(plan), part.name)
        return look_up(spark, str(tmp_path / "checkpoint"), stages, (user,))

    state = spark.read.format("statestore").option("stateVarName", STATE).load(str(tmp_path / "checkpoint"))
    shards = state.where("user_map_key.number >= 0").select("key.bucket").distinct().collect()
    assert {row["bucket"] for row in shards} == set(range(BUCKETS)), "users are spread over all buckets"
    assert kept("bob") == {"totals/running": [[("bob",), {"count": 81, "total": sums["bob"]}]]}
    assert kept("ada") == {"totals/running": []}, "it was forgotten"
    (refused,) = [line for path in (tmp_path / "quarantine").iterdir() for line in path.read_text().splitlines()]
    assert msgspec.json.decode(refused)["reason"] == "claims to be of mallory, and is of ada"
    assert publish.given["quarantine"] == 1
