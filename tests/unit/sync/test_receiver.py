"""The receiving end, rule by rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.sync.frame import Beat, Clock, Data, Epoch, Gap, Hello, Mark
from catchment.sync.receiver import Accept, Duplicate, Receiver, Refuse

ONE, TWO, THREE = Epoch(1, b"epoch--1"), Epoch(2, b"epoch--2"), Epoch(3, b"epoch--3")


def data(first: int, count: int, epoch: Epoch = ONE, **more: object) -> Data:
    return Data("fixes", epoch, first, count, b"", "none", **more)  # type: ignore[arg-type]


def store(receiver: Receiver, frame: Data) -> None:
    assert isinstance(receiver.consider(frame), Accept)
    receiver.commit(receiver.take(frame))


def refusal(receiver: Receiver, frame: Data) -> tuple[str, int | None]:
    verdict = receiver.consider(frame)
    assert isinstance(verdict, Refuse)
    return verdict.error.code, None if verdict.mark is None else verdict.mark.upto


def test_frames_follow_each_other_before_the_first_is_durable() -> None:
    receiver = Receiver()
    first = receiver.take(data(0, 3))
    assert receiver.consider(data(3, 2)) == Accept(5, 0, opens_epoch=False)
    assert receiver.marks() == ()
    receiver.commit(first)
    assert receiver.marks() == (Mark("fixes", ONE, 3),)


def test_what_never_reached_the_disk_is_asked_for_again() -> None:
    receiver = Receiver()
    store(receiver, data(0, 3))
    receiver.take(data(3, 2))
    receiver.roll_back()
    assert refusal(receiver, data(5, 1)) == ("S410", 3)
    assert isinstance(receiver.consider(data(3, 2)), Accept)


def test_a_replayed_frame_is_acknowledged_and_kept_once() -> None:
    receiver = Receiver([Mark("fixes", ONE, 7)])
    assert receiver.consider(data(0, 3)) == Duplicate(7)
    assert receiver.consider(data(4, 3)) == Duplicate(7)


@pytest.mark.parametrize(("first", "count"), [(4, 1), (2, 3), (0, 9)])
def test_a_frame_that_starts_elsewhere_is_refused_with_where_to_start(first: int, count: int) -> None:
    assert refusal(Receiver([Mark("fixes", ONE, 3)]), data(first, count)) == ("S410", 3)


def test_an_epoch_starts_at_zero_even_if_what_came_before_exists_no_more() -> None:
    receiver = Receiver()
    assert refusal(receiver, data(500, 1)) == ("S410", 0)
    assert receiver.consider(data(0, 1, gaps=(Gap(0, 500),))) == Accept(501, 500, opens_epoch=True)


def test_epochs_are_ordered_by_first_contact_and_an_earlier_one_is_over() -> None:
    receiver = Receiver()
    store(receiver, data(0, 3, TWO))
    store(receiver, data(0, 2, ONE))
    assert [mark.epoch for mark in receiver.marks("fixes")] == [TWO, ONE]
    assert refusal(receiver, data(3, 1, TWO)) == ("S411", None)
    assert receiver.consider(data(0, 3, TWO)) == Duplicate(3)


def test_what_an_earlier_start_left_comes_before_what_this_one_adds() -> None:
    receiver = Receiver()
    receiver.heard(Hello("d", "", THREE, b"nonce"))
    store(receiver, data(0, 1, ONE))
    store(receiver, data(0, 1, THREE))
    assert refusal(receiver, data(0, 1, TWO)) == ("S411", None)


def test_a_frame_from_the_future_is_refused() -> None:
    receiver = Receiver()
    receiver.heard(Hello("d", "", TWO, b"nonce", session=b"boot", reading_us=100))
    assert refusal(receiver, data(0, 1, THREE)) == ("S412", None)
    late = data(0, 2, TWO, clock=Clock(b"boot", 90, 20))
    assert refusal(receiver, late) == ("S412", None)
    assert isinstance(receiver.consider(data(0, 2, TWO, clock=Clock(b"other boot", 90, 20))), Accept)
    receiver.heard(Beat(b"other boot", 500))
    assert refusal(receiver, late) == ("S412", None)
    receiver.heard(Beat(b"boot", 110))
    assert isinstance(receiver.consider(late), Accept)


frames = st.tuples(st.sampled_from([ONE, TWO, THREE]), st.integers(0, 12), st.integers(0, 5), st.integers(0, 2))
acts = st.lists(st.tuples(frames, st.sampled_from(["take", "commit", "roll back"])), max_size=60)


@given(acts)
def test_whatever_comes_each_number_is_stored_once_in_order(
    steps: list[tuple[tuple[Epoch, int, int, int], str]],
) -> None:
    receiver = Receiver()
    stored: list[tuple[Epoch, int]] = []
    pending: list[tuple[Mark, list[tuple[Epoch, int]]]] = []
    for (epoch, first, count, skipped), act in steps:
        frame = data(first, count, epoch, gaps=(Gap(0, skipped),) if skipped else ())
        match receiver.consider(frame):
            case Accept(upto):
                assert upto == frame.upto
                numbers = [(epoch, number) for number in range(frame.first, frame.upto)]
                pending.append((receiver.take(frame), numbers))
            case Duplicate():
                known = [*stored, *[number for _, numbers in pending for number in numbers]]
                assert all((epoch, number) in known for number in range(frame.first, frame.upto))
            case _:
                pass
        if act == "commit":
            for mark, numbers in pending:
                receiver.commit(mark)
                stored.extend(numbers)
            pending.clear()
        elif act == "roll back":
            receiver.roll_back()
            pending.clear()
        # A restart knows the same.
        if not pending:
            assert Receiver(receiver.marks()).marks() == receiver.marks()
    assert len(set(stored)) == len(stored)
    order = list(dict.fromkeys(epoch for epoch, _ in stored))
    assert stored == sorted(stored, key=lambda one: (order.index(one[0]), one[1]))
    for mark in receiver.marks():
        assert [number for epoch, number in stored if epoch == mark.epoch] == list(range(mark.upto))
