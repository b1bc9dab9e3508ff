"""Bounds of an outbox: every number is one element, or one gap that is counted by its reason."""

from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catchment.errors import ProgramError
from catchment.program.sync import DROP_OLDEST, REFUSE, Bound, Thin
from catchment.program.types import BYTES, Column, Schema
from catchment.sync.frame import Epoch, Gap, Lost, Mark
from catchment.sync.outbox import Appended
from catchment.sync.outbox.queue import ELEMENT_BYTES_MAX
from tests.unit.sync.outbox_world import BOOT, Disk, drain, numbers_of, put


def test_when_full_refuse() -> None:
    outbox = Disk().open()
    outbox.bind("fixes", Bound(records=3, when_full=REFUSE))
    assert put(outbox, 1, 2) == Appended(2)
    assert put(outbox, 3, 4, 5) == Appended(1, refused=2)
    (run,) = drain(outbox)
    assert (run.rows(), run.gaps, run.upto) == ([(1, 1), (2, 2), (3, 3)], (Gap(3, 2),), 5)
    assert run.lost == Lost(refused=2)
    assert put(outbox, 6) == Appended(1)


def test_when_full_drop_the_oldest() -> None:
    outbox = Disk().open()
    outbox.bind("fixes", Bound(records=3, when_full=DROP_OLDEST))
    put(outbox, 1, 2)
    assert put(outbox, 3, 4, 5) == Appended(3, given_up=2)
    (run,) = drain(outbox)
    assert (run.rows(), run.gaps) == ([(3, 3), (4, 4), (5, 5)], (Gap(0, 2),))
    assert run.lost == Lost(dropped=2)


def test_when_full_thin_the_oldest_half() -> None:
    outbox = Disk().open()
    outbox.bind("fixes", Bound(records=8, when_full=Thin(2)))
    put(outbox, *range(8))
    assert put(outbox, 8) == Appended(1, given_up=2)
    (run,) = drain(outbox)
    assert [row[1] for row in run.rows()] == [0, 2, 4, 5, 6, 7, 8]
    assert run.gaps == (Gap(1, 1, 2),)
    assert run.lost == Lost(thinned=2)


def test_a_bound_in_bytes() -> None:
    outbox = Disk().open()
    put(outbox, *range(10, 20))
    size = outbox.size("fixes")[1]
    outbox.bind("fixes", Bound(bytes=size, when_full=DROP_OLDEST))
    assert put(outbox, 20, 21, 22) == Appended(3, given_up=3)
    assert outbox.size("fixes") == (10, size)


def test_everything_given_up_is_still_told() -> None:
    outbox = Disk().open()
    outbox.give_up("fixes", 4, thinned=True)
    (run,) = drain(outbox)
    assert (run.schema, run.rows(), run.gaps, run.lost) == (None, [], (Gap(0, 4),), Lost(thinned=4))
    assert list(drain(outbox)) == []


def test_no_run_has_more_gaps_than_a_header_holds() -> None:
    outbox = Disk().open()
    for number in range(1500):
        put(outbox, number)
        outbox.give_up("fixes", 1 + number % 2)
    runs = list(drain(outbox, records_max=5000))
    assert [len(run.gaps) for run in runs] == [1000, 500]
    assert [row[1] for run in runs for row in run.rows()] == list(range(1500))


appends = st.tuples(st.just("append"), st.integers(1, 6))
acks = st.tuples(st.just("ack"), st.integers(0, 8))
others = st.tuples(st.sampled_from(["restart", "give up", "fail", "thin at the door"]), st.integers(1, 3))
bounds = st.builds(
    Bound,
    st.none() | st.integers(1, 12),
    st.none() | st.integers(20, 200),
    st.sampled_from([REFUSE, DROP_OLDEST, Thin(2), Thin(3)]),
)
bindings = st.tuples(st.just("bind"), bounds)


@given(st.lists(appends | acks | others | bindings, max_size=40))
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_every_number_is_one_element_or_one_counted_gap(steps: list[tuple[str, Any]]) -> None:
    disk = Disk()
    outbox = disk.open()
    appended: dict[Epoch, list[int | None]] = {}
    received: dict[Epoch, list[int | None]] = {}
    lost: dict[Epoch, Lost] = {}
    values = count()

    def current() -> list[int | None]:
        assert outbox.epoch is not None
        return appended.setdefault(outbox.epoch, [])

    def deliver(runs_max: int, records_max: int) -> None:
        """Take some runs, without losing what was taken before."""
        position = outbox.start("fixes")
        for _ in range(runs_max):
            if position is None:
                return
            run = outbox.run("fixes", position, records_max=records_max)
            if run is None:
                outbox.acknowledge([Mark("fixes", outbox.epoch_of(position), position.number)])
                position = outbox.start("fixes")
                continue
            taken = received.setdefault(run.epoch, [])
            assert len(taken) == run.first
            taken.extend([None] * (run.upto - run.first))
            for number, row in zip(numbers_of(run), run.rows(), strict=True):
                taken[number] = row[1]
            lost[run.epoch] = run.lost
            position = run.after
            outbox.acknowledge([Mark("fixes", run.epoch, run.upto)])

    for step, argument in steps:
        match step:
            case "append":
                new = [next(values) for _ in range(argument)]
                outcome = put(outbox, *new)
                current().extend([*new[: outcome.accepted], *[None] * outcome.refused])
            case "give up" | "thin at the door":
                outbox.give_up("fixes", argument, thinned=step != "give up")
                current().extend([None] * argument)
            case "ack":
                deliver(argument, records_max=argument + 1)
            case "bind":
                outbox.bind("fixes", argument)
            case "fail":
                with pytest.raises(RuntimeError), outbox.transaction():
                    put(outbox, *[next(values) for _ in range(argument)])
                    raise RuntimeError
            case _:
                disk.save(outbox)
                outbox = disk.open()
        records, size = outbox.size("fixes")
        outbox._ready().queue.reload()
        assert outbox.size("fixes") == (records, size)
    deliver(1000, 5)
    assert outbox.start("fixes") is None
    for epoch, elements in appended.items():
        taken = received.get(epoch, [])
        assert len(taken) == len(elements)
        # What arrived is what was appended under that number; what did not is a gap, and each gap has its reason.
        assert all(got is None or got == sent for got, sent in zip(taken, elements, strict=True))
        if elements:
            assert lost[epoch].total == taken.count(None)


def test_an_element_that_no_frame_could_carry_is_refused_at_once() -> None:
    outbox = Disk().open()
    photo = Schema("Photo", (Column("pixels", BYTES),))
    with pytest.raises(ProgramError, match="S435"):
        outbox.append("photos", photo, [(bytes(ELEMENT_BYTES_MAX + 1),)], stamp=BOOT, readings_us=[0])
    assert outbox.append("photos", photo, [(bytes(ELEMENT_BYTES_MAX // 2),)], stamp=BOOT, readings_us=[0]) == Appended(
        1
    )
