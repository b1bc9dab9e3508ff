"""A session takes a second executor of a standalone cluster while tasks wait, and gives it back when none do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from catchment.cloud.cluster import Cluster
from tests.thread.cloud import SPARK_S
from tests.thread.processes import wait_until

pytestmark = [pytest.mark.process, pytest.mark.spark]
# Tasks that last, so that some wait; then nothing to do, until its input ends.
JOB = """
import sys, time
from catchment.cloud.cluster import elastic
from catchment.engines.spark.session import start_session

def slowly(numbers):
    time.sleep(1)
    yield sum(numbers)

spark = start_session("load", sys.argv[1], elastic(1, 2, idle_s=2), quick=True)
parts = spark.sparkContext.parallelize(range(1000), 24).mapPartitions(slowly)
print(sum(parts.collect()), flush=True)
sys.stdin.read()
"""


def test_executors_come_with_load_and_go_without(tmp_path: Path) -> None:
    with Cluster(tmp_path / "spark", workers=2, cores=1, memory_mb=1024) as cluster:

        def executors() -> int:
            return sum(len(worker.executors()) for worker in cluster.workers)

        words = [sys.executable, "-c", JOB, cluster.url]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as job:
            try:
                wait_until(lambda: executors() == 2, SPARK_S)
                assert job.stdout is not None
                assert job.stdout.readline() == f"{sum(range(1000))}\n"
                wait_until(lambda: executors() == 1, SPARK_S)
            finally:
                job.kill()
