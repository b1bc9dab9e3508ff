"""Every story on Spark: all of them in one query, each in a bucket of its own, cut into batches at random.

A bucket is restored from Spark's state for each batch, so each cut is a restart too. The stories are performed once to
record what they feed and where they look, run on Spark together, and performed again against what Spark gave.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from catchment.engines.reference import evaluate
from catchment.errors import ProgramError
from catchment.plan.graph import Graph, Port
from catchment.plan.history import Entry, Outcome
from catchment.testing import Story, perform, stories
from catchment.testing.engines import registered
from catchment.testing.transcripts.programs import module_of
from tests.spark.packed import Case, Given, outcome_of, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
FOLDER = Path(__file__).parents[1] / "transcripts"
STORIES = stories(FOLDER)
BATCHES = 5
SEED = 20261118
NEEDS_A_SHUFFLE = "C330"


@dataclass
class Recorded:
    """What a story feeds, and after how many entries it looks."""

    graph: Graph
    entries: list[Entry] = field(default_factory=list)
    looks: set[int] = field(default_factory=set)

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

    def __init__(self, graph: Graph, ends: list[int], given: Given) -> None:
        self._graph = graph
        self._ends = ends
        self._given = given
        self._fed = 0

    def feed(self, entry: Entry) -> None:
        self._fed += 1

    def restart(self) -> None:
        return None

    def outcome(self, watch: Collection[Port] | None) -> Outcome:
        return outcome_of(self._graph, self._given, self._ends.index(self._fed))


def _declare() -> None:
    for path in sorted((FOLDER / "programs").glob("*.py")):
        module_of(path)  # declares its functions in this process


@pytest.fixture(scope="module")
def given(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, _Given | ProgramError]:
    """What Spark gave for each story by name, or why it refuses the story's program."""
    chance = random.Random(SEED)
    found: dict[str, _Given | ProgramError] = {}
    graphs: dict[int, Graph] = {}
    packets: list[tuple[int, int, bytes]] = []
    played: dict[int, tuple[str, list[int]]] = {}
    for number, story in enumerate(STORIES):
        recorded.clear()
        with registered("recorder", _Recorder):
            perform(story, "recorder")
        (notes,) = recorded
        ends = notes.chunks(chance)
        try:
            packets += Case(notes.graph, notes.entries, ends).packets(number)
        except ProgramError as error:
            found[story.name] = error
            continue
        graphs[number] = notes.graph
        played[number] = (story.name, ends)
    home = tmp_path_factory.mktemp("stories")
    results = run(spark, home / "packed", graphs, packets, prepare=_declare)
    for number, (name, ends) in played.items():
        found[name] = _Given(graphs[number], ends, results[number])
    return found


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story_on_spark(story: Story, given: dict[str, _Given | ProgramError]) -> None:
    what = given[story.name]
    if isinstance(what, ProgramError):
        assert what.code == NEEDS_A_SHUFFLE
        return
    with registered("spark", lambda graph: what):
        perform(story, "spark")
