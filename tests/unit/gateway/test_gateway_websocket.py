"""The short way of a WebSocket's messages: whatever arrives, cut as it may be, ends as it does in websockets."""

from __future__ import annotations

import asyncio
import struct
from itertools import pairwise
from typing import Any

import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from catchment.gateway.websocket import Socket

_REQUEST = (
    b"GET /v1/sync HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
_MOST = 2_000
CONT, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


class Wire(asyncio.Transport):
    """Where a connection's bytes go."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        """What is under way arrives all the same."""

    def resume_reading(self) -> None:
        """See `pause_reading`."""


def _frame(opcode: int, body: bytes, *, final: bool = True, masked: bool = True, reserved: int = 0) -> bytes:
    first, mask = opcode | (0x80 if final else 0) | reserved << 4, 0x80 if masked else 0
    if len(body) < 126:
        head = bytes([first, mask | len(body)])
    elif len(body) < 1 << 16:
        head = struct.pack("!BBH", first, mask | 126, len(body))
    else:
        head = struct.pack("!BBQ", first, mask | 127, len(body))
    key = b"\x01\x80\xfe\x33" if masked else b""
    return head + key + bytes([byte ^ key[index % 4] for index, byte in enumerate(body)] if masked else body)


def _talk(kind: type[WebSocketsSansIOProtocol], chunks: list[bytes]) -> tuple[list[dict[str, Any]], bytes, bool]:
    """What the application heard, what the client was sent, and whether the connection was closed."""
    heard: list[dict[str, Any]] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        while True:
            message = await receive()
            heard.append(message)
            match message["type"]:
                case "websocket.connect":
                    await send({"type": "websocket.accept"})
                case "websocket.receive":
                    body = message.get("bytes") or b"text"
                    await send({"type": "websocket.send", "bytes": body[::-1]})
                case _:
                    return

    async def whole() -> tuple[bytes, bool]:
        config = uvicorn.Config(
            application,
            ws=kind,
            ws_max_size=_MOST,
            ws_ping_interval=None,
            ws_per_message_deflate=False,
            log_config=None,
            lifespan="off",
        )
        config.load()
        wire = Wire()
        connection = kind(config=config, server_state=ServerState(), app_state={})
        connection.connection_made(wire)
        for chunk in [_REQUEST, *chunks]:
            if wire.closed:
                break
            connection.data_received(chunk)
            for _ in range(6):
                await asyncio.sleep(0)
        done = wire.written, wire.closed
        connection.connection_lost(None)
        for _ in range(6):
            await asyncio.sleep(0)
        return done

    written, closed = asyncio.run(whole())
    return heard, written, closed


_bodies = st.one_of(st.binary(max_size=20), st.integers(120, 300).map(lambda size: bytes(range(256))[:size] * 2))
_small = st.binary(max_size=125)
_messages = st.one_of(
    _bodies.map(lambda body: [_frame(BINARY, body)]),
    _bodies.map(lambda body: [_frame(BINARY, body)]),
    st.text(max_size=20).map(lambda text: [_frame(TEXT, text.encode())]),
    _small.map(lambda body: [_frame(PING, body)]),
    _small.map(lambda body: [_frame(PONG, body)]),
    st.tuples(_bodies, _small, _bodies).map(
        lambda of: [_frame(BINARY, of[0], final=False), _frame(PING, of[1]), _frame(CONT, of[2])]
    ),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(_messages, max_size=6),
    st.sampled_from([b"", _frame(CLOSE, b"\x03\xe8bye"), _frame(CLOSE, b"")]),
    st.lists(st.integers(0, 2_000), max_size=12),
)
def test_messages_cut_anyhow_are_heard_and_answered_as_ever(
    said: list[list[bytes]], end: bytes, cuts: list[int]
) -> None:
    whole = b"".join([frame for message in said for frame in message]) + end
    places = sorted({0, len(whole), *[cut % (len(whole) + 1) for cut in cuts]})
    chunks = [whole[start:stop] for start, stop in pairwise(places)]
    assert _talk(Socket, chunks) == _talk(WebSocketsSansIOProtocol, chunks)


@pytest.mark.parametrize(
    ("breaks", "code"),
    [
        ([_frame(BINARY, b"plain", masked=False)], 1002),
        ([_frame(BINARY, b"bits", reserved=4)], 1002),
        ([_frame(3, b"unknown")], 1002),
        ([_frame(PING, b"part", final=False)], 1002),
        ([_frame(PING, bytes(126))], 1002),
        ([_frame(CONT, b"of nothing")], 1002),
        ([_frame(BINARY, b"one", final=False), _frame(BINARY, b"two")], 1002),
        ([_frame(BINARY, bytes(_MOST + 1))], 1009),
        ([_frame(BINARY, bytes(_MOST), final=False), _frame(CONT, b"x")], 1009),
        ([_frame(BINARY, b"")[:1] + b"\xff" + b"\xff" * 8], 1009),
        ([_frame(TEXT, b"\xff\xfe")], 1007),
    ],
)
def test_what_breaks_the_protocol_is_closed_with_its_code(breaks: list[bytes], code: int) -> None:
    chunks = [_frame(BINARY, b"good"), *breaks, _frame(BINARY, b"after")]
    heard, written, _ = _talk(Socket, chunks)
    assert (heard, written) == _talk(WebSocketsSansIOProtocol, chunks)[:2]
    assert written.rpartition(struct.pack("!H", code))[1], written
    assert [message["bytes"] for message in heard if "bytes" in message] == [b"good"]


def test_the_largest_message_arrives_byte_by_byte() -> None:
    body = bytes(range(250)) * 8
    assert len(body) == _MOST
    heard, written, _ = _talk(Socket, [bytes([byte]) for byte in _frame(BINARY, body)])
    assert heard[1] == {"type": "websocket.receive", "bytes": body}
    assert written.endswith(body[::-1])


def test_a_message_beside_the_request_is_heard_whole() -> None:
    """Before it is answered, what follows a request is websockets' own, also where that ends within a frame."""
    first, second = _frame(BINARY, b"early"), _frame(BINARY, b"later")

    async def whole() -> list[Any]:
        heard: list[Any] = []

        async def application(scope: Any, receive: Any, send: Any) -> None:
            await receive()
            await send({"type": "websocket.accept"})
            while (message := await receive())["type"] == "websocket.receive":
                heard.append(message["bytes"])

        config = uvicorn.Config(application, ws=Socket, ws_per_message_deflate=False, log_config=None, lifespan="off")
        config.load()
        connection = Socket(config=config, server_state=ServerState(), app_state={})
        connection.connection_made(Wire())
        connection.data_received(_REQUEST)
        connection.data_received(first[:4])
        await asyncio.sleep(0.01)
        connection.data_received(first[4:] + second)
        await asyncio.sleep(0.01)
        connection.connection_lost(None)
        await asyncio.sleep(0.01)
        return heard

    assert asyncio.run(whole()) == [b"early", b"later"]
