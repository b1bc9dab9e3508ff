"""A server for an ASGI application on the simulated network: requests and connections as a real server hands them over.

An answer travels as two bytes of status and the body, so that a device sees a refusal as its HTTP client would.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from catchment.sim.loop import VirtualLoop
from catchment.sim.network import Listener, Network, Reply, Wire
from catchment.sim.process import Process

Application = Callable[
    [
        MutableMapping[str, Any],
        Callable[[], Awaitable[MutableMapping[str, Any]]],
        Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ],
    Awaitable[None],
]


def serve(
    application: Application,
    path: str,
    *,
    network: Network,
    address: str,
    process: Process,
    loop: VirtualLoop,
    tap: Callable[[bytes], object],
) -> None:
    """Serve one path of the application at an address, until the process ends. `tap` sees all that is sent."""

    def on_request(body: bytes, reply: Reply) -> None:
        def answer(status: int, body: bytes) -> None:
            if status == 200:
                tap(body)
            process.act()
            reply(status.to_bytes(2, "little") + body)

        loop.start(_answer(application, path, body, answer))

    def on_connection(wire: Wire) -> None:
        loop.start(_hold(application, path, wire, tap))

    network.listen(address, Listener(process, on_request, on_connection))


def split(answer: bytes) -> tuple[int, bytes]:
    """The status and the body of an answer."""
    return int.from_bytes(answer[:2], "little"), answer[2:]


async def _answer(application: Application, path: str, body: bytes, answer: Callable[[int, bytes], object]) -> None:
    taken = False
    status = 500

    async def receive() -> MutableMapping[str, Any]:
        nonlocal taken
        if taken:
            return {"type": "http.disconnect"}
        taken = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        else:
            answer(status, message["body"])

    scope = {"type": "http", "method": "POST", "path": path, "headers": [], "client": ("device", 1)}
    await application(scope, receive, send)


async def _hold(application: Application, path: str, wire: Wire, tap: Callable[[bytes], object]) -> None:
    arrived: asyncio.Queue[bytes | None] = asyncio.Queue()
    wire.listen(arrived.put_nowait, lambda: arrived.put_nowait(None))
    connected = False

    async def receive() -> MutableMapping[str, Any]:
        nonlocal connected
        if not connected:
            connected = True
            return {"type": "websocket.connect"}
        body = await arrived.get()
        if body is None:
            return {"type": "websocket.disconnect", "code": 1006}
        return {"type": "websocket.receive", "bytes": body}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "websocket.send":
            if not wire.is_open:
                raise ConnectionResetError("the device has gone")
            tap(message["bytes"])
            wire.send(message["bytes"])
        elif message["type"] == "websocket.close":
            wire.close()

    try:
        await application({"type": "websocket", "path": path, "headers": [], "client": (wire.source, 1)}, receive, send)
    finally:
        wire.close()
