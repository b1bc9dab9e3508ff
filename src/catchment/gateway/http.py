"""HTTP as the gateway needs it: a body read within limits, an answer, an error with its code.

This is the edge that hostile clients see first, so nothing here grows with what a client merely claims: a body is
counted as it arrives and has a time to arrive in. Knows ASGI; must not know devices, the log or what a path means.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from catchment.errors import CatchmentError, PeerError

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

JSON = b"application/json"
FRAMES = b"application/vnd.catchment.sync"
TEXT = b"text/plain; version=0.0.4; charset=utf-8"

_STATUS = {
    # What is not here is 400 for a peer's error and 500 for ours.
    "G505": 503,
    "G506": 503,
    "G507": 503,
    "G517": 503,
    "G518": 503,
    "G520": 403,
    "G521": 409,
    "G522": 409,
    "G523": 401,
    "G524": 403,
    "G541": 404,
    "G550": 404,
    "G551": 405,
    "G552": 413,
    "G553": 408,
    "G556": 503,
    "G557": 429,
    "G602": 401,
    "G603": 403,
    "G604": 401,
    "G605": 429,
    "G607": 403,
    "G608": 404,
    "G609": 409,
}


class Answer(NamedTuple):
    """A response, whole."""

    status: int
    body: bytes = b""
    kind: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Streamed(NamedTuple):
    """A response that goes on: its parts as they come, until they end or the client has gone."""

    kind: bytes
    parts: AsyncIterator[bytes]


Page: TypeAlias = Callable[[Scope, Receive], Awaitable[Answer | Streamed]]


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error as JSON: the code to act on, and the words for a person."""

    code: str
    what: str
    why: str
    fix: str


def refusal(error: CatchmentError, *, retry_after_s: int | None = None) -> Answer:
    """The answer that says what was wrong."""
    status = _STATUS.get(error.code, 400 if isinstance(error, PeerError) else 500)
    # What went wrong inside is for the log of this gateway, not for whoever sent the request.
    why, fix = (error.why, error.fix) if isinstance(error, PeerError) else ("see the gateway's log", "try again later")
    headers: tuple[tuple[bytes, bytes], ...] = ()
    if status in (429, 503):
        headers = ((b"retry-after", b"%d" % (retry_after_s or 1)),)
    return Answer(status, msgspec.json.encode(Problem(error.code, error.what, why, fix)), JSON, headers)


def as_json(value: object, status: int = 200) -> Answer:
    """A value as JSON."""
    return Answer(status, msgspec.json.encode(value))


def header(scope: Scope, name: bytes) -> str:
    """A header's value, or the empty text."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value).decode("latin-1")
    return ""


def wait_s(scope: Scope, *, at_most: float) -> float:
    """How long the client is ready to wait for something to be there: `Prefer: wait=20` (RFC 7240).

    >>> wait_s({"headers": [(b"prefer", b"respond-async, wait=20")]}, at_most=15)
    15.0
    """
    for preference in header(scope, b"prefer").split(","):
        name, _, value = preference.partition("=")
        if name.strip().lower() == "wait" and value.strip().isascii() and value.strip().isdigit():
            return float(min(int(value.strip()[:6]), at_most))
    return 0.0


async def read_body(scope: Scope, receive: Receive, *, bytes_max: int, within_us: int) -> bytes:
    """The request's body; refused when it is too large or too slow."""
    claimed = header(scope, b"content-length")
    # A claim of more digits than any length has is too large as well, and would keep int() busy.
    if claimed.isascii() and claimed.isdigit() and (len(claimed) > 18 or int(claimed) > bytes_max):
        raise _too_large(bytes_max)
    try:
        async with asyncio.timeout(within_us / 1e6):
            return await _read(receive, bytes_max)
    except TimeoutError:
        raise PeerError(
            "G553",
            "the request did not arrive in time",
            why=f"a body has {within_us / 1e6:.0f} s to arrive",
            fix="send smaller bodies over slow links",
        ) from None


async def _read(receive: Receive, bytes_max: int) -> bytes:
    parts: list[bytes] = []
    length = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise PeerError(
                "G554",
                "the request broke off",
                why=f"the connection closed after {length} bytes of its body",
                fix="send it again",
            )
        part = message.get("body", b"")
        length += len(part)
        if length > bytes_max:
            raise _too_large(bytes_max)
        parts.append(part)
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


async def respond(send: Send, answer: Answer, *, with_body: bool = True) -> None:
    """Send the answer."""
    headers = [
        (b"content-type", answer.kind),
        (b"content-length", b"%d" % len(answer.body)),
        *([] if any(name == b"cache-control" for name, _ in answer.headers) else [(b"cache-control", b"no-store")]),
        (b"x-content-type-options", b"nosniff"),
        *answer.headers,
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body if with_body else b""})


async def stream(receive: Receive, send: Send, streamed: Streamed) -> None:
    """Send parts as they come. Who has gone is told by `receive`, for sending says nothing of it."""
    headers = [
        (b"content-type", streamed.kind),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        # Of intermediaries, some hold back what is small.
        (b"x-accel-buffering", b"no"),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    gone = asyncio.ensure_future(_gone(receive))
    try:
        async with contextlib.aclosing(streamed.parts) as parts:  # type: ignore[type-var]
            async for part in parts:
                await send({"type": "http.response.body", "body": part, "more_body": True})
                if gone.done():
                    return
        await send({"type": "http.response.body", "body": b""})
    finally:
        gone.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _too_large(bytes_max: int) -> PeerError:
    return PeerError(
        "G552",
        "the request is too large",
        why=f"this gateway takes {bytes_max} bytes in one body",
        fix="send fewer frames per request",
    )
