"""Reading what a query remembers of one key, from its checkpoint as of its last batch, while it runs or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from catchment.engines.spark.buckets import BUCKETS, STATE, Running
from catchment.engines.spark.stages import Stages
from catchment.engines.spark.state.pieces import hashed, shard_of_route
from catchment.engines.spark.state.shards import BOOK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DOUBLINGS = 24


class _Read:
    """Entries of a bucket, as Spark last committed them."""

    def __init__(self, entries: dict[int, bytes]) -> None:
        self._entries = entries

    def get(self, number: int) -> bytes | None:
        return self._entries.get(number)

    def put(self, number: int, state: bytes) -> None:
        raise AssertionError("a checkpoint is read")

    def remove(self, number: int) -> None:
        raise AssertionError("a checkpoint is read")


def look_up(spark: SparkSession, checkpoint: str, stages: Stages, key: tuple[Any, ...]) -> dict[str, Any]:
    """What each step remembers of a key: its state and timers, aggregates so far, or open panes.

    `key` holds the values by which the part's elements go to buckets: those of `stages.routes`.
    """
    # How many shards there are is in the book: one pass over the state reads it with all that may be asked for next.
    numbers = {BOOK, *(shard_of_route(key, 1 << doublings) for doublings in range(_DOUBLINGS))}
    kept = spark.read.format("statestore").option("stateVarName", STATE).load(checkpoint)
    kept = kept.where(f"key.bucket = {hashed(key) % BUCKETS}")
    kept = kept.where(f"user_map_key.number in ({', '.join(map(str, sorted(numbers)))})")
    rows = kept.select("user_map_key.number", "user_map_value.state").collect()
    return Running(stages).look_up(_Read({row["number"]: bytes(row["state"]) for row in rows}), key)
