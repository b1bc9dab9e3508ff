"""What Spark reads itself, files and a rate, goes through the same operators, each element once over restarts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import catchment as cm
from catchment.cloud.leaving import kept_by
from catchment.cloud.materialised import Materialised, read
from catchment.cloud.publish import Publisher
from catchment.cloud.query import results
from catchment.cloud.sinks.quarantine import QuarantineSink
from catchment.cloud.supervisor import check_runs
from catchment.plan.physical import Plan
from catchment.program import steps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SECOND = 1_000_000


class Sale(cm.Record):
    """A line of a file."""

    shop: cm.Field[str] = cm.key()
    at: cm.Field[cm.Instant] = cm.event_time()
    cents: cm.Field[int]
    note: cm.Field[str | None]
    paid: cm.Field[bool]


class Beat(cm.Record):
    """A beat of a rate."""

    at: cm.Field[cm.Instant] = cm.event_time()
    number: cm.Field[int]


def sales_of(folder: Path) -> cm.Program:
    sales = cm.Program("sales")

    @sales.stream(at=cm.CLOUD)
    def sold(cloud: cm.CloudSite) -> cm.Stream[Sale]:
        read = cloud.read(Sale, "files", path=f"{folder}/parquet", late=cm.seconds(5), files_per_batch=2)
        more = cloud.read(Sale, "files", path=f"{folder}/json", format="json", late=cm.seconds(5))
        return read.union(more).where(Sale.paid)

    @sales.stream(at=cm.CLOUD)
    def turnover(sold: cm.Stream[Sale]) -> cm.Stream[cm.Record]:
        return sold.key_by(Sale.shop).window(cm.tumble(cm.seconds(10))).agg(cents=cm.sum(Sale.cents), n=cm.count())

    sales.sink(turnover, "parquet", path=f"{folder}/kept")
    return sales


def beats_of(folder: Path) -> cm.Program:
    beats = cm.Program("beats")

    @beats.stream(at=cm.CLOUD)
    def beaten(cloud: cm.CloudSite) -> cm.Stream[Beat]:
        return cloud.read(Beat, "rate", rows_per_second=50)

    beats.sink(beaten, "parquet", path=f"{folder}/kept")
    return beats


class Run:
    """A query of the one cloud part of a program, from where it was."""

    def __init__(self, spark: SparkSession, plan: Plan, folder: Path) -> None:
        check_runs(plan)
        (self._part,) = plan.at(cm.CLOUD)
        self._spark, self._plan, self._folder = spark, plan, folder
        self._generation = 0
        self.output = self._open()

    def _open(self) -> Materialised:
        self._generation += 1
        return Materialised(str(self._folder / "results"), self._generation)

    def __call__(self, until: Callable[[], bool] | None = None) -> None:
        """Until all is read that is there, or until something is so."""
        self.output = self._open()
        taken, _ = kept_by(self._plan, self._part)
        stores = [QuarantineSink(str(self._folder / "quarantine"))]
        publish = Publisher(stores, frozenset(taken.values()), self.output)
        frame = results(self._spark, self._plan, self._part, "", {})
        writer = frame.writeStream.foreachBatch(publish)
        writer = writer.option("checkpointLocation", str(self._folder / "checkpoint"))
        if until is None:
            query = writer.trigger(availableNow=True).start()
            assert query.awaitTermination(180)
        else:
            query = writer.trigger(processingTime="100 milliseconds").start()
            give_up = time.monotonic() + 120
            while not until():
                assert query.exception() is None, query.exception()
                assert time.monotonic() < give_up
                time.sleep(0.1)
            query.stop()
        assert query.exception() is None

    def rows(self, *fields: str) -> list[tuple[Any, ...]]:
        """These fields of all results so far, in order."""
        (vertex,) = [vertex for vertex in self._part.vertices if isinstance(vertex.step, steps.Sink)]
        taken, _ = kept_by(self._plan, self._part)
        files = [file for portion in self.output.portions(0) for file in portion.files]
        found = [row for file in files for *_, row in read(self.output.path(file), taken[vertex.id])]
        places = [vertex.schemas[0].position(field) for field in fields]
        return sorted(tuple(row[place] for place in places) for row in found)


def lines(shop: str, *sold: tuple[int, int | None, bool]) -> list[dict[str, Any]]:
    return [{"shop": shop, "at": at * SECOND, "cents": cents, "note": None, "paid": paid} for at, cents, paid in sold]


def parquet(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    (folder / "parquet").mkdir(exist_ok=True)
    at = pa.array([row["at"] for row in rows], pa.timestamp("us", "UTC"))
    table = pa.Table.from_pylist(
        rows,
        pa.schema(
            [
                ("shop", pa.string()),
                ("at", pa.int64()),
                ("cents", pa.int64()),
                ("note", pa.string()),
                ("paid", pa.bool_()),
            ]
        ),
    )
    pq.write_table(table.set_column(1, "at", at), folder / "parquet" / name)


def test_files_are_read_once_and_close_windows(spark: SparkSession, tmp_path: Path) -> None:
    run = Run(spark, cm.build(sales_of(tmp_path)), tmp_path)
    parquet(tmp_path, "1.parquet", lines("corner", (1, 100, True), (2, 50, True), (3, 999, False), (12, 7, True)))
    parquet(tmp_path, "2.parquet", lines("corner", (5, None, True), (16, 1, True)) + lines("mill", (4, 20, True)))
    (tmp_path / "json").mkdir()
    beside = [
        {"shop": "mill", "at": "1970-01-01T00:00:09Z", "cents": 3, "paid": True},
        {"shop": "mill", "at": "1970-01-01T00:00:20Z", "cents": 5, "paid": True},
    ]
    (tmp_path / "json" / "1.json").write_text("\n".join(map(json.dumps, beside)))
    run()
    assert run.rows("shop", "window_start", "cents", "n") == [
        ("corner", 0, 150, 2),
        ("mill", 0, 23, 2),
    ]
    (refused,) = [line for path in (tmp_path / "quarantine").iterdir() for line in path.read_text().splitlines()]
    assert json.loads(refused)["reason"] == "cents is null"
    run()
    assert len(run.rows("shop")) == 2, "nothing is read twice"
    parquet(tmp_path, "3.parquet", lines("corner", (19, 2, True), (60, 1, True)))
    (tmp_path / "json" / "2.json").write_text(json.dumps({**beside[1], "at": "1970-01-01T00:00:59Z"}))
    run()
    assert run.rows("shop", "window_start", "cents", "n") == [
        ("corner", 0, 150, 2),
        ("corner", 10 * SECOND, 10, 3),
        ("mill", 0, 23, 2),
        ("mill", 20 * SECOND, 5, 1),
    ]


def test_a_rate_is_numbered_without_a_gap_over_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    run = Run(spark, cm.build(beats_of(tmp_path)), tmp_path)
    run(lambda: run.output.newest >= 1)
    first = len(run.rows("number"))
    before = run.output.newest
    run(lambda: run.output.newest > before)
    numbers = [number for (number,) in run.rows("number")]
    assert len(numbers) > first > 0
    assert numbers == list(range(len(numbers)))
