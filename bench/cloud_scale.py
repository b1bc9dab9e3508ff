"""Scale (Sonora, section 5): from a thousand users to a million at one rate, on clusters of processes of this machine.

The same points are sent by ever more users, so state grows and work does not: points per second, bytes of state per
user and the length of a batch, on Spark's local cluster and on a standalone master with one and with two workers of one
core. Sonora's headline stands beside it: 350,000 users with a point each five seconds, on forty machines, of which one
alone does some 2,500 points a second. Quick: a thousand and ten thousand users, on two workers.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench import cloud_rig as rig
from bench import harness
from bench.harness import Bar
from catchment.cloud.cluster import Cluster

SONORA_POINTS_S = 2_500.0
"""Of one machine: 70,000 on forty, of which each does 0.70 of what it would alone."""
MASTERS = ("local-cluster[2,1,1024]", "one worker", "two workers")


def one(home: Path, where: str, users: int, uploads: int) -> tuple[float, float, float]:
    """Points per second, bytes of state per user, and milliseconds of a batch."""
    home.mkdir(parents=True)
    feed = rig.Feed(home / "log", users)
    feed.append(uploads)
    feed.writer.close()
    with ExitStack() as ending:
        master = where
        if not where.startswith("local"):
            workers = 1 if where == "one worker" else 2
            master = ending.enter_context(Cluster(home / "spark", workers=workers, cores=1, memory_mb=1024)).url
        query = rig.Query(str(home / "log"), str(home), master, quick=False, kept=False)
        child = rig.run_query(query, home / "query.jsonl")
        done: list[dict[str, Any]] = []
        while not done or done[-1]["behind"]:
            if child.process.poll() is not None:
                raise SystemExit((home / "query.err").read_text()[-2000:])
            time.sleep(0.1)
            done = [line for line in child.lines() if "batch" in line] if (home / "query.jsonl").exists() else []
        child.end()
    done = [line for line in child.lines() if "batch" in line]
    if sum(line["results"] for line in done) != uploads * rig.POINTS:
        raise SystemExit("a result is missing, or came twice")
    # The first batch starts workers and loads classes and state.
    warm = done[1:] or done
    taken = sum(line["end"] - line["start"] for line in warm) / done[-1]["end"] * uploads * rig.POINTS
    rate = taken / (sum(line["ms"] for line in warm) / 1000)
    newest = max(int(path.name) for path in (home / "checkpoint" / "commits").glob("[0-9]*")) + 1
    state = [path.stat().st_size for path in (home / "checkpoint" / "state").rglob(f"{newest}.*")]
    state += [path.stat().st_size for path in (home / "checkpoint" / "state").rglob("*.sst")]
    return rate, sum(state) / min(users, uploads), statistics.median(line["ms"] for line in warm)


def main() -> int:
    quick = harness.arguments(__doc__).parse_args().quick
    sizes = [1_000, 10_000] if quick else [1_000, 10_000, 100_000, 1_000_000]
    masters = MASTERS[2:] if quick else MASTERS
    found: dict[tuple[str, int], tuple[float, float, float]] = {}
    with tempfile.TemporaryDirectory(prefix="scale-") as folder:
        for where in masters:
            for users in sizes:
                uploads = 10_000 if quick else max(20_000, users)
                found[where, users] = one(Path(folder) / f"{where[:3]}-{len(found)}", where, users, uploads)
    rows = [
        [where, f"{users:,}", f"{rate:,.0f}", f"{state:,.0f}", f"{batch_ms:,.0f} ms"]
        for (where, users), (rate, state, batch_ms) in found.items()
    ]
    print(harness.table(["on", "users", "points/s", "bytes of state per user", "batch"], rows))
    print(f"Sonora: 70,000 points/s on 40 machines, some {SONORA_POINTS_S:,.0f} on one")
    most = masters[-1]
    least, largest = found[most, sizes[0]], found[most, sizes[-1]]
    slower = least[0] / largest[0]
    bars = [
        Bar("a point costs at most as much more as there are more users", slower, at_most=sizes[-1] / sizes[0]),
        Bar("state per user does not grow with users", largest[1] / max(1.0, least[1]), at_most=1.5),
    ]
    figures = {
        f"{where}, {users} users": {"points_s": round(rate), "state_bytes_per_user": round(state), "batch_ms": batch_ms}
        for (where, users), (rate, state, batch_ms) in found.items()
    }
    return harness.conclude(
        "cloud_scale",
        quick=quick,
        ratios={"Sonora on one machine": least[0] / SONORA_POINTS_S},
        bars=bars,
        figures=figures,
    )


if __name__ == "__main__":
    sys.exit(main())
