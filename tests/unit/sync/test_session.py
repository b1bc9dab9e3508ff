"""A device's conversation, rule by rule."""

from itertools import count

import pytest

from catchment.sync.frame import Beat, Bye, Epoch, Error, Hello, Moved, Pressure, Welcome
from catchment.sync.session import (
    ANSWER_US,
    BACK_OFF_US,
    BACK_OFF_US_MAX,
    BARRED_US,
    BEAT_US,
    Clocks,
    Identity,
    Joined,
    Parted,
    Send,
    Session,
)

ONE, TWO = Epoch(1, b"epoch--1"), Epoch(2, b"epoch--2")
NOW = Clocks(b"boot", 1000, 5)


def session() -> Session:
    numbers = count(1)
    return Session(Identity("d", "secret"), fresh_nonce=lambda: b"nonce %d" % next(numbers))


def greet(one: Session, epoch: Epoch = ONE) -> Hello:
    (action,) = one.connected(epoch, NOW)
    assert isinstance(action, Send)
    assert isinstance(action.frame, Hello)
    return action.frame


def join(one: Session, epoch: Epoch = ONE) -> Hello:
    hello = greet(one, epoch)
    (joined,) = one.heard(Welcome(hello.nonce, token=hello.nonce), NOW)
    assert isinstance(joined, Joined)
    return hello


def test_the_first_frame_has_the_credentials_and_what_was_welcomed_is_brought_back() -> None:
    one = session()
    hello = join(one)
    assert (hello.device, hello.credential, hello.epoch, hello.token) == ("d", "secret", ONE, b"")
    assert (hello.session, hello.reading_us, hello.wall_us) == (b"boot", 1000, 5)
    assert one.is_joined
    one.disconnected(1000)
    again = greet(one)
    assert (again.token, again.nonce) == (hello.nonce, b"nonce 2")
    assert one.was_joined


def test_a_hello_without_an_answer_is_repeated_under_its_nonce() -> None:
    one = session()
    first = greet(one)
    assert one.overdue_at_us == 1000 + ANSWER_US
    one.disconnected(1000)
    assert greet(one).nonce == first.nonce


def test_another_start_has_no_history() -> None:
    one = session()
    join(one)
    one.disconnected(0)
    hello = greet(one, TWO)
    assert (hello.token, hello.epoch) == (b"", TWO)
    assert not one.was_joined


def test_a_challenge_is_answered_and_the_newest_counts() -> None:
    one = session()
    hello = greet(one)
    for challenge in (b"c1", b"c2"):
        (answer,) = one.heard(Welcome(hello.nonce, challenge=challenge), NOW)
        assert isinstance(answer, Send)
        assert isinstance(answer.frame, Hello)
        assert (answer.frame.nonce, answer.frame.token) == (hello.nonce, challenge)
    assert isinstance(one.heard(Welcome(hello.nonce, token=b"t"), NOW)[0], Joined)


@pytest.mark.parametrize("answer", [Welcome(b"another"), Error("S417", "", nonce=b"another")])
def test_an_answer_to_another_hello_is_ignored(answer: Welcome | Error) -> None:
    one = session()
    greet(one)
    assert one.heard(answer, NOW) == []
    assert one.state == "greeting"
    assert session().heard(answer, NOW) == []


def test_a_device_that_moved_asks_elsewhere_at_once() -> None:
    one = session()
    join(one)
    assert one.heard(Moved("wss://b", 3, 7, 50), NOW) == [Parted(1050, "wss://b")]
    assert one.state == "apart"


def test_a_refusal_with_a_time_is_followed_to_the_microsecond() -> None:
    one = session()
    hello = greet(one)
    error = Error("G556", "busy", retry_after_us=70, nonce=hello.nonce)
    assert one.heard(error, NOW) == [Parted(1070, error=error)]


def test_a_refusal_without_a_time_bars_but_not_for_ever() -> None:
    one = session()
    hello = greet(one)
    error = Error("S417", "two copies", nonce=hello.nonce)
    assert one.heard(error, NOW) == [Parted(1000 + BARRED_US, error=error)]
    assert one.state == "barred"
    greet(one)


def test_a_rebuke_in_the_middle_ends_the_connection_and_slows_down() -> None:
    one = session()
    waits = []
    for _ in range(3):
        join(one)
        (parted,) = one.heard(Error("G576", "strange"), NOW)
        assert isinstance(parted, Parted)
        waits.append(parted.retry_at_us - 1000)
    assert waits == [BACK_OFF_US] * 3


def test_each_attempt_that_fails_waits_longer_up_to_a_limit() -> None:
    one = session()
    waits = []
    for _ in range(12):
        greet(one)
        (parted,) = one.disconnected(0)
        assert isinstance(parted, Parted)
        waits.append(parted.retry_at_us)
    assert waits[:3] == [BACK_OFF_US, 2 * BACK_OFF_US, 4 * BACK_OFF_US]
    assert waits[-1] == BACK_OFF_US_MAX
    assert one.disconnected(0) == []


def test_jitter_keeps_a_fleet_apart() -> None:
    one = Session(Identity("d", ""), fresh_nonce=lambda: b"n", jitter=lambda: 0.5)
    greet(one)
    assert one.disconnected(0) == [Parted(BACK_OFF_US // 2)]


def test_goodbyes() -> None:
    one = session()
    join(one)
    assert one.leave(10, reason="asleep", sleep_us=90) == [Send(Bye("asleep", 90)), Parted(100)]
    assert one.leave(10) == []
    join(one)
    assert one.heard(Bye("displaced"), NOW) == [Parted(1000 + BACK_OFF_US)]
    join(one)
    one.finished()
    one.finished()
    assert one.state == "apart"


def test_signs_of_life() -> None:
    one = session()
    join(one)
    assert one.beat_at_us == 1000 + BEAT_US
    assert one.stamp(Clocks(b"boot", 5000, 7)) == Beat(b"boot", 5000, 7)
    assert one.beat_at_us == 5000 + BEAT_US


def test_what_is_agreed_is_remembered() -> None:
    one = session()
    hello = greet(one)
    welcome = Welcome(hello.nonce, token=b"t", pressure=Pressure(5, 2.0))
    one.heard(welcome, NOW)
    assert one.welcome == welcome
    assert one.heard(Beat(b"boot", 0), NOW) == []
