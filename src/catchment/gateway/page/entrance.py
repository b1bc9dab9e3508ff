"""The entrance: signing in, staying signed in, and what a browser may be made to send.

A session is a secret in a cookie that scripts cannot read and other sites cannot send (HttpOnly, SameSite=Strict). What
changes something must come from a page of this very origin, by the browser's own word. Guesses are limited per name and
in all, and hashing never takes more than two cores. Knows requests and accounts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import msgspec

from catchment.errors import PeerError
from catchment.gateway import http
from catchment.gateway.http import Answer, Receive, Scope
from catchment.gateway.limits import Bucket
from catchment.gateway.page.accounts import SESSION_US, Account, Accounts

COOKIE = "catchment"
GUESSES, GUESS_PER_S = 8.0, 1 / 15
"""Per name: eight at once, then four a minute."""
ALL_GUESSES, ALL_GUESSES_PER_S = 60.0, 4.0
NAMES_MAX = 10_000
NOBODY = {"name": None, "role": None}
BODY_BYTES_MAX = 4096
BODY_US = 10_000_000


class SignIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the form sends."""

    name: str
    password: str


class Entrance:
    """Who is let in."""

    def __init__(self, accounts: Accounts, *, clock_us: Callable[[], int]) -> None:
        self._accounts = accounts
        self._clock_us = clock_us
        self._guesses: dict[str, Bucket] = {}
        self._all = Bucket(ALL_GUESSES_PER_S, ALL_GUESSES, ALL_GUESSES, 0)
        self._hashing = asyncio.Semaphore(2)

    def account(self, scope: Scope) -> Account:
        """Who asks; refused if nobody is signed in."""
        secret = _cookie(scope)
        account = self._accounts.session(secret, now_us=self._clock_us()) if secret else None
        if account is None:
            raise PeerError(
                "G602",
                "nobody is signed in",
                why="the request has no session, or one that has ended",
                fix="sign in; an operator makes accounts with: catchment gateway account --user NAME",
            )
        return account

    def operator(self, scope: Scope) -> Account:
        """The same, for what only operators see."""
        account = self.account(scope)
        if not account.is_operator:
            raise PeerError(
                "G603",
                f"{account.name} may not see this",
                why="it is about more people than themselves",
                fix="sign in as an operator: catchment gateway account --user NAME --operator",
            )
        return account

    async def sign_in(self, scope: Scope, receive: Receive) -> Answer:
        """A name and a password become a session."""
        asked = await read_json(scope, receive, SignIn)
        self._charge(asked.name)
        async with self._hashing:
            account = await asyncio.to_thread(self._accounts.prove, asked.name[:200], asked.password[:1000])
        if account is None:
            raise PeerError(
                "G604",
                "this name and this password do not belong together",
                why="no account has both",
                fix="try again, or have an operator give a new password: catchment gateway account --user NAME",
            )
        self._guesses.pop(asked.name, None)
        secret = await asyncio.to_thread(self._accounts.begin, account, now_us=self._clock_us())
        cookie = _set_cookie(scope, secret, SESSION_US // 1_000_000)
        return http.as_json(shown(account), 201)._replace(headers=(cookie,))

    async def sign_out(self, scope: Scope, receive: Receive) -> Answer:
        """The session ends, here and in the browser."""
        check_origin(scope)
        secret = _cookie(scope)
        if secret:
            await asyncio.to_thread(self._accounts.end, secret)
        return http.as_json(NOBODY)._replace(headers=(_set_cookie(scope, "", 0),))

    async def who(self, scope: Scope, receive: Receive) -> Answer:
        """Who is signed in; nobody is an answer, too."""
        secret = _cookie(scope)
        account = self._accounts.session(secret, now_us=self._clock_us()) if secret else None
        return http.as_json(NOBODY if account is None else shown(account))

    def _charge(self, name: str) -> None:
        now_us = self._clock_us()
        bucket = self._guesses.get(name)
        if bucket is None:
            # The one that was asked longest ago makes room: whoever tries many names meets the limit of all.
            while len(self._guesses) >= NAMES_MAX:
                del self._guesses[next(iter(self._guesses))]
            bucket = self._guesses[name] = Bucket(GUESS_PER_S, GUESSES, GUESSES, now_us)
        wait_us = max(bucket.take(1, now_us=now_us), self._all.take(1, now_us=now_us))
        if wait_us:
            raise PeerError(
                "G605",
                "too many attempts to sign in",
                why="passwords are not to be guessed",
                fix=f"try again in {wait_us // 1_000_000 + 1} s",
            )


def shown(account: Account) -> dict[str, Any]:
    """An account as the page knows it."""
    return {"name": account.name, "role": account.role}


async def read_json(scope: Scope, receive: Receive, kind: type[Any]) -> Any:
    """The body of a request that changes something."""
    check_origin(scope)
    body = await http.read_body(scope, receive, bytes_max=BODY_BYTES_MAX, within_us=BODY_US)
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise PeerError(
            "G606",
            "this is not what the page sends",
            why=str(error),
            fix="load the page anew: it may be of another version",
        ) from None


def check_origin(scope: Scope) -> None:
    """Refuse what another site's page had the browser send."""
    kind = http.header(scope, b"content-type").partition(";")[0].strip().lower()
    origin, host = http.header(scope, b"origin"), http.header(scope, b"host")
    site = http.header(scope, b"sec-fetch-site")
    # A form of another site can name no JSON, and a browser's script cannot choose its Origin.
    if kind != "application/json" or site not in ("", "same-origin") or (origin and urlsplit(origin).netloc != host):
        raise PeerError(
            "G607",
            "this request is not from the page",
            why="what changes something is sent as JSON, by a page of the same origin",
            fix="use the page, or send application/json without an Origin of elsewhere",
        )


def _cookie(scope: Scope) -> str:
    for part in http.header(scope, b"cookie").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value[:200]
    return ""


def _set_cookie(scope: Scope, secret: str, seconds: int) -> tuple[bytes, bytes]:
    secure = "; Secure" if scope.get("scheme") == "https" else ""
    return b"set-cookie", f"{COOKIE}={secret}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}".encode()
