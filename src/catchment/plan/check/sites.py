"""Sites: what a site cannot run, and how results may go down to devices."""

from __future__ import annotations

from collections.abc import Iterator

from catchment.errors import ProgramError
from catchment.plan.crossing import edges, goes_down
from catchment.plan.graph import Graph, Vertex
from catchment.plan.references import references
from catchment.plan.wiring import Wiring
from catchment.program import steps
from catchment.program.function import declared
from catchment.program.sampling import DEVICE_CONTEXT, INFERRED
from catchment.program.sinks import CALLBACK, PARQUET, POSTGRES
from catchment.program.site import Site

_CLOUD_SINKS = frozenset({PARQUET, POSTGRES, CALLBACK})
"""Sinks that Spark's executors write."""


def check(graph: Graph) -> Iterator[ProgramError]:
    """Refuses a step at a site that lacks what it needs, and an edge down to devices that names none of them."""
    wiring = Wiring(graph)
    for vertex in graph.vertices:
        yield from _step(vertex)
        for reference in references(vertex.step):
            yield from _code(vertex, reference)
        if isinstance(vertex.step, steps.Deliver) and wiring.by_id[vertex.inputs[0][0]].site == Site.DEVICE:
            yield ProgramError(
                "C262",
                f"{wiring.by_id[vertex.inputs[0][0]].stream} is delivered to devices, and is made there",
                why="deliver brings results down; what is on one device reaches the others by way of the cloud",
                fix="bring it up first: deliver a stream at=cm.CLOUD that is made of it",
                at=vertex.line.source(),
            )
    for (name, _), target in edges(graph):
        start = wiring.by_id[name]
        if goes_down(start.site, target.site) and not isinstance(target.step, steps.Deliver):
            yield ProgramError(
                "C261",
                f"{target.stream} runs at {target.site} and reads {start.stream}, which is made at {start.site}",
                why="results go down to the devices that a field of theirs names, and here none is named",
                fix=f"mine = program.deliver({start.stream}, by=Record.user), and use mine in {target.stream}",
                at=target.line.source(),
            )


def _step(vertex: Vertex) -> Iterator[ProgramError]:
    match vertex.step:
        case steps.Sensor() if vertex.site != Site.DEVICE:
            yield ProgramError(
                "C259",
                f"{vertex.stream} reads the sensor {vertex.step.sensor!r} at {vertex.site}",
                why="sensors are on devices",
                fix="read it in a stream at=cm.DEVICE, and take that stream as a parameter here",
                at=vertex.line.source(),
            )
        case steps.External() if vertex.site != Site.CLOUD:
            yield ProgramError(
                "C251",
                f"{vertex.stream} reads {vertex.step.connector!r} at {vertex.site}",
                why="sources that Spark reads are read in the cloud",
                fix="read it in a stream at=cm.CLOUD",
                at=vertex.line.source(),
            )
        case steps.Sink(steps.SURROUNDINGS) if vertex.site != Site.DEVICE or not _says(vertex):
            yield ProgramError(
                "C288",
                f"{vertex.stream} tells a device nothing of its surroundings",
                why=f"that is said on the device itself, by fields such as {', '.join(INFERRED)} of these types",
                fix="sink a stream at=cm.DEVICE of a record with indoors: cm.Field[bool] or another of these",
                at=vertex.line.source(),
            )
        case steps.Sink() if vertex.site != Site.CLOUD and vertex.step.connector in _CLOUD_SINKS:
            yield ProgramError(
                "C263",
                f"{vertex.step.connector!r} is written at {vertex.site}",
                why="such a sink is written by Spark, in the cloud",
                fix="bring the stream up first: sink a stream at=cm.CLOUD that returns it",
                at=vertex.line.source(),
            )
        case _:
            pass


def _says(vertex: Vertex) -> bool:
    """Whether an element says something of the surroundings, each as what it is."""
    said = [column for column in vertex.schemas[0].fields if column.name in INFERRED]
    return bool(said) and all(column.type == DEVICE_CONTEXT.column(column.name).type for column in said)


def _code(vertex: Vertex, reference: str) -> Iterator[ProgramError]:
    runs_on: tuple[Site, ...] = declared(reference).runs_on
    if vertex.site not in runs_on:
        name = reference.partition("@")[0].rpartition(":")[2]
        places = ", ".join(f"cm.{site.name}" for site in runs_on)
        yield ProgramError(
            "C260",
            f"{name} cannot run at {vertex.site}",
            why=f"it is declared with runs_on=({places},), and {vertex.stream} is at={vertex.site}",
            fix=f"use it in a stream at=cm.{runs_on[0].name}, or add cm.{vertex.site.name} to its runs_on",
            at=vertex.line.source(),
        )
