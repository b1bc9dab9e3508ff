"""Revisions: a result that may be revised goes only where the newer one takes the place of the older."""

from __future__ import annotations

from collections.abc import Iterator

from catchment.errors import ProgramError
from catchment.plan.graph import Graph, Vertex
from catchment.plan.wiring import Wiring
from catchment.program import steps
from catchment.program.nodes import FieldRef
from catchment.program.types import Schema
from catchment.program.window import TimeWindow

_ENDS = (steps.Deliver, steps.Sink, steps.Subscribe)


def check(graph: Graph) -> Iterator[ProgramError]:
    """Follows the results of windows with `keep` to where they end."""
    wiring = Wiring(graph)
    for vertex in graph.vertices:
        match vertex.step:
            case steps.Aggregated(window=TimeWindow() as window) | steps.TopK(window=TimeWindow() as window) if (
                window.closing.keep > 0
            ):
                yield from _follow(vertex, wiring, vertex.step.keys)
            case _:
                pass


def _follow(vertex: Vertex, wiring: Wiring, keys: tuple[str, ...]) -> Iterator[ProgramError]:
    schema = vertex.schemas[0]
    port = (vertex.id, 0)
    for reader in (*(found for found, _ in wiring.readers(port)), *wiring.looped.get(port, ())):
        match reader.step:
            case steps.Select():
                lost = _lost(reader.step, schema, keys)
                if lost is None:
                    yield from _follow(reader, wiring, keys)
                elif lost == "":
                    yield _refused(reader)
                else:
                    yield ProgramError(
                        "C254",
                        f"{reader.id} leaves out {lost} of results that may be revised",
                        why="a reader keeps the highest revision of each key and window, and must be able to tell them",
                        fix=f"keep it in the record: {_declare(lost)}",
                        at=reader.line.source(),
                    )
            case steps.Union() if len(reader.inputs) == 1:
                yield from _follow(reader, wiring, keys)
            case _ if isinstance(reader.step, _ENDS):
                yield from _follow(reader, wiring, keys)
            case _:
                yield _refused(reader)


def _lost(step: steps.Select, schema: Schema, keys: tuple[str, ...]) -> str | None:
    """A field that tells revisions apart and is left out; "" where something is computed; None where all is well."""
    kept = set()
    for column in step.columns:
        match column.value:
            case FieldRef(name):
                if column.name == name or name == schema.event_time:
                    kept.add(name)
            case _:
                return ""
    missing = next((name for name in ("revision", *keys) if name not in kept), None)
    when = {"window_start", "window_end", schema.event_time}
    return missing if missing is not None or kept & when else "window_start"


def _declare(name: str) -> str:
    match name:
        case "revision":
            return "revision: cm.Field[int]"
        case "window_start":
            return "window_start: cm.Field[cm.Instant]"
        case _:
            return f"{name}, the key"


def _refused(reader: Vertex) -> ProgramError:
    return ProgramError(
        "C253",
        f"{reader.id} is fed results that may be revised",
        why="it would take a revision for one more result, or let an older one stand that the newer should replace",
        fix="leave keep= out of the window and take its .late elements, or put this step before the window",
        at=reader.line.source(),
    )
