"""Which aggregate computes what a step asks for."""

from __future__ import annotations

from collections.abc import Callable

from catchment.errors import InternalError
from catchment.operators.aggregates.aggregate import Aggregate
from catchment.operators.aggregates.collect import Collect
from catchment.operators.aggregates.counting import Count
from catchment.operators.aggregates.ends import First, Last
from catchment.operators.aggregates.exact import ExactMean, ExactSum, ExactVariance
from catchment.operators.aggregates.extremes import Max, Min
from catchment.operators.aggregates.floats import FloatMean, FloatSum, FloatVariance
from catchment.operators.aggregates.fourier import PlacedFourier, TimedFourier
from catchment.operators.aggregates.frequency import CountDistinct, Top
from catchment.operators.aggregates.user import User
from catchment.program.aggregate import NamedAggregate
from catchment.program.types import DURATION, FLOAT, INT, Schema
from catchment.program.typing import infer

_NUMERIC: dict[str, tuple[Callable[[float | None], Aggregate], Callable[[], Aggregate]]] = {
    "sum": (ExactSum, FloatSum),
    "mean": (ExactMean, FloatMean),
    "variance": (ExactVariance, FloatVariance),
}
_SIMPLE: dict[str, Callable[[], Aggregate]] = {
    "count": Count,
    "min": Min,
    "max": Max,
    "first": First,
    "last": Last,
    "collect": Collect,
}


def aggregate_of(named: NamedAggregate, schema: Schema, size: int | None) -> Aggregate:
    """The aggregate over elements of this schema; `size` is that of a window of time, None elsewhere."""
    call = named.call
    kind = infer(call.args[0], (schema,)).type if call.args else INT
    match call.function:
        case "sum" | "mean" | "variance":
            exact, of_floats = _NUMERIC[call.function]
            if kind in (INT, DURATION):
                return exact(None)
            return of_floats() if call.step is None or kind != FLOAT else exact(call.step)
        case "count_distinct":
            return CountDistinct()
        case "top":
            return Top(call.k, kind)
        case "dft":
            return PlacedFourier(call.k) if size is None else TimedFourier(call.k, size)
        case "user":
            return User(call, named.type, named.nullable)
        case name if name in _SIMPLE:
            return _SIMPLE[name]()
        case name:
            raise InternalError(
                "I320",
                f"there is no aggregate {name!r}",
                why="a plan names one that this version does not have",
                fix="run the plan with the version that it was built with",
            )
