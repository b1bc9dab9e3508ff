"""Policies: when a batch goes, over which link, in which codec; and intakes, where they meet the outbox."""

from collections.abc import Iterator

import pytest

from catchment.program.sync import (
    DROP_OLDEST,
    NOTIFY,
    Batch,
    Bound,
    SampleDown,
    Sync,
    dead_reckoning,
    trend,
    wait_when_metered,
)
from catchment.program.types import FLOAT, INSTANT, Column, Duration, Schema
from catchment.sync.frame import Gap, Lost
from catchment.sync.intake import Intake
from catchment.sync.outbox import Appended, Outbox, OutboxError, Stamp
from catchment.sync.policy import Door, Gathered, Link, codec_choice, decide
from tests.unit.sync.outbox_world import BOOT, LATER_BOOT, Disk, drain

SECOND = 1_000_000
ON = Link(connected=True)
BATCH = Sync(batch=Batch(records=10, within=Duration(60 * SECOND), bytes=1000))


def due(policy: Sync, now_s: int = 0, link: Link = ON, **gathered: int | bool | None) -> tuple[bool, int | None]:
    values = {"records": 1, "bytes": 10, "oldest_us": 0, **gathered}
    decision = decide(policy, Gathered(**values), link, now_s * SECOND)  # type: ignore[arg-type]
    return decision.send, None if decision.again_at_us is None else decision.again_at_us // SECOND


def test_a_batch_goes_by_count_bytes_or_time_whichever_is_first() -> None:
    assert due(BATCH) == (False, 60)
    assert due(BATCH, records=10) == (True, None)
    assert due(BATCH, bytes=1000) == (True, None)
    assert due(BATCH, 59) == (False, 60)
    assert due(BATCH, 60) == (True, None)
    assert due(BATCH, records=0) == (False, None)
    assert due(Sync(batch=Batch(records=10, within=None)), 10**6) == (False, None)


def test_what_an_earlier_boot_left_does_not_wait_for_the_clock() -> None:
    assert due(BATCH, oldest_us=None) == (True, None)


def test_nothing_goes_without_a_connection_and_all_when_it_is_back() -> None:
    assert due(BATCH, 100, link=Link()) == (False, None)
    assert due(BATCH, since_reconnect=True) == (True, None)
    patient = Sync(batch=Batch(records=10, within=Duration(60 * SECOND), on_reconnect=False))
    assert due(patient, since_reconnect=True) == (False, 60)


def test_what_has_gathered_goes_when_the_device_leaves_but_not_over_a_link_that_is_too_dear() -> None:
    patient = Sync(batch=Batch(records=10, within=None, on_reconnect=False), metered=wait_when_metered())
    assert due(patient, is_leaving=True) == (True, None)
    assert due(patient, is_leaving=True, link=Link(connected=True, metered=True)) == (False, None)


def test_a_metered_link_is_waited_out_as_long_as_the_policy_says() -> None:
    metered = Link(connected=True, metered=True)
    assert due(BATCH, 60, link=metered) == (True, None)
    for_ever = Sync(batch=BATCH.batch, metered=wait_when_metered())
    assert due(for_ever, 10**6, link=metered) == (False, None)
    assert due(for_ever, 60, link=ON) == (True, None)
    an_hour = Sync(batch=BATCH.batch, metered=wait_when_metered(Duration(3600 * SECOND)))
    assert due(an_hour, 60, link=metered) == (False, 3600)
    assert due(an_hour, 3600, link=metered) == (True, None)


@pytest.mark.parametrize(
    ("policy", "theirs", "packings", "here", "chosen"),
    [
        (Sync(), ("none", "delta"), ("zstd", "deflate"), ("zstd", "deflate"), ("delta", ("", "zstd", "deflate"))),
        (Sync(), ("none", "delta"), ("deflate",), ("zstd", "deflate"), ("delta", ("", "deflate"))),
        (Sync(compression="deflate"), ("delta",), ("zstd", "deflate"), ("deflate",), ("delta", ("deflate",))),
        (Sync(compression="zstd"), ("delta",), ("deflate",), ("zstd", "deflate"), ("delta", ("deflate",))),
        (Sync(compression="off"), ("delta",), ("deflate",), ("deflate",), ("delta", ("",))),
        (Sync(codec="mine"), ("none",), ("deflate",), ("deflate",), ("none", ("", "deflate"))),
    ],
)
def test_the_codec_is_the_authors_where_the_other_end_reads_it(
    policy: Sync,
    theirs: tuple[str, ...],
    packings: tuple[str, ...],
    here: tuple[str, ...],
    chosen: tuple[str, tuple[str, ...]],
) -> None:
    assert codec_choice(policy, theirs, packings, here) == chosen


def test_the_door_samples_down_only_after_being_away_for_long() -> None:
    policy = Sync(on_disconnect=SampleDown(3, after=Duration(10)))
    door = Door().link(connected=False, now_us=100)
    assert door.link(connected=False, now_us=105) == door
    assert door.admit(policy, 4, 109)[1] == [0, 1, 2, 3]
    door, kept = door.admit(policy, 4, 110)
    assert kept == [0, 3]
    door, kept = door.admit(policy, 4, 111)
    assert kept == [2]
    assert door.link(connected=True, now_us=112).admit(policy, 4, 113)[1] == [0, 1, 2, 3]
    assert door.admit(Sync(on_disconnect=NOTIFY), 4, 500)[1] == [0, 1, 2, 3]


T = Schema("T", (Column("at", INSTANT, event_time=True), Column("x", FLOAT)))
TREND = Sync(filter=trend("x", within=0.5))


def intake(outbox: Outbox, policy: Sync = TREND) -> Intake:
    return Intake(outbox, "t", T, policy)


def put(one: Intake, *rows: tuple[int, float], stamp: Stamp = BOOT, promise_us: int | None = None) -> Appended:
    return one.append(list(rows), stamp=stamp, readings_us=[at for at, _ in rows], promise_us=promise_us)


class TestIntake:
    def test_what_the_filter_holds_survives_a_restart_and_keeps_its_clock(self) -> None:
        disk = Disk()
        outbox = disk.open()
        put(intake(outbox), (0, 0.0), (1, 1.0), (2, 2.0))
        disk.save(outbox)
        outbox = disk.open()
        one = intake(outbox)
        assert put(one, (3, 9.0), stamp=LATER_BOOT) == Appended(1)
        assert one.release() == Appended(1)
        assert [(run.stamp, run.rows()) for run in drain(outbox, "t")] == [
            (BOOT, [(0, 0.0)]),
            (BOOT, [(2, 2.0)]),
            (LATER_BOOT, [(3, 9.0)]),
        ]

    def test_a_promise_does_not_run_ahead_of_what_is_held(self) -> None:
        outbox = Disk().open()
        one = intake(outbox)
        put(one, (0, 0.0), (10, 1.0), promise_us=10)
        put(one, (20, 2.0), promise_us=20)
        assert outbox.promised("t") == (BOOT, 20)
        put(one, promise_us=99)
        assert outbox.promised("t") == (BOOT, 20)
        one.release()
        put(one, promise_us=99)
        assert outbox.promised("t") == (BOOT, 99)

    def test_what_is_held_is_let_go_after_a_while(self) -> None:
        one = intake(Disk().open(), Sync(filter=trend("x", within=0.5, hold=Duration(100))))
        assert one.release_at_us() is None
        put(one, (0, 0.0), (7, 0.1))
        assert one.release_at_us() == 107
        one.release()
        assert one.release_at_us() is None

    def test_a_policy_changes_while_the_stream_runs(self) -> None:
        outbox = Disk().open()
        one = intake(outbox)
        put(one, (0, 0.0), (1, 1.0))
        assert one.change(Sync(outbox=Bound(records=2, when_full=DROP_OLDEST))) == Appended(1)
        assert put(one, (2, 2.0), (3, 3.0)) == Appended(2, given_up=2)
        (run,) = drain(outbox, "t")
        assert (run.rows(), run.gaps, run.lost) == ([(2, 2.0), (3, 3.0)], (Gap(0, 2),), Lost(dropped=2))

    def test_what_is_sampled_away_is_counted(self) -> None:
        outbox = Disk().open()
        one = intake(outbox, Sync(on_disconnect=SampleDown(2)))
        one.link(connected=False, now_us=0)
        put(one, (1, 1.0), (2, 2.0), (3, 3.0))
        one.link(connected=True, now_us=4)
        put(one, (4, 4.0))
        (run,) = drain(outbox, "t")
        assert [row[0] for row in run.rows()] == [1, 3, 4]
        assert run.lost == Lost(thinned=1)

    def test_a_step_of_the_caller_that_fails_takes_the_filter_back_too(self) -> None:
        outbox = Disk().open()
        one = intake(outbox)
        put(one, (0, 0.0), (1, 1.0))
        with pytest.raises(RuntimeError), outbox.transaction():
            put(one, (2, 50.0))
            raise RuntimeError
        put(one, (2, 2.0))
        one.release()
        assert [row for run in drain(outbox, "t") for row in run.rows()] == [(0, 0.0), (2, 2.0)]

    def test_an_event_time_that_is_missing_is_the_reading(self) -> None:
        outbox = Disk().open()
        untimed = Schema("U", (Column("lat", FLOAT), Column("lon", FLOAT)))
        one = Intake(outbox, "u", untimed, Sync(filter=dead_reckoning("lat", "lon", within=10)))
        rows = [(48.0, 11.0)] * 4
        one.append(rows, stamp=BOOT, readings_us=[0, 1, 2, 3])
        one.release()
        assert outbox.size("u")[0] == 2


class Refusing(Outbox):
    """An outbox whose disk can be told to refuse."""

    refuses = False

    def append(self, *arguments: object, **more: object) -> Appended:
        if self.refuses:
            from catchment.sync.outbox import Health

            raise OutboxError("S431", "full", why="it is", fix="free some space", health=Health.FULL)
        return super().append(*arguments, **more)  # type: ignore[arg-type]


@pytest.fixture
def refusing() -> Iterator[Refusing]:
    disk = Disk()
    outbox = Refusing.open(None, fresh_nonce=disk.nonces, connect=disk.connect)
    assert isinstance(outbox, Refusing)
    yield outbox
    outbox.close()


def test_what_a_full_disk_does_not_take_is_counted_and_the_filter_goes_on_from_before(refusing: Refusing) -> None:
    one = intake(refusing)
    put(one, (0, 0.0), (1, 1.0))
    refusing.refuses = True
    assert put(one, (2, 50.0), (3, 60.0)) == Appended(0, refused=2)
    refusing.refuses = False
    put(one, (4, 4.0))
    one.release()
    (run,) = drain(refusing, "t")
    assert (run.rows(), run.lost) == ([(0, 0.0), (4, 4.0)], Lost(refused=2))
