"""The function that takes the elements of a window of time, generated for the step: its key, its expressions and its
aggregates are in place, since this is what runs most often of all.

Both kinds of windows begin alike: the key, its group, who was heard, and where the group's closed windows end. Then
comes what they do with the element, as source of their own.
"""

from __future__ import annotations

from typing import Any

from catchment.operators.contract import Port, Quarantine
from catchment.operators.inlined import Inlined, defined, indented
from catchment.operators.waiting import Take, Waiting
from catchment.program.row_error import RowError
from catchment.program.types import Schema


def generated(
    waiting: Waiting,
    schema: Schema,
    keys: tuple[str, ...],
    late: Port,
    quarantine: Quarantine,
    body: list[str],
    bindings: dict[str, Any],
) -> Take:
    """The function. The body sees `at`, `source`, `row`, `name` (of the key), `group` and `closed`."""
    fields = [f"row[{schema.position(name)}]" for name in keys]
    lines = [
        f"name = {fields[0] if len(fields) == 1 else '(' + ', '.join(fields) + ')'}",
        "if hears[0] is not source:",
        "    heard(0, source)",
        "    hears[0] = source",
        *closed_source(waiting, len(fields)),
        *body,
    ]
    take: Take = defined(
        "take",
        "at, source, row",
        lines,
        {
            "RowError": RowError,
            "hears": waiting.hears[0],
            "heard": waiting.tracker.heard,
            "marks": waiting.tracker.marks,
            "mark_of": waiting.mark,
            "closes": waiting.closes,
            "late": late.element,
            "quarantine": quarantine,
            **bindings,
        },
    )
    return take


def closed_source(waiting: Waiting, fields: int) -> list[str]:
    """The group of `name`, and where its closed windows end."""
    position = waiting.grouping.position
    if position is None:
        return ["group = None", "closed = closes[0]"]
    return [
        f"group = name{'' if fields == 1 else f'[{position}]'}",
        "mark = marks.get(group)",
        "if mark is None:",
        "    mark = mark_of(group)",
        f"closed = mark - {waiting.grace}",
    ]


def looking(inlined: Inlined) -> list[str]:
    """Look at the element; one that fails goes to quarantine."""
    if not inlined.fails:
        return inlined.look
    return [
        "try:",
        *indented(inlined.look, 1),
        "except RowError as error:",
        "    quarantine(error, row)",
        "    return",
    ]
