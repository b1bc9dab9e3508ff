"""The outbox: what went in comes out once, in order, with its number, whatever happens in between."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catchment.errors import ProgramError
from catchment.program.sync import DROP_OLDEST, REFUSE, Bound, Thin
from catchment.program.types import FLOAT, INSTANT, INT, Column, Row, Schema
from catchment.sync.frame import Epoch, Gap, Lost, Mark
from catchment.sync.outbox import Appended, Health, Outbox, OutboxError, Run, Stamp

FIX = Schema("Fix", (Column("at", INSTANT, event_time=True), Column("n", INT)))
OTHER = Schema("Other", (Column("x", FLOAT),))
BOOT = Stamp(b"boot-one")
LATER_BOOT = Stamp(b"boot-two", offset_us=5)


def nonces() -> Callable[[], bytes]:
    numbers = count(1)
    return lambda: next(numbers).to_bytes(8, "big")


class Disk:
    """A disk that holds the last image, and one image per durable commit, to go back to."""

    def __init__(self) -> None:
        self.images: list[bytes] = []
        self.connection: sqlite3.Connection | None = None
        self.nonces = nonces()

    def connect(self) -> sqlite3.Connection:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        if self.images:
            self.connection.deserialize(self.images[-1])
        return self.connection

    def open(self) -> Outbox:
        outbox = Outbox.open(None, fresh_nonce=self.nonces, connect=self.connect)
        self.save(outbox)
        return outbox

    def save(self, outbox: Outbox) -> None:
        self.images.append(outbox.image())

    def lose(self, commits: int) -> None:
        """A power cut that loses the tail, or a backup that is restored."""
        del self.images[max(1, len(self.images) - commits) :]


def put(outbox: Outbox, *numbers: int, stream: str = "fixes", stamp: Stamp = BOOT) -> Appended:
    return outbox.append(
        stream, FIX, [(number, number) for number in numbers], stamp=stamp, readings_us=[n * 10 for n in numbers]
    )


def drain(outbox: Outbox, stream: str = "fixes", records_max: int = 1000, bytes_max: int = 1 << 20) -> Iterator[Run]:
    """Send everything as a sender would: acknowledge each epoch before the next one starts."""
    while (position := outbox.start(stream)) is not None:
        while (run := outbox.run(stream, position, records_max=records_max, bytes_max=bytes_max)) is not None:
            yield run
            position = run.after
        outbox.acknowledge([Mark(stream, outbox.epoch_of(position), position.number)])


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


class TestBounds:
    def test_when_full_refuse(self) -> None:
        outbox = Disk().open()
        outbox.bind("fixes", Bound(records=3, when_full=REFUSE))
        assert put(outbox, 1, 2) == Appended(2)
        assert put(outbox, 3, 4, 5) == Appended(1, refused=2)
        (run,) = drain(outbox)
        assert (run.rows(), run.gaps, run.upto) == ([(1, 1), (2, 2), (3, 3)], (Gap(3, 2),), 5)
        assert run.lost == Lost(refused=2)
        assert put(outbox, 6) == Appended(1)

    def test_when_full_drop_the_oldest(self) -> None:
        outbox = Disk().open()
        outbox.bind("fixes", Bound(records=3, when_full=DROP_OLDEST))
        put(outbox, 1, 2)
        assert put(outbox, 3, 4, 5) == Appended(3, given_up=2)
        (run,) = drain(outbox)
        assert (run.rows(), run.gaps) == ([(3, 3), (4, 4), (5, 5)], (Gap(0, 2),))
        assert run.lost == Lost(dropped=2)

    def test_when_full_thin_the_oldest_half(self) -> None:
        outbox = Disk().open()
        outbox.bind("fixes", Bound(records=8, when_full=Thin(2)))
        put(outbox, *range(8))
        assert put(outbox, 8) == Appended(1, given_up=2)
        (run,) = drain(outbox)
        assert [row[1] for row in run.rows()] == [0, 2, 4, 5, 6, 7, 8]
        assert run.gaps == (Gap(1, 1, 2),)
        assert run.lost == Lost(thinned=2)

    def test_a_bound_in_bytes(self) -> None:
        outbox = Disk().open()
        put(outbox, *range(10, 20))
        size = outbox.size("fixes")[1]
        outbox.bind("fixes", Bound(bytes=size, when_full=DROP_OLDEST))
        assert put(outbox, 20, 21, 22) == Appended(3, given_up=3)
        assert outbox.size("fixes") == (10, size)

    def test_everything_given_up_is_still_told(self) -> None:
        outbox = Disk().open()
        outbox.give_up("fixes", 4, thinned=True)
        (run,) = drain(outbox)
        assert (run.schema, run.rows(), run.gaps, run.lost) == (None, [], (Gap(0, 4),), Lost(thinned=4))
        assert list(drain(outbox)) == []

    def test_no_run_has_more_gaps_than_a_header_holds(self) -> None:
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
        outbox._ready()[1].reload()
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


def numbers_of(run: Run) -> list[int]:
    numbers, number = [], run.first
    before = {gap.at + row: gap.skipped for gap in run.gaps for row in range(gap.rows)}
    for index in range(len(run.packed)):
        number += before.get(index, 0)
        numbers.append(number)
        number += 1
    return numbers


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


class Moody(sqlite3.Connection):
    """A connection whose disk refuses to write when told to."""

    refuses: int | None = None

    def _maybe_refuse(self, statement: str) -> None:
        if self.refuses is not None and not statement.startswith(("SELECT", "PRAGMA", "ROLLBACK")):
            error = sqlite3.OperationalError("the disk says no")
            error.sqlite_errorcode = self.refuses
            error.sqlite_errorname = "SQLITE_MOODY"
            raise error

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        self._maybe_refuse(statement)
        return super().execute(statement, *values)

    def executemany(self, statement: str, *values: Any) -> sqlite3.Cursor:
        self._maybe_refuse(statement)
        return super().executemany(statement, *values)


class TestTroubles:
    @pytest.fixture
    def moody(self, tmp_path: Path) -> Iterator[tuple[Outbox, type[Moody]]]:
        class Mine(Moody):
            pass

        path = tmp_path / "outbox.db"
        outbox = Outbox.open(
            path,
            fresh_nonce=nonces(),
            connect=lambda: sqlite3.connect(path, isolation_level=None, factory=Mine),
        )
        yield outbox, Mine
        Mine.refuses = None
        outbox.close()

    @pytest.mark.parametrize(
        ("code", "health"),
        [
            (sqlite3.SQLITE_FULL, Health.FULL),
            (sqlite3.SQLITE_READONLY, Health.READ_ONLY),
            (sqlite3.SQLITE_IOERR, Health.READ_ONLY),
        ],
    )
    def test_what_the_disk_does_not_take_is_counted_and_reported_later(
        self, moody: tuple[Outbox, type[Moody]], code: int, health: Health
    ) -> None:
        outbox, disk = moody
        put(outbox, 1)
        disk.refuses = code
        assert put(outbox, 2, 3) == Appended(0, refused=2)
        assert outbox.health is health
        with pytest.raises(OutboxError) as caught, outbox.transaction():
            put(outbox, 4)
        assert caught.value.health is health
        outbox.give_up("fixes", 1)
        assert (outbox.uncounted, outbox.lost("fixes")) == (3, Lost(refused=3))
        # What is there can still be sent while nothing can be written.
        assert outbox.epoch is not None
        assert not outbox.acknowledge([Mark("fixes", outbox.epoch, 1)])
        disk.refuses = None
        put(outbox, 5)
        assert (outbox.health, outbox.uncounted) == (Health.WORKING, 0)
        outbox.acknowledge([])
        (run,) = drain(outbox)
        assert (run.first, run.rows(), run.gaps, run.lost) == (1, [(5, 5)], (Gap(0, 3),), Lost(refused=3))

    def test_a_full_disk_still_takes_the_count(self, tmp_path: Path) -> None:
        outbox = Outbox.open(tmp_path / "outbox.db", fresh_nonce=nonces(), disk_bytes_max=200_000)
        wide = Schema("Wide", (Column("n", INT), *(Column(f"x{i}", FLOAT) for i in range(50))))
        outcomes = [outbox.append("wide", wide, [(n, *[0.5] * 50)], stamp=BOOT, readings_us=[0]) for n in range(1000)]
        accepted = sum(outcome.accepted for outcome in outcomes)
        assert 0 < accepted < 1000
        assert outbox.health is Health.FULL or outbox.uncounted == 0
        assert outbox.lost("wide") == Lost(refused=1000 - accepted)
        # Sending makes room, and the outbox carries on by itself.
        assert sum(len(run.packed) for run in drain(outbox, "wide")) == accepted
        assert outbox.append("wide", wide, [(0, *[0.5] * 50)], stamp=BOOT, readings_us=[0]) == Appended(1)
        assert outbox.health is Health.WORKING
        outbox.close()

    def test_ballast_is_given_to_a_full_disk_and_taken_again(self, moody: tuple[Outbox, type[Moody]]) -> None:
        outbox, disk = moody
        (ballast,) = [path for path in Path(str(outbox._path)).parent.iterdir() if path.name.endswith(".ballast")]
        disk.refuses = sqlite3.SQLITE_FULL
        put(outbox, 1)
        assert not ballast.exists()
        disk.refuses = None
        put(outbox, 2)
        assert ballast.stat().st_size > 100_000

    def test_an_outbox_that_cannot_be_opened_counts_until_it_can(self, tmp_path: Path) -> None:
        place = tmp_path / "not-yet-a-directory"
        place.write_text("in the way")
        outbox = Outbox.open(
            place / "outbox.db",
            fresh_nonce=nonces(),
            connect=lambda: sqlite3.connect(place / "outbox.db", isolation_level=None),
        )
        assert (outbox.health, outbox.epoch, outbox.start("fixes")) == (Health.READ_ONLY, None, None)
        assert put(outbox, 1, 2) == Appended(0, refused=2)
        place.unlink()
        place.mkdir()
        assert put(outbox, 3) == Appended(1)
        (run,) = drain(outbox)
        assert (run.rows(), run.gaps, run.lost) == ([(3, 3)], (Gap(0, 2),), Lost(refused=2))
        outbox.close()

    def test_a_second_process_is_kept_out(self, tmp_path: Path) -> None:
        outbox = Outbox.open(tmp_path / "outbox.db", fresh_nonce=nonces())
        with pytest.raises(OutboxError, match="S430"):
            Outbox.open(tmp_path / "outbox.db", fresh_nonce=nonces())
        outbox.close()
        Outbox.open(tmp_path / "outbox.db", fresh_nonce=nonces()).close()

    def test_a_later_format_is_left_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "outbox.db"
        Outbox.open(path, fresh_nonce=nonces()).close()
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA user_version=99")
        connection.close()
        before = path.read_bytes()
        with pytest.raises(OutboxError, match="S434"):
            Outbox.open(path, fresh_nonce=nonces())
        assert path.read_bytes() == before

    def test_a_mistake_of_ours_is_not_taken_for_a_disk_failure(self) -> None:
        outbox = Disk().open()
        with pytest.raises(sqlite3.OperationalError, match="syntax"), outbox.transaction():
            outbox._ready()[0].connection.execute("SELEKT")
        assert outbox.health is Health.WORKING
        with pytest.raises(ProgramError):
            outbox.append("fixes", FIX, [(object(), 1)], stamp=BOOT, readings_us=[0])


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


class TestDamage:
    def filled(self, path: Path) -> tuple[dict[int, Row], Epoch]:
        outbox = Outbox.open(path, fresh_nonce=nonces())
        for start in range(0, 3000, 100):
            with outbox.transaction():
                put(outbox, *range(start, start + 100))
                outbox.save_state("engine", start.to_bytes(4, "big"))
        assert outbox.epoch is not None
        epoch = outbox.epoch
        outbox.close()
        return {number: (number, number) for number in range(3000)}, epoch

    @given(damage=st.data())
    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_what_can_be_read_is_kept_and_the_rest_shows_as_a_gap(
        self, damage: st.DataObject, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        path = tmp_path_factory.mktemp("damage") / "outbox.db"
        rows, old_epoch = self.filled(path)
        body = bytearray(path.read_bytes())
        at = damage.draw(st.integers(0, len(body) - 1), label="at")
        length = damage.draw(st.integers(1, 20_000), label="length")
        noise = damage.draw(st.sampled_from([b"\0", b"\xff", b"\xa5\x17"]), label="noise")
        body[at : at + length] = (noise * length)[: len(body[at : at + length])]
        path.write_bytes(bytes(body))
        outbox = Outbox.open(path, fresh_nonce=lambda: b"after it")
        assert outbox.health is Health.WORKING
        put(outbox, 5000)
        got: dict[tuple[Epoch, int], Row] = {}
        for run in drain(outbox):
            for number, row in zip(numbers_of(run), run.rows(), strict=True):
                assert (run.epoch, number) not in got
                got[run.epoch, number] = row
        assert outbox.epoch is not None
        assert got.pop((outbox.epoch, 0)) == (5000, 5000)
        if outbox.salvaged is None:
            # SQLite saw nothing wrong in its structure: only what rotted inside a row is left out, by the row's seal.
            assert 3000 - len(got) <= length
        assert all(epoch == old_epoch and row == rows[number] for (epoch, number), row in got.items())
        if outbox.salvaged is not None:
            assert outbox.salvaged.entries == len(got)
            assert outbox.salvaged.missing in (3000 - len(got), None)
            assert (path.parent / outbox.salvaged.set_aside).exists()
            if not outbox.salvaged.state_kept:
                assert outbox.load_state("engine") is None
        outbox.close()
