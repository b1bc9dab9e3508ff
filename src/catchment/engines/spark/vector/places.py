"""Places within a batch: whole numbers of events, and below each the order of what happens at that event.

One event of the log may be many at a step: a tick comes by each of its inputs, and a step before it may promise for one
group after the other, with results in between. So an engine spreads places before it runs, and a step that waits gives
each moment a place of its own.

>>> event_at(entered(7)), event_at(entered(7) + 3), entered(7) < entered(7) + 3 < entered(8)
(7, 7, True)
"""

from __future__ import annotations

from typing import Any

_BITS = 32


def entered(event: Any) -> Any:
    """The first place at the event of that number; of an array, each."""
    return event << _BITS


def event_at(place: Any) -> Any:
    """The number of the event at that place."""
    return place >> _BITS
