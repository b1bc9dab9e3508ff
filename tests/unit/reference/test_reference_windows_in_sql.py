"""Windows, sessions, counts, tops, state and changes: the reference engine says what DuckDB says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import catchment as cm
from tests.unit.reference.sql import SALES, Rows, Sale, assert_same, by_reference, by_sql, modest

AGGREGATES: dict[str, cm.Aggregate[Any]] = {
    "n": cm.count(),
    "pieces": cm.sum(Sale.pieces),
    "weight": cm.sum(Sale.weight_kg),
    "price": cm.sum(Sale.price),
    "mean": cm.mean(Sale.pieces),
    "mean_price": cm.mean(Sale.price),
    "var": cm.variance(Sale.pieces),
    "var_price": cm.variance(Sale.price),
    "low": cm.min(Sale.weight_kg),
    "high": cm.max(Sale.weight_kg),
    "earliest": cm.first(Sale.pieces),
    "latest": cm.last(Sale.pieces),
    "kinds": cm.count_distinct(Sale.pieces),
    "all": cm.collect(Sale.pieces),
}
IN_SQL = """
    count(*), sum(pieces)::bigint, sum(weight), sum(price::decimal(18, 2))::double, avg(pieces), avg(price),
    var_pop(pieces), var_pop(price), min(weight), max(weight), first(pieces order by t, n), last(pieces order by t, n),
    count(distinct pieces), coalesce(list(pieces order by t, n) filter (pieces is not null), [])
"""


@pytest.mark.parametrize(("size", "every"), [(10, 10), (10, 5), (10, 3), (7, 1)])
@modest
@given(sales=SALES)
def test_windows_of_time(size: int, every: int, sales: Rows) -> None:
    query = f"""
        select shop, s, s + {size} as e, 0, e - 1, {IN_SQL}
        from sale, (select unnest(range(-100, 100)) * {every} as s) where s <= t and t < s + {size}
        group by shop, s order by e, shop nulls first
    """
    window = cm.hop(size, every)
    given_ = by_reference(lambda sales: sales.key_by(Sale.shop).window(window).agg(**AGGREGATES), sales)
    assert_same(given_, by_sql(query, sales))


@modest
@given(sales=SALES)
def test_windows_of_the_whole_stream(sales: Rows) -> None:
    query = f"select t // 10 * 10 as s, s + 10, 0, s + 9, {IN_SQL} from sale where t >= 0 group by s order by s"
    given_ = by_reference(
        lambda sales: sales.where(Sale.at >= cm.Instant(0)).window(cm.tumble(10)).agg(**AGGREGATES), sales
    )
    assert_same(given_, by_sql(query, sales))


@modest
@given(sales=SALES, gap=st.integers(1, 15))
def test_sessions(sales: Rows, gap: int) -> None:
    query = f"""
        with marked as (
          select *, coalesce(t - lag(t) over (partition by shop order by t, n) >= {gap}, true) as opens from sale
        ), numbered as (
          select *, sum(opens::int) over (partition by shop order by t, n) as session from marked
        )
        select shop, min(t), max(t) + {gap} as e, 0, e - 1, {IN_SQL}
        from numbered group by shop, session order by e, shop nulls first
    """
    window = cm.session(gap)
    given_ = by_reference(lambda sales: sales.key_by(Sale.shop).window(window).agg(**AGGREGATES), sales)
    assert_same(given_, by_sql(query, sales))


@modest
@given(sales=SALES, size=st.integers(1, 5), every=st.integers(1, 5))
def test_windows_of_counts(sales: Rows, size: int, every: int) -> None:
    window = cm.count_window(size, every=min(size, every))
    query = f"""
        with numbered as (select *, row_number() over (partition by shop order by t, n) as place from sale)
        select l.shop, min(e.t), l.t + 1, 0, l.t, count(*), sum(e.pieces)::bigint,
               coalesce(list(e.pieces order by e.place) filter (e.pieces is not null), [])
        from numbered l join numbered e
        on e.shop is not distinct from l.shop and e.place between l.place - {size - 1} and l.place
        where l.place % {window.every} = 0 group by l.shop, l.t, l.n order by l.t, l.n
    """
    aggregates = {"n": cm.count(), "pieces": cm.sum(Sale.pieces), "all": cm.collect(Sale.pieces)}
    given_ = by_reference(lambda sales: sales.key_by(Sale.shop).window(window).agg(**aggregates), sales)
    assert_same(given_, by_sql(query, sales))


@modest
@given(sales=SALES, k=st.integers(1, 4))
def test_top_elements(sales: Rows, k: int) -> None:
    query = f"""
        select shop, t // 10 * 10 as s, s + 10, 0, s + 9,
               row_number() over (partition by shop, s order by weight desc nulls last, t, n) as rank,
               pieces, weight, price
        from sale where t >= 0 qualify rank <= {k} order by s, shop nulls first, rank
    """
    given_ = by_reference(
        lambda sales: (
            sales.where(Sale.at >= cm.Instant(0)).key_by(Sale.shop).window(cm.tumble(10)).top(k, by=Sale.weight_kg)
        ),
        sales,
    )
    assert_same(given_, by_sql(query, sales))


@modest
@given(sales=SALES)
def test_state(sales: Rows) -> None:
    query = """
        select shop, t, count(*) over w, (sum(pieces) over w)::bigint, min(weight) over w, max(weight) over w,
               first(pieces) over w
        from sale window w as (partition by shop order by t, n rows unbounded preceding) order by t, n
    """
    given_ = by_reference(
        lambda sales: sales.key_by(Sale.shop).state(
            n=cm.count(),
            pieces=cm.sum(Sale.pieces),
            low=cm.min(Sale.weight_kg),
            high=cm.max(Sale.weight_kg),
            earliest=cm.first(Sale.pieces),
        ),
        sales,
    )
    assert_same(given_, by_sql(query, sales))


@modest
@given(sales=SALES)
def test_changes(sales: Rows) -> None:
    # What differs from the last one kept differs from the one before: both are the same until something is kept.
    query = """
        select shop, t, pieces, weight, price from sale
        window w as (partition by shop order by n)
        qualify row_number() over w = 1 or pieces is distinct from lag(pieces) over w
                or weight is distinct from lag(weight) over w
        order by n
    """
    given_ = by_reference(lambda sales: sales.key_by(Sale.shop).changes(Sale.pieces, Sale.weight_kg), sales)
    assert_same(given_, by_sql(query, sales))
