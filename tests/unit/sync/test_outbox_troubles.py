"""An outbox on a disk that is full, read-only, in use, or damaged: a clear state, and nothing silently lost."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catchment.errors import ProgramError
from catchment.program.sync import DROP_OLDEST, Bound
from catchment.program.types import FLOAT, INT, Column, Row, Schema
from catchment.sync.frame import Epoch, Gap, Lost, Mark
from catchment.sync.outbox import Appended, Health, Outbox, OutboxError
from catchment.sync.outbox.database import Database
from catchment.sync.outbox.mending import FileMending
from catchment.sync.outbox.salvage import salvage
from tests.unit.sync.outbox_world import BOOT, FIX, Disk, drain, image, nonces, numbers_of, put


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
        wide = Schema("Wide", (Column("n", INT), *(Column(f"x{i}", FLOAT) for i in range(200))))
        outcomes = [outbox.append("wide", wide, [(n, *[0.5] * 200)], stamp=BOOT, readings_us=[0]) for n in range(200)]
        accepted = sum(outcome.accepted for outcome in outcomes)
        assert 0 < accepted < 200
        assert outbox.health is Health.FULL or outbox.uncounted == 0
        assert outbox.lost("wide") == Lost(refused=200 - accepted)
        # Sending makes room, and the outbox carries on by itself.
        assert sum(len(run.packed) for run in drain(outbox, "wide")) == accepted
        assert outbox.append("wide", wide, [(0, *[0.5] * 200)], stamp=BOOT, readings_us=[0]) == Appended(1)
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
            outbox._ready().database.connection.execute("SELEKT")
        assert outbox.health is Health.WORKING
        with pytest.raises(ProgramError):
            outbox.append("fixes", FIX, [(object(), 1)], stamp=BOOT, readings_us=[0])


WHOLE_EPOCH = Epoch(1, (1).to_bytes(8, "big"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An outbox with 3,000 elements of one epoch, and a state."""
    path = tmp_path_factory.mktemp("whole") / "outbox.db"
    outbox = Outbox.open(path, fresh_nonce=nonces())
    for start in range(0, 3000, 600):
        with outbox.transaction():
            put(outbox, *range(start, start + 600))
            outbox.save_state("engine", start.to_bytes(4, "big"))
    assert outbox.epoch == WHOLE_EPOCH
    outbox.close()
    return path.read_bytes()


class TestDamage:
    @pytest.mark.parametrize("table", ["state", "result"])
    def test_damage_that_a_read_comes_upon_is_told_and_the_rest_is_salvaged(self, tmp_path: Path, table: str) -> None:
        outbox = Outbox.open(tmp_path / "outbox.db", fresh_nonce=nonces())
        put(outbox, 1, 2)
        outbox.save_state("engine", b"one")
        outbox.receive(Mark("trips", Epoch(3, b"gateway!"), 1), FIX, [(1, 1)])
        before = outbox.epoch
        column = "value" if table == "state" else "row"
        outbox._connection().execute(f"UPDATE {table} SET {column} = x'00'")
        with pytest.raises(OutboxError, match="S433"):
            outbox.load_state("engine") if table == "state" else outbox.results("trips")
        assert outbox.health is Health.WORKING
        assert (outbox.openings, outbox.epoch) == (2, Epoch(2, (2).to_bytes(8, "big")))
        assert outbox.salvaged is not None
        assert (outbox.salvaged.entries, outbox.salvaged.missing, outbox.salvaged.state_kept) == (2, 0, False)
        assert (outbox.load_state("engine"), outbox.results("trips"), outbox.marks()) == (None, [], ())
        assert [(run.epoch, run.rows()) for run in drain(outbox)] == [(before, [(1, 1), (2, 2)])]
        outbox.close()

    @pytest.mark.parametrize("table", ["epoch", "stream", "schema", "stamp", "channel"])
    def test_a_page_that_reads_as_if_it_held_nothing_is_not_believed(
        self, table: str, whole: bytes, tmp_path: Path
    ) -> None:
        path = tmp_path / "outbox.db"
        path.write_bytes(whole)
        with closing(sqlite3.connect(path)) as source:
            (page_bytes,) = source.execute("PRAGMA page_size").fetchone()
            roots = dict(source.execute("SELECT name, rootpage FROM sqlite_master WHERE type = 'table'").fetchall())
        body = bytearray(whole)
        # Its first byte, which says what kind of page it is, survives; of the elements nothing does.
        for name, start in ((table, 1), ("entry", 0)):
            at = (roots[name] - 1) * page_bytes
            body[at + start : at + page_bytes] = bytes(page_bytes - start)
        path.write_bytes(body)
        outbox = Outbox.open(path, fresh_nonce=lambda: b"after it")
        assert outbox.salvaged is not None
        assert (outbox.salvaged.entries, outbox.salvaged.missing) == (0, None)
        outbox.close()

    @pytest.mark.parametrize("rotted", [b"\x17\xa5\x17\xa5", b"\xff\xff\xff\xff"])
    def test_a_format_that_nobody_will_write_has_rotted(self, rotted: bytes, whole: bytes, tmp_path: Path) -> None:
        path = tmp_path / "outbox.db"
        path.write_bytes(whole[:60] + rotted + whole[64:])
        outbox = Outbox.open(path, fresh_nonce=lambda: b"after it")
        assert outbox.health is Health.WORKING
        assert outbox.salvaged is not None
        assert (outbox.salvaged.entries, outbox.salvaged.missing) == (3000, 0)
        outbox.close()

    @given(damage=st.data())
    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_what_can_be_read_is_kept_and_the_rest_shows_as_a_gap(
        self, damage: st.DataObject, whole: bytes, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        path = tmp_path_factory.mktemp("damage") / "outbox.db"
        body = bytearray(whole)
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
        assert all(epoch == WHOLE_EPOCH and row == (number, number) for (epoch, number), row in got.items())
        if outbox.salvaged is not None:
            assert outbox.salvaged.entries == len(got)
            assert outbox.salvaged.missing in (3000 - len(got), None)
            assert (path.parent / outbox.salvaged.set_aside).exists()
            if not outbox.salvaged.state_kept:
                assert outbox.load_state("engine") is None
        outbox.close()

    @pytest.mark.parametrize("ends", ["while it is filled", "before it is in its place", "half-way through the swap"])
    def test_a_start_that_ends_while_it_mends_loses_nothing(self, tmp_path: Path, ends: str) -> None:
        path = tmp_path / "outbox.db"
        with closing(Outbox.open(path, fresh_nonce=nonces())) as outbox:
            put(outbox, 1, 2)
            outbox.save_state("engine", b"one")
            outbox._connection().execute("UPDATE state SET value = x'00'")
            whole = outbox.epoch

        mending = FileMending(path)
        damaged, fresh = mending.damaged(), Database(mending.beside)
        if ends != "while it is filled":
            salvage(damaged, fresh)
        fresh.settle()
        fresh.close()
        damaged.source.close()
        if ends == "half-way through the swap":
            path.with_name("outbox.db.mending").rename(path.with_name("outbox.db.mended"))
            path.rename(path.with_name("outbox.db.damaged-1"))

        with closing(Outbox.open(path, fresh_nonce=lambda: b"later on")) as outbox:
            with suppress(OutboxError):
                outbox.load_state("engine")
            assert [(run.epoch, run.rows()) for run in drain(outbox)] == [(whole, [(1, 1), (2, 2)])]
            assert (outbox.load_state("engine"), outbox.health) == (None, Health.WORKING)
        assert {one.name for one in tmp_path.glob("outbox.db.*")} >= {"outbox.db.damaged-1"}

    def test_a_disk_too_full_to_mend_keeps_what_is_damaged_until_there_is_room(self, tmp_path: Path) -> None:
        path = tmp_path / "outbox.db"
        with closing(Outbox.open(path, fresh_nonce=nonces())) as outbox:
            put(outbox, 1, 2)
            whole = outbox.epoch
        full = Full(path)
        body = bytearray(path.read_bytes())
        body[28:32] = b"\xff\xff\xff\xff"  # how many pages there are
        body[100:102] = b"\xee\xee"  # what kind of page the first is
        path.write_bytes(bytes(body))
        outbox = Outbox.open(path, fresh_nonce=lambda: b"later on", mending=full)
        assert (outbox.health, outbox.epoch) == (Health.FULL, None)
        assert put(outbox, 3) == Appended(0, refused=1)
        assert path.exists()
        full.is_full = False
        assert put(outbox, 4) == Appended(1)
        assert outbox.salvaged is not None
        assert outbox.salvaged.entries in (0, 2)
        assert {run.epoch for run in drain(outbox)} <= {whole, outbox.epoch}
        assert (path.parent / outbox.salvaged.set_aside).exists()
        outbox.close()


def rotted_keys(outbox: Outbox, *places: int) -> bytes:
    """The database, the epoch turned in the keys of entries at these places, so that no search finds its way by them.

    Elements of the first stream, epoch, schema and stamp, with numbers from 2 to 127: all but the number are in the
    header of a record, as the constant 1.
    """
    body = bytearray(image(outbox))
    found = [at for at in range(len(body)) if body[at : at + 5] == b"\x09\x09\x01\x09\x09"]
    for place in places:
        body[found[place] + 1] = 8
    return bytes(body)


class TestRottenKeys:
    @pytest.fixture
    def rotten(self) -> Outbox:
        """Ten elements, of which the one in the middle says that it is of an epoch that there is not."""
        disk = Disk()
        outbox = disk.open()
        outbox.bind("fixes", Bound(records=12, when_full=DROP_OLDEST))
        put(outbox, *range(12))
        body = rotted_keys(outbox, 5)
        assert disk.connection is not None
        disk.connection.deserialize(body)
        return outbox

    def test_what_cannot_be_found_to_make_room_is_damage_and_not_looked_for_for_ever(self, rotten: Outbox) -> None:
        assert put(rotten, 12) == Appended(0, refused=1)
        assert rotten.health is Health.DAMAGED
        assert rotten.uncounted == 1

    def test_what_cannot_be_found_to_be_numbered_anew_is_damage(self, rotten: Outbox) -> None:
        assert rotten.epoch is not None
        with pytest.raises(OutboxError, match="S433"):
            rotten.supersede(Mark("fixes", rotten.epoch, 1))

    def test_a_start_sees_it_and_leaves_out_what_rotted(self, rotten: Outbox, tmp_path: Path) -> None:
        path = tmp_path / "outbox.db"
        path.write_bytes(image(rotten))
        with closing(Outbox.open(path, fresh_nonce=lambda: b"after it")) as outbox:
            assert outbox.salvaged is not None
            assert (outbox.salvaged.entries, outbox.salvaged.missing) == (11, 1)


class Full(FileMending):
    """Has no room beside the damaged file, for a while."""

    is_full = True

    def beside(self) -> sqlite3.Connection:
        connection = super().beside()
        if self.is_full:
            connection.execute("PRAGMA max_page_count=1")
        return connection
