"""The operator of a step: the one place that knows which class runs what."""

from __future__ import annotations

from catchment.errors import InternalError
from catchment.operators.aggregates.bundle import Bundle
from catchment.operators.changes import Changes
from catchment.operators.combine import Combine
from catchment.operators.contents import Contents
from catchment.operators.contract import Operator
from catchment.operators.fold import Fold
from catchment.operators.joins.interval import IntervalJoin
from catchment.operators.joins.latest import LatestJoin
from catchment.operators.joins.window import WindowJoin
from catchment.operators.map import Map
from catchment.operators.moved import Moved
from catchment.operators.passing import Passing
from catchment.operators.process import Processed
from catchment.operators.ranking import Ranking
from catchment.operators.running import Running
from catchment.operators.select import Select
from catchment.operators.subscribe import Subscribe
from catchment.operators.union import Union
from catchment.operators.where import Where
from catchment.operators.windows.counts import CountWindows
from catchment.operators.windows.panes import PaneWindows
from catchment.operators.windows.sessions import Sessions
from catchment.operators.windows.whole import WholeWindows
from catchment.operators.zip import Zip
from catchment.program import steps
from catchment.program.types import Schema
from catchment.program.window import CountWindow, SessionWindow, TimeWindow


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
        case steps.Changes():
            return Changes(step, given[0])
        case steps.Moved():
            return Moved(step, given[0])
        case steps.Aggregated():
            size = step.window.size if isinstance(step.window, TimeWindow) else None
            return _windows(step, given[0], Bundle(step.aggregates, given[0], size), panes=step.panes)
        case steps.TopK():
            return _windows(step, given[0], Ranking(step, given[0]), panes=True)
        case steps.Join(how="window", window=TimeWindow() as window):
            return WindowJoin(step, window, given)
        case steps.Join(how="interval"):
            return IntervalJoin(step, given)
        case steps.Join(how="latest"):
            return LatestJoin(step, given)
        case steps.Zip():
            return Zip(step, given)
        case steps.Combine():
            return Combine(step, given)
        case steps.Running():
            return Running(step, given[0])
        case steps.Fold():
            return Fold(step, given[0])
        case steps.Processed():
            return Processed(step, given[0])
    raise InternalError(
        "I321",
        f"no operator runs a {type(step).__name__}",
        why="the step is newer than this version",
        fix="run the plan with the version that it was built with",
    )


def _windows(step: steps.Aggregated | steps.TopK, given: Schema, contents: Contents, *, panes: bool) -> Operator:
    match step.window:
        case TimeWindow() as window:
            of_time = PaneWindows if panes else WholeWindows
            return of_time(window, step.keys, step.scope, given, contents)
        case SessionWindow() as window:
            return Sessions(window, step.keys, step.scope, given, contents)
        case CountWindow() as window:
            return CountWindows(window, step.keys, step.scope, given, contents)
