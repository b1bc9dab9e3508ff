"""Keys of elements, as functions compiled for the fields that a step names.

A key is the tuple of its fields' values. Its group is the value of the stamped field among them, whose sources'
promises the step waits for; a key without one, and a step of scope `all`, has the one group of all.

>>> from catchment.program.types import INT, STR, Column
>>> fix = Schema("Fix", (Column("n", INT), Column("user", STR, stamp="user")))
>>> key_of(fix, ("user", "n"))((7, "ada")), key_of(fix, ())((7, "ada"))
(('ada', 7), ())
>>> Grouping.of(fix, ("n", "user"), "own").position
1
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from catchment.operators.members import Group
from catchment.operators.progress import own
from catchment.plan.history import Source
from catchment.program.steps import Scope
from catchment.program.types import Row, Schema

Key = tuple[Any, ...]


def key_of(schema: Schema, keys: tuple[str, ...]) -> Callable[[Row], Key]:
    """The key of an element."""
    positions = [schema.position(key) for key in keys]
    if not positions:
        return lambda row: ()
    if len(positions) == 1:
        only = positions[0]
        return lambda row: (row[only],)
    return itemgetter(*positions)


@dataclass(frozen=True, slots=True)
class Grouping:
    """Which part of a key is its group, and which sources are in it. `position` None: all are one group."""

    position: int | None
    stamp: str | None

    @classmethod
    def of(cls, schema: Schema, keys: tuple[str, ...], scope: Scope) -> Grouping:
        """The grouping of a step whose (left) input has this schema."""
        if scope == "all":
            return cls(None, None)
        for position, key in enumerate(keys):
            stamp = schema.column(key).stamp
            if stamp is not None:
                return cls(position, stamp)
        return cls(None, None)

    @property
    def of_source(self) -> Callable[[Source], Group] | None:
        """The group of a source, as a tracker wants it."""
        return None if self.position is None else own(self.stamp)

    def of_key(self, key: Key) -> Group:
        """The group of a key."""
        return None if self.position is None else key[self.position]


def collapsed(group: Group) -> Source:
    """The source of what a step gives for a group."""
    return Source("", group)
