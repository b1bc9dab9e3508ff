"""Steps that give something for each window: aggregates, and the largest elements."""

from __future__ import annotations

from typing import Any

from catchment.errors import ProgramError, SourceLine
from catchment.program import steps
from catchment.program.aggregate import columns_of, named
from catchment.program.columns import plain_columns, scope_of, unlike, window_columns
from catchment.program.making.draft import Draft, Given, expression
from catchment.program.types import INT, Column, Schema
from catchment.program.typing import infer
from catchment.program.window import Window


def check(window: Any, at: SourceLine) -> Window:
    """The window itself, if it is one."""
    if isinstance(window, Window):
        return window
    raise ProgramError(
        "C270",
        f"window was given {window!r}",
        why="a window says which elements belong together, and when the result is due",
        fix="write window(tumble(minutes(1))), hop(...), session(...) or count_window(...)",
        at=at,
    )


def aggregate(given: Given, window: Window, aggregates: dict[str, Any], at: SourceLine) -> Draft:
    """The aggregates of each window."""
    found = named(given.schema, aggregates, at)
    if not found:
        raise ProgramError(
            "C214",
            "agg() computes nothing",
            why="a window gives its aggregates",
            fix="name one: agg(n=count())",
            at=at,
        )
    begin = window_columns(given.schema, given.keys)
    unlike(begin, tuple(aggregates), at)
    full = Schema(f"{given.schema.name}_windows", (*begin, *columns_of(found)))
    step = steps.Aggregated(window, found, given.keys, scope_of(given.schema, given.keys), full)
    return Draft(step, full, given.keys)


def top(given: Given, window: Window, k: int, by: Any, at: SourceLine) -> Draft:
    """The k elements with the largest value of each window, with their rank."""
    node = expression(by, (given.schema,), at)
    infer(node, (given.schema,), at)
    if k < 1:
        raise ProgramError(
            "C215", f"top({k}) asks for nothing", why="k is how many elements", fix="give k=1 or more", at=at
        )
    fields = tuple(column for column in given.schema.fields if column.name not in given.keys)
    begin = (*window_columns(given.schema, given.keys), Column("rank", INT))
    plain = plain_columns(fields)
    unlike(begin, tuple(column.name for column in plain), at)
    full = Schema(f"{given.schema.name}_top", (*begin, *plain))
    step = steps.TopK(k, node, window, given.keys, scope_of(given.schema, given.keys), full)
    return Draft(step, full, given.keys)
