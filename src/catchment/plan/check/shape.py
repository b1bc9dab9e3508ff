"""Well-formed: one edge at each input, something reads each output, both ends of an edge agree on its elements."""

from __future__ import annotations

from collections.abc import Iterator

from catchment.errors import ProgramError
from catchment.plan.graph import Graph, Vertex
from catchment.plan.references import expressions
from catchment.plan.wiring import Wiring
from catchment.program import steps
from catchment.program.types import Schema
from catchment.program.typing import infer

_PAIRS = (steps.Join, steps.Zip, steps.Combine)
_SAME = (
    steps.Where,
    steps.KeyBy,
    steps.Union,
    steps.Changes,
    steps.Moved,
    steps.Subscribe,
    steps.Deliver,
    steps.Sink,
)
"""Steps that give what they are given."""
_EFFECTS = (steps.Sink, steps.Deliver, steps.Subscribe)
"""Steps that are there for what they do outside."""


def inputs(graph: Graph) -> Iterator[ProgramError]:
    """Each input port has exactly one edge, from a step that stands before."""
    before: dict[str, Vertex] = {}
    for vertex in graph.vertices:
        least, most = _inputs(vertex)
        if not least <= len(vertex.inputs) <= most:
            yield ProgramError(
                "C241",
                f"{vertex.id} has {len(vertex.inputs)} inputs",
                why=f"a {_kind(vertex)} has {least if least == most else 'at least one'}, with one edge for each",
                fix="compose it with the methods of Stream, which connect each input once",
                at=vertex.line.source(),
            )
        for name, port in vertex.inputs:
            if name not in before or port >= len(before[name].schemas) or isinstance(before[name].step, steps.Sink):
                yield ProgramError(
                    "C246",
                    f"{vertex.id} reads {name}[{port}], which no step before it gives",
                    why="elements flow one way; what comes round comes by a feedback edge",
                    fix="begin the cycle with program.loop(Record, name), and end it with close_loop(name, stream)",
                    at=vertex.line.source(),
                )
        before[vertex.id] = vertex


def _inputs(vertex: Vertex) -> tuple[int, float]:
    if isinstance(vertex.step, steps.SOURCES):
        return 0, 0
    if isinstance(vertex.step, _PAIRS):
        return 2, 2
    return (1, float("inf")) if isinstance(vertex.step, steps.Union) else (1, 1)


def outputs(graph: Graph) -> Iterator[ProgramError]:
    """Something reads what each step gives: a step, a feedback edge, or the outside by the stream's name."""
    wiring = Wiring(graph)
    for vertex in graph.vertices:
        ports = [(vertex.id, number) for number in range(len(vertex.schemas))]
        if isinstance(vertex.step, _EFFECTS) or any(wiring.read(port) or port in wiring.named for port in ports):
            continue
        yield ProgramError(
            "C240",
            f"the result of {_kind(vertex)} in {vertex.stream} goes nowhere",
            why="streams do not change: each step gives a new one, and this one is neither used nor returned",
            fix="use what the step returns, or leave the step out",
            at=vertex.line.source(),
        )


def alphabets(graph: Graph) -> Iterator[ProgramError]:
    """What a step is made for is what its inputs bring."""
    wiring = Wiring(graph)
    for vertex in graph.vertices:
        sides = tuple(wiring.by_id[name].schemas[port] for name, port in vertex.inputs)
        problem = _expects(vertex, sides)
        if problem is not None:
            yield _disagree(vertex, problem)
            continue
        try:
            for node in expressions(vertex.step):
                infer(node, sides)
        except ProgramError as error:
            yield _disagree(vertex, error.what)
    for (name, port), start in graph.loops:
        given, takes = wiring.by_id[name].schemas[port], wiring.by_id[start].schemas[0]
        if given.fingerprint != takes.fingerprint:
            yield _disagree(wiring.by_id[start], f"it begins with {takes.name} and is fed {given.name}")


def _expects(vertex: Vertex, sides: tuple[Schema, ...]) -> str | None:
    step = vertex.step
    if isinstance(step, _SAME):
        other = next((side for side in sides if side.fingerprint != vertex.schemas[0].fingerprint), None)
        if other is not None:
            return f"it gives {vertex.schemas[0].name} as it came, and is given {other.name}"
    if isinstance(step, steps.LATE_PORTS):
        if tuple(schema.fingerprint for schema in vertex.schemas[1:]) != tuple(side.fingerprint for side in sides):
            return "its late elements are not those of its inputs"
        for side, keys in zip(sides, (step.keys, getattr(step, "right_keys", ())), strict=False):
            missing = next((key for key in keys if key not in side.names), None)
            if missing is not None:
                return f"its key {missing} is no field of {side.name}"
    return None


def _disagree(vertex: Vertex, problem: str) -> ProgramError:
    return ProgramError(
        "C242",
        f"{vertex.id} does not fit what it reads: {problem}",
        why="the elements that an edge brings are those that the step at its end was made for",
        fix="compose it with the methods of Stream, or put a select(Record, ...) between",
        at=vertex.line.source(),
    )


_SAID = {
    steps.KeyBy: "key_by",
    steps.Aggregated: "agg",
    steps.TopK: "top",
    steps.Running: "state",
    steps.Processed: "process",
    steps.Append: "source",
    steps.External: "read",
    steps.Feedback: "loop",
}
"""What an author calls a step, where that is not its own name."""


def _kind(vertex: Vertex) -> str:
    return _SAID.get(type(vertex.step), type(vertex.step).__name__.lower())
