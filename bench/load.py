"""Load (Sonora, Figure 9): what comes in triples and falls again; the log takes the burst, and devices slow down.

The capacity of this machine is measured first, on a log that is there at once. Then a fleet sends half of that, three
times as much, and half again. Per phase: what was asked for and what was admitted, the backlog in the log, how long a
batch took and by how much devices were told to slow down (by the gateway's own rule, with a calm of three seconds
instead of thirty, so that a short burst shows it). In the end every result is there. Quick: phases of 8 seconds.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import cloud_rig as rig
from bench import harness
from bench.harness import Bar

USERS = 200
CALM_S = 3.0
HALF, BURST = 0.5, 1.5
"""Of the capacity: three times as much, and what the machine cannot do."""


def capacity(home: Path, uploads: int) -> float:
    """Points a second, when all is there: over the second half, when all that is to be loaded and started is."""
    feed = rig.Feed(home / "log", USERS)
    feed.append(uploads)
    feed.writer.close()
    child = rig.run_query(rig.Query(str(home / "log"), str(home), quick=False), home / "query.jsonl")
    while not batches(child) or batches(child)[-1]["behind"]:
        time.sleep(0.1)
    child.end()
    done = batches(child)
    begin = next(b for b in done if b["end"] >= done[-1]["end"] / 2)
    share = (done[-1]["end"] - begin["end"]) / done[-1]["end"]
    if begin is done[-1]:
        return float(uploads * rig.POINTS / (done[-1]["ms"] / 1000))
    return float(share * uploads * rig.POINTS / (done[-1]["at"] - begin["at"]))


def batches(child: rig.Child) -> list[dict[str, Any]]:
    """Those that are done."""
    return [line for line in child.lines() if "batch" in line]


def phase(feed: list[dict[str, Any]], done: list[dict[str, Any]], begin: float, end: float) -> dict[str, float]:
    """What happened between two instants."""
    fed = [line for line in feed if begin <= line["at"] < end]
    mine = [b for b in done if begin <= b["at"] < end]
    admitted = (fed[-1]["uploads"] - fed[0]["uploads"]) * rig.POINTS / (fed[-1]["at"] - fed[0]["at"])
    return {
        "asked": fed[-1]["wanted"],
        "admitted": admitted,
        "backlog_bytes": max((b["behind"] for b in mine), default=0),
        "left_bytes": mine[-1]["behind"] if mine else 0,
        "batch_ms": statistics.median(b["ms"] for b in mine) if mine else 1.0,
        "slow_down": max(line["slow_down"] for line in fed),
    }


def main() -> int:
    quick = harness.arguments(__doc__).parse_args().quick
    lasts_s = 8.0 if quick else 30.0
    with tempfile.TemporaryDirectory(prefix="load-") as folder:
        first, home = Path(folder) / "capacity", Path(folder) / "load"
        first.mkdir()
        home.mkdir()
        able = capacity(first, 10_000 if quick else 60_000)
        # The query is level with its log before the fleet begins: what starting costs is not what is looked at.
        feed = rig.Feed(home / "log", USERS)
        feed.append(USERS)
        feed.writer.close()
        child = rig.run_query(rig.Query(str(home / "log"), str(home), quick=False), home / "query.jsonl")
        while not batches(child) or batches(child)[-1]["behind"]:
            time.sleep(0.1)
        rates = [(lasts_s, HALF * able), (lasts_s, BURST * able), (2 * lasts_s, HALF * able)]
        sender = rig.run_feed(home / "log", USERS, rates, home / "feed.jsonl", CALM_S)
        sender.process.wait(300)
        child.end()
        fed, done = sender.lines(), batches(child)
        feed = rig.Feed(home / "log", USERS)
        uploads = feed.uploads
        feed.writer.close()
        ideal, real = list(rig.expected(uploads, USERS)), list(rig.results_of(home, USERS))
    # On a machine that does other things the writer is late: a phase begins when it does, not when it should.
    turns = [line["at"] for line, after in itertools.pairwise(fed) if line["wanted"] != after["wanted"]]
    ends = [fed[0]["at"], *turns, fed[-1]["at"] + 0.001]
    phases = {
        name: phase(fed, done, one, other)
        for name, one, other in zip(("before", "burst", "after"), ends[:-1], ends[1:], strict=True)
    }
    print(f"capacity: {able:,.0f} points/s")
    rows = [
        [
            name,
            f"{each['asked']:,.0f}",
            f"{each['admitted']:,.0f}",
            f"{each['backlog_bytes']:,}",
            f"{each['batch_ms']:.0f} ms",
            f"{each['slow_down']:.1f}x",
        ]
        for name, each in phases.items()
    ]
    print(harness.table(["phase", "asked points/s", "admitted", "backlog in bytes", "batch", "devices slow"], rows))
    right = sum(a == b for a, b in zip(ideal, real, strict=False)) / max(len(ideal), len(real))
    peak = max(phases["burst"]["backlog_bytes"], phases["after"]["backlog_bytes"])
    bars = [
        Bar("every result is there once", right, at_least=1.0),
        Bar(
            "devices are slowed down in the burst",
            max(phases[p]["slow_down"] for p in ("burst", "after")),
            at_least=1.01,
        ),
        Bar("what is left of the backlog in the end", phases["after"]["left_bytes"] / max(1, peak), at_most=0.5),
        Bar(
            "a batch in the burst, over one before it",
            phases["burst"]["batch_ms"] / phases["before"]["batch_ms"],
            at_most=4.0,
        ),
    ]
    return harness.conclude("load", quick=quick, ratios={"capacity": BURST}, bars=bars, figures=phases)


if __name__ == "__main__":
    sys.exit(main())
