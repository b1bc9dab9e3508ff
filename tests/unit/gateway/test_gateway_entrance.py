"""The entrance of the page: who is let in, for how long, and what other sites' pages cannot do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from catchment.cli import main
from catchment.errors import PeerError
from catchment.gateway.page.accounts import SESSION_US, Accounts
from catchment.gateway.page.entrance import GUESSES
from catchment.gateway.stores import open_accounts
from tests.unit.gateway.page_kit import PASSWORD, Page, tell

# -- signing in --------------------------------------------------------------------------------------------------------


def test_who_signs_in_is_known_until_they_sign_out(tmp_path: Path) -> None:
    async def story(page: Page) -> None:
        assert await page.get("session") == {"name": None, "role": None}
        answer = await page.sign_in("ada")
        assert (answer.status_code, answer.json()) == (201, {"name": "ada", "role": "user"})
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert "Secure" not in cookie, "over plain HTTP a browser would not send it back"
        assert await page.get("session") == {"name": "ada", "role": "user"}
        kept = page.client.cookies["catchment"]
        gone = await page.client.request(
            "DELETE", "/page/v1/session", headers={"content-type": "application/json"}, content=b""
        )
        assert "Max-Age=0" in gone.headers["set-cookie"]
        page.client.cookies.set("catchment", kept)
        assert await page.get("session") == {"name": None, "role": None}, "the session is over, whoever kept its secret"

    tell(tmp_path, story)


def test_over_tls_the_cookie_is_sent_over_tls_only(tmp_path: Path) -> None:
    async def story(page: Page) -> None:
        page.client.base_url = "https://gateway"
        assert "; Secure" in (await page.sign_in("ada")).headers["set-cookie"]

    tell(tmp_path, story)


@pytest.mark.parametrize(("name", "password"), [("ada", "wrong horse"), ("nobody", PASSWORD), ("ada", "")])
def test_a_wrong_password_and_an_unknown_name_are_refused_alike(tmp_path: Path, name: str, password: str) -> None:
    async def story(page: Page) -> None:
        answer = await page.sign_in(name, password)
        assert (answer.status_code, answer.json()["code"]) == (401, "G604")
        assert "set-cookie" not in answer.headers

    tell(tmp_path, story)


def test_guesses_are_limited_by_name_and_in_all(tmp_path: Path) -> None:
    async def story(page: Page) -> None:
        entrance, now_us = page.site.entrance, page.service.clock_us()
        entrance._clock_us = lambda: now_us
        answers = [await page.sign_in("ada", "guess") for _ in range(int(GUESSES) + 1)]
        assert [answer.status_code for answer in answers] == [401] * int(GUESSES) + [429]
        assert answers[-1].json()["code"] == "G605"
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert (await page.sign_in("boss")).status_code == 201, "others are not kept out"
        entrance._all.take(entrance._all.level, now_us=now_us)
        assert (await page.sign_in("somebody", "guess")).status_code == 429

    tell(tmp_path, story)


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json", "origin": "http://elsewhere"},
        {"content-type": "application/json", "sec-fetch-site": "cross-site"},
    ],
)
def test_what_another_site_had_the_browser_send_is_refused(tmp_path: Path, headers: dict[str, str]) -> None:
    async def story(page: Page) -> None:
        await page.sign_in("boss")
        for method, path in (("POST", "session"), ("DELETE", "session"), ("POST", "levers")):
            body = {"pull": "kill"} if path == "levers" else {"name": "ada", "password": PASSWORD}
            sent = json.dumps(body).encode()
            answer = await page.client.request(method, f"/page/v1/{path}", content=sent, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (403, "G607"), (method, path)
        assert await page.get("session") == {"name": "boss", "role": "operator"}

    tell(tmp_path, story)


def test_what_is_no_request_of_the_page_is_refused(tmp_path: Path) -> None:
    async def story(page: Page) -> None:
        for body in (b"", b"[]", b'{"name": "ada"}', b'{"name": "a", "password": "b", "more": 1}'):
            answer = await page.client.post(
                "/page/v1/session", content=body, headers={"content-type": "application/json"}
            )
            assert answer.json()["code"] == "G606"

    tell(tmp_path, story)


# -- accounts ----------------------------------------------------------------------------------------------------------


def accounts(tmp_path: Path) -> Accounts:
    secrets = iter(f"secret {n}" for n in range(100))
    return Accounts(tmp_path / "accounts.db", secret=lambda: next(secrets), salt=lambda: b"salt")


def test_passwords_are_kept_as_hashes_that_cost_memory(tmp_path: Path) -> None:
    store = accounts(tmp_path)
    assert store.give("ada") == "secret 0"
    account = store.prove("ada", "secret 0")
    assert account is not None
    assert not account.is_operator
    store.close()
    assert all(b"secret 0" not in path.read_bytes() for path in tmp_path.iterdir())


def test_a_session_ends_by_itself_with_a_new_password_and_with_its_account(tmp_path: Path) -> None:
    store = accounts(tmp_path)
    store.give("ada", password=PASSWORD)
    account = store.prove("ada", PASSWORD)
    assert account is not None
    secret = store.begin(account, now_us=0)
    assert store.session(secret, now_us=SESSION_US) == account
    assert store.session(secret, now_us=SESSION_US + 1) is None
    store.give("ada", password=PASSWORD + "2")
    assert store.session(secret, now_us=1) is None
    secret = store.begin(account, now_us=0)
    assert store.remove("ada")
    assert store.session(secret, now_us=1) is None
    assert not store.remove("ada")


def test_a_name_that_is_none_and_a_short_password_are_refused_and_the_repairs_work(tmp_path: Path) -> None:
    store = accounts(tmp_path)
    with pytest.raises(PeerError, match="G600"):
        store.give("ada lovelace")
    store.give("ada.lovelace")
    with pytest.raises(PeerError, match="G601"):
        store.give("ada", password="short")
    store.give("ada", password="long enough")
    assert [account.name for account in store.names()] == ["ada", "ada.lovelace"]


def test_an_operator_gives_accounts_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["gateway", "account", "--data", str(tmp_path), "--user", "ada"]
    assert main([*words, "--operator"]) == 0
    password = capsys.readouterr().out.strip()
    store = open_accounts(tmp_path)
    account = store.prove("ada", password)
    store.close()
    assert account is not None
    assert account.is_operator
    assert main([*words, "--remove"]) == 0
    assert main([*words, "--remove"]) == 1
