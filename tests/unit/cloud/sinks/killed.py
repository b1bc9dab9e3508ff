"""Publishes, and is killed at its n-th effect: before it writes, renames, deletes, or speaks to the database.

    python -m tests.unit.cloud.sinks.killed parquet|postgres|callback FOLDER [URL]

For n = 1, 2, … a child is killed (signal 9) before its n-th effect, and another goes on where it was, as a supervisor
of the next generation does. Says how many effects there were, once a child came to its end; what was kept is for the
caller to look at, in FOLDER/n or the table n.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet as pq

import catchment as cm
from catchment.cloud.sinks.callback import CallbackSink
from catchment.cloud.sinks.parquet import sink as parquet
from catchment.cloud.sinks.parquet.sink import ParquetSink
from catchment.cloud.sinks.postgres.sink import PostgresSink
from catchment.cloud.sinks.sink import Sink
from catchment.program.function import declare
from tests.unit.cloud.sinks.output import OUTPUT, Trip, keep, opened, publication, trip

EPOCHS = 2
TRIPS = [n for epoch in range(EPOCHS) for n in (4 * epoch, 4 * epoch + 1, 4 * epoch + 2)]
"""The trips that are published: two of one part and one of another in each epoch."""


@cm.function(runs_on=(cm.CLOUD,))
def remembered(trips: tuple[Trip, ...], mark: cm.Mark) -> None:
    """Keep what came under its mark: the same mark again changes nothing."""
    lines = "".join(f"{one.lasted // 60_000_000}\n" for one in trips)
    Path(os.environ["REMEMBERED"], f"{mark.number}-{mark.part}").write_text(lines)


def publish(sink: Sink, folder: Path, generation: int) -> None:
    """All epochs, each published as it comes. Those that are there already are replays."""
    output = opened(folder, generation)
    publishing = publication(sink, output)
    for epoch in range(EPOCHS):
        keep(output, epoch, [trip(4 * epoch), trip(4 * epoch + 1)], [trip(4 * epoch + 2, "bob")])
        publishing.turn(0)
        assert publishing.standing.trouble == "", publishing.standing.trouble
        output.trim(publishing.upto or 0)


def kill_before(effect: int) -> Callable[[], int]:
    """Be killed before that effect of this process; gives how many there were."""
    done = 0

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def one(*args: Any, **named: Any) -> Any:
            nonlocal done
            done += 1
            if done == effect:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **named)

        return one

    for module, names in (
        (os, ("replace", "unlink", "pwrite")),
        (pq, ("write_table",)),
        (psycopg.Connection, ("execute", "commit")),
        (psycopg.Copy, ("write",)),
    ):
        for name in names:
            setattr(module, name, counted(getattr(module, name)))
    return lambda: done


def _child(work: Callable[[], None]) -> int:
    """How a child that does this ends: its signal, or 0."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise SystemExit("a child failed")
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def sink_of(kind: str, folder: Path, name: str, url: str) -> Sink:
    """A sink of that kind, with nothing in it yet."""
    match kind:
        case "parquet":
            return ParquetSink(name, OUTPUT, Trip.schema, str(folder / "kept"), (), 0)
        case "postgres":
            return PostgresSink(name, OUTPUT, Trip.schema, url, name, "all", 0, str(folder / "refused"))
        case _:
            return CallbackSink(name, OUTPUT, Trip.schema, remembered.reference, str(folder / "calls"))


def main(kind: str, root: Path, url: str) -> None:
    """Try every effect."""
    importlib.import_module("pandas")  # which Arrow looks for: loaded here, once for all children
    parquet.MERGE_FILES = 2
    pyarrow.set_cpu_count(1)  # before the children, which have nothing to share out
    pyarrow.set_io_thread_count(1)
    declare(remembered, remembered.reference)
    effect, ended = 0, False
    while not ended:
        effect += 1
        folder = root / f"t{effect}"
        (folder / "remembered").mkdir(parents=True)
        os.environ["REMEMBERED"] = str(folder / "remembered")
        sink = sink_of(kind, folder, f"t{effect}", url)

        def first() -> None:
            kill_before(effect)  # noqa: B023
            publish(sink, folder, 1)  # noqa: B023

        ended = _child(first) == 0
        _child(lambda: publish(sink, folder, 2))  # noqa: B023
    sys.stdout.write(str(effect))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "")
