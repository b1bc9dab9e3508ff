"""What an aggregate is: a summary that begins empty, takes values one by one, merges, and gives a result.

Merging is associative, and commutative where `order` says what came first. `add` may change the summary that it is
given and returns the one to keep; `merge` and `remove` leave theirs alone. Summaries are saved as plain data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

Summary: TypeAlias = Any
Order: TypeAlias = Any
"""What an element sorts by among those aggregated with it."""


Bind: TypeAlias = Callable[[str, Any], str]
"""From a name and an object: the name by which source can use the object."""


class Aggregate(ABC):
    """One aggregate, of one expression."""

    ordered: ClassVar[bool] = False
    """Whether `order` matters to it."""
    takes_null: ClassVar[bool] = False
    """Whether it is given nulls too."""
    bulky: ClassVar[bool] = False
    """Whether its summary grows with what was added, so that keeping many merged ones would cost too much."""
    add: Callable[[Summary, Any, int, Order], Summary]
    """The summary with one more value: (summary, value, time, order)."""
    removable: bool = False
    """Whether `remove` works: a part that was merged can be taken out again."""

    @abstractmethod
    def empty(self) -> Summary:
        """The summary of nothing."""

    @abstractmethod
    def merge(self, left: Summary, right: Summary) -> Summary:
        """The summary of both."""

    def remove(self, summary: Summary, part: Summary) -> Summary:
        """From a summary and a part that was merged into it: the summary without that part."""
        raise StuckError

    @abstractmethod
    def result(self, summary: Summary) -> Any:
        """What the aggregate is; may raise `RowError`."""

    def source(self, summary: str, value: str, bind: Bind) -> list[str] | None:
        """Lines that do what `add` does, where that is worth writing in place. `summary` may be assigned to."""
        return None

    def save(self, summary: Summary) -> Any:
        """The summary as plain data."""
        return summary

    def load(self, saved: Any) -> Summary:
        """The summary that was saved as this."""
        return saved


class StuckError(Exception):
    """A part cannot be taken out of a summary: merge what is left instead."""


def frozen(value: Any) -> Any:
    """Plain data with tuples for lists: what a row, a key or an order was before it was saved."""
    return tuple([frozen(item) for item in value]) if isinstance(value, list | tuple) else value


def plain_whole(value: int) -> int | str:
    """A whole number as plain data: those beyond 64 bits are text."""
    return value if -(2**63) <= value < 2**63 else str(value)
