"""Steps that pair the elements of two streams: join, join_latest, zip, combine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from catchment.errors import ProgramError, SourceLine
from catchment.program import steps
from catchment.program.columns import by_name, check_keys, conform, named_columns, outer_side, scope_of, sided
from catchment.program.making.draft import Draft, Given, expression, given_by
from catchment.program.nodes import Call, FieldRef, Node
from catchment.program.types import Schema
from catchment.program.window import Closing, CountWindow, SessionWindow, TimeWindow, closing_or_usual


def pair(
    kind: Callable[..., steps.Step],
    left: Given,
    other: object,
    into: Schema | None,
    columns: dict[str, Any],
    at: SourceLine,
    *,
    optional: tuple[int, ...] = (),
    **more: Any,
) -> Draft:
    """A step of that kind. Fields of `into` that are not said are taken by name, the left side first."""
    right = given_by(other, kind.__name__.lower(), at)
    check_keys(left.schema, left.keys, right.schema, right.keys, at)
    sides = (outer_side(left.schema, 0 in optional), outer_side(right.schema, 1 in optional))
    given = {name: sided(expression(value, sides, at), sides, at) for name, value in columns.items()}
    if into is not None:
        given = {**by_name(into, sides), **_time(into, left.schema, right.schema), **given}
    elif not columns:
        given = {**by_name(sides[1], sides), **by_name(sides[0], sides)}
    found = named_columns(given, sides, at)
    if into is not None and into.event_time not in columns:
        # One side is always there, whichever may be absent.
        found = tuple(replace(c, nullable=False) if c.name == into.event_time else c for c in found)
    schema = conform(found, into, sides, at)
    ordered = {column.name: column for column in found}
    step = kind(
        keys=left.keys,
        right_keys=right.keys,
        columns=tuple(ordered[name] for name in schema.names if name in ordered),
        scope=scope_of(left.schema, left.keys, right.schema, right.keys),
        record=schema,
        **more,
    )
    return Draft(step, schema, left.keys if all(key in schema.names for key in left.keys) else ())


def _time(into: Schema, left: Schema, right: Schema) -> dict[str, Node]:
    """When a pair happened, unless the author says otherwise: at the later of its two."""
    if into.event_time is None:
        return {}
    moments = [FieldRef(schema.event_time, side=side) for side, schema in enumerate((left, right)) if schema.event_time]
    match moments:
        case [one, other]:
            return {into.event_time: Call("greatest", (one, other))}
        case [one]:
            return {into.event_time: one}
        case _:
            return {}


def join(
    left: Given,
    other: object,
    into: Schema | None,
    columns: dict[str, Any],
    at: SourceLine,
    *,
    within: Any,
    outer: bool,
    closing: Closing | None,
) -> Draft:
    """Pairs within a window, or within (before, after)."""
    optional = (1,) if outer else ()
    match within:
        case TimeWindow() | SessionWindow() | CountWindow():
            if closing is not None:
                raise ProgramError(
                    "C265",
                    "a join within a window was given closing= as well",
                    why="the window says by itself when it closes",
                    fix="say it on the window: join(..., within=tumble(minutes(1), grace=seconds(10)))",
                    at=at,
                )
            said: dict[str, Any] = {"how": "window", "window": within, "closing": within.closing}
        case (int() as before, int() as after):
            if before < 0 or after < 0:
                raise ProgramError(
                    "C211",
                    f"join within ({before}, {after}) is empty",
                    why="before and after are how much earlier and later the right element may be",
                    fix="give two durations of zero or more",
                    at=at,
                )
            said = {"how": "interval", "before": before, "after": after, "closing": closing_or_usual(closing, at)}
        case _:
            raise ProgramError(
                "C266",
                f"join within {within!r}",
                why="two elements pair within a window, or within a distance in time",
                fix="write within=tumble(minutes(1)), or within=(minutes(1), minutes(1)) for before and after",
                at=at,
            )
    return pair(steps.Join, left, other, into, columns, at, optional=optional, outer=outer, **said)
