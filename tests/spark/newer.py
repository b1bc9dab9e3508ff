"""The thread's reading, as newer devices send it."""

import catchment as cm


class Reading(cm.Record):
    """A reading with its scale."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    amount: cm.Field[int]
    times: cm.Field[int] = cm.field(default=1)
