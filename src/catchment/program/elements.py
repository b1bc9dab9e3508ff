"""Many elements of many keys at once, as columns: what `on_elements` of a process is given.

Arrays are numpy's, where numpy is; this module needs none of it. A key's elements lie together, in the order in which
`on_element` would have been given them, keys one behind the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

NOT_SET = -(1 << 63)
"""The moment of a timer that is not set."""


class Elements:
    """Elements and state of many keys. `elements["speed_mps"]` is a field of all elements."""

    __slots__ = ("_columns", "at", "forgotten", "given", "keys", "starts", "state", "timers")

    def __init__(
        self,
        keys: list[tuple[Any, ...]],
        starts: Any,
        at: Any,
        columns: Mapping[str, Any],
        state: dict[str, Any],
        timers: defaultdict[str, Any],
        forgotten: Any,
    ) -> None:
        self.keys = keys
        """The key of each."""
        self.starts = starts
        """Where the elements of each key begin, and after the last where all end: one more than there are keys."""
        self.at = at
        """When each element happened."""
        self.state = state
        """The declared fields of the state, an array of one value per key each: change them, or put others there."""
        self.forgotten = forgotten
        """Of each key, whether it is to be forgotten after its elements: false until set."""
        self._columns = columns
        self.timers = timers
        """The moments of event-time timers by name, per key, `NOT_SET` where there is none: to be changed."""
        self.given: list[tuple[Any, Any, Mapping[str, Any]]] = []

    def __getitem__(self, field: str) -> Any:
        """A field of all elements: numbers as an array of them, everything else as an array of objects."""
        return self._columns[field]

    def give(self, cause: Any, fields: Mapping[str, Any], *, due: Any = None) -> None:
        """Results, as an array or a list for each field.

        `cause` is the number of the element whose call would have given each; with `due`, a timer that was due at that
        moment would have, before that element.
        """
        self.given.append((cause, due, fields))
