"""The edge engine: event by event, in plain Python, on devices and region nodes."""

from catchment.engines.edge.engine import ROUNDS_MAX, EdgeEngine
from catchment.engines.edge.run import Virtual, run

__all__ = ["ROUNDS_MAX", "EdgeEngine", "Virtual", "run"]
