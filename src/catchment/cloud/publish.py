"""One pass over an epoch's results, on the executors: each task gives each output to those who take it.

What goes to devices and to quarantine is in the gateway's own stores when the pass ends. What sinks keep outside is
materialised there, once, and published from that: see `publication`. Only counts and names of files come back to the
driver. If a task fails, the batch fails and runs again, and whoever had taken the epoch takes it as done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from catchment.cloud import materialised
from catchment.cloud.materialised import Materialised, Written
from catchment.engines.spark.results import Results
from catchment.engines.spark.workers import settle

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

COUNTS = "output string, count long, file binary"
"""Results of an output that a task gave; or, without an output, the file that it wrote."""


class Store(Protocol):
    """One of the gateway's own stores, which results go to. It travels to executors, so it is plain data."""

    def takes(self, output: str) -> bool:
        """Whether results of that output are for this store."""
        ...

    def append(self, output: str, part: int, epoch: int, upto: str, results: Results) -> None:
        """Take the results of one task of an epoch, once: `upto` says how far in the log they go."""
        ...


class Publisher:
    """What a query does with each epoch. `given` counts what went out since this object was made."""

    def __init__(
        self,
        stores: Sequence[Store],
        kept: frozenset[str] = frozenset(),
        output: Materialised | None = None,
        on_portion: Callable[[], None] = lambda: None,
    ) -> None:
        """`kept` are the outputs that sinks outside take, from `output`; `on_portion` is told when there is more."""
        self._stores = tuple(stores)
        self._kept = kept
        self._output = output
        self._on_portion = on_portion
        self.given: Counter[str] = Counter()

    def __call__(self, frame: DataFrame, epoch: int) -> None:
        batch = None if self._output is None else (self._output.directory, self._output.batch(epoch))
        files: list[Written] = []
        for row in frame.mapInArrow(_task(self._stores, self._kept, batch, epoch), COUNTS).collect():
            if row["file"] is not None:
                files.append(msgspec.msgpack.decode(row["file"], type=Written))
            else:
                self.given[row["output"]] += row["count"]
        if self._output is not None and self._output.commit(epoch, files) is not None:
            self._on_portion()


def _task(
    stores: tuple[Store, ...], kept: frozenset[str], batch: tuple[str, str] | None, epoch: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        part = context.partitionId() if context is not None else 0
        gathered: dict[str, list[bytes]] = {}
        counts: Counter[str] = Counter()
        upto: set[str] = set()
        for one in batches:
            for result in one.to_pylist():
                gathered.setdefault(result["output"], []).append(result["packet"])
                counts[result["output"]] += result["count"]
                upto.add(result["upto"])
        given = {output: Results(packets, counts[output]) for output, packets in gathered.items()}
        for output, results in given.items():
            for store in stores:
                if store.takes(output):
                    store.append(output, part, epoch, " ".join(sorted(upto)), results)
        outside = {output: results for output, results in given.items() if output in kept}
        file = None
        if batch is not None and outside:
            directory, name = batch
            file = msgspec.msgpack.encode(materialised.write(directory, name, part, outside, _reached(upto)))
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([*counts, *([""] if file is not None else [])], pa.string()),
                pa.array([*counts.values(), *([0] if file is not None else [])], pa.int64()),
                pa.array([*([None] * len(counts)), *([file] if file is not None else [])], pa.binary()),
            ],
            names=["output", "count", "file"],
        )
        settle()

    return task


def _reached(upto: set[str]) -> dict[str, int]:
    """How far all of these go: buckets that were given nothing lately are behind."""
    reached: dict[str, int] = {}
    for said in upto:
        for partition, offset in msgspec.json.decode(said, type=dict[str, int]).items():
            reached[partition] = max(offset, reached.get(partition, -1))
    return reached
