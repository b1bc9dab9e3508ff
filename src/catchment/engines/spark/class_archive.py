"""Spark's classes, loaded and checked once and kept in a file that the next JVM maps: a session starts sooner.

    python -m catchment.engines.spark.class_archive     makes the file, in this Python's environment (the set-up does)

A session that finds the file uses it, and does without where there is none or where it no longer fits: the JVM checks
it against the Java and the jars that it was made with. Java 25 keeps more than classes in it, under another name. Knows
Java's options and starts one session; nothing of programs. What it buys: docs/decisions/0160.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from catchment.engines.spark.java import JavaRuntime, use_java

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BATCHES = 3
MAKE_S_MAX = 180.0
_WITH_CACHES = 25
"""The first release that makes its own kind of archive in one run, and needs no archive of its own classes for it."""


def archive(runtime: JavaRuntime) -> Path:
    """Where the archive for this Java and this Spark is, or would be: it goes when the environment does."""
    spark = find_spec("pyspark")
    made_with = (str(runtime.home), runtime.version, str(spark.origin if spark else ""))
    name = hashlib.sha256("\0".join(made_with).encode()).hexdigest()[:16]
    return Path(sys.prefix) / "share" / "catchment" / f"spark-classes-{name}"


def using(runtime: JavaRuntime) -> list[str]:
    """What a JVM is told to use the archive; nothing where there is none."""
    path = archive(runtime)
    if not path.is_file():
        return []
    if runtime.release >= _WITH_CACHES:
        return [f"-XX:AOTCache={path}", "-Xlog:aot*=off", "-Xlog:cds*=off"]
    return [f"-XX:SharedArchiveFile={path}", "-Xlog:cds*=off", "-Xshare:auto"]


def make() -> Path | None:
    """Run a small stream and keep the classes that it needed; None where this Java keeps none."""
    runtime = use_java()
    path = archive(runtime)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as aside:
        fresh = Path(aside) / "classes"
        word = "AOTCacheOutput" if runtime.release >= _WITH_CACHES else "ArchiveClassesAtExit"
        _train([f"-XX:{word}={fresh}", "-Xlog:disable"], Path(aside))
        if not fresh.is_file():
            return None
        fresh.replace(path)
    return path


def _train(options: list[str], folder: Path) -> None:
    """A stateful stream over two batches, in a JVM with these options, until that JVM has written what it keeps."""
    from pyspark import SparkContext

    from catchment.engines.spark.session import start_session

    session = start_session("catchment classes", "local[2]", quick=True, java_options=options)
    session.sparkContext.setLogLevel("OFF")  # a query that is stopped in its work complains at length
    gateway = SparkContext._gateway
    assert gateway is not None and gateway.proc is not None, "a session has one"
    try:
        rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 4).load()
        passed = rows.mapInArrow(lambda batches: batches, "timestamp timestamp, value long")
        counts = passed.groupBy("value").count().writeStream.outputMode("update")
        counts = counts.foreachBatch(_take)
        query = counts.option("checkpointLocation", str(folder / "checkpoint")).start()
        while query.isActive and len(query.recentProgress) < BATCHES:
            time.sleep(0.05)
        query.stop()
        session.stop()
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(MAKE_S_MAX)


def _take(frame: DataFrame, epoch: int) -> None:
    frame.collect()


if __name__ == "__main__":
    sys.exit(0 if make() is not None else "this Java keeps no classes: sessions start without")
