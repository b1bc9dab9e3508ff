"""Recovery (Sonora, Figure 11 and Table 1): an executor, a worker, the driver and the log's writer are killed.

A standalone cluster of two workers, processes of this machine, sums what a fleet sends; a batch is a checkpoint, and
batches begin at intervals of several lengths. For each kill, in the middle of a batch: how long nothing came out, how
long until the log was caught up with, which share of the batch's tasks ran again (recorded shuffle files are what
Sonora's partial rollback is; what a full one would run again is all of it), and the bytes of the log that were read
again. In the end every result is compared with those of a run without faults, and the certificate says what was kept.
Quick: one interval.

Times are of this machine with what else runs on it; Sonora's are of 32 machines of 2011.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import catchment as cm
from bench import cloud_rig as rig
from bench import harness
from bench.harness import Bar
from catchment.cloud.cluster import Cluster
from catchment.program.reliability import LOSSLESS
from catchment.reliability import certify, verify
from catchment.reliability.ideal import Element

USERS, RATE = 50, 1000.0
ENDLESS = [(1e9, RATE)]
STEADY_BATCHES = 4
CAUGHT_UP_S = 180.0
SONORA = "8 s without results, 36 s until all had recovered; 32 machines, a checkpoint each 40 s"
"""Figure 11; by partial rollback, which moved 63 % less than full rollback would have."""


@dataclass(frozen=True)
class Recovery:
    """What a kill led to."""

    what: str
    interval_ms: int
    silent_s: float
    caught_up_s: float
    tasks_again: int
    tasks_of_batch: int
    read_again_bytes: int

    @property
    def share(self) -> float:
        """Of the batch's tasks, those that ran again."""
        return self.tasks_again / max(1, self.tasks_of_batch)


class Run:
    """A cluster, a query on it and a log that grows, for one length of interval."""

    def __init__(self, home: Path, interval_ms: int) -> None:
        self.home, self.interval_ms = home, interval_ms
        self.log = home / "log"
        self._said = home / "query.jsonl"
        self._feed_said = home / "feed.jsonl"
        self.feed = rig.run_feed(self.log, USERS, ENDLESS, self._feed_said)
        wait(lambda: bool(self.feed.lines()) if self._feed_said.exists() else False)

    def start(self, cluster: Cluster) -> None:
        """The query, in a driver of its own."""
        events = self.home / "events"
        events.mkdir(exist_ok=True)
        spark = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": events.as_uri(),
            "spark.eventLog.compress": "false",
        }
        spark |= {"spark.eventLog.rolling.enabled": "false", "spark.executor.memory": "512m"}
        self.query = rig.run_query(
            rig.Query(str(self.log), str(self.home), cluster.url, self.interval_ms, spark=spark), self._said
        )

    def batches(self) -> list[dict[str, Any]]:
        """Those that are done."""
        return [line for line in self.query.lines() if "batch" in line] if self._said.exists() else []

    def steady(self) -> None:
        """Wait until some batches were done and the log was caught up with."""
        known = len(self.batches())
        wait(
            lambda: (
                len(self.batches()) >= known + STEADY_BATCHES and self.batches()[-1]["behind"] <= _small(self.batches())
            )
        )

    def strike(self, what: str, kill: Callable[[], None]) -> Recovery:
        """Kill in the middle of a batch, and look until the log is caught up with."""
        self.steady()
        before = self.batches()[-1]
        wait(lambda: self.batches()[-1]["batch"] > before["batch"])
        time.sleep(before["ms"] / 2000)
        last, at = self.batches()[-1], time.time()
        kill()
        wait(
            lambda: any(
                b["at"] > at and b["batch"] > last["batch"] and b["behind"] <= _small(self.batches())
                for b in self.batches()
            )
        )
        after = [b for b in self.batches() if b["at"] > at and b["batch"] > last["batch"]]
        level = next(b for b in after if b["behind"] <= _small(self.batches()))
        again, whole = self._tasks(after[0]["batch"])
        if what == "driver":
            again = whole  # no shuffle file outlives the driver
        size = after[0]["end"] - after[0]["start"]
        return Recovery(
            what,
            self.interval_ms,
            after[0]["at"] - last["at"],
            level["at"] - at,
            again,
            whole,
            round(size * min(1.0, again / max(1, whole))),
        )

    def kill_driver(self, cluster: Cluster) -> None:
        """Kill -9 and start anew, as the supervisor does."""
        self.query.kill()
        self.start(cluster)

    def kill_writer(self) -> None:
        """Kill what a gateway is to the log, and start it again a second later."""
        self.feed.kill()
        time.sleep(1.0)
        self.feed = rig.run_feed(self.log, USERS, ENDLESS, self._feed_said)

    def finish(self) -> int:
        """Let all be computed; the uploads that were fed."""
        self.feed.end()
        self.query.end()
        feed = rig.Feed(self.log, USERS)
        feed.writer.close()
        return feed.uploads

    def _tasks(self, batch: int) -> tuple[int, int]:
        """Of a batch: tasks that ran again, and tasks that it has."""
        stages: dict[int, int] = {}
        runs: dict[tuple[int, int], int] = {}
        for path in (self.home / "events").iterdir():
            for line in path.read_text(errors="replace").splitlines():
                if '"SparkListenerJobStart"' not in line and '"SparkListenerTaskEnd"' not in line:
                    continue
                try:
                    event = json.loads(line)
                except ValueError:
                    continue
                if event["Event"] == "SparkListenerJobStart":
                    number = event["Properties"].get("streaming.sql.batchId")
                    stages |= dict.fromkeys(event["Stage IDs"], -1 if number is None else int(number))
                elif stages.get(event["Stage ID"]) == batch:
                    task = (event["Stage ID"], event["Task Info"]["Index"])
                    runs[task] = runs.get(task, 0) + 1
        return sum(count - 1 for count in runs.values()), len(runs)


def _small(batches: list[dict[str, Any]]) -> int:
    """What may be left for a log to count as caught up with: what comes in during a usual batch or two."""
    sizes = sorted(b["end"] - b["start"] for b in batches)
    middle: int = sizes[len(sizes) // 2]
    return 3 * middle


def wait(what: Callable[[], bool], within_s: float = CAUGHT_UP_S) -> None:
    until = time.monotonic() + within_s
    while not what():
        if time.monotonic() > until:
            raise SystemExit("it did not recover in time")
        time.sleep(0.02)


def one(home: Path, interval_ms: int) -> tuple[list[Recovery], float, bool]:
    """All kills at one interval; the share of results that are right, and whether the certificate says lossless."""
    home.mkdir(parents=True)
    with Cluster(home / "spark", workers=2, cores=1, memory_mb=1024) as cluster:
        run = Run(home, interval_ms)
        run.start(cluster)
        found = [
            run.strike("executor", lambda: os.kill(cluster.workers[0].executors()[0], signal.SIGKILL)),
            run.strike("worker", cluster.workers[1].kill),
        ]
        cluster.add_worker()
        found += [
            run.strike("driver", lambda: run.kill_driver(cluster)),
            run.strike("log's writer", run.kill_writer),
        ]
        uploads = run.finish()
    ideal = list(rig.expected(uploads, USERS))
    real = list(rig.results_of(home, USERS))
    right = sum(a == b for a, b in zip(ideal, real, strict=False)) / max(len(ideal), len(real))
    report = verify(
        {"totals": [Element(n, row, cm.Instant(0)) for n, row in enumerate(ideal)]},
        {"totals": [Element(n, row, cm.Instant(0)) for n, row in enumerate(real)]},
    )
    return found, right, certify(LOSSLESS, report, subject=f"kills at {interval_ms} ms").holds(LOSSLESS)


def main() -> int:
    quick = harness.arguments(__doc__).parse_args().quick
    rows, found, right, lossless = [], [], 1.0, True
    with tempfile.TemporaryDirectory(prefix="recovery-") as folder:
        for interval_ms in [500] if quick else [200, 1000, 5000]:
            recovered, share, held = one(Path(folder) / str(interval_ms), interval_ms)
            found += recovered
            right, lossless = min(right, share), lossless and held
    for each in found:
        cells = [f"{each.interval_ms} ms", each.what, f"{each.silent_s:.1f} s", f"{each.caught_up_s:.1f} s"]
        rows.append([*cells, f"{each.tasks_again}/{each.tasks_of_batch}", f"{each.read_again_bytes:,}"])
    print(harness.table(["interval", "killed", "silent", "caught up", "tasks again", "bytes again"], rows))
    print(f"Sonora: {SONORA}")
    partial = [each.share for each in found if each.what in ("executor", "worker")]
    writer = [each.share for each in found if each.what == "log's writer"]
    bars = [
        Bar("results are those of a run without faults", right, at_least=1.0),
        Bar("the verifier certifies that nothing was lost", float(lossless), at_least=1.0),
        Bar("a lost executor or worker runs no more than its batch again", max(partial), at_most=1.0),
        Bar("a lost writer of the log runs nothing again", max(writer), at_most=0.0),
    ]
    figures = {
        f"{each.what} at {each.interval_ms} ms": {
            "silent_s": round(each.silent_s, 2),
            "caught_up_s": round(each.caught_up_s, 2),
            "share_of_tasks": round(each.share, 3),
            "bytes_again": each.read_again_bytes,
        }
        for each in found
    }
    ratios = {"full rollback": sum(partial) / len(partial)}
    return harness.conclude("recovery", quick=quick, ratios=ratios, bars=bars, figures=figures)


if __name__ == "__main__":
    sys.exit(main())
