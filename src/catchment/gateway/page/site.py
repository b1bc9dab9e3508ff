"""The page's paths: which request is answered with what, to whom.

    GET    /                       the page, and its files under /page/assets/
    POST   /page/v1/session        a name and a password become a session; GET says whose, DELETE ends it
    GET    /page/v1/report         one's own report; an operator names the user with ?user=
    GET    /page/v1/devices        one's own devices; an operator's are all
    GET    /page/v1/plan           the programs' plans, to be drawn
    GET    /page/v1/events         what changes, as server-sent events
    POST   /page/v1/levers         a demo's: {"pull": name}

A user is told of their own devices and results only; what is about the fleet is an operator's.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

import msgspec

from catchment.gateway import http
from catchment.gateway.http import Answer, Page, Receive, Scope, Streamed
from catchment.gateway.page.accounts import Account
from catchment.gateway.page.assets import assets
from catchment.gateway.page.entrance import Entrance, read_json, shown
from catchment.gateway.page.watch import Watch
from catchment.gateway.service import Service
from catchment.gateway.stores import open_accounts

VERSION = 1
EVENTS = b"text/event-stream"
LISTENERS_MAX = 200


class Pull(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which lever."""

    pull: str


class Site:
    """The page of one gateway. `stopping` says that the gateway is about to end."""

    def __init__(self, service: Service, *, stopping: Callable[[], bool] = lambda: False) -> None:
        self._service = service
        self._accounts = open_accounts(service.options.data)
        self.entrance = Entrance(self._accounts, clock_us=service.clock_us)
        self.watch = Watch(service)
        self.stopping = stopping
        self._listeners = 0

    def pages(self) -> Mapping[str, Mapping[str, Page]]:
        """Every path with its methods."""
        entrance = self.entrance
        return {
            **{path: {"GET": asset} for path, asset in assets().items()},
            "/page/v1/session": {"GET": entrance.who, "POST": entrance.sign_in, "DELETE": entrance.sign_out},
            "/page/v1/report": {"GET": self._report},
            "/page/v1/devices": {"GET": self._devices},
            "/page/v1/plan": {"GET": self._plan},
            "/page/v1/events": {"GET": self._events},
            "/page/v1/levers": {"POST": self._pull},
        }

    def begin(self) -> None:
        """Look from now on."""
        self.watch.begin()

    async def end(self) -> None:
        """Look no more."""
        await self.watch.end()
        self._accounts.close()

    async def _report(self, scope: Scope, receive: Receive) -> Answer:
        account = self.entrance.account(scope)
        wanted = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("user", [account.name])[0]
        if wanted != account.name:
            self.entrance.operator(scope)
        users = self._users() if account.is_operator else [account.name]
        return http.as_json({"user": wanted, "users": users, "streams": self.watch.reports.of(wanted)})

    async def _devices(self, scope: Scope, receive: Receive) -> Answer:
        account = self.entrance.account(scope)
        enrolment, presence = self._service.stores.enrolment, self._service.presence
        there = presence.there()
        found = [
            {
                "device": device.device,
                "user": device.user,
                "program": device.program,
                "kind": device.kind or "unnamed",
                "state": "revoked"
                if device.revoked_us is not None
                else "two copies"
                if device.quarantined_us is not None
                else "here"
                if device.device in there
                else "away",
                "heard_ms": None if device.device not in there else there[device.device] // 1000,
                "enrolled_ms": device.enrolled_us // 1000,
            }
            for device in enrolment.devices(None if account.is_operator else account.name)
        ]
        return http.as_json({"devices": found, "now_ms": self._service.clock_us() // 1000})

    async def _plan(self, scope: Scope, receive: Receive) -> Answer:
        self.entrance.operator(scope)
        return http.as_json({"plans": await asyncio.to_thread(self.watch.outlines)})

    async def _pull(self, scope: Scope, receive: Receive) -> Answer:
        self.entrance.operator(scope)
        asked = await read_json(scope, receive, Pull)
        return http.as_json(await self.watch.levers.pull(asked.pull))

    async def _events(self, scope: Scope, receive: Receive) -> Streamed:
        account = self.entrance.account(scope)
        return Streamed(EVENTS, self._told(account, scope))

    async def _told(self, account: Account, scope: Scope) -> AsyncIterator[bytes]:
        """What changes, as long as the browser listens and the session lasts."""
        if self._listeners >= LISTENERS_MAX:
            yield _event("busy", {"listeners": LISTENERS_MAX})
            return
        self._listeners += 1
        watch = self.watch
        watch.asked()
        look, newest = -1, -1
        try:
            about = {"version": VERSION, "demo": watch.levers.are_there, **shown(account)}
            yield _event("hello", {**about, "charts": self._charts(account)})
            while not self.stopping():
                if account != self.entrance.account(scope):
                    return
                watch.asked()
                user = None if account.is_operator else account.name
                if account.is_operator:
                    latest = watch.history[-1] if watch.history else {}
                    yield _event("now", {**watch.now(), "chart": latest})
                moved = watch.follower.since(look, user)
                look = watch.follower.looks
                if moved:
                    yield _event("map", moved)
                fresh = watch.reports.seen if user is None else watch.reports.newest(user)
                if fresh != newest:
                    newest = fresh
                    yield _event("report", {"newest": fresh})
                await self._next_look()
        finally:
            self._listeners -= 1

    async def _next_look(self) -> None:
        """Until there is something new. In short turns: a gateway that ends does not wait for those who watch it."""
        moved = self.watch.moved
        while not moved.is_set() and not self.stopping():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(moved.wait(), 0.5)

    def _charts(self, account: Account) -> list[dict[str, Any]]:
        return list(self.watch.history) if account.is_operator else []

    def _users(self) -> list[str]:
        enrolled = {device.user for device in self._service.stores.enrolment.devices()}
        return sorted(enrolled | set(self.watch.reports.users()))


def _event(kind: str, value: object) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + msgspec.json.encode(value) + b"\n\n"
