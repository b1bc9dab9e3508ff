"""The reference engine beside DuckDB: the same rows through a step and through a query, once everything is promised.

DuckDB shares no line with us and agrees on nulls, NaN and order. What it cannot say is time: lateness, silence,
revisions and timers are held by the stories in tests/transcripts instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import duckdb
from hypothesis import settings
from hypothesis import strategies as st

import catchment as cm
from catchment.testing import History, alone, run


class Sale(cm.Record):
    shop: cm.Field[str | None] = cm.key()
    at: cm.Field[cm.Instant] = cm.event_time()
    pieces: cm.Field[int | None]
    weight_kg: cm.Field[float | None]
    price: cm.Field[float | None] = cm.field(step=0.01)


class Price(cm.Record):
    shop: cm.Field[str | None] = cm.key()
    at: cm.Field[cm.Instant] = cm.event_time()
    cents: cm.Field[int]


Rows = list[tuple[Any, ...]]

_SHOPS = st.sampled_from(["a", "b", None])
_TIMES = st.integers(-20, 60)
_WEIGHTS = st.floats(-1000, 1000, width=32) | st.sampled_from([None, 0.0, math.nan])
_PRICES = st.none() | st.integers(-(10**6), 10**6).map(lambda cents: cents / 100)
SALES: st.SearchStrategy[Rows] = st.lists(
    st.tuples(_SHOPS, _TIMES, st.none() | st.integers(-50, 50), _WEIGHTS, _PRICES), max_size=25
)
PRICES: st.SearchStrategy[Rows] = st.lists(st.tuples(_SHOPS, _TIMES, st.integers(0, 99)), max_size=15)

modest = settings(max_examples=30, deadline=None)


def by_sql(query: str, sales: Rows, prices: Rows | None = None) -> Rows:
    """The rows of a query over the tables `sale` and `price`; `n` numbers arrivals, and `t` is the time."""
    with duckdb.connect() as database:
        columns = {"shop": "text", "t": "bigint", "pieces": "bigint", "weight": "double", "price": "double"}
        _fill(database, "sale", columns, sales)
        _fill(database, "price", {"shop": "text", "t": "bigint", "cents": "bigint"}, prices or [])
        rows = database.execute(query).fetchall()
    return [tuple(tuple(value) if isinstance(value, list) else value for value in row) for row in rows]


def _fill(database: duckdb.DuckDBPyConnection, table: str, columns: dict[str, str], rows: Rows) -> None:
    typed = {"n": "bigint", **columns}
    lists = [list(range(len(rows))), *([row[place] for row in rows] for place in range(len(columns)))]
    values = ", ".join(f"unnest(?::{kind}[]) as {name}" for name, kind in typed.items())
    database.execute(f"create or replace table {table} as select {values}", lists)


def by_reference(make: Callable[..., cm.Stream[Any]], sales: Rows, prices: Rows | None = None) -> Rows:
    """The rows that the step gives once nothing more can come; it takes prices too where there are some to take."""
    sources: dict[str, tuple[type[cm.Record], Rows]] = {"sales": (Sale, sales)}
    if prices is not None:
        sources["prices"] = (Price, prices)
    program = alone(make, **{name: record for name, (record, _) in sources.items()})
    history = History(program).online("device-1")
    for name, (record, rows) in sources.items():
        history.late(*(dict(zip(record.schema.names, row, strict=True)) for row in rows), to=name)
    for name in sources:
        history.promise(10**9, device="device-1", to=name)
    ran = run(program, history)
    assert not ran.failures
    assert not any(results for (_, port), results in ran.outcome.results.items() if port > 0), "nothing was late"
    return [result.row for result in ran.results("alone")]


def assert_same(given: Rows, expected: Rows) -> None:
    assert len(given) == len(expected), (given, expected)
    for one, other in zip(given, expected, strict=True):
        assert len(one) == len(other)
        assert all(map(_close, one, other)), (one, other)


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        # Weights are below 1000, so what DuckDB loses by adding floats in its own order is far below this.
        return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-6)
    return bool(one == other)
