"""A Spark session with the settings that were measured to suit streams of small batches.

What each buys is in docs/decisions/0211: Unix sockets and the file-system checkpoint manager halve the floor of a
micro-batch, shuffle partitions equal cores, state lives in RocksDB with changelogs. Knows Spark's settings and
nothing of programs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from catchment.engines.spark.class_archive import using
from catchment.engines.spark.java import use_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer"
_CHANGE_MEANING = ("ReorderAssociativeOperator", "SimplifyCaseConversionExpressions")


def settings(cores: int) -> dict[str, str]:
    """Spark's configuration for so many cores."""
    return {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        # Otherwise (a + 1) + b becomes (a + b) + 1, which overflows for other rows, and lower(upper(x)) lower(x).
        "spark.sql.optimizer.excludedRules": ",".join(f"{_OPTIMIZER}.{rule}" for rule in _CHANGE_MEANING),
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.adaptive.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.pyspark.python": sys.executable,
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(_package_roots()),
    }


def start_session(
    name: str,
    master: str = "local[*]",
    more: Mapping[str, str] | None = None,
    *,
    quick: bool = False,
    java_options: Sequence[str] | None = None,
) -> SparkSession:
    """A session, with a Java found or brought along. `quick` compiles less: for tests that live for seconds.

    Its JVM uses the archive of classes that the set-up made, unless it is given `java_options` of its own.
    """
    runtime = use_java()
    # Spark's planner starts Python workers of its own, and asks only the environment which Python.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    cores = os.cpu_count() or 1
    # SparkSession.Builder keeps what earlier sessions asked for; a new one begins clean.
    builder = SparkSession.Builder().appName(name).master(master)
    for key, value in {**settings(cores), **(more or {})}.items():
        builder = builder.config(key, value)
    options = ["-Djava.net.preferIPv4Stack=true", *(using(runtime) if java_options is None else java_options)]
    if quick:
        options += ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    builder = builder.config("spark.driver.extraJavaOptions", " ".join(options))
    if master.startswith("local-cluster"):
        # Its executors are processes of this machine: what suits the driver suits them.
        builder = builder.config("spark.executor.extraJavaOptions", " ".join(options))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _package_roots() -> list[str]:
    """This package, and the folders of an author's programs: what is importable here is importable in the workers.

    On other machines the folders are not there, and code has to be installed as a package, as on a device.
    """
    installed = {Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()}
    folders = [Path(entry).resolve() for entry in sys.path if entry and Path(entry).is_dir()]
    own = [folder for folder in folders if not installed & {folder, *folder.parents}]
    return [str(root) for root in dict.fromkeys([Path(__file__).resolve().parents[3], *own])]
