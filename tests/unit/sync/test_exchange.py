"""A device's end put together: over a connection, over single requests, and when something is wrong."""

from collections.abc import Sequence

from catchment.program.sync import NOTIFY, Batch, Sync, wait_when_metered
from catchment.program.types import FLOAT, INSTANT, INT, Column, Duration, Row, Schema
from catchment.sync import frame as f
from catchment.sync.codecs import codec
from catchment.sync.exchange import Exchange
from catchment.sync.happening import Arrived, Happening, Noticed, Parted, PlanArrived, Told, Trouble
from catchment.sync.outbox import Outbox, Stamp
from catchment.sync.session import BEAT_US, Clocks, Identity, Joined
from catchment.sync.uplink import Uplink
from tests.unit.sync.outbox_world import FIX, Disk

SECOND = 1_000_000
EVERY = Sync(batch=Batch(records=1))
TRIPS = f.Epoch(1, b"gateway!")
WELCOME = {"codecs": ("msgpack", "none"), "compressions": ("deflate",)}


class Phone:
    """An exchange, the frames it said last, and a gateway's words put into its ear."""

    def __init__(self, *, eager: bool = False, outbox: Outbox | None = None, policy: Sync = EVERY) -> None:
        self.disk = Disk()
        self.outbox = outbox or self.disk.open()
        self.now_us = 0
        self.exchange = Exchange(
            self.outbox, Identity("phone", "secret", ("msgpack",)), fresh_nonce=self.disk.nonces, eager=eager
        )
        self.intake = self.exchange.up("fixes", FIX, policy)
        self.exchange.down("trips", [FIX])

    @property
    def clocks(self) -> Clocks:
        return Clocks(b"boot", self.now_us)

    def append(self, *numbers: int) -> None:
        self.intake.append([(n, n) for n in numbers], stamp=Stamp(b"boot"), readings_us=[self.now_us] * len(numbers))

    def says(self) -> list[f.Frame]:
        said: list[f.Frame] = []
        while message := self.exchange.outgoing(self.clocks):
            said.extend(f.decode_all(message))
        return said

    def hears(self, *frames: f.Frame) -> list[Happening]:
        return self.exchange.received(f.encode_all(frames), self.clocks)

    def joins(self, *, marks: tuple[f.Mark, ...] = (), window_frames: int = 64) -> list[Happening]:
        self.exchange.connected(self.clocks)
        (hello,) = self.says()
        assert isinstance(hello, f.Hello)
        welcome = f.Welcome(hello.nonce, hello.nonce, marks=marks, window_frames=window_frames, codecs=("msgpack",))
        return self.hears(welcome)


def result(first: int, rows: Sequence[Row], schema: Schema = FIX, *, count: int | None = None) -> f.Data:
    payload = codec("msgpack").encode(schema, rows)
    shape = bytes.fromhex(schema.fingerprint)
    return f.Data("trips", TRIPS, first, len(rows) if count is None else count, shape, "msgpack", payload=payload)


def test_every_message_with_data_begins_with_the_clock_as_it_leaves() -> None:
    phone = Phone()
    phone.joins()
    phone.now_us = 7
    phone.append(1)
    beat, data = phone.says()
    assert beat == f.Beat(b"boot", 7)
    assert isinstance(data, f.Data)
    assert (data.codec, data.first, data.count) == ("msgpack", 0, 1)
    assert codec(data.codec).decode(FIX, data.payload) == [(1, 1)]
    assert phone.says() == []


def test_what_is_acknowledged_is_forgotten_and_told_is_passed_on() -> None:
    phone = Phone()
    phone.joins()
    phone.append(1)
    phone.says()
    assert phone.outbox.epoch is not None
    offset, pressure = f.Offset(b"boot", 0, 5), f.Pressure(9, 2.0)
    mark = f.Mark("fixes", phone.outbox.epoch, 1)
    assert phone.hears(f.Ack((mark,), offset, pressure)) == [Told(offset, pressure)]
    assert phone.outbox.size("fixes") == (0, 0)


def test_streams_go_by_priority_and_within_the_window() -> None:
    phone = Phone()
    urgent = phone.exchange.up("alarms", FIX, Sync(batch=Batch(records=1), priority=5))
    phone.append(1)
    urgent.append([(2, 2)], stamp=Stamp(b"boot"), readings_us=[0])
    phone.joins(window_frames=1)
    assert [frame.stream for frame in phone.says() if isinstance(frame, f.Data)] == ["alarms"]


def test_a_stream_that_the_program_no_longer_has_drains_too() -> None:
    phone = Phone()
    phone.outbox.append("former", FIX, [(1, 1)], stamp=Stamp(b"boot"), readings_us=[0])
    phone.joins()
    assert [frame.stream for frame in phone.says() if isinstance(frame, f.Data)] == ["former"]


def test_a_backlog_goes_in_large_frames_and_messages_of_some_size() -> None:
    phone = Phone()
    wide = Schema("Wide", tuple(Column(f"x{i}", FLOAT) for i in range(60)))
    intake = phone.exchange.up("wide", wide, Sync(batch=Batch(records=1), compression="off"))
    intake.append([(0.1,) * 60] * 2500, stamp=Stamp(b"boot"), readings_us=[0] * 2500)
    phone.joins()
    messages = []
    while message := phone.exchange.outgoing(phone.clocks):
        messages.append(list(f.decode_all(message)))
    assert all(isinstance(frames[0], f.Beat) for frames in messages)
    assert [len(frames) for frames in messages] == [2, 2, 2]
    assert sum(frame.count for frames in messages for frame in frames if isinstance(frame, f.Data)) == 2500


def test_batches_wait_as_their_policy_says_and_the_driver_is_told_how_long() -> None:
    phone = Phone(policy=Sync(batch=Batch(records=100, within=Duration(60 * SECOND))))
    phone.joins()
    phone.now_us = 5 * SECOND
    phone.append(1)
    assert phone.says() == []
    assert phone.exchange.wake_at_us(phone.clocks) == min(BEAT_US, 65 * SECOND)
    phone.now_us = 65 * SECOND
    assert [type(frame) for frame in phone.says()] == [f.Beat, f.Data]


def test_a_quiet_connection_shows_signs_of_life_with_promises() -> None:
    phone = Phone()
    phone.joins()
    with phone.outbox.transaction():
        phone.intake.append([], stamp=Stamp(b"boot", 7), readings_us=[], promise_us=42)
    assert phone.says() == []
    phone.now_us = BEAT_US
    assert phone.says() == [f.Beat(b"boot", BEAT_US, promises=(f.Promise("fixes", 42, 7),))]


def test_a_metered_link_is_waited_out() -> None:
    phone = Phone(policy=Sync(batch=Batch(records=1), metered=wait_when_metered()))
    phone.exchange.metered(True)
    phone.joins()
    phone.append(1)
    assert phone.says() == []
    phone.exchange.metered(False)
    assert len(phone.says()) == 2


def test_a_program_that_asks_is_told_of_disconnections() -> None:
    phone = Phone(policy=Sync(on_disconnect=NOTIFY))
    assert Noticed("fixes", True) in phone.joins()
    assert phone.exchange.is_connected
    assert [type(one) for one in phone.exchange.disconnected(0)] == [Noticed, Parted]
    assert phone.exchange.disconnected(0) == []


def test_what_was_given_up_is_told_without_waiting() -> None:
    phone = Phone(policy=Sync(batch=Batch(records=100, within=None)))
    phone.outbox.give_up("fixes", 3)
    phone.joins()
    _, data = phone.says()
    assert isinstance(data, f.Data)
    assert (data.count, data.gaps, data.lost, data.codec) == (0, (f.Gap(0, 3),), f.Lost(3), "none")


def test_an_epoch_that_is_over_is_given_up_and_what_it_has_left_goes_out_under_another() -> None:
    phone = Phone()
    phone.joins()
    phone.append(1, 2, 3)
    phone.says()
    ended = phone.outbox.epoch
    assert ended is not None
    (told,) = phone.hears(f.Error("S411", "over", retry_after_us=0, mark=f.Mark("fixes", ended, 1)))
    assert isinstance(told, Trouble)
    assert phone.says() == []
    # The gateway has to hear of the other epoch first.
    assert any(isinstance(one, Parted) for one in phone.exchange.due(phone.clocks))
    phone.joins()
    (data,) = [frame for frame in phone.says() if isinstance(frame, f.Data)]
    assert (data.epoch, data.first, data.count) == (phone.outbox.epoch, 0, 2)
    assert data.epoch != ended


def test_a_refusal_with_a_mark_sends_back_and_one_with_a_time_waits() -> None:
    phone = Phone()
    phone.joins()
    phone.append(1, 2, 3)
    phone.says()
    assert phone.outbox.epoch is not None
    mark = f.Mark("fixes", phone.outbox.epoch, 1)
    (trouble,) = phone.hears(f.Error("S410", "a gap", retry_after_us=0, mark=mark))
    assert isinstance(trouble, Trouble)
    again = phone.says()[-1]
    assert isinstance(again, f.Data)
    assert again.first == 1
    phone.hears(f.Error("G555", "unknown schema", retry_after_us=SECOND, mark=mark))
    assert phone.says() == []
    assert phone.exchange.wake_at_us(phone.clocks) == SECOND
    phone.now_us = SECOND
    assert len(phone.says()) == 2


class TestRequests:
    """One HTTP request per exchange."""

    def test_an_eager_device_sends_data_beside_its_hello_once_it_was_welcomed(self) -> None:
        phone = Phone(eager=True)
        phone.append(1)
        phone.joins()
        phone.says()
        assert phone.outbox.epoch is not None
        phone.hears(f.Ack((f.Mark("fixes", phone.outbox.epoch, 1),)))
        phone.exchange.finished(0)
        phone.append(2)
        phone.exchange.connected(phone.clocks)
        hello, _, data = phone.says()
        assert isinstance(hello, f.Hello)
        assert isinstance(data, f.Data)
        mark = f.Mark("fixes", phone.outbox.epoch, 2)
        happenings = phone.hears(f.Welcome(hello.nonce, hello.nonce, codecs=("msgpack",)), f.Ack((mark,)))
        assert [type(one) for one in happenings] == [Joined]
        phone.exchange.finished(0)
        assert phone.outbox.size("fixes") == (0, 0)
        assert phone.exchange.is_connected

    def test_what_a_challenged_request_carried_is_sent_again(self) -> None:
        phone = Phone(eager=True)
        phone.joins()
        phone.exchange.finished(0)
        phone.append(1)
        phone.exchange.connected(phone.clocks)
        hello = phone.says()[0]
        assert isinstance(hello, f.Hello)
        phone.hears(f.Welcome(hello.nonce, challenge=b"are you there"))
        (answer,) = phone.says()
        assert isinstance(answer, f.Hello)
        assert answer.token == b"are you there"
        phone.hears(f.Welcome(hello.nonce, hello.nonce, codecs=("msgpack",)))
        assert [type(frame) for frame in phone.says()] == [f.Beat, f.Data]


class TestResults:
    def test_results_are_durable_before_they_are_acknowledged(self) -> None:
        phone = Phone()
        phone.joins()
        assert phone.hears(result(0, [(1, 1), (2, 2)]), result(2, [(3, 3)])) == [
            Arrived("trips", 2),
            Arrived("trips", 1),
        ]
        assert [one.row for one in phone.outbox.results("trips")] == [(1, 1), (2, 2), (3, 3)]
        assert phone.says() == [f.Ack((f.Mark("trips", TRIPS, 3),))]
        assert phone.hears(result(0, [(1, 1), (2, 2)])) == []
        assert phone.says() == [f.Ack((f.Mark("trips", TRIPS, 3),))]
        phone.exchange.disconnected(0)
        phone.exchange.connected(phone.clocks)
        (hello,) = phone.says()
        assert isinstance(hello, f.Hello)
        assert hello.marks == (f.Mark("trips", TRIPS, 3),)

    def test_with_a_key_the_latest_of_each_stays(self) -> None:
        phone = Phone()
        phone.exchange.down("trips", [FIX], key=lambda row: bytes([row[1] % 2]))
        phone.joins()
        phone.hears(result(0, [(1, 1), (2, 2), (3, 3)]))
        assert [one.row for one in phone.outbox.results("trips")] == [(2, 2), (3, 3)]

    def test_a_gap_in_results_is_refused_with_where_to_go_on(self) -> None:
        phone = Phone()
        phone.joins()
        (trouble,) = phone.hears(result(5, [(1, 1)]))
        assert isinstance(trouble, Trouble)
        error, _ = phone.says()
        assert isinstance(error, f.Error)
        assert (error.code, error.mark, error.retry_after_us) == ("S410", f.Mark("trips", TRIPS, 0), 0)

    def test_a_shape_that_no_plan_here_has_is_asked_for_again_later(self) -> None:
        phone = Phone()
        phone.joins()
        other = Schema("Other", (Column("at", INSTANT), Column("n", INT), Column("x", INT)))
        phone.hears(result(0, [(1, 1, 1)], other))
        error = phone.says()[0]
        assert isinstance(error, f.Error)
        assert error.code == "S426"
        assert error.retry_after_us
        phone.exchange.down("trips", [FIX, other])
        assert phone.hears(result(0, [(1, 1, 1)], other)) == [Arrived("trips", 1)]

    def test_a_count_that_the_payload_belies_is_refused(self) -> None:
        phone = Phone()
        phone.joins()
        phone.hears(result(0, [(1, 1)], count=2))
        error = phone.says()[0]
        assert isinstance(error, f.Error)
        assert error.code == "S427"
        assert phone.outbox.results("trips") == []

    def test_a_disk_that_does_not_take_results_is_not_acknowledged_for(self) -> None:
        phone = Phone()
        phone.joins()
        connection = phone.disk.connection
        assert connection is not None
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages}")
        large: list[Row] = [(n, n) for n in range(5000)]
        (trouble,) = phone.hears(result(0, large))
        assert isinstance(trouble, Trouble)
        assert trouble.code == "S431"
        (error,) = phone.says()
        assert isinstance(error, f.Error)
        assert (error.mark, error.code) == (f.Mark("trips", TRIPS, 0), "S431")
        connection.execute("PRAGMA max_page_count=100000")
        assert phone.hears(result(0, large)) == [Arrived("trips", 5000)]


def test_a_plan_arrives_whole_whatever_the_order_of_its_parts() -> None:
    phone = Phone()
    phone.joins()
    assert phone.hears(f.PlanOffer("old", 0, 2, b"x"), f.PlanOffer("new", 1, 2, b"two")) == []
    assert phone.hears(f.PlanOffer("new", 0, 2, b"one")) == [PlanArrived("new", b"onetwo")]


def test_an_unsound_message_ends_the_connection_after_what_was_sound_in_it() -> None:
    phone = Phone()
    phone.joins()
    sound = f.encode(result(0, [(1, 1)]))
    happenings = phone.exchange.received(sound + b"\xca\x7cnoise", phone.clocks)
    assert [type(one) for one in happenings] == [Arrived, Trouble, Parted]
    assert len(phone.outbox.results("trips")) == 1


def test_silence_ends_the_connection() -> None:
    phone = Phone()
    phone.exchange.connected(phone.clocks)
    phone.now_us = 31 * SECOND
    assert [type(one) for one in phone.exchange.due(phone.clocks)] == [Parted]
    phone.now_us = 40 * SECOND
    phone.joins()
    phone.append(1)
    phone.says()
    phone.now_us = 69 * SECOND
    assert phone.exchange.due(phone.clocks) == []
    phone.now_us = 70 * SECOND
    assert [type(one) for one in phone.exchange.due(phone.clocks)] == [Parted]


def test_leaving_sends_what_is_due_and_says_goodbye() -> None:
    phone = Phone()
    phone.joins()
    phone.append(1)
    last = list(f.decode_all(phone.exchange.leave(phone.clocks, reason="asleep", sleep_us=9)))
    assert [type(frame) for frame in last] == [f.Beat, f.Data, f.Bye]


def test_without_a_disk_there_is_no_hello() -> None:
    disk = Disk()

    def broken() -> object:
        raise OSError

    outbox = Outbox(None, broken, disk.nonces, None)  # type: ignore[arg-type]
    phone = Phone(outbox=disk.open())
    phone.exchange.outbox = outbox
    assert [type(one) for one in phone.exchange.connected(phone.clocks)] == [Trouble, Parted]


def test_a_codec_that_fails_gives_way_to_one_that_does_not() -> None:
    class Broken:
        name = "broken"

        def encode(self, schema: Schema, rows: Sequence[Row]) -> bytes:
            from catchment.errors import ProgramError

            raise ProgramError("S424", "cannot", why="it is broken", fix="use another")

        def decode(self, schema: Schema, data: bytes) -> list[Row]:
            raise AssertionError

    from catchment.sync.codecs import register

    register(Broken())
    outbox = Disk().open()
    uplink = Uplink(outbox)
    uplink.add("fixes", FIX, Sync(codec="broken", batch=Batch(records=1)), 0)
    outbox.append("fixes", FIX, [(1, 1)], stamp=Stamp(b"boot"), readings_us=[0])
    welcome = f.Welcome(b"n", codecs=("broken", "msgpack"))
    uplink.opened(welcome, (), 0)
    (raw,) = uplink.frames(welcome, Clocks(b"boot", 0), 1000)
    frame, _ = f.decode(raw)
    assert isinstance(frame, f.Data)
    assert frame.codec == "msgpack"
