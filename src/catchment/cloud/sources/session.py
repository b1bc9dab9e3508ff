"""What a session needs so that a plan's sources can be read, ready before Spark starts. Knows plans and settings."""

from __future__ import annotations

from collections.abc import Mapping

from catchment.cloud.sources import kafka
from catchment.cloud.sources.checks import KAFKA
from catchment.plan.physical import Plan
from catchment.program import steps

_JARS = "spark.jars"


def with_sources(plan: Plan, settings: Mapping[str, str]) -> dict[str, str]:
    """These settings, with the jars of the sources that a plan reads beside those that they name."""
    vertices = [vertex for part in plan.parts for vertex in part.vertices]
    read = [v for v in vertices if isinstance(v.step, steps.External) and v.step.connector == KAFKA]
    if not read:
        return dict(settings)
    for vertex in read:
        kafka.client(vertex)
    named = [jars for jars in (settings.get(_JARS), kafka.jars()) if jars]
    return {**settings, _JARS: ",".join(named)}
