"""Several sinks of one program: executors write each result to each once, also when the query starts anew."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import catchment as cm
from catchment.cloud.keeping import on_spark
from catchment.cloud.materialised import Materialised
from catchment.cloud.publication import Publication
from catchment.cloud.publish import Publisher
from catchment.cloud.query import results
from catchment.cloud.sinks.declared import sinks_of
from catchment.cloud.sinks.downlink import DownlinkSink
from catchment.cloud.sinks.sink import Identity
from catchment.cloud.tables import open_table
from catchment.plan import document
from tests.postgres import Postgres
from tests.spark.kept import DATABASE, NOTES, program
from tests.spark.test_cloud_part import USERS, Log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.process]


@pytest.fixture
def postgres(monkeypatch: pytest.MonkeyPatch) -> Iterator[Postgres]:
    server = Postgres().start()
    monkeypatch.setenv(DATABASE, server.url)
    yield server
    server.stop()


def test_each_sink_has_each_result_once(
    spark: SparkSession, tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = cm.build(program(str(tmp_path)))
    (part,) = plan.at(cm.CLOUD)
    notes = tmp_path / "notes"
    notes.mkdir()
    # What tasks find in their environment, those of workers too that an earlier test has started.
    monkeypatch.setitem(spark.sparkContext.environment, NOTES, str(notes))
    log = Log(tmp_path / "log", plan)

    def run(generation: int) -> None:
        output = Materialised(str(tmp_path / "results"), generation)
        sinks = sinks_of(plan, part, tmp_path, tmp_path / "quarantine")
        downlink = DownlinkSink(document.write(plan), str(tmp_path), generation)
        publish = Publisher([downlink], frozenset(sink.output for sink in sinks), output)
        frame = results(spark, plan, part, log.path, {"bytes_per_batch": "16384"})
        writer = frame.writeStream.foreachBatch(publish).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination(180)
        assert query.exception() is None
        for sink in sinks:
            one = Publication(sink, Identity("kept", sink.name, output.store, generation), output, on_spark(spark))
            while one.turn(0, gather=False) is not None:
                assert one.standing.trouble == "", one.standing.trouble
            assert one.standing.waiting == 0
        uptos = [json.loads(file.name.split("-")[0]) for file in notes.iterdir()]
        assert max(uptos) == output.newest

    expected: list[tuple[str, int, int]] = []
    sums: dict[str, tuple[int, int]] = dict.fromkeys(USERS, (0, 0))
    for n in range(1, 31):
        for user in USERS:
            log.upload(user, (user, 1000 * n, n))
            count, total = sums[user]
            sums[user] = (count + 1, total + n)
            expected.append((user, *sums[user]))
        if n == 15:
            log.tick(15_000)
            run(1)
    log.tick(100_000)
    run(2)
    log.close()
    # What waits for progress is not given yet: the last reading of each user.
    given = sorted(one for one in expected if one[1] < 30)
    kept = open_table(tmp_path / "totals").rows()
    rows = sorted(zip(*(kept[name].to_pylist() for name in ("user", "count", "total")), strict=True))
    assert [row for row in rows if row[1] < 30] == given
    last = postgres.rows('SELECT "user", count, total FROM total ORDER BY 1')
    assert [row[1] >= 29 and row[2] == row[1] * (row[1] + 1) // 2 for row in last] == [True] * 3
    told = [json.loads(file.read_text()) for file in notes.iterdir()]
    assert sorted((row[0], row[2], row[3]) for one in told for row in one["rows"]) == rows
    assert os.getpid() not in {one["process"] for one in told}, "no result passes through the driver"
