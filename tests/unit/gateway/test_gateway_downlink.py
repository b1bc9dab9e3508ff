"""The downlink: each result reaches each of its devices once, in order, whoever replays, retries or returns late."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catchment.errors import PeerError
from catchment.gateway.downlink import Downlink, Keep, Mark, Outgoing, Result, to_device, to_user

NO_MARKS: dict[tuple[str, bytes], int] = {}


@pytest.fixture
def store(tmp_path: Path) -> Downlink:
    return Downlink(tmp_path / "downlink.db", nonce=b"8 bytes!")


def _mark(epoch: int, *, generation: int = 1, log_range: str | None = None) -> Mark:
    return Mark("peir", "footprint", generation, epoch, log_range or f"0:{epoch}-{epoch + 1}")


def _result(payload: bytes, *, target: str = "user:ada", key: bytes = b"", count: int = 1) -> Result:
    return Result(target, "peir/footprint", b"schema..", "msgpack/none", payload, count, key)


def _payloads(found: list[Outgoing]) -> list[bytes]:
    return [one.payload for one in found]


def _pending(store: Downlink, have: dict[tuple[str, bytes], int] = NO_MARKS, device: str = "phone") -> list[Outgoing]:
    return store.pending(device, "ada", have, bytes_max=1 << 20)


def test_results_come_in_order_until_acknowledged(store: Downlink) -> None:
    store.append(_mark(0), [_result(b"a"), _result(b"b", count=3)], keep=Keep.ALL, now_us=0)
    store.append(_mark(1), [_result(b"c")], keep=Keep.ALL, now_us=0)
    found = _pending(store)
    assert [(one.first, one.count, one.skipped, one.payload) for one in found] == [
        (0, 1, 0, b"a"),
        (1, 3, 0, b"b"),
        (4, 1, 0, b"c"),
    ]
    store.acknowledge([("phone", "ada", found[1].stream, found[1].epoch_nonce, found[1].upto)])
    assert _payloads(_pending(store)) == [b"c"]
    assert _payloads(_pending(store, device="tablet")) == [b"a", b"b", b"c"], "each device for itself"


def test_what_the_device_says_it_holds_wins_over_what_was_acknowledged(store: Downlink) -> None:
    store.append(_mark(0), [_result(b"a"), _result(b"b")], keep=Keep.ALL, now_us=0)
    nonce = _pending(store)[0].epoch_nonce
    store.acknowledge([("phone", "ada", "peir/footprint", nonce, 2)])
    assert _pending(store) == []
    assert _payloads(_pending(store, {("peir/footprint", nonce): 1})) == [b"b"], "it was restored from a backup"


def test_a_replay_changes_nothing_and_survives_a_restart(store: Downlink, tmp_path: Path) -> None:
    assert store.append(_mark(4), [_result(b"a")], keep=Keep.ALL, now_us=0)
    store.close()
    again = Downlink(tmp_path / "downlink.db", nonce=b"another!")
    assert not again.append(_mark(4), [_result(b"a")], keep=Keep.ALL, now_us=1)
    assert not again.append(_mark(3), [_result(b"x")], keep=Keep.ALL, now_us=1)
    assert _payloads(_pending(again)) == [b"a"]


def test_a_fenced_sink_and_another_range_are_refused(store: Downlink) -> None:
    store.append(_mark(4, generation=2), [_result(b"a")], keep=Keep.ALL, now_us=0)
    with pytest.raises(PeerError, match="G530"):
        store.append(_mark(5, generation=1), [_result(b"b")], keep=Keep.ALL, now_us=0)
    with pytest.raises(PeerError, match="G531"):
        store.append(_mark(4, generation=2, log_range="other"), [_result(b"b")], keep=Keep.ALL, now_us=0)
    # A new generation replays what is committed: nothing changes but the fence.
    assert not store.append(_mark(4, generation=3), [_result(b"a")], keep=Keep.ALL, now_us=0)
    with pytest.raises(PeerError, match="G530"):
        store.append(_mark(5, generation=2), [_result(b"b")], keep=Keep.ALL, now_us=0)
    assert _payloads(_pending(store)) == [b"a"]


def test_an_append_that_fails_half_way_leaves_nothing(store: Downlink) -> None:
    def results() -> object:
        yield _result(b"a")
        raise RuntimeError("the sink died")

    with pytest.raises(RuntimeError):
        store.append(_mark(0), results(), keep=Keep.ALL, now_us=0)  # type: ignore[arg-type]
    assert _pending(store) == []
    assert store.append(_mark(0), [_result(b"a")], keep=Keep.ALL, now_us=0)
    assert [one.first for one in _pending(store)] == [0]


def test_latest_keeps_the_newest_of_each_key_and_names_the_gaps(store: Downlink) -> None:
    for epoch, (key, payload) in enumerate([(b"x", b"x0"), (b"y", b"y0"), (b"x", b"x1"), (b"x", b"x2")]):
        store.append(_mark(epoch), [_result(payload, key=key)], keep=Keep.LATEST, now_us=0)
    assert [(one.skipped, one.first, one.payload) for one in _pending(store)] == [(1, 1, b"y0"), (1, 3, b"x2")]
    store.trim(lambda target: ["phone"], before_us=10)
    assert _payloads(_pending(store, device="new tablet")) == [b"y0", b"x2"], "a device that comes later gets the state"


def test_a_device_and_its_user_are_two_targets_with_their_own_numbers(store: Downlink) -> None:
    store.append(
        _mark(0),
        [_result(b"u"), _result(b"d", target=to_device("phone")), _result(b"other", target=to_device("tablet"))],
        keep=Keep.ALL,
        now_us=0,
    )
    found = _pending(store)
    assert _payloads(found) == [b"d", b"u"] and found[0].epoch_nonce != found[1].epoch_nonce
    store.acknowledge([("phone", "ada", found[1].stream, found[1].epoch_nonce, 1)])
    assert _payloads(_pending(store)) == [b"d"]


def test_a_device_that_changed_hands_does_not_get_the_former_owners_results(store: Downlink) -> None:
    store.append(_mark(0), [_result(b"ada's")], keep=Keep.ALL, now_us=0)
    assert store.pending("phone", "bob", NO_MARKS, bytes_max=1000) == []


def test_an_answer_is_cut_at_its_limit_but_never_empty(store: Downlink) -> None:
    store.append(_mark(0), [_result(bytes(100)) for _ in range(10)], keep=Keep.ALL, now_us=0)
    assert len(store.pending("phone", "ada", NO_MARKS, bytes_max=350)) == 3
    assert len(store.pending("phone", "ada", NO_MARKS, bytes_max=1)) == 1


def test_trimming_takes_what_all_devices_hold_and_counts_what_grew_too_old(store: Downlink) -> None:
    store.append(_mark(0), [_result(b"a"), _result(b"b")], keep=Keep.ALL, now_us=0)
    store.append(_mark(1), [_result(b"c")], keep=Keep.ALL, now_us=100)
    nonce = _pending(store)[0].epoch_nonce
    store.acknowledge([("phone", "ada", "peir/footprint", nonce, 2), ("tablet", "ada", "peir/footprint", nonce, 1)])
    assert store.trim(lambda target: ["phone", "tablet"], before_us=0) == (1, 0)
    assert _payloads(_pending(store, device="tablet")) == [b"b", b"c"]
    assert store.trim(lambda target: ["phone", "tablet"], before_us=50) == (0, 1)
    assert store.size() == (1, 1)
    tablet = _pending(store, device="tablet")
    assert [(one.skipped, one.payload) for one in tablet] == [(1, b"c")], "the one that grew too old is a named gap"


def test_fresh_targets_are_told_once_also_across_processes(store: Downlink, tmp_path: Path) -> None:
    sink = Downlink(tmp_path / "downlink.db", nonce=b"-ignored")
    sink.append(_mark(0), [_result(b"a"), _result(b"b", target=to_user("bob"))], keep=Keep.LATEST, now_us=0)
    assert sorted(store.fresh()) == ["user:ada", "user:bob"]
    assert store.fresh() == []
    sink.append(_mark(1), [_result(b"c")], keep=Keep.LATEST, now_us=0)
    assert store.fresh() == ["user:ada"]


def test_a_forgotten_target_leaves_nothing(store: Downlink) -> None:
    store.append(_mark(0), [_result(b"a")], keep=Keep.ALL, now_us=0)
    store.forget(to_user("ada"))
    assert _pending(store) == [] and store.size() == (0, 0)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(0, 2), st.integers(1, 3)),
            st.tuples(st.just("deliver"), st.integers(1, 400), st.booleans()),
            st.tuples(st.just("trim"), st.just(0), st.just(0)),
        ),
        max_size=25,
    ),
    keep=st.sampled_from(list(Keep)),
)
def test_whatever_happens_a_device_accounts_for_every_number_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]], keep: Keep
) -> None:
    store = Downlink(tmp_path_factory.mktemp("downlink") / "d.db", nonce=b"8 bytes!")
    epoch, at = 0, 0
    written: dict[int, bytes] = {}
    got: dict[int, bytes] = {}
    newest: dict[bytes, int] = {}
    for what, one, two in [*steps, ("deliver", 1 << 20, 1)]:
        if what == "append":
            first = sum(map(len, written.values()))
            payload = bytes(two)
            store.append(_mark(epoch), [_result(payload, key=bytes([one]), count=two)], keep=keep, now_us=0)
            written[first], newest[bytes([one])], epoch = payload, first, epoch + 1
        elif what == "deliver":
            found = store.pending("phone", "ada", NO_MARKS, bytes_max=one)
            reached = at
            for item in found:
                assert item.first == reached + item.skipped
                reached = item.upto
                if two:
                    assert item.first not in got, "delivered after it was acknowledged"
                    got[item.first] = item.payload
            if two and found:
                at = reached
                store.acknowledge([("phone", "ada", "peir/footprint", found[-1].epoch_nonce, reached)])
        else:
            store.trim(lambda target: ["phone"], before_us=0)
    expected = written if keep is Keep.ALL else {first: written[first] for first in newest.values()}
    assert {first: got[first] for first in expected} == expected
    assert at == sum(map(len, written.values()))
    store.close()


def test_after_a_take_over_the_earlier_generation_can_add_nothing(store: Downlink) -> None:
    store.append(_mark(0), [_result(b"a")], keep=Keep.ALL, now_us=0)
    store.fence("peir", 2)
    store.fence("peir", 1)
    with pytest.raises(PeerError, match="G530"):
        store.append(_mark(1), [_result(b"b")], keep=Keep.ALL, now_us=0)
    assert store.append(_mark(1, generation=2), [_result(b"b")], keep=Keep.ALL, now_us=0)
    assert _payloads(_pending(store)) == [b"a", b"b"]
