"""The harness of the benchmarks: who runs when, which answers agree, what the numbers and the closing line say."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.harness import (
    AnswersDifferError,
    Bar,
    Race,
    Reading,
    Side,
    arguments,
    conclude,
    machine,
    nearly_equal,
    race,
    table,
    timed,
)


def recorded(name: str, runs: list[str], seconds: Iterator[float] | None = None, answer: object = 1) -> Side:
    """A side that notes that it ran and takes the seconds that it is told to take."""

    def run() -> Reading:
        runs.append(name)
        return Reading(next(seconds) if seconds is not None else 1.0, answer)

    return Side(name, run)


def test_sides_take_turns_and_none_is_always_first() -> None:
    runs: list[str] = []
    race([recorded("a", runs), recorded("b", runs), recorded("c", runs)], rounds=3, warm_ups=0)
    assert "".join(runs) == "abcbcacab"


def test_warm_ups_run_and_do_not_count() -> None:
    runs: list[str] = []
    result = race([recorded("a", runs, iter([99.0, 1.0, 2.0]))], rounds=2, warm_ups=1)
    assert (len(runs), result.seconds) == (3, {"a": (1.0, 2.0)})


def test_a_ratio_compares_times_of_one_round() -> None:
    # The machine becomes ten times slower in the second round; the ratio does not notice.
    result = Race({"ours": (1.0, 10.0, 1.0), "peer": (3.0, 30.0, 3.0)})
    assert result.ratio("ours", over="peer") == 3.0
    assert result.ratio("peer", over="ours") == pytest.approx(1 / 3)


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=1, max_size=9))
def test_a_ratio_lies_between_that_of_the_worst_and_the_best_round(rounds: list[tuple[float, float]]) -> None:
    result = Race({"a": tuple(a for a, _ in rounds), "b": tuple(b for _, b in rounds)})
    assert min(b / a for a, b in rounds) <= result.ratio("a", over="b") <= max(b / a for a, b in rounds)


def test_answers_that_differ_stop_the_race_and_name_both() -> None:
    with pytest.raises(AnswersDifferError, match=r"b answered \[2\], where a answered \[1\]"):
        race([recorded("a", [], answer=[1]), recorded("b", [], answer=[2])], rounds=1)


def test_an_answer_that_changes_in_a_later_round_stops_the_race() -> None:
    answers = iter([1, 1, 2])
    with pytest.raises(AnswersDifferError):
        race([Side("a", lambda: Reading(1.0, next(answers)))], rounds=3, warm_ups=0)


def test_two_sides_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="one name"):
        race([recorded("a", []), recorded("a", [])], rounds=1)


def test_a_timed_side_reads_the_clock_that_it_is_given() -> None:
    ticks = iter([5.0, 7.5])
    assert timed("a", lambda: "answer", clock=lambda: next(ticks)).run() == Reading(2.5, "answer")


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ([1.0, {"a": 2.0}], [1.0 + 1e-12, {"a": 2.0}], True),
        ([1.0], [1.001], False),
        ((1, 2), [1, 2], True),
        ([1], [1, 2], False),
        ({"a": 1}, {"b": 1}, False),
        (math.nan, math.nan, True),
        (1.0, math.nan, False),
        ("x", "x", True),
        (1, 2, False),
    ],
)
def test_nearly_equal(one: object, other: object, equal: bool) -> None:
    assert nearly_equal(one, other) is equal


@pytest.mark.parametrize(
    ("bar", "holds", "bound"),
    [
        (Bar("", 2.0, at_least=2.0), True, ">= 2"),
        (Bar("", 1.9, at_least=2.0), False, ">= 2"),
        (Bar("", 5.0, at_most=4.0), False, "<= 4"),
        (Bar("", 3.0, at_least=2.0, at_most=4.0), True, ">= 2 and <= 4"),
        (Bar("", math.nan, at_least=0.0), False, ">= 0"),
    ],
)
def test_a_bar(bar: Bar, holds: bool, bound: str) -> None:
    assert (bar.holds, bar.bound) == (holds, bound)


@pytest.mark.parametrize(("measured", "code"), [(3.0, 0), (1.0, 1)])
def test_the_last_line_is_the_result_and_the_exit_code_is_that_of_the_bars(
    measured: float, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    bars = [Bar("twice as fast", measured, at_least=2.0), Bar("small", 1.0, at_most=9.0)]
    assert conclude("edge", quick=True, ratios={"peer": measured}, bars=bars, figures={"rows": 7}) == code
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["bars"] == {"twice as fast": measured >= 2, "small": True}
    assert (result["name"], result["quick"], result["ratios"]) == ("edge", True, {"peer": measured})
    assert result["machine"].keys() == machine().keys()


def test_a_benchmark_without_bars_is_refused() -> None:
    with pytest.raises(ValueError, match="without a bar"):
        conclude("edge", quick=False, ratios={}, bars=[])


@pytest.mark.parametrize(("value", "quick"), [("1", True), ("0", False), ("", False), (None, False)])
def test_quick_can_come_from_the_environment(value: str | None, quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUICK", raising=False)
    if value is not None:
        monkeypatch.setenv("QUICK", value)
    assert arguments("What it shows.").parse_args([]).quick is quick
    assert arguments(None).parse_args(["--quick"]).quick


def test_a_table_aligns_words_left_and_numbers_right() -> None:
    assert table(["side", "rate"], [["ours", "1,000"], ["a peer", "7"]]).splitlines() == [
        "side     rate",
        "------  -----",
        "ours    1,000",
        "a peer      7",
    ]


def test_the_table_of_a_race_shows_each_side_against_the_first() -> None:
    shown = Race({"ours": (1.0, 1.0), "peer": (2.0, 4.0)}).table(count=1000, unit="fixes").splitlines()
    assert shown[0].split() == ["side", "seconds", "fixes/s", "ours", "is"]
    assert shown[3].split() == ["peer", "3.000", "333", "3.00x", "(2.00-4.00)"]


def test_a_side_may_be_any_function() -> None:
    sums: list[Callable[[], object]] = [lambda: sum(range(10)), lambda: 45]
    result = race([timed(str(index), work) for index, work in enumerate(sums)], rounds=2)
    assert all(seconds >= 0 for readings in result.seconds.values() for seconds in readings)
