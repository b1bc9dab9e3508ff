"""`moved`: keep an element when it lies farther than so many metres from the last one kept.

What is null or not finite is no place: an element without one is kept only if nothing was kept yet, and one with a
place also if the last one kept has none.
"""

from __future__ import annotations

import math

from catchment.operators.builtins import distance_m
from catchment.operators.expressions import compile_row
from catchment.operators.kept import Kept
from catchment.operators.projection import functions_of
from catchment.program import steps
from catchment.program.types import Row, Schema

_Place = tuple[float, float] | None


class Moved(Kept):
    """What was seen is the place, if there is one."""

    def __init__(self, step: steps.Moved, given: Schema) -> None:
        super().__init__(step.keys, given)
        nodes = (step.lat_deg, step.lon_deg)
        self._degrees = compile_row(nodes, (given,), functions_of(nodes))
        self._by_m = step.by_m

    def look(self, row: Row) -> _Place:
        lat_deg, lon_deg = self._degrees(row)
        if lat_deg is None or lon_deg is None or not (math.isfinite(lat_deg) and math.isfinite(lon_deg)):
            return None
        return float(lat_deg), float(lon_deg)

    def differs(self, before: _Place, now: _Place) -> bool:
        if now is None:
            return False
        return before is None or distance_m(*before, *now) > self._by_m
