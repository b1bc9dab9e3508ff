"""The outbox: what went in comes out once, in order, with its number, whatever happens in between."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catchment.program.types import Row
from catchment.sync.frame import Epoch, Gap, Lost, Mark
from catchment.sync.outbox import Appended, Outbox, Stamp
from tests.unit.sync.outbox_world import BOOT, FIX, LATER_BOOT, OTHER, Disk, drain, put


def test_elements_come_out_in_order_with_their_numbers() -> None:
    outbox = Disk().open()
    assert put(outbox, 1, 2, 3) == Appended(3)
    put(outbox, 4)
    position = outbox.start("fixes")
    assert position is not None
    run = outbox.run("fixes", position, records_max=3)
    assert run is not None
    assert (run.first, run.upto, run.rows(), run.gaps) == (0, 3, [(1, 1), (2, 2), (3, 3)], ())
    assert (run.reading_us, run.span_us, run.epoch) == (10, 20, outbox.epoch)
    rest = outbox.run("fixes", run.after)
    assert rest is not None
    assert (rest.first, rest.upto, rest.rows()) == (3, 4, [(4, 4)])
    assert outbox.run("fixes", rest.after) is None


def test_an_acknowledged_element_is_gone_and_the_rest_stays() -> None:
    outbox = Disk().open()
    put(outbox, 1, 2, 3)
    assert outbox.epoch is not None
    assert outbox.acknowledge([Mark("fixes", outbox.epoch, 2)])
    assert not outbox.acknowledge([Mark("fixes", outbox.epoch, 1), Mark("unknown", outbox.epoch, 9)])
    assert outbox.size("fixes")[0] == 1
    assert [run.rows() for run in drain(outbox)] == [[(3, 3)]]
    assert outbox.size("fixes") == (0, 0)


def test_every_start_opens_an_epoch_and_what_was_left_drains_first_under_its_own() -> None:
    disk = Disk()
    outbox = disk.open()
    first_epoch = outbox.epoch
    put(outbox, 1, 2)
    disk.save(outbox)
    outbox = disk.open()
    put(outbox, 3)
    assert first_epoch != outbox.epoch
    runs = list(drain(outbox))
    assert [(run.epoch, run.first, run.rows()) for run in runs] == [
        (first_epoch, 0, [(1, 1), (2, 2)]),
        (outbox.epoch, 0, [(3, 3)]),
    ]


def test_a_power_cut_that_loses_the_tail_never_reuses_a_number() -> None:
    disk = Disk()
    outbox = disk.open()
    put(outbox, 1)
    disk.save(outbox)
    put(outbox, 2, 3)
    disk.save(outbox)
    epoch = outbox.epoch
    assert epoch is not None
    disk.lose(1)
    outbox = disk.open()
    # The receiver had taken all three: its mark is ahead of what is left here.
    outbox.acknowledge([Mark("fixes", epoch, 3)])
    put(outbox, 4)
    assert [(run.epoch, run.first, run.rows()) for run in drain(outbox)] == [(outbox.epoch, 0, [(4, 4)])]


def test_a_restored_backup_and_its_original_never_share_an_epoch() -> None:
    disk = Disk()
    put(disk.open(), 1)
    backup = list(disk.images)
    original = disk.open().epoch
    disk.images = backup
    restored = disk.open().epoch
    assert original is not None
    assert restored is not None
    assert original.counter == restored.counter
    assert original != restored


def test_the_state_and_the_outputs_of_a_step_are_stored_together_or_not_at_all() -> None:
    outbox = Disk().open()
    with outbox.transaction():
        put(outbox, 1)
        outbox.save_state("engine", b"one")
    with pytest.raises(RuntimeError), outbox.transaction():
        put(outbox, 2)
        put(outbox, 9, stream="new", stamp=LATER_BOOT)
        outbox.save_state("engine", b"two")
        raise RuntimeError
    assert outbox.load_state("engine") == b"one"
    put(outbox, 3)
    put(outbox, 4, stream="new", stamp=LATER_BOOT)
    assert [run.rows() for run in drain(outbox)] == [[(1, 1), (3, 3)]]
    assert [run.rows() for run in drain(outbox, "new")] == [[(4, 4)]]
    assert outbox.load_state("nothing") is None


def test_a_run_ends_where_the_schema_or_the_clock_changes() -> None:
    outbox = Disk().open()
    put(outbox, 1)
    outbox.append("fixes", OTHER, [(1.5,)], stamp=BOOT, readings_us=[0])
    put(outbox, 2, stamp=LATER_BOOT)
    assert [(run.schema, run.stamp, len(run.packed)) for run in drain(outbox)] == [
        (FIX, BOOT, 1),
        (OTHER, BOOT, 1),
        (FIX, LATER_BOOT, 1),
    ]


def test_a_run_ends_before_it_is_too_large_but_has_at_least_one_row() -> None:
    outbox = Disk().open()
    put(outbox, *range(10))
    assert [len(run.packed) for run in drain(outbox, bytes_max=1)] == [1] * 10
    put(outbox, *range(10))
    assert [len(run.packed) for run in drain(outbox, records_max=4)] == [4, 4, 2]


@pytest.mark.parametrize("row", [("x", 1), (1,), (1, None), (1, 2**70), (1, "\ud800")])
def test_an_element_that_could_not_be_read_back_is_refused_at_once(row: Row) -> None:
    outbox = Disk().open()
    with pytest.raises(Exception, match=r"S42[45]"):
        outbox.append("fixes", FIX, [(1, 1), row], stamp=BOOT, readings_us=[0, 0])
    put(outbox, 7)
    assert [run.rows() for run in drain(outbox)] == [[(7, 7)]]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 3), st.sampled_from([BOOT, LATER_BOOT])), max_size=20),
    st.integers(1, 4),
)
@settings(max_examples=60, deadline=None)
def test_a_promise_in_a_run_holds_for_all_that_follows(steps: list[tuple[int, int, Stamp]], records_max: int) -> None:
    """Each step promises more, in event time, and appends elements no older than the promise before it."""
    disk = Disk()
    outbox = disk.open()
    progress = 0
    for advance, rows, stamp in steps:
        put(outbox, *[progress + extra for extra in range(rows)], stamp=stamp)
        progress += advance
        outbox.promise("fixes", progress, stamp=stamp)
    runs = list(drain(outbox, records_max=records_max))
    for index, run in enumerate(runs):
        if run.promise_us is None:
            continue
        later = [row[0] for after in runs[index + 1 :] if after.stamp == run.stamp for row in after.rows()]
        assert all(at >= run.promise_us for at in later)
        assert run.promise_us <= progress
    if runs and steps[-1][2] == runs[-1].stamp:
        assert runs[-1].promise_us == progress
    assert outbox.promised("fixes") == ((steps[-1][2], progress) if steps else None)


class TestResults:
    EPOCH = Epoch(3, b"gateway!")

    def test_results_stay_until_forgotten_and_the_mark_moves_with_them(self) -> None:
        disk = Disk()
        outbox = disk.open()
        outbox.receive(Mark("trips", self.EPOCH, 2), FIX, [(1, 1), (2, 2)])
        outbox.receive(Mark("trips", self.EPOCH, 3), FIX, [(3, 3)])
        disk.save(outbox)
        outbox = disk.open()
        assert outbox.marks() == (Mark("trips", self.EPOCH, 3),)
        results = outbox.results("trips")
        assert [result.row for result in results] == [(1, 1), (2, 2), (3, 3)]
        outbox.forget_results("trips", results[1].id)
        assert [result.row for result in outbox.results("trips")] == [(3, 3)]
        outbox.forget_results("trips", results[2].id)
        outbox.receive(Mark("trips", self.EPOCH, 4), FIX, [(4, 4)])
        assert [r.row for r in outbox.results("trips", after=results[2].id)] == [(4, 4)]

    def test_with_keys_the_latest_of_each_stays(self) -> None:
        outbox = Disk().open()
        outbox.receive(Mark("trips", self.EPOCH, 2), FIX, [(1, 1), (2, 2)], keys=[b"ada", b"bob"])
        outbox.receive(Mark("trips", self.EPOCH, 3), FIX, [(3, 3)], keys=[b"ada"])
        assert [result.row for result in outbox.results("trips")] == [(2, 2), (3, 3)]

    def test_a_result_that_was_consumed_and_its_effect_are_stored_together(self) -> None:
        outbox = Disk().open()
        outbox.receive(Mark("trips", self.EPOCH, 1), FIX, [(1, 1)])
        with pytest.raises(RuntimeError), outbox.transaction():
            outbox.forget_results("trips", outbox.results("trips")[0].id)
            outbox.save_state("engine", b"saw it")
            raise RuntimeError
        assert len(outbox.results("trips")) == 1
        assert outbox.load_state("engine") is None

    def test_epochs_are_kept_in_the_order_in_which_they_were_met(self) -> None:
        outbox = Disk().open()
        epochs = [Epoch(9, b"z" * 8), Epoch(2, b"a" * 8), Epoch(5, b"m" * 8)]
        for epoch in epochs:
            outbox.receive(Mark("trips", epoch, 1))
        assert [mark.epoch for mark in outbox.marks()] == epochs


CHILD = """
import sys
from pathlib import Path
from catchment.program.types import INSTANT, INT, Column, Schema
from catchment.sync.outbox import Outbox, Stamp
FIX = Schema("Fix", (Column("at", INSTANT, event_time=True), Column("n", INT)))
outbox = Outbox.open(Path(sys.argv[1]), fresh_nonce=lambda: bytes.fromhex(sys.argv[2]))
n = int.from_bytes(outbox.load_state("engine") or b"", "big")
while True:
    with outbox.transaction():
        outbox.append("fixes", FIX, [(n + i, n + i) for i in range(7)], stamp=Stamp(b"boot"), readings_us=[0] * 7)
        n += 7
        outbox.save_state("engine", n.to_bytes(8, "big"))
    print(n, flush=True)
"""


@pytest.mark.process
def test_kill_nine_at_any_point_loses_nothing_that_was_committed_and_splits_no_step(tmp_path: Path) -> None:
    path, promised = tmp_path / "outbox.db", 0
    for round_ in range(3):
        command = [sys.executable, "-c", CHILD, str(path), f"{round_:016x}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for _ in range(20 + 17 * round_):
                promised = int(child.stdout.readline())
            child.kill()
            promised = max([promised, *[int(line) for line in child.stdout.read().split("\n")[:-1]]])
    outbox = Outbox.open(path, fresh_nonce=lambda: b"at last!")
    rows = [row for run in drain(outbox) for row in run.rows()]
    stored = int.from_bytes(outbox.load_state("engine") or b"", "big")
    assert rows == [(n, n) for n in range(stored)]
    assert stored >= promised
    outbox.close()


def test_what_an_ended_epoch_has_left_is_numbered_anew_before_what_came_later() -> None:
    disk = Disk()
    outbox = disk.open()
    ended = outbox.epoch
    assert ended is not None
    put(outbox, 1, 2, 3, 4)
    outbox.give_up("fixes", 2)
    put(outbox, 5, stamp=LATER_BOOT)
    disk.save(outbox)
    outbox = disk.open()
    put(outbox, 6)
    put(outbox, 7, stream="others")
    openings = outbox.openings
    assert outbox.supersede(Mark("fixes", ended, 3))
    assert outbox.openings == openings + 1
    assert outbox.epoch is not None and outbox.epoch.counter == 3
    put(outbox, 8)
    runs = list(drain(outbox))
    assert {run.epoch for run in runs} == {outbox.epoch}
    assert [(run.first, run.upto, run.rows()) for run in runs] == [
        (0, 1, [(4, 4)]),
        (1, 4, [(5, 5)]),
        (4, 6, [(6, 6), (8, 8)]),
    ]
    assert (runs[1].gaps, runs[-1].lost) == ((Gap(0, 2),), Lost(refused=2))
    assert [run.rows() for run in drain(outbox, "others")] == [[(7, 7)]]
    # The same answer comes for every frame that was under way.
    assert not outbox.supersede(Mark("fixes", ended, 3))


def test_an_epoch_of_this_very_start_that_has_ended_gives_way_to_another() -> None:
    outbox = Disk().open()
    ended = outbox.epoch
    assert ended is not None
    put(outbox, 1, 2, 3)
    assert outbox.supersede(Mark("fixes", ended, 1))
    assert outbox.epoch != ended
    assert [(run.epoch, run.first, run.rows()) for run in drain(outbox)] == [(outbox.epoch, 0, [(2, 2), (3, 3)])]
    assert not outbox.supersede(Mark("fixes", ended, 1))
    assert not outbox.supersede(Mark("unheard of", ended, 1))
