"""The sending end, rule by rule."""

import pytest

from catchment.errors import InternalError
from catchment.sync.frame import Epoch, Mark
from catchment.sync.sender import EPOCHS_KEPT, Sender
from catchment.sync.table import Rule, Table

ONE, TWO = Epoch(1, b"epoch--1"), Epoch(2, b"epoch--2")


def opened(window: int = 4, patience_us: int = 100) -> Sender:
    sender = Sender(patience_us=patience_us)
    sender.opened((), window_frames=window, now_us=0)
    sender.filled("fixes", ONE, 0)
    return sender


def test_the_window_holds_frames_of_all_streams() -> None:
    sender = opened(window=2)
    sender.sent("fixes", 10, now_us=0, records=10, size=100)
    sender.filled("other", ONE, 0)
    assert sender.may_send("other", 0)
    sender.sent("other", 5, now_us=0)
    assert not sender.may_send("fixes", 0)
    assert sender.under_way("fixes") == (10, 100)
    assert sender.acknowledged([Mark("other", ONE, 5)], now_us=1) == (Mark("other", ONE, 5),)
    assert sender.may_send("fixes", 1)


def test_a_later_epoch_waits_until_the_earlier_is_acknowledged_whole() -> None:
    sender = opened()
    sender.sent("fixes", 10, now_us=0)
    sender.sent("fixes", 12, now_us=0)
    sender.ended("fixes")
    assert sender.state("fixes") == "draining"
    with pytest.raises(InternalError, match="S408"):
        sender.filled("fixes", TWO, 0)
    sender.acknowledged([Mark("fixes", ONE, 10)], now_us=1)
    assert sender.state("fixes") == "draining"
    sender.acknowledged([Mark("fixes", ONE, 12)], now_us=2)
    assert (sender.state("fixes"), sender.position("fixes")) == ("resting", None)
    sender.filled("fixes", TWO, 0)
    assert sender.position("fixes") == (TWO, 0)


def test_new_elements_of_the_same_epoch_go_on_while_the_last_are_under_way() -> None:
    sender = opened()
    sender.sent("fixes", 10, now_us=0)
    sender.ended("fixes")
    sender.ended("fixes")
    sender.sent("fixes", 11, now_us=0)
    assert (sender.state("fixes"), sender.position("fixes")) == ("flowing", (ONE, 11))


def test_a_refusal_sends_back_to_the_mark_once() -> None:
    sender = opened()
    for upto in (10, 20, 30):
        sender.sent("fixes", upto, now_us=0)
    sender.refused(Mark("fixes", ONE, 10))
    assert (sender.position("fixes"), sender.in_flight) == ((ONE, 10), 1)
    sender.sent("fixes", 25, now_us=1)
    # The same refusal answers the frame that was behind the missing one too.
    sender.refused(Mark("fixes", ONE, 10))
    assert sender.position("fixes") == (ONE, 25)
    sender.acknowledged([Mark("fixes", ONE, 25)], now_us=2)
    sender.sent("fixes", 30, now_us=3)
    sender.refused(Mark("fixes", ONE, 25))
    assert sender.position("fixes") == (ONE, 25)


def test_a_refusal_with_a_time_pauses_that_stream_only() -> None:
    sender = opened()
    sender.sent("fixes", 10, now_us=0)
    for _ in range(2):
        sender.refused(Mark("fixes", ONE, 0), retry_at_us=500)
    assert not sender.may_send("fixes", 499)
    assert sender.may_send("other", 499)
    assert sender.may_send("fixes", 500)
    assert (sender.position("fixes"), sender.in_flight, sender.paused_until_us("fixes")) == ((ONE, 0), 0, 500)


def test_a_refusal_of_another_epoch_changes_nothing() -> None:
    sender = opened()
    sender.sent("fixes", 10, now_us=0)
    sender.refused(Mark("fixes", TWO, 3))
    assert sender.position("fixes") == (ONE, 10)


def test_a_receiver_that_is_ahead_is_followed() -> None:
    sender = opened()
    sender.sent("fixes", 10, now_us=0)
    sender.acknowledged([Mark("fixes", ONE, 40)], now_us=1)
    assert sender.position("fixes") == (ONE, 40)


def test_a_receiver_that_lost_everything_is_served_from_where_it_is() -> None:
    sender = opened()
    sender.sent("fixes", 10, now_us=0)
    sender.acknowledged([Mark("fixes", ONE, 10)], now_us=1)
    sender.opened([Mark("fixes", ONE, 0)], window_frames=4, now_us=2)
    sender.filled("fixes", ONE, 10)
    sender.sent("fixes", 12, now_us=3)
    sender.refused(Mark("fixes", ONE, 0))
    assert sender.position("fixes") == (ONE, 0)


def test_a_store_that_forgets_late_does_not_send_twice() -> None:
    sender = opened()
    sender.sent("fixes", 10, now_us=0)
    sender.acknowledged([Mark("fixes", ONE, 10)], now_us=1)
    sender.ended("fixes")
    sender.filled("fixes", ONE, 4)
    assert sender.position("fixes") == (ONE, 10)
    assert sender.acknowledged_upto("fixes", ONE) == 10


def test_patience_is_for_what_is_under_way_and_starts_anew_with_progress() -> None:
    sender = opened(patience_us=100)
    assert sender.overdue_at_us is None
    sender.sent("fixes", 10, now_us=5)
    sender.sent("fixes", 20, now_us=6)
    assert sender.overdue_at_us == 105
    sender.acknowledged([Mark("fixes", ONE, 10)], now_us=90)
    assert sender.overdue_at_us == 190


def test_a_lost_connection_forgets_what_was_under_way() -> None:
    sender = opened()
    sender.sent("fixes", 10, now_us=0)
    sender.closed()
    assert (sender.in_flight, sender.has_room, sender.state("fixes")) == (0, False, "resting")
    assert sender.opened([Mark("fixes", ONE, 10)], window_frames=1, now_us=9) == (Mark("fixes", ONE, 10),)


def test_memory_does_not_grow_with_epochs() -> None:
    sender = opened()
    for counter in range(100):
        sender.acknowledged([Mark("fixes", Epoch(counter, b"epoch--n"), 5)], now_us=0)
    assert len(sender._lane("fixes").acknowledged) == EPOCHS_KEPT


def test_a_table_refuses_a_rule_of_another_name_or_state() -> None:
    with pytest.raises(AssertionError):
        Table("t", ("a",), (Rule("r", ("a",), "", "", ""), Rule("r", ("a",), "", "", "")))
    with pytest.raises(AssertionError):
        Table("t", ("a",), (Rule("r", ("b",), "", "", ""),))
