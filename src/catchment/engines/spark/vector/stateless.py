"""Stateless steps over columns: filters, projections and declared functions, with their failing rows set apart."""

from __future__ import annotations

import numpy as np

from catchment.engines.spark.rows import Rows, column_of
from catchment.engines.spark.vector.flow import Flow, VectorStep, kinds_of
from catchment.engines.spark.vector.projection import VectorProjection, times
from catchment.engines.spark.vector_expressions import VectorExpressions
from catchment.operators.map import record_of, records
from catchment.operators.projection import time_position
from catchment.operators.stateless import calling
from catchment.program import steps
from catchment.program.function import declared
from catchment.program.row_error import RowError
from catchment.program.types import BOOL, Row, Schema


class VectorPassing(VectorStep):
    """Sources, `key_by`, deliveries and sinks: everything as it came."""

    def run(self, flow: Flow) -> tuple[Flow, ...]:
        return (flow,)


class VectorWhere(VectorStep):
    """Keep where the predicate is true."""

    def __init__(self, step: steps.Where, given: Schema) -> None:
        self._predicate = VectorExpressions(given, (step.predicate,), (BOOL,))

    def run(self, flow: Flow) -> tuple[Flow, ...]:
        computed = self._predicate(flow.rows)
        (column,) = computed.columns
        kept = column.values if column.valid is None else column.values & column.valid
        good = self.fail(flow.rows, computed.reasons())
        if good is not None:
            kept = kept & good
        return (Flow(flow.rows if kept.all() else flow.rows.take(kept), flow.controls),)


class VectorSelect(VectorStep):
    """New fields computed from the old."""

    def __init__(self, step: steps.Select, given: Schema) -> None:
        self._projection = VectorProjection(step.columns, given, step.record)

    def run(self, flow: Flow) -> tuple[Flow, ...]:
        rows = flow.rows
        made = self._projection(rows)
        good = self.fail(rows, made.reasons)
        given = Rows(made.at, rows.source, rows.place, rows.sources, made.columns)
        return (Flow(given if good is None else given.take(good), flow.controls),)


class VectorMap(VectorStep):
    """A declared function of each element: a loop, for it is the author's Python."""

    def __init__(self, step: steps.Map, given: Schema) -> None:
        function = declared(step.function)
        self._of = function.annotations[0].of
        self._body = calling(function.body)
        one = record_of(step.record)
        self._made = records(step.record) if step.many else lambda returned: [one(returned)]
        self._kinds = kinds_of(step.record)
        self._time = time_position(step.record)

    def run(self, flow: Flow) -> tuple[Flow, ...]:
        given: list[Row] = []
        causes: list[int] = []
        reasons: dict[int, str] = {}
        for number, row in enumerate(flow.rows.objects()):
            try:
                found = self._made(self._body(self._of(row)))
            except RowError as error:
                reasons[number] = error.reason
                continue
            given += found
            causes += [number] * len(found)
        self.fail(flow.rows, reasons)
        cause = np.array(causes, np.int64)
        rows = flow.rows
        columns = [column_of([row[place] for row in given], kind) for place, kind in enumerate(self._kinds)]
        made = Rows(rows.at[cause], rows.source[cause], rows.place[cause], rows.sources, columns)
        made.at = times(made.columns, self._time, made.at)
        return (Flow(made, flow.controls),)


class VectorSubscribe(VectorStep):
    """Tell a declared function of each element."""

    def __init__(self, step: steps.Subscribe, given: Schema) -> None:
        function = declared(step.function)
        self._of = function.annotations[0].of
        self._body = calling(function.body)

    def run(self, flow: Flow) -> tuple[Flow, ...]:
        reasons: dict[int, str] = {}
        for number, row in enumerate(flow.rows.objects()):
            try:
                self._body(self._of(row))
            except RowError as error:
                reasons[number] = error.reason
        good = self.fail(flow.rows, reasons)
        return (flow if good is None else Flow(flow.rows.take(good), flow.controls),)
