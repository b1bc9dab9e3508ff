"""The operator of a step: the one place that knows which class runs what."""

from __future__ import annotations

from catchment.errors import InternalError
from catchment.operators.aggregates.bundle import Bundle
from catchment.operators.contract import Operator
from catchment.operators.map import Map
from catchment.operators.passing import Passing
from catchment.operators.ranking import Ranking
from catchment.operators.running import Running
from catchment.operators.select import Select
from catchment.operators.subscribe import Subscribe
from catchment.operators.union import Union
from catchment.operators.where import Where
from catchment.operators.windows.panes import PaneWindows
from catchment.operators.windows.whole import WholeWindows
from catchment.program import steps
from catchment.program.types import Schema
from catchment.program.window import TimeWindow


def operator_of(step: steps.Step, given: tuple[Schema, ...]) -> Operator:
    """The operator, whose inputs have these schemas. Of a source: that of its record."""
    match step:
        case steps.Where():
            return Where(step, given[0])
        case steps.Select():
            return Select(step, given[0])
        case steps.Map():
            return Map(step, given[0])
        case steps.Subscribe():
            return Subscribe(step, given[0])
        case steps.KeyBy() | steps.Deliver() | steps.Sink():
            return Passing(given[0])
        case steps.Sensor() | steps.Timer() | steps.Append() | steps.External() | steps.Feedback():
            return Passing(step.record)
        case steps.Union():
            return Union(len(given))
        case steps.Aggregated(window=TimeWindow() as window):
            bundle = Bundle(step.aggregates, given[0], window.size)
            kind = PaneWindows if step.panes else WholeWindows
            return kind(window, step.keys, step.scope, given[0], bundle)
        case steps.TopK(window=TimeWindow() as window):
            return PaneWindows(window, step.keys, step.scope, given[0], Ranking(step, given[0]))
        case steps.Running():
            return Running(step, given[0])
    raise InternalError(
        "I321",
        f"no operator runs a {type(step).__name__}",
        why="the step is newer than this version",
        fix="run the plan with the version that it was built with",
    )
