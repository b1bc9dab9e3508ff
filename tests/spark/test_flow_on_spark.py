"""What a query takes per batch, what it confirms, and the delays that it measures of itself."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import catchment as cm
from catchment.cloud.flow import OPTION
from catchment.cloud.latency import Latency
from catchment.cloud.publish import Publisher
from catchment.gateway.log.entry import Entry, Kind
from catchment.gateway.log.files.reader import open_log
from catchment.sync.codecs.codec import codec
from tests.spark.test_cloud_part import Log
from tests.thread.program import thread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
UPLOADS, AGE_US = 60, 40_000_000


def test_a_paced_query_confirms_all_that_it_has_done_and_says_how_old_its_results_are(
    spark: SparkSession, tmp_path: Path
) -> None:
    from catchment.cloud.query import results

    plan = cm.build(thread)
    part = next(part for part in plan.parts if part.site == cm.CLOUD)
    schema = plan.schemas[plan.syncs[0].schema]
    log = Log(tmp_path / "log", plan)
    now_us = time.time_ns() // 1000
    for number in range(UPLOADS):
        entry = Entry(
            kind=Kind.DATA,
            device=f"d{number % 3}",
            user=f"u{number % 3}",
            stream="thread/readings",
            schema=schema.fingerprint,
            codec="msgpack",
            first=number // 3,
            count=1,
            promise_us=now_us + number + 1,
            base_us=now_us - AGE_US,
            received_us=now_us,
            payload=codec("msgpack").encode(schema, [(f"u{number % 3}", now_us + number, 1)]),
        )
        log.append(entry)
    options = {"bytes_per_batch": "65536", OPTION: "200", "reader": "query"}
    writer = results(spark, plan, part, log.path, options).writeStream.foreachBatch(Publisher([]))
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination(180)
    latency = Latency()
    latency.look(query)
    latency.look(query)
    log.close()

    reader = open_log(log.path)
    assert reader.confirmed(0) == {"query": reader.end(0)}, "nothing is left for a batch that may be long in coming"
    delay = latency.outputs()["totals"]
    assert delay.results == UPLOADS, "once each, however often one looks"
    assert delay.received_ms is not None and delay.appended_ms is not None
    assert 0 <= delay.received_ms.p50 <= delay.received_ms.p99
    added_ms = delay.appended_ms.p50 - delay.received_ms.p50
    assert added_ms == AGE_US // 1000
    assert latency.flow is not None
    assert latency.flow.behind_bytes == 0 < latency.flow.batch_bytes
