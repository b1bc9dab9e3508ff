"""Enrolment: one token, one device; lost answers lose nothing; revoked means refused."""

from __future__ import annotations

import itertools
import sqlite3
from pathlib import Path

import pytest

from catchment.errors import PeerError
from catchment.gateway.enrolment import Enrolment

HOUR_US = 3_600_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "enrolment.db"


def open_store(path: Path, start: int = 0) -> Enrolment:
    numbers = itertools.count(start)
    return Enrolment(path, secret=lambda: f"secret-{next(numbers)}")


@pytest.fixture
def store(path: Path) -> Enrolment:
    return open_store(path)


def _token(store: Enrolment, user: str = "ada", device: str | None = None) -> str:
    return store.token(user=user, device=device, program="peir", now_us=0, valid_us=HOUR_US)


def test_a_token_becomes_a_credential_that_proves_device_and_user(store: Enrolment) -> None:
    given = store.enrol(_token(store), device="phone-1", kind="android", now_us=1)
    proved = store.prove("phone-1", given.credential)
    assert (proved.device, proved.user, proved.program, proved.kind) == ("phone-1", "ada", "peir", "android")


def test_a_device_without_a_name_is_given_one_the_same_for_the_same_token(store: Enrolment) -> None:
    token = _token(store)
    given, again = (store.enrol(token, device="", now_us=1).device for _ in range(2))
    assert given == again
    assert given.startswith("ada-")
    assert store.enrol(_token(store), device="", now_us=1).device != given


def test_secrets_are_not_in_the_store(store: Enrolment, path: Path) -> None:
    token = _token(store)
    given = store.enrol(token, device="phone-1", now_us=1)
    store.close()
    content = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"phone-1" in content
    assert token.encode() not in content and given.credential.encode() not in content


def test_a_wrong_credential_and_an_unknown_device_get_one_answer(store: Enrolment) -> None:
    store.enrol(_token(store), device="phone-1", now_us=1)
    for device in ("phone-1", "phone-2"):
        with pytest.raises(PeerError, match="G523") as refused:
            store.prove(device, "guess")
        assert "no device of that name is enrolled here with that credential" in str(refused.value)


def test_a_token_works_again_until_its_credential_was_used(store: Enrolment) -> None:
    token = _token(store)
    lost = store.enrol(token, device="phone-1", now_us=1)
    given = store.enrol(token, device="phone-1", now_us=2)
    with pytest.raises(PeerError, match="G523"):
        store.prove("phone-1", lost.credential)
    with pytest.raises(PeerError, match="G521"):
        store.enrol(token, device="phone-2", now_us=2)
    store.prove("phone-1", given.credential)
    with pytest.raises(PeerError, match="G521"):
        store.enrol(token, device="phone-1", now_us=3)


def test_tokens_expire_and_invented_ones_never_worked(store: Enrolment) -> None:
    token = _token(store)
    with pytest.raises(PeerError, match="expired"):
        store.enrol(token, device="phone-1", now_us=HOUR_US + 1)
    with pytest.raises(PeerError, match="no such token"):
        store.enrol("invented", device="phone-1", now_us=1)


def test_a_token_for_a_named_device_enrols_that_one(store: Enrolment) -> None:
    assert store.enrol(_token(store, device="bus-7"), device="whatever", now_us=1).device == "bus-7"


def test_a_name_in_use_cannot_be_taken_by_another_user_but_renewed_by_its_own(store: Enrolment) -> None:
    first = store.enrol(_token(store), device="phone-1", now_us=1)
    store.prove("phone-1", first.credential)
    with pytest.raises(PeerError, match="G522"):
        store.enrol(_token(store, user="bob"), device="phone-1", now_us=1)
    again = store.enrol(_token(store), device="phone-1", now_us=2)
    store.prove("phone-1", again.credential)
    with pytest.raises(PeerError, match="G523"):
        store.prove("phone-1", first.credential)
    store.revoke("phone-1", now_us=3)
    assert store.enrol(_token(store, user="bob"), device="phone-1", now_us=4).user == "bob"


def test_rotation_keeps_the_old_credential_until_the_new_one_is_used(store: Enrolment) -> None:
    old = store.enrol(_token(store), device="phone-1", now_us=1).credential
    lost = store.rotate("phone-1", old)
    new = store.rotate("phone-1", old)
    store.prove("phone-1", old)
    with pytest.raises(PeerError, match="G523"):
        store.prove("phone-1", lost)
    store.prove("phone-1", new)
    with pytest.raises(PeerError, match="G523"):
        store.prove("phone-1", old)
    assert store.rotate("phone-1", new) not in (old, new)


def test_revocation_by_another_process_is_seen_at_once(store: Enrolment, path: Path) -> None:
    credential = store.enrol(_token(store), device="phone-1", now_us=1).credential
    store.prove("phone-1", credential)
    other = open_store(path, start=100)
    assert other.revoke("phone-1", now_us=5)
    assert not other.revoke("phone-1", now_us=6)
    with pytest.raises(PeerError, match="G524"):
        store.prove("phone-1", credential)
    assert store.devices("ada")[0].revoked_us == 5 and store.devices("bob") == []


def test_quarantine_lasts_until_somebody_lifts_it(store: Enrolment, path: Path) -> None:
    store.enrol(_token(store), device="phone-1", now_us=1)
    assert store.quarantine("phone-1", now_us=7)
    found = open_store(path, start=50).find("phone-1")
    assert found is not None and found.quarantined_us == 7
    store.quarantine("phone-1", now_us=None)
    found = store.find("phone-1")
    assert found is not None and found.quarantined_us is None
    assert not store.quarantine("nobody", now_us=7)


def test_names_that_could_be_mistaken_for_paths_are_refused(store: Enrolment) -> None:
    for name in (" ", "../x", "a/b", "x" * 121, "-flag", "a\nb"):
        with pytest.raises(PeerError, match="G525"):
            store.enrol(_token(store), device=name, now_us=1)
    for user in ("", "a b"):
        with pytest.raises(PeerError, match="G525"):
            _token(store, user=user)


def test_the_store_survives_a_restart(path: Path) -> None:
    store = open_store(path)
    credential = store.enrol(_token(store), device="phone-1", now_us=1).credential
    store.close()
    assert open_store(path, start=50).prove("phone-1", credential).user == "ada"
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)
