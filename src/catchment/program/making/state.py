"""Steps that remember: changes, moved, state, fold, process."""

from __future__ import annotations

from typing import Any, get_args

from catchment.errors import ProgramError, SourceLine
from catchment.program import steps
from catchment.program.aggregate import columns_of, named
from catchment.program.columns import at_column, key_columns, scope_of, unlike
from catchment.program.function import record_schema, require
from catchment.program.making.draft import Draft, Given, expression
from catchment.program.nodes import FieldRef
from catchment.program.process import Process
from catchment.program.types import FLOAT, INT, Duration, Schema
from catchment.program.typing import infer
from catchment.program.window import Closing, closing_or_usual


def changes(given: Given, values: tuple[Any, ...], at: SourceLine) -> Draft:
    """Keep an element when a value differs."""
    nodes = tuple(expression(value, (given.schema,), at) for value in values)
    nodes = nodes or tuple(FieldRef(name) for name in given.schema.names)
    for node in nodes:
        infer(node, (given.schema,), at)
    return Draft(steps.Changes(nodes, given.keys), given.schema, given.keys)


def moved(given: Given, by: float, lat_deg: Any, lon_deg: Any, at: SourceLine) -> Draft:
    """Keep an element when it lies farther away."""
    nodes = []
    for place, name in ((lat_deg, "lat_deg"), (lon_deg, "lon_deg")):
        if place is None and name not in given.schema.names:
            raise ProgramError(
                "C207",
                f"moved does not find {name} on {given.schema.name}",
                why="it measures the distance between places",
                fix="name fields in degrees: moved(by=..., lat_deg=..., lon_deg=...)",
                at=at,
            )
        node = expression(place, (given.schema,), at) if place is not None else FieldRef(name)
        if infer(node, (given.schema,), at).type not in (FLOAT, INT):
            raise ProgramError(
                "C208",
                f"{name} is not a number",
                why="moved measures distance from degrees",
                fix="give a float field in degrees",
                at=at,
            )
        nodes.append(node)
    if not by > 0:
        raise ProgramError(
            "C209",
            f"moved(by={by}) keeps everything",
            why="by is a distance in metres",
            fix="give by=metres(10)",
            at=at,
        )
    return Draft(steps.Moved(float(by), nodes[0], nodes[1], given.keys), given.schema, given.keys)


def state(
    given: Given, order: steps.Order, closing: Closing | None, aggregates: dict[str, Any], at: SourceLine
) -> Draft:
    """The aggregates of all elements so far."""
    found = named(given.schema, aggregates, at)
    if not found:
        raise ProgramError(
            "C267",
            "state() computes nothing",
            why="a stateful stream gives its aggregates after each element",
            fix="name one: state(n=count())",
            at=at,
        )
    begin = (*key_columns(given.schema, given.keys), at_column())
    unlike(begin, tuple(aggregates), at)
    full = Schema(f"{given.schema.name}_state", (*begin, *columns_of(found)))
    scope = scope_of(given.schema, given.keys)
    return Draft(steps.Running(found, given.keys, scope, full, *_waiting(order, closing, at)), full, given.keys)


def fold(
    given: Given, function: Any, initial: Any, order: steps.Order, closing: Closing | None, at: SourceLine
) -> Draft:
    """The state that a declared function makes of the one before and an element."""
    known = require(function, "fold")
    name = known.body.__name__
    gives = record_schema(known.returns, f"the result of {name}")
    if len(known.annotations) != 2 or record_schema(known.annotations[0], "the state") != gives:
        raise ProgramError(
            "C216",
            f"{name} is not a fold of {gives.name}",
            why="a fold takes the state and an element, and gives the next state",
            fix=f"declare it as def {name}(state: {gives.name}, element: {given.schema.name}) -> {gives.name}",
            at=at,
        )
    takes = record_schema(known.annotations[1], "the element")
    if takes != given.schema:
        raise ProgramError(
            "C217",
            f"{name} folds {takes.name}, and the stream has {given.schema.name}",
            why="a fold is given the elements of the stream it stands on",
            fix=f"declare its second parameter as {given.schema.name}",
            at=at,
        )
    if getattr(type(initial), "schema", None) != gives:
        raise ProgramError(
            "C268",
            f"the fold of {gives.name} begins with {initial!r}",
            why=f"the first element of a key is folded into the state that it begins with, a {gives.name}",
            fix=f"begin with {gives.name}({', '.join(f'{n}=...' for n in gives.names)})",
            at=at,
        )
    scope = scope_of(given.schema, given.keys)
    step = steps.Fold(known.reference, tuple(initial), given.keys, scope, gives, *_waiting(order, closing, at))
    return Draft(step, gives, given.keys if all(key in gives.names for key in given.keys) else ())


def process(
    given: Given,
    process: Any,
    order: steps.Order,
    closing: Closing | None,
    ttl: Duration | None,
    at: SourceLine,
) -> Draft:
    """An author's own keyed step."""
    if not isinstance(process, Process):
        raise ProgramError(
            "C212",
            f"process was given {f'the class {process.__name__}' if isinstance(process, type) else repr(process)}",
            why="a keyed step is an instance of a Process class, with its parameters",
            fix="write process(SegmentTrips(gap=minutes(5)))",
            at=at,
        )
    name = type(process).__name__
    takes = record_schema(process.element_type, f"the element of {name}")
    gives = record_schema(process.output_type, f"the output of {name}")
    if takes != given.schema:
        raise ProgramError(
            "C213",
            f"{name} takes {takes.name}, and the stream has {given.schema.name}",
            why="a process is given the elements of the stream it stands on",
            fix=f"select({takes.name}, ...) first, or declare the process for {given.schema.name}",
            at=at,
        )
    if ttl is not None and ttl <= 0:
        raise ProgramError(
            "C269",
            f"process(ttl={ttl}) forgets a key at once",
            why="ttl is how long after its last element a key is remembered",
            fix="give it a duration such as days(7), or leave it out to remember for ever",
            at=at,
        )
    reference: str = vars(process)["reference"]
    scope = scope_of(given.schema, given.keys)
    waiting = _waiting(order, closing, at)
    step = steps.Processed(reference, process.parameters, given.keys, scope, gives, *waiting, ttl)
    return Draft(step, gives, given.keys if all(key in gives.names for key in given.keys) else ())


def _waiting(order: steps.Order, closing: Closing | None, at: SourceLine) -> tuple[steps.Order, Closing]:
    if order not in get_args(steps.Order):
        raise ProgramError(
            "C282",
            f"order={order!r} is no order",
            why="elements are taken by when they happened, or as they come",
            fix='write order="event_time" or order="arrival"',
            at=at,
        )
    return order, closing_or_usual(closing, at)
