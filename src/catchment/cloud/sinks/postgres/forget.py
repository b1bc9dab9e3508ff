"""Taking rows out of a table of PostgreSQL, and their space with them."""

from __future__ import annotations

from collections.abc import Mapping

from catchment.cloud.sinks.postgres.sink import PostgresSink, address, connect
from catchment.cloud.sinks.postgres.table import quoted


def forget_rows(sink: PostgresSink, environment: Mapping[str, str], whom: Mapping[str, frozenset[str]]) -> int:
    """Delete the rows that a gateway vouches for as of these ("device" or "user" to names); how many that were."""
    fields = {c.name: whom[c.stamp] for c in sink.schema.fields if c.stamp and whom.get(c.stamp)}
    if not fields:
        return 0
    url = address(sink.url, environment)
    conditions = " OR ".join(f"{quoted(name)} = ANY(%s)" for name in fields)
    with connect(url) as database:
        if database.execute("SELECT to_regclass(%s)", (sink.table,)).fetchone() == (None,):
            return 0
        gone = database.execute(
            f"DELETE FROM {quoted(sink.table)} WHERE {conditions}", [sorted(names) for names in fields.values()]
        )
        rows = gone.rowcount
    if rows:
        with connect(url) as database:
            database.vacuum(sink.table)
    return rows
