"""Materialised output: each batch once, numbered; what every sink has is gone; who was replaced is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from catchment.cloud.materialised import read
from catchment.errors import InternalError, PeerError
from tests.unit.cloud.sinks.output import OUTPUT, Trip, keep, opened, trip


def test_a_batch_that_runs_again_is_what_it_was(tmp_path: Path) -> None:
    output = opened(tmp_path)
    first = keep(output, 7, [trip(1), trip(2)], [trip(3)])
    assert first is not None
    assert (first.number, first.epoch, first.upto) == (1, 7, {"0": 700})
    assert keep(output, 7, [trip(1), trip(2)], [trip(3)]) == first
    assert keep(output, 8) is None, "nothing was given"
    again = opened(tmp_path, generation=2)
    assert again.store == output.store
    assert keep(again, 7, [trip(1), trip(2)], [trip(3)]) == first
    rows = [row for file in first.files for _, _, _, row in read(again.path(file), OUTPUT)]
    assert rows == [trip(1).row(), trip(2).row(), trip(3).row()]
    assert len(Trip.schema.fields) == len(rows[0])


def test_what_all_have_is_deleted_and_numbers_go_on(tmp_path: Path) -> None:
    output = opened(tmp_path)
    for epoch in range(1, 6):
        keep(output, epoch, [trip(epoch)])
    output.trim(3)
    assert [portion.number for portion in output.portions(0)] == [4, 5]
    output.trim(5)
    assert output.bytes == 0
    assert list((tmp_path / "results" / "files").iterdir()) == []
    again = opened(tmp_path, generation=2)
    # An epoch that was trimmed is not taken for a new one when a query starts from an older checkpoint.
    assert keep(again, 4, [trip(4)]) is None
    portion = keep(again, 6, [trip(6)])
    assert portion is not None
    assert portion.number == 6


def test_another_checkpoint_counts_epochs_anew(tmp_path: Path) -> None:
    keep(opened(tmp_path), 9, [trip(1)])
    portion = keep(opened(tmp_path, 2, "checkpoint-2"), 0, [trip(2)])
    assert portion is not None
    assert portion.number == 2


def test_an_epoch_of_another_range_is_refused(tmp_path: Path) -> None:
    output = opened(tmp_path)
    portion = keep(output, 3, [trip(1)])
    assert portion is not None
    file = portion.files[0].__class__(portion.files[0].name, 0, 1, {OUTPUT: 1}, {"0": 999})
    with pytest.raises(InternalError, match="E041"):
        output.commit(3, [file])


def test_who_was_replaced_is_refused(tmp_path: Path) -> None:
    old, new = opened(tmp_path, 1), opened(tmp_path, 2)
    keep(new, 1, [trip(1)])
    with pytest.raises(PeerError, match="E042"):
        keep(old, 2, [trip(2)])


def test_what_a_crash_left_is_swept_away(tmp_path: Path) -> None:
    output = opened(tmp_path)
    keep(output, 1, [trip(1)])
    stray = tmp_path / "results" / "files" / "checkpoint-000000000002-000001-0000"
    stray.write_bytes(b"cut short")
    opened(tmp_path, 2)
    assert not stray.exists()
