"""Joins, zip and combine: the reference engine says what DuckDB says."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import catchment as cm
from tests.unit.reference.sql import PRICES, SALES, Price, Rows, Sale, assert_same, by_reference, by_sql, modest

Sales = cm.Stream[Sale]
Prices = cm.Stream[Price]
COLUMNS: dict[str, Any] = {"shop": Sale.shop, "sold": Sale.at, "pieces": Sale.pieces, "cents": Price.cents}


@modest
@given(sales=SALES, prices=PRICES, outer=st.booleans())
def test_join_in_a_window(sales: Rows, prices: Rows, outer: bool) -> None:
    query = f"""
        select s.shop, s.t, pieces, cents from sale s {"left" if outer else "inner"} join price p
        on s.shop = p.shop and floor(s.t / 10) = floor(p.t / 10)
        order by floor(s.t / 10), s.shop nulls first, s.t, s.n, p.t, p.n
    """

    def make(sales: Sales, prices: Prices) -> cm.Stream[Any]:
        left, right = sales.key_by(Sale.shop), prices.key_by(Price.shop)
        return left.join(right, within=cm.tumble(10), outer=outer, **COLUMNS)

    assert_same(by_reference(make, sales, prices), by_sql(query, sales, prices))


@modest
@given(sales=SALES, prices=PRICES, before=st.integers(0, 12), after=st.integers(0, 12), outer=st.booleans())
def test_join_within_an_interval(sales: Rows, prices: Rows, before: int, after: int, outer: bool) -> None:
    # In the order in which the later one of a pair is released, the left one first where both are of one time; then
    # in that of its partners; then all that are lonely, since everything is promised in one moment.
    query = f"""
        with pair as (
          select s.shop, s.t as sold, s.n as sn, pieces, cents, p.t as priced, p.n as pn, p.t >= s.t as right_is_later
          from sale s {"left" if outer else "inner"} join price p
          on s.shop = p.shop and p.t between s.t - {before} and s.t + {after}
        )
        select shop, sold, pieces, cents from pair
        order by priced is null, greatest(sold, priced), right_is_later,
                 case when right_is_later then pn else sn end, case when right_is_later then sold else priced end,
                 case when right_is_later then sn else pn end
    """

    def make(sales: Sales, prices: Prices) -> cm.Stream[Any]:
        left, right = sales.key_by(Sale.shop), prices.key_by(Price.shop)
        within = (cm.Duration(before), cm.Duration(after))
        return left.join(right, within=within, outer=outer, **COLUMNS)

    assert_same(by_reference(make, sales, prices), by_sql(query, sales, prices))


@modest
@given(sales=SALES, prices=PRICES, outer=st.booleans())
def test_join_with_the_latest(sales: Rows, prices: Rows, outer: bool) -> None:
    query = f"""
        with placed as (select *, row_number() over (order by t, n) as place from price),
        met as (
          select s.n, max(place) as place from sale s join placed p on p.shop = s.shop and p.t <= s.t group by s.n
        )
        select s.shop, s.t, pieces, cents from sale s {"left" if outer else "inner"} join met on met.n = s.n
        left join placed on placed.place = met.place order by s.t, s.n
    """

    def make(sales: Sales, prices: Prices) -> cm.Stream[Any]:
        return sales.key_by(Sale.shop).join_latest(prices.key_by(Price.shop), outer=outer, **COLUMNS)

    assert_same(by_reference(make, sales, prices), by_sql(query, sales, prices))


@modest
@given(sales=SALES, prices=PRICES)
def test_zip(sales: Rows, prices: Rows) -> None:
    query = """
        with s as (select *, row_number() over (partition by shop order by t, n) as place from sale),
        p as (select *, row_number() over (partition by shop order by t, n) as place from price)
        select s.shop, s.t, pieces, cents from s join p on s.shop is not distinct from p.shop and s.place = p.place
        order by greatest(s.t, p.t), p.t >= s.t, case when p.t >= s.t then p.n else s.n end
    """

    def make(sales: Sales, prices: Prices) -> cm.Stream[Any]:
        return sales.key_by(Sale.shop).zip(prices.key_by(Price.shop), **COLUMNS)

    assert_same(by_reference(make, sales, prices), by_sql(query, sales, prices))


@modest
@given(sales=SALES, prices=PRICES)
def test_combine(sales: Rows, prices: Rows) -> None:
    query = """
        with both_ as (
          select shop, t, 0 as port, n, t as sold, null as cents from sale union all
          select shop, t, 1, n, null, cents from price
        )
        select shop, last_value(sold ignore nulls) over w, last_value(cents ignore nulls) over w from both_
        window w as (partition by shop order by t, port, n rows unbounded preceding) order by t, port, n
    """

    def make(sales: Sales, prices: Prices) -> cm.Stream[Any]:
        left, right = sales.key_by(Sale.shop), prices.key_by(Price.shop)
        return left.combine(right, shop=Sale.shop.or_else(Price.shop), sold=Sale.at, cents=Price.cents)

    assert_same(by_reference(make, sales, prices), by_sql(query, sales, prices))
