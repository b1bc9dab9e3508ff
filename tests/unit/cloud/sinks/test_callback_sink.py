"""A function of the author's is called with results and their mark, in order; again with the same mark if need be."""

from __future__ import annotations

from pathlib import Path

import pytest

import catchment as cm
from catchment.cloud.sinks.callback import CallbackSink
from catchment.errors import PeerError, ProgramError
from catchment.program.function import declare
from tests.unit.cloud.sinks.output import OUTPUT, Trip, identity, keep, opened, publication, trip

called: list[tuple[tuple[int, ...], tuple[int, int, str]]] = []
failing: list[str] = []


@cm.function(runs_on=(cm.CLOUD,))
def told(trips: tuple[Trip, ...], mark: cm.Mark) -> None:
    called.append((tuple(one.lasted // 60_000_000 for one in trips), (mark.number, mark.part, mark.log)))
    if failing:
        raise ValueError(failing.pop())


def sink(path: Path) -> CallbackSink:
    called.clear()
    declare(told, told.reference)
    return CallbackSink("callback_trips/sink", OUTPUT, Trip.schema, told.reference, str(path / "calls"))


def test_it_is_called_with_records_and_their_mark(tmp_path: Path) -> None:
    output, callback = opened(tmp_path), sink(tmp_path)
    keep(output, 1, [trip(1), trip(2)], [trip(3)])
    keep(output, 2, [trip(4)])
    publication(callback, output).turn(0)
    assert called == [((1, 2), (1, 0, '{"0":100}')), ((4,), (2, 0, '{"0":200}')), ((3,), (1, 1, '{"0":100}'))]
    publication(callback, opened(tmp_path, 2)).turn(0)
    assert len(called) == 3, "none is made again after a restart"


def test_a_call_that_fails_is_made_again_and_those_before_it_are_not(tmp_path: Path) -> None:
    output, callback = opened(tmp_path), sink(tmp_path)
    publishing = publication(callback, output)
    keep(output, 1, [trip(1)])
    publishing.turn(0)
    keep(output, 2, [trip(2)])
    failing.append("the post office is closed")
    again_us = publishing.turn(0)
    assert again_us is not None
    assert publishing.standing.trouble == "the post office is closed"
    assert publishing.turn(again_us) is None
    assert [mark for _, mark in called] == [(1, 0, '{"0":100}'), (2, 0, '{"0":200}'), (2, 0, '{"0":200}')]


def test_who_was_replaced_and_who_is_another_are_refused(tmp_path: Path) -> None:
    output, callback = opened(tmp_path), sink(tmp_path)
    newer = opened(tmp_path, 2)
    callback.open(identity(callback, newer))
    with pytest.raises(PeerError, match="E042"):
        callback.open(identity(callback, output))
    with pytest.raises(ProgramError, match="E050"):
        callback.open(identity(callback, opened(tmp_path / "elsewhere", 3)))
