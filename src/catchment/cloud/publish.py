"""One pass over an epoch's results, on the executors: each task hands each output to the sinks that take it.

Only counts come back to the driver. If a sink fails, the batch fails and runs again, and sinks that had taken the epoch
take it as done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from catchment.engines.spark.results import Results

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

COUNTS = "output string, count long"


class Sink(Protocol):
    """Where results go. It travels to executors, so it is plain data."""

    def takes(self, output: str) -> bool:
        """Whether results of that output are for this sink."""
        ...

    def append(self, output: str, part: int, epoch: int, upto: str, results: Results) -> None:
        """Take the results of one task of an epoch, once: `upto` says how far in the log they go."""
        ...


class Publisher:
    """What a query does with each epoch. `given` counts what went out since this object was made."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = tuple(sinks)
        self.given: Counter[str] = Counter()

    def __call__(self, frame: DataFrame, epoch: int) -> None:
        for row in frame.mapInArrow(_task(self._sinks, epoch), COUNTS).collect():
            self.given[row["output"]] += row["count"]


def _task(sinks: tuple[Sink, ...], epoch: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        part = context.partitionId() if context is not None else 0
        gathered: dict[str, list[bytes]] = {}
        counts: Counter[str] = Counter()
        upto: set[str] = set()
        for batch in batches:
            for result in batch.to_pylist():
                gathered.setdefault(result["output"], []).append(result["packet"])
                counts[result["output"]] += result["count"]
                upto.add(result["upto"])
        for output, packets in gathered.items():
            results = Results(packets, counts[output])
            for sink in sinks:
                if sink.takes(output):
                    sink.append(output, part, epoch, " ".join(sorted(upto)), results)
        yield pa.RecordBatch.from_arrays(
            [pa.array(list(counts), pa.string()), pa.array(list(counts.values()), pa.int64())],
            names=["output", "count"],
        )

    return task
