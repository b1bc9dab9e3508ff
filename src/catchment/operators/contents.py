"""What a window, a session or a state holds of its elements, and the rows that it gives: aggregates, or top elements.

Windows decide which elements go together and when they are due; contents do the rest, so each kind of window is
written once. An element is looked at when the step takes it; what was seen is added wherever the element belongs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

from catchment.operators.aggregates.aggregate import Order, Summary
from catchment.operators.inlined import Inlined
from catchment.program.row_error import RowError
from catchment.program.types import Row

Seen: TypeAlias = Any


class Contents(ABC):
    """Summaries of what was seen of elements. As with aggregates, `add` changes its summary, `merge` does not."""

    ordered: bool
    """Whether `order` matters, and has to be made."""
    bulky: bool
    look: Callable[[Row], Seen]
    """What is seen of an element; may raise `RowError`."""
    add: Callable[[Summary, Seen, int, Order], None]
    """One more element: (summary, what was seen of it, its time, its order)."""
    merge: Callable[[Summary, Summary], Summary]
    """The summary of both."""
    removable: bool = False
    remove: Callable[[Summary, Summary], Summary]
    """The summary without a part that was merged into it, if it is `removable`."""
    inlined: Inlined
    """Source of `look` and `add`."""

    @abstractmethod
    def empty(self) -> Summary:
        """The summary of nothing."""

    @abstractmethod
    def rows(self, begins: Row, summary: Summary) -> tuple[list[Row], RowError | None]:
        """The rows, which begin so. With a failure, the one row goes to quarantine."""

    @abstractmethod
    def save(self, summary: Summary) -> Any:
        """The summary as plain data."""

    @abstractmethod
    def load(self, saved: Any) -> Summary:
        """The summary that was saved as this."""
