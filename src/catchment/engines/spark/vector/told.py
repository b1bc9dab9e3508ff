"""Time as an operator is told it in a batch: the watermarks and the clock as they were at the event that it is given.

What they are was found out for the whole batch before (`waiting`), so an operator that is run through it looks here
and not at a tracker of its own.

>>> told = Told()
>>> told.marks["ada"] = 7
>>> told.watermark("ada"), told.watermark("bob") == NEVER, told.now()
(7, True, None)
"""

from __future__ import annotations

from catchment.operators.members import NEVER, Group
from catchment.plan.history import Source


class Told:
    """What operators ask a tracker."""

    def __init__(self) -> None:
        self.marks: dict[Group, int] = {}
        self.read: int | None = None

    def watermark(self, group: Group) -> int:
        """Nothing of the group that is older is still to come, as far as it is known."""
        return self.marks.get(group, NEVER)

    def now(self, port: int = 0) -> int | None:
        """The latest tick."""
        return self.read

    def begin(self, group: Group) -> None:
        """A group begins: whether it has a watermark was found out before."""

    def heard(self, port: int, source: Source) -> None:
        """An element of the source came, which was heard before."""
