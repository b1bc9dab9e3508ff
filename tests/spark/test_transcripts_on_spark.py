"""Every story on Spark: all of them in one query, each in a bucket of its own, cut into batches at random.

A bucket is restored from Spark's state for each batch, so each cut is a restart too. The stories are performed once to
record what they feed and where they look, run on Spark together, and performed again against what Spark gave.
"""

from __future__ import annotations

import os
import random
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from catchment.engines.reference import evaluate
from catchment.engines.spark.stages import Stages, cut
from catchment.errors import ProgramError
from catchment.plan.graph import Graph, Port
from catchment.plan.history import Entry, Failure, Outcome, Result, Source
from catchment.testing import Story, perform, stories
from catchment.testing.engines import registered
from catchment.testing.transcripts.programs import module_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
FOLDER = Path(__file__).parents[1] / "transcripts"
STORIES = stories(FOLDER)
BATCHES = 5
SEED = 20261118
NEEDS_A_SHUFFLE = "C330"


OUTPUT = "{}|{}"


@dataclass
class Recorded:
    """What a story feeds, and after how many entries it looks."""

    graph: Graph
    entries: list[Entry] = field(default_factory=list)
    looks: set[int] = field(default_factory=set)

    @property
    def outputs(self) -> dict[str, Port]:
        """Every port of every step."""
        ports = [(v.id, port) for v in self.graph.vertices for port in range(len(v.schemas))]
        return {OUTPUT.format(*port): port for port in ports}

    def chunks(self, chance: random.Random) -> list[int]:
        """After how many entries each batch ends: where the story looks, and elsewhere at random."""
        cuts = {*self.looks, len(self.entries)}
        while len(cuts) < min(BATCHES, len(self.entries)):
            cuts.add(chance.randrange(1, len(self.entries)))
        return sorted(cuts)


class _Recorder:
    """The reference engine, taking notes."""

    def __init__(self, graph: Graph) -> None:
        self.story = Recorded(graph)
        recorded.append(self.story)

    def feed(self, entry: Entry) -> None:
        self.story.entries.append(entry)

    def restart(self) -> None:
        return None

    def outcome(self, watch: Collection[Port] | None) -> Outcome:
        self.story.looks.add(len(self.story.entries))
        return evaluate(self.story.graph, tuple(self.story.entries), watch=watch)


recorded: list[Recorded] = []


class _Given:
    """What Spark gave for one story, as an engine that has already run."""

    def __init__(self, graph: Graph, ends: list[int], given: dict[str, list[tuple[int, Any]]]) -> None:
        self._graph = graph
        self._ends = ends
        self._given = given
        self._fed = 0

    def feed(self, entry: Entry) -> None:
        self._fed += 1

    def restart(self) -> None:
        return None

    def outcome(self, watch: Collection[Port] | None) -> Outcome:
        batch = self._ends.index(self._fed)
        ports = Recorded(self._graph).outputs
        results: dict[Port, tuple[Result, ...]] = {}
        for output, port in ports.items():
            seen = [what for number, what in self._given.get(output, []) if number <= batch]
            results[port] = tuple(
                Result(n, at, Source(device, owner), _tuple(row)) for n, (at, device, owner, row) in enumerate(seen)
            )
        failed = [what for number, what in self._given.get("quarantine", []) if number <= batch]
        return Outcome(results, tuple(Failure(step, reason, _tuple(row)) for step, reason, row in failed))


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


def _packets(number: int, story: Recorded, ends: list[int]) -> list[tuple[int, int, bytes]]:
    """A packet for each batch of a story: (bucket, batch, packet)."""
    from catchment.engines.spark.front import Front
    from tests.unit.spark.vectorised import arrived

    front = Front(cut(story.graph, story.outputs), buckets=1)
    found, begin = [], 0
    for batch, end in enumerate(ends):
        packets = front.spread(arrived(story.graph, story.entries[begin:end]))
        found += [(number, batch, packet) for _, packet in packets]
        begin = end
    return found


def _stages(folder: Path, graphs: dict[int, bytes], bucket: int) -> Stages:
    for path in sorted((folder / "programs").glob("*.py")):
        module_of(path)  # declares its functions in this process
    story = Recorded(msgspec.json.decode(graphs[bucket], type=Graph))
    return cut(story.graph, story.outputs)


@pytest.fixture(scope="module")
def given(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, _Given | ProgramError]:
    """What Spark gave for each story by name, or why it refuses the story's program."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from catchment.engines.spark.buckets import PACKETS, RESULTS, Bucket, Running
    from catchment.engines.spark.results import Results

    class StoryBucket(Bucket):
        def __init__(self) -> None:
            super().__init__(_none)
            self._running: dict[int, Running] = {}

        def running(self, bucket: int) -> Running:
            if bucket not in self._running:
                self._running[bucket] = Running(_stages(folder, graphs, bucket))
            return self._running[bucket]

    folder = FOLDER
    chance = random.Random(SEED)
    found: dict[str, _Given | ProgramError] = {}
    graphs: dict[int, bytes] = {}
    packets: list[tuple[int, int, bytes]] = []
    played: dict[int, tuple[str, Graph, list[int]]] = {}
    for number, story in enumerate(STORIES):
        recorded.clear()
        with registered("recorder", _Recorder):
            perform(story, "recorder")
        (notes,) = recorded
        ends = notes.chunks(chance)
        try:
            packets += _packets(number, notes, ends)
        except ProgramError as error:
            found[story.name] = error
            continue
        graphs[number] = msgspec.json.encode(notes.graph)
        played[number] = (story.name, notes.graph, ends)

    home = tmp_path_factory.mktemp("stories")
    (home / "in").mkdir()
    for batch in range(max(number for _, number, _ in packets) + 1):
        rows = [row for row in packets if row[1] == batch]
        table = pa.table(
            {
                "bucket": pa.array([row[0] for row in rows], pa.int32()),
                "partition": pa.array([0] * len(rows), pa.int32()),
                "offset": pa.array([row[1] for row in rows], pa.int64()),
                "packet": pa.array([row[2] for row in rows], pa.binary()),
            }
        )
        path = home / "in" / f"{batch:04d}.parquet"
        pq.write_table(table, path)
        # Spark takes files in the order of their times, and these are written within one of its milliseconds.
        os.utime(path, (batch + 1, batch + 1))
    results: dict[int, dict[str, list[tuple[int, Any]]]] = {number: {} for number in played}

    def take(frame: Any, epoch: int) -> None:
        for row in frame.collect():
            into = results[row.bucket].setdefault(row.output, [])
            batch = msgspec.json.decode(row.upto)["0"]
            into.extend((batch, what) for what in Results([bytes(row.packet)], row.count))

    stream = spark.readStream.schema(PACKETS).option("maxFilesPerTrigger", 1).option("latestFirst", "false")
    frame = stream.parquet(str(home / "in"))
    frame = frame.groupBy("bucket").transformWithState(StoryBucket(), RESULTS, "Append", "None")
    writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(home / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination(300)
    for number, (name, graph, ends) in played.items():
        found[name] = _Given(graph, ends, results[number])
    return found


def _none() -> Any:
    return None


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story_on_spark(story: Story, given: dict[str, _Given | ProgramError]) -> None:
    what = given[story.name]
    if isinstance(what, ProgramError):
        assert what.code == NEEDS_A_SHUFFLE
        return
    with registered("spark", lambda graph: what):
        perform(story, "spark")
