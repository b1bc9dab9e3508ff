"""What a plan can hold of an author's own values: JSON's, frozen, the same after a journey as before it.

>>> plain([1, (2.5, "x")], "limits")
(1, (2.5, 'x'))

A list becomes a tuple, because one value serves many keys and may not change under one of them.
"""

from __future__ import annotations

import math
from typing import Any

from catchment.errors import ProgramError, SourceLine, author_line

INTEGER_MAX = 2**53 - 1
"""A larger whole number would lose its last digits in a reader written in JavaScript."""


def plain(value: Any, what: str, at: SourceLine | None = None) -> Any:
    """The value as a plan holds it."""
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if kind is int and -INTEGER_MAX <= value <= INTEGER_MAX:
        return value
    if kind is float and math.isfinite(value):
        return value
    if kind in (tuple, list):
        return tuple([plain(item, what, at) for item in value])
    if kind is dict and all(type(name) is str for name in value):
        return {name: plain(value[name], what, at) for name in sorted(value)}
    raise ProgramError(
        "C274",
        f"{what} is {value!r}, a {kind.__name__}",
        why="a plan is JSON: it holds texts, finite numbers within 2^53, booleans, None, and lists and dicts of these",
        fix="pass one of these: None for no limit, str(path) for a path, a list for a set",
        at=at if at is not None else author_line(),
    )
