"""One live copy at a time: restarts, retries and late messages pass, two copies do not."""

from itertools import count
from random import Random

import pytest

from catchment.sync.admission import CHALLENGES_KEPT, Admission, Admit, Challenge, TurnAway
from catchment.sync.frame import Epoch, Hello


class Copy:
    """A live copy of a device: what its memory holds, and how it answers."""

    def __init__(self, random: Random, epoch: Epoch, token: bytes = b"") -> None:
        self.random = random
        self.epoch = epoch
        self.token = token
        self.nonce = random.randbytes(8)

    def snapshot(self) -> "Copy":
        """The same process, resumed from an image; what is random from now on differs."""
        return Copy(self.random, self.epoch, self.token)

    def hello(self, challenge: bytes = b"") -> Hello:
        return Hello("d", "", self.epoch, self.nonce, token=challenge or self.token)

    def greet(self, gateway: Admission) -> bool:
        """Say hello until let in or turned away."""
        decision = gateway.hello(self.hello())
        while isinstance(decision, Challenge):
            decision = gateway.hello(self.hello(decision.challenge))
        if isinstance(decision, TurnAway):
            return False
        self.token, self.nonce = decision.token, self.random.randbytes(8)
        return True


def gateway(**more: object) -> Admission:
    numbers = count(1)
    return Admission(fresh_token=lambda: b"challenge %d" % next(numbers), **more)  # type: ignore[arg-type]


def epoch(number: int) -> Epoch:
    return Epoch(number, b"epoch%3d" % number)


RANDOM = Random(1)


def test_the_first_hello_ever_is_let_in_at_once() -> None:
    one, place = Copy(RANDOM, epoch(1)), gateway()
    decision = place.hello(one.hello())
    assert decision == Admit(one.nonce, supersedes=True)


def test_a_device_comes_back_with_its_token_and_retries_with_its_nonce() -> None:
    one, place = Copy(RANDOM, epoch(1)), gateway()
    assert one.greet(place)
    assert one.greet(place)
    lost = one.hello()
    assert place.hello(lost) == place.hello(lost) == Admit(lost.nonce, supersedes=False)
    assert one.greet(place)


def test_a_new_start_answers_a_challenge_and_supersedes() -> None:
    place = gateway()
    assert Copy(RANDOM, epoch(1)).greet(place)
    two = Copy(RANDOM, epoch(2))
    challenge = place.hello(two.hello())
    assert isinstance(challenge, Challenge)
    assert place.hello(two.hello(challenge.challenge)) == Admit(two.nonce, supersedes=True)


def test_late_messages_of_a_start_long_gone_change_nothing() -> None:
    one, place = Copy(RANDOM, epoch(1)), gateway()
    late = one.hello()
    assert one.greet(place)
    late_answer = None
    two, three = Copy(RANDOM, epoch(2)), Copy(RANDOM, epoch(3))
    challenge = place.hello(two.hello())
    assert isinstance(challenge, Challenge)
    late_answer = two.hello(challenge.challenge)
    assert three.greet(place)
    for message in (late, late_answer, late, late_answer):
        assert isinstance(place.hello(message), Challenge)
    assert three.greet(place)


def test_a_late_answer_that_wins_the_race_is_superseded_by_the_live_one() -> None:
    place = gateway()
    assert Copy(RANDOM, epoch(1)).greet(place)
    two, three = Copy(RANDOM, epoch(2)), Copy(RANDOM, epoch(3))
    to_two, to_three = place.hello(two.hello()), place.hello(three.hello())
    assert isinstance(to_two, Challenge)
    assert isinstance(to_three, Challenge)
    assert isinstance(place.hello(two.hello(to_two.challenge)), Admit)
    # What three was asked before that proves nothing any more, so it is asked again, and is let in.
    again = place.hello(three.hello(to_three.challenge))
    assert isinstance(again, Challenge)
    assert isinstance(place.hello(three.hello(again.challenge)), Admit)
    assert three.greet(place)


def test_a_gateway_that_restarts_asks_whoever_speaks_and_takes_whoever_answers() -> None:
    place = gateway(epochs=[epoch(1), epoch(2)])
    assert isinstance(place.hello(Copy(RANDOM, epoch(1)).hello()), Challenge)
    two = Copy(RANDOM, epoch(2), b"token of before")
    assert two.greet(place)
    assert two.greet(place)


@pytest.mark.parametrize("first_speaks", [0, 1])
def test_a_clone_and_its_original_are_found_out_whoever_speaks_first(first_speaks: int) -> None:
    one, place = Copy(RANDOM, epoch(1)), gateway()
    assert one.greet(place)
    both = [one, one.snapshot()]
    assert both[first_speaks].greet(place)
    assert not both[1 - first_speaks].greet(place)
    assert not both[first_speaks].greet(place)
    assert place.state == "quarantined"


def test_a_restored_backup_is_let_in_unless_its_original_speaks_on() -> None:
    original, place = Copy(RANDOM, epoch(7)), gateway()
    assert original.greet(place)
    restored = Copy(RANDOM, Epoch(5, b"restored"))
    assert restored.greet(place)
    assert restored.greet(place)
    assert not original.greet(place)
    assert not restored.greet(place)


def test_a_person_releases_and_the_one_left_goes_on() -> None:
    one, place = Copy(RANDOM, epoch(1)), gateway(quarantined=True, epochs=[epoch(1)])
    decision = place.hello(one.hello())
    assert isinstance(decision, TurnAway)
    assert (decision.error.code, decision.news) == ("S417", False)
    place.release()
    assert one.greet(place)
    assert one.greet(place)


def test_hostile_hellos_take_no_memory() -> None:
    one, place = Copy(RANDOM, epoch(1)), gateway()
    assert one.greet(place)
    for number in range(100):
        place.hello(Copy(RANDOM, epoch(number + 2)).hello())
    assert len(place._asked) == CHALLENGES_KEPT
    assert one.greet(place)


@pytest.mark.parametrize("seed", range(200))
def test_one_copy_is_never_suspected_whatever_the_network_does(seed: int) -> None:
    """One live copy, restarts, gateway restarts; messages are lost, repeated, and late by any time."""
    random = Random(seed)
    numbers = count()
    met: set[Epoch] = set()

    def start() -> Admission:
        return Admission(fresh_token=lambda: b"c%d" % next(numbers), epochs=met)

    place, one = start(), Copy(random, epoch(1))
    late: list[Hello] = []
    for _ in range(60):
        fate = random.random()
        if fate < 0.1:
            one = Copy(random, epoch(one.epoch.counter + 1))
        elif fate < 0.2:
            place = start()
        elif fate < 0.5 and late:
            decision = place.hello(late.pop(random.randrange(len(late))))
            assert not isinstance(decision, TurnAway)
        else:
            challenge = b""
            for _ in range(random.randrange(1, 4)):
                message = one.hello(challenge)
                late.extend([message] * random.choice([0, 0, 1, 2]))
                if random.random() < 0.3:
                    break
                decision = place.hello(message)
                assert not isinstance(decision, TurnAway)
                if random.random() < 0.3:
                    break
                if isinstance(decision, Admit):
                    one.token, one.nonce = decision.token, random.randbytes(8)
                    break
                challenge = decision.challenge
        met |= {place.epoch} if place.epoch is not None else set()


@pytest.mark.parametrize("seed", range(50))
def test_two_copies_that_speak_on_are_found_out(seed: int) -> None:
    random = Random(seed)
    one, place = Copy(random, epoch(1)), gateway()
    assert one.greet(place)
    kind = random.choice(["snapshot", "restored"])
    copies = [one, one.snapshot() if kind == "snapshot" else Copy(random, Epoch(1, b"restored"))]
    for _ in range(20):
        if not random.choice(copies).greet(place):
            break
    assert place.state == "quarantined"
