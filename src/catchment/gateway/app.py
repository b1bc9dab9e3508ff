"""The gateway as an ASGI application: which path does what, and nothing else.

    POST /v1/sync     frames in, frames out; the same path as a WebSocket
    POST /v1/enrol    a one-time token becomes a credential
    POST /v1/rotate   a credential becomes a new one
    GET  /v1/plan     the plan that the device should run
    GET  /health, /ready, /metrics

A device proves itself by HTTP Basic: its name and its credential. Refusals are JSON with the code of the error. The
paths of the page are in `page.site`.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeAlias

import msgspec

from catchment.errors import CatchmentError, InternalError, PeerError
from catchment.gateway import http
from catchment.gateway.enrolment import Enrolled
from catchment.gateway.http import Answer, Page, Receive, Scope, Send, Streamed
from catchment.gateway.journal import say
from catchment.gateway.service import Service

Talk: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
_SMALL_BODY = 64 << 10


class EnrolRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a device sends to enrol."""

    token: str
    device: str = ""
    kind: str = ""


class Rotated(msgspec.Struct, frozen=True):
    """The new credential."""

    credential: str


class Site(Protocol):
    """What people look at: its paths, and what it does while the gateway runs."""

    def pages(self) -> Mapping[str, Mapping[str, Page]]:
        """Every path with its methods."""
        ...

    def begin(self) -> None:
        """The gateway has started."""
        ...

    async def end(self) -> None:
        """The gateway is about to end."""
        ...


class Application:
    """The ASGI callable."""

    def __init__(self, service: Service, *, exchange: Page, talk: Talk, site: Site | None = None) -> None:
        """`exchange` answers a POST of frames, `talk` holds a WebSocket, `site` is the page that people look at."""
        self.failure: CatchmentError | OSError | None = None
        """Why the gateway could not start, if so."""
        self._service = service
        self._talk = talk
        self._routes: dict[str, dict[str, Page]] = {
            "/v1/sync": {"POST": exchange},
            "/v1/enrol": {"POST": self._enrol},
            "/v1/rotate": {"POST": self._rotate},
            "/v1/plan": {"GET": self._plan},
            "/health": {"GET": self._health},
            "/ready": {"GET": self._ready},
            "/metrics": {"GET": self._metrics},
        }
        self._site = site
        if site is not None:
            self._routes |= {path: dict(methods) for path, methods in site.pages().items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._http(scope, receive, send)
            case "websocket":
                await self._websocket(scope, receive, send)
            case _:
                await self._lifespan(receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, path = str(scope["method"]), str(scope["path"])
        page = self._routes.get(path)
        try:
            if page is None:
                raise _no_such_path(path)
            handler = page.get("GET" if method == "HEAD" else method)
            if handler is None:
                raise PeerError(
                    "G551",
                    f"{method} is not for {path}",
                    why=f"it takes {' and '.join(page)}",
                    fix="use that method",
                )
            answered = await handler(scope, receive)
            if isinstance(answered, Streamed):
                self._service.metrics.requests.add(path, "200")
                await http.stream(receive, send, answered)
                return
            answer = answered
        except CatchmentError as error:
            self._service.metrics.refused.add(error.code)
            answer = http.refusal(error)
            if isinstance(error, InternalError):
                say("request failed", level=logging.ERROR, path=path, why=str(error))
        except Exception:
            # The last resort: one request fails, with its trace in the journal, and the gateway goes on.
            logging.getLogger("catchment.gateway").exception("request failed unexpectedly")
            answer = http.refusal(_unexpected(path))
        known = path if page is not None else "other"
        self._service.metrics.requests.add(known, str(answer.status))
        await http.respond(send, answer, with_body=method != "HEAD")

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        if scope["path"] != "/v1/sync":
            # Before it is accepted, closing is an HTTP answer: 403.
            await send({"type": "websocket.close", "code": 1008})
            return
        await self._talk(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self._service.start()
                    if self._site is not None:
                        self._site.begin()
                except (CatchmentError, OSError) as error:
                    self.failure = error
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                if self._site is not None:
                    await self._site.end()
                await self._service.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _enrol(self, scope: Scope, receive: Receive) -> Answer:
        body = await http.read_body(
            scope, receive, bytes_max=_SMALL_BODY, within_us=self._service.options.limits.body_us
        )
        try:
            request = msgspec.json.decode(body, type=EnrolRequest)
        except msgspec.DecodeError as error:
            raise PeerError(
                "G558",
                "this is not a request to enrol",
                why=str(error),
                fix='send {"token": …, "device": …} as JSON, and "kind" if you like',
            ) from None
        now = self._service.clock_us()
        # In a thread: the store syncs, and may wait for the command line's hold on it.
        given = await asyncio.to_thread(
            self._service.stores.enrolment.enrol, request.token, device=request.device, kind=request.kind, now_us=now
        )
        say("device enrolled", device=given.device, user=given.user, kind=request.kind)
        return http.as_json(given, 201)

    async def _rotate(self, scope: Scope, receive: Receive) -> Answer:
        device, credential = _basic(scope)
        new = await asyncio.to_thread(self._service.stores.enrolment.rotate, device, credential)
        say("credential rotated", device=device)
        return http.as_json(Rotated(new))

    async def _plan(self, scope: Scope, receive: Receive) -> Answer:
        device = self._proved(scope)
        plan = self._service.stores.plans.plan(device.program)
        tag = f'"{plan.fingerprint}"'
        headers = ((b"etag", tag.encode()),)
        if tag in http.header(scope, b"if-none-match"):
            return Answer(304, b"", http.JSON, headers)
        return Answer(200, plan.body, http.JSON, headers)

    async def _health(self, scope: Scope, receive: Receive) -> Answer:
        return http.as_json(self._service.health())

    async def _ready(self, scope: Scope, receive: Receive) -> Answer:
        ready = self._service.ready()
        return http.as_json({"ready": ready, **self._service.health()}, 200 if ready else 503)

    async def _metrics(self, scope: Scope, receive: Receive) -> Answer:
        return Answer(200, self._service.metrics.text().encode(), http.TEXT)

    def _proved(self, scope: Scope) -> Enrolled:
        device, credential = _basic(scope)
        return self._service.stores.enrolment.prove(device, credential)


def _basic(scope: Scope) -> tuple[str, str]:
    """The device and credential of the request's Authorization."""
    scheme, _, encoded = http.header(scope, b"authorization").partition(" ")
    try:
        if scheme.lower() != "basic":
            raise ValueError("it is missing or not Basic")
        device, colon, credential = base64.b64decode(encoded, validate=True).decode().partition(":")
        if not colon:
            raise ValueError("it has no colon")
    except (ValueError, binascii.Error) as error:
        raise PeerError(
            "G559",
            "the request does not say which device it is from",
            why=f"its Authorization cannot be used: {error}",
            fix="send the device's name and credential by HTTP Basic",
        ) from None
    return device, credential


def _no_such_path(path: str) -> PeerError:
    return PeerError(
        "G550",
        "there is nothing at this path",
        why=f"the gateway does not know {path[:200]!r}",
        fix="the paths are in docs/reference/gateway.md",
    )


def _unexpected(path: str) -> InternalError:
    return InternalError(
        "G560",
        f"the gateway failed at {path}",
        why="an error that nobody expected; its trace is in the gateway's journal",
        fix="send it again later, and report the trace",
    )
