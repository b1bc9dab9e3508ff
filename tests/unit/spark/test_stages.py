"""How a part is cut: each element goes to the bucket of the key that it will be asked for."""

from __future__ import annotations

from typing import Any

import pytest

import catchment as cm
from catchment.engines.spark.stages import Stages, cut
from catchment.plan.graph import graph_of
from catchment.testing import alone


class Ask(cm.Record):
    at: cm.Field[cm.Instant] = cm.event_time()
    place: cm.Field[int]
    user: cm.Field[str]


class Word(cm.Record):
    at: cm.Field[cm.Instant] = cm.event_time()
    cell: cm.Field[int]


class News(cm.Record):
    at: cm.Field[cm.Instant] = cm.event_time()
    cell: cm.Field[int]
    user: cm.Field[str | None]


@cm.function
def halved(news: News) -> News:
    return News(at=news.at, cell=news.cell // 2, user=news.user)


def counted(words: cm.Stream[Word]) -> cm.Stream[Any]:
    week = cm.hop(cm.days(7), cm.days(1))
    return words.key_by(Word.cell).window(week).agg(n=cm.count()).select(News, user=None)


def stages(step: Any) -> Stages:
    return cut(graph_of(alone(step, asks=Ask, words=Word)), {})


def test_what_is_united_with_results_goes_to_the_bucket_that_reads_both() -> None:
    found = stages(
        lambda asks, words: asks.select(News, cell=Ask.place).union(counted(words)).key_by(News.cell).changes(News.user)
    )
    assert sorted(filter(None, found.routes.values())) == [("cell",), ("cell",)]


def test_a_window_whose_key_is_called_otherwise_is_refused() -> None:
    def step(asks: cm.Stream[Ask], words: cm.Stream[Word]) -> cm.Stream[Any]:
        news = asks.select(News, cell=Ask.place).union(counted(words))
        return news.select(where=News.cell, user=News.user, at=News.at).key_by(cm.col("where")).changes(cm.col("user"))

    with pytest.raises(cm.ProgramError, match="C330"):
        stages(step)


@pytest.mark.parametrize("computed", ["select", "map"])
def test_a_key_that_is_computed_too_late_is_refused(computed: str) -> None:
    def step(asks: cm.Stream[Ask], words: cm.Stream[Word]) -> cm.Stream[Any]:
        news = asks.select(News, cell=Ask.place).union(counted(words))
        moved = news.map(halved) if computed == "map" else news.select(News, cell=News.cell // 2)
        return moved.key_by(News.cell).changes(News.user)

    with pytest.raises(cm.ProgramError, match="C331") as refused:
        stages(step)
    assert "before the stream is united" in refused.value.fix


def test_the_repair_computes_it_before() -> None:
    found = stages(
        lambda asks, words: (
            asks.select(News, cell=Ask.place // 2).union(counted(words)).key_by(News.cell).changes(News.user)
        )
    )
    assert set(found.routes.values()) == {("cell",)}
