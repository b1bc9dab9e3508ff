"""Which vectorised step runs what, and what none does: those run event by event."""

from __future__ import annotations

from catchment.engines.spark.vector.aggregates import vectorised
from catchment.engines.spark.vector.as_they_come import VectorAsTheyCome
from catchment.engines.spark.vector.counts import VectorCounts
from catchment.engines.spark.vector.flow import VectorOperator, VectorStep
from catchment.engines.spark.vector.in_order import VectorInOrder
from catchment.engines.spark.vector.intervals import VectorIntervalJoin
from catchment.engines.spark.vector.kept import VectorKept
from catchment.engines.spark.vector.keys import NUMBERED
from catchment.engines.spark.vector.latest import VectorCombine, VectorLatestJoin
from catchment.engines.spark.vector.pairs import PairStep
from catchment.engines.spark.vector.process import VectorProcess
from catchment.engines.spark.vector.revised import OVERLAP_MAX, VectorRevised
from catchment.engines.spark.vector.running import VectorRunning
from catchment.engines.spark.vector.sessions import VectorSessions
from catchment.engines.spark.vector.stateless import (
    VectorMap,
    VectorPassing,
    VectorSelect,
    VectorSubscribe,
    VectorWhere,
)
from catchment.engines.spark.vector.unions import VectorUnion
from catchment.engines.spark.vector.window_joins import VectorWindowJoin
from catchment.engines.spark.vector.windows import VectorWindows
from catchment.engines.spark.vector.zips import VectorZip
from catchment.plan.graph import Vertex
from catchment.program import steps
from catchment.program.types import Schema
from catchment.program.window import CountWindow, SessionWindow, TimeWindow

PAIRS = (steps.Join, steps.Zip, steps.Combine)
"""Steps that pair the elements of two inputs."""


def vector_operator(vertex: Vertex, given: tuple[Schema, ...]) -> VectorOperator | None:
    """The vectorised form of a step whose inputs have these schemas, if it has one."""
    match vertex.step:
        case steps.Union():
            return VectorUnion(len(given))
        case steps.Join() | steps.Zip() | steps.Combine() as step if _pairs(step, given):
            return _pairing(step, given)
    return vector_step(vertex, given)


def _pairing(step: PairStep, given: tuple[Schema, ...]) -> VectorOperator | None:
    match step:
        case steps.Zip():
            return VectorZip(step, given)
        case steps.Combine():
            return VectorCombine(step, given)
        case steps.Join(how="latest"):
            return VectorLatestJoin(step, given)
        case steps.Join(how="interval"):
            return VectorIntervalJoin(step, given)
        case steps.Join(window=TimeWindow() as window) if not window.closing.keep:
            return VectorWindowJoin(step, given)
    return None


def vector_step(vertex: Vertex, given: tuple[Schema, ...]) -> VectorStep | None:
    """That of a step with one input."""
    match vertex.step:
        case (
            steps.Append()
            | steps.Sensor()
            | steps.Timer()
            | steps.External()
            | steps.KeyBy()
            | steps.Deliver()
            | steps.Sink()
        ):
            return VectorPassing()
        case steps.Where() as step:
            return VectorWhere(step, given[0])
        case steps.Select() as step:
            return VectorSelect(step, given[0])
        case steps.Map() as step:
            return VectorMap(step, given[0])
        case steps.Subscribe() as step:
            return VectorSubscribe(step, given[0])
        case steps.Changes() | steps.Moved() as step:
            return VectorKept(step, given[0])
        case steps.Running() as step:
            numbered = _numbered(step.keys, given[0]) and vectorised(step.aggregates, given[0])
            return VectorRunning(step, given[0]) if numbered else VectorInOrder(step, given[0])
        case steps.Fold() as step:
            return VectorInOrder(step, given[0])
        case steps.Processed() as step if _numbered(step.keys, given[0]):
            return VectorProcess(step, given[0])
        case steps.Aggregated() as step if _numbered(step.keys, given[0]) and vectorised(step.aggregates, given[0]):
            return _windows(step, given[0])
        case steps.Aggregated(window=CountWindow()) | steps.TopK(window=CountWindow()) as step:
            return VectorInOrder(step, given[0])
        case steps.Aggregated() | steps.TopK() as step:
            return VectorAsTheyCome(step, given[0])
    return None


def _windows(step: steps.Aggregated, given: Schema) -> VectorStep:
    match step.window:
        case SessionWindow():
            return VectorSessions(step, given)
        case CountWindow():
            return VectorCounts(step, given)
        case TimeWindow(size, every, closing):
            if not closing.keep:
                return VectorWindows(step, given)
            return (VectorRevised if size <= every * OVERLAP_MAX else VectorAsTheyCome)(step, given)


def _numbered(keys: tuple[str, ...], given: Schema) -> bool:
    return all(given.column(key).type in NUMBERED for key in keys)


def _pairs(step: PairStep, given: tuple[Schema, ...]) -> bool:
    """Whether the keys of both sides can be numbered together."""
    left, right = given
    types = [
        (left.column(one).type, right.column(other).type) for one, other in zip(step.keys, step.right_keys, strict=True)
    ]
    return all(one == other and one in NUMBERED for one, other in types)
