"""The mark of what a sink is given: the same results carry the same mark, however often they are brought.

A callback that remembers the marks that it has done with is exactly once, whatever happens between a call and its end.
"""

from __future__ import annotations

from catchment.program.record import Field, Record


class Mark(Record):
    """Which results these are: they are named by all of it, and never change under it."""

    program: Field[str]
    sink: Field[str]
    """The step that the author wrote, such as `callback_trips/sink`."""
    store: Field[str]
    """The data directory's own name, random when it is made."""
    number: Field[int]
    """Results are numbered by the batch that they came of, from 1; a number may be absent where there were none."""
    part: Field[int]
    """Which share of the batch: shares are independent, and each comes in the order of its numbers."""
    generation: Field[int]
    """Of the supervisor that computed them."""
    epoch: Field[int]
    """Of the query that computed them."""
    log: Field[str]
    """How far in the log they go: a JSON object, offset by partition."""
