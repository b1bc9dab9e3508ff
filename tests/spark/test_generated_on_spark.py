"""Random programs on Spark equal the reference, wherever batches end and the query is stopped: all in one query."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from catchment.engines.reference import evaluate
from catchment.errors import ProgramError
from catchment.plan.graph import Graph
from catchment.plan.history import Entry, Outcome
from tests.spark.packed import Case, Given, outcome_of, run
from tests.unit.edge.generated import graph
from tests.unit.edge.generated_history import differences, history
from tests.unit.spark.vector_programs import vector_graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SEED = 20261119
PROGRAMS = 40
BATCHES = 6


def drawn() -> list[Case]:
    """Random programs that Spark takes, and their histories, cut at random."""
    chance = random.Random(SEED)
    cases: list[Case] = []
    while len(cases) < PROGRAMS:
        made: Graph = chance.choice((vector_graph, vector_graph, graph))(chance)
        entries: list[Entry] = history(chance, made, 60)
        ends = sorted({*chance.sample(range(1, len(entries)), BATCHES - 1), len(entries)})
        case = Case(made, entries, ends)
        try:
            case.packets(0)
        except ProgramError as error:
            assert error.code in ("C330", "C331")
        else:
            cases.append(case)
    return cases


def _nothing() -> None:
    return None


def test_random_programs_mean_the_same(spark: SparkSession, tmp_path: Path) -> None:
    cases = drawn()
    graphs = {number: case.graph for number, case in enumerate(cases)}
    packets = [packet for number, case in enumerate(cases) for packet in case.packets(number)]
    stops = [random.Random(SEED).randrange(1, BATCHES)]
    given: dict[int, Given] = run(spark, tmp_path / "packed", graphs, packets, prepare=_nothing, stops=stops)
    wrong = {}
    for number, case in enumerate(cases):
        expected = _sorted(evaluate(case.graph, tuple(case.entries)))
        found = _sorted(outcome_of(case.graph, given[number], BATCHES))
        different = differences(expected, found, expected.results)
        if different:
            wrong[number] = different
    assert wrong == {}


def _sorted(outcome: Outcome) -> Outcome:
    # In which order one moment's failures of different elements are told is left open; all else is not.
    return Outcome(outcome.results, tuple(sorted(outcome.failures, key=repr)))
