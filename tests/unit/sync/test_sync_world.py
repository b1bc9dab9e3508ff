"""Sender and receiver under drops, repeats, reorders, garbling and crashes of both ends, in virtual time."""

from collections.abc import Callable

import pytest

from catchment.sync import admission, receiver, sender, session
from catchment.sync.frame import Data, Mark
from catchment.sync.outbox import Outbox
from catchment.sync.outbox.queue import Queue
from catchment.sync.outbox.register import Register
from catchment.sync.receiver import Receiver
from catchment.sync.sender import Sender
from tests.unit.sync.sync_world import Gateway, World


def live(seed: int, seconds: int = 120) -> World:
    world = World(seed)
    for _ in range(seconds):
        world.tick()
    world.heal()
    logged = [row for _, _, _, row in world.gateway.log if row is not None]
    assert logged == world.appended
    assert world.consumed == world.gateway.results
    return world


@pytest.mark.parametrize("seed", range(60))
def test_everything_arrives_once_and_in_order_whatever_fails(seed: int) -> None:
    world = live(seed)
    assert len(world.appended) > 50


# Rules that one honest device with one gateway never takes; the stories of each table do.
ELSEWHERE = {
    ("receiver", "superseded"),
    ("receiver", "future"),
    ("session", "moved"),
    ("session", "barred"),
    ("session", "rebuked"),
    ("session", "bye"),
    ("session", "finished"),
    ("session", "leave"),
    ("admission", "two copies"),
    ("admission", "turn away"),
    ("admission", "release"),
}


def test_the_worlds_take_every_rule_that_one_honest_device_can() -> None:
    tables = [admission.TABLE, receiver.TABLE, sender.TABLE, session.TABLE]
    wanted = {(table.name, rule) for table in tables for rule in table.rules} - ELSEWHERE
    taken: set[tuple[str, str]] = set()
    for seed in range(200):
        taken |= live(seed).rules
        if wanted <= taken:
            break
    assert wanted == taken


def _acknowledge_before_it_is_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    take = Receiver.take

    def hasty(self: Receiver, frame: Data) -> Mark:
        mark = take(self, frame)
        self.commit(mark)
        return mark

    monkeypatch.setattr(Receiver, "take", hasty)


def _one_epoch_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    new_epoch = Register.new_epoch

    def same(self: Register, nonce: bytes) -> int:
        return next(iter(self.epochs), None) or new_epoch(self, nonce)

    monkeypatch.setattr(Register, "new_epoch", same)
    # An epoch that is never bumped is only wrong if numbers start again, as they do where the counter is not kept.
    take_numbers = Queue._take_numbers

    def afresh(self: Queue, stream: int, count: int, *, refused: int = 0, thinned: int = 0) -> int:
        if not getattr(self, "began", False):
            self.began = True  # type: ignore[attr-defined]
            self._database.connection.execute("DELETE FROM channel WHERE acked >= next")
        return take_numbers(self, stream, count, refused=refused, thinned=thinned)

    monkeypatch.setattr(Queue, "_take_numbers", afresh)


def _marks_that_are_not_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Gateway.start

    def forgetful(self: Gateway) -> None:
        start(self)
        self.receiver = Receiver(watch=self.world.saw)

    monkeypatch.setattr(Gateway, "start", forgetful)


def _off_by_one_on_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    filled = Sender.filled
    monkeypatch.setattr(
        Sender, "filled", lambda self, stream, epoch, number: filled(self, stream, epoch, number + (number > 0))
    )


def _forget_when_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = Sender.sent

    def done(self: Sender, stream: str, upto: int, **more: int) -> None:
        sent(self, stream, upto, **more)
        self._lane(stream).flights.clear()
        epoch = self._lane(stream).epoch
        assert epoch is not None
        self._lane(stream).acknowledged[epoch] = upto

    monkeypatch.setattr(Sender, "sent", done)


def _results_without_their_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    marks = Outbox.marks
    monkeypatch.setattr(Outbox, "marks", lambda self: marks(self)[:0])


@pytest.mark.parametrize(
    "mutate",
    [
        _acknowledge_before_it_is_durable,
        _one_epoch_for_ever,
        _marks_that_are_not_durable,
        _off_by_one_on_resume,
        _forget_when_sent,
        _results_without_their_mark,
    ],
)
def test_a_deliberate_mistake_is_found(
    mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    for seed in range(200):
        try:
            live(seed)
        except Exception:
            return
    pytest.fail("200 worlds did not notice")
