"""A gateway on a real socket, and clients that mean harm or mean nothing: it holds little, says little, and goes on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catchment.gateway.app import Application
from catchment.gateway.exchange import Exchange
from catchment.gateway.limits import GatewayLimits
from catchment.gateway.log.files.partition import Limits
from catchment.gateway.patience import HEAD_BYTES_MAX
from catchment.gateway.run import Listen, bind, server
from catchment.gateway.service import Service
from catchment.gateway.stores import Options
from catchment.sync.frame import Data, Epoch, Error, Frame, Hello, Welcome, decode_all, encode, encode_all

pytestmark = pytest.mark.process
# A real socket is between the generator and what it tests.
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
SMALL = GatewayLimits(body_bytes=200_000, frame_bytes=100_000, body_us=400_000, hello_us=400_000)


def _tell(data: Path, story: Callable[[int, Service, Exchange], Awaitable[None]]) -> None:
    async def whole() -> None:
        listen = Listen(port=0)
        listening = bind(listen)
        service = Service(Options(data, partitions=1, log=Limits(reserve_bytes=0), limits=SMALL))
        exchange = Exchange(service)
        application = Application(service, exchange=exchange.post, talk=exchange.talk)
        running = server(application, listen, message_bytes_max=200_000, connections_max=50, head_s=0.3)
        serving = asyncio.create_task(running.serve(sockets=[listening]))
        while not running.started:
            await asyncio.sleep(0.01)
        port = listening.getsockname()[1]
        try:
            await asyncio.wait_for(story(port, service, exchange), 60)
            async with httpx.AsyncClient() as client:
                assert (await client.get(f"http://127.0.0.1:{port}/ready")).status_code == 200, "it goes on"
        finally:
            running.should_exit = True
            await serving

    asyncio.run(whole())


async def _is_cut_off(reader: asyncio.StreamReader) -> bool:
    try:
        return await asyncio.wait_for(reader.read(), 5) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n", b"PRI * HT"])
def test_half_a_request_is_not_waited_for(tmp_path: Path, said: bytes) -> None:
    async def story(port: int, service: Service, exchange: Exchange) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(said)
        assert await _is_cut_off(reader)

    _tell(tmp_path, story)


def test_half_a_second_request_is_not_waited_for_either(tmp_path: Path) -> None:
    async def story(port: int, service: Service, exchange: Exchange) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        await asyncio.sleep(0.5)
        writer.write(b"GET /hea")
        await asyncio.wait_for(reader.read(), 5)

    _tell(tmp_path, story)


def test_headers_without_end_are_cut_off(tmp_path: Path) -> None:
    async def story(port: int, service: Service, exchange: Exchange) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n")
        sent = 0
        try:
            while sent < 100 * HEAD_BYTES_MAX:
                line = b"X-%d: " % sent + b"y" * 1000 + b"\r\n"
                writer.write(line)
                await writer.drain()
                await asyncio.sleep(0)
                sent += len(line)
        except ConnectionError:
            pass
        assert sent < 100 * HEAD_BYTES_MAX

    _tell(tmp_path, story)


def test_a_body_that_trickles_is_answered_and_ended(tmp_path: Path) -> None:
    async def story(port: int, service: Service, exchange: Exchange) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /v1/sync HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
        answer = asyncio.create_task(reader.read(4096))
        for _ in range(50):
            writer.write(b"x")
            await asyncio.sleep(0.02)
            if answer.done():
                break
        assert (await answer).startswith(b"HTTP/1.1 408") and b"G553" in answer.result()

    _tell(tmp_path, story)


def test_a_websocket_that_says_nothing_or_too_much_is_closed(tmp_path: Path) -> None:
    from websockets.asyncio.client import connect
    from websockets.exceptions import ConnectionClosed

    async def story(port: int, service: Service, exchange: Exchange) -> None:
        async with connect(f"ws://127.0.0.1:{port}/v1/sync") as mute:
            with pytest.raises(ConnectionClosed):
                while True:
                    await asyncio.wait_for(mute.recv(), 5)
        async with connect(f"ws://127.0.0.1:{port}/v1/sync") as loud:
            with pytest.raises(ConnectionClosed) as closed:
                await loud.send(bytes(300_000))
                await asyncio.wait_for(loud.recv(), 5)
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009
        with pytest.raises(Exception, match="403"):
            await connect(f"ws://127.0.0.1:{port}/elsewhere")

    _tell(tmp_path, story)


def test_more_connections_than_there_is_room_for_are_told_so_and_the_others_are_served(tmp_path: Path) -> None:
    async def story(port: int, service: Service, exchange: Exchange) -> None:
        crowd = [await asyncio.open_connection("127.0.0.1", port) for _ in range(60)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /ready HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 503")
        for crowded, _ in crowd:
            assert await _is_cut_off(crowded)

    _tell(tmp_path, story)


_junk = st.one_of(
    st.binary(max_size=200),
    st.builds(
        lambda head, tail: head + tail, st.sampled_from([b"\xca\x7c\x01", b"\xca\x7c\x01\x03"]), st.binary(max_size=80)
    ),
    st.builds(
        lambda frame, cut, at, flip: _harmed(encode(frame), cut, at, flip),
        st.sampled_from(
            [
                Hello("phone", "x", Epoch(1, bytes(8)), b"n"),
                Data("s", Epoch(1, bytes(8)), 0, 1, b"", "none", payload=b"abc"),
                Welcome(b"n"),
                Error("X", "y"),
            ]
        ),
        st.integers(0, 200),
        st.integers(0, 200),
        st.integers(0, 255),
    ),
)


def _harmed(body: bytes, cut: int, at: int, flip: int) -> bytes:
    harmed = bytearray(body[: max(1, len(body) - cut)] if cut % 3 == 0 else body)
    harmed[at % len(harmed)] ^= flip
    return bytes(harmed)


def test_whatever_is_posted_is_answered_with_frames_and_nothing_is_logged(tmp_path: Path) -> None:
    async def story(port: int, service: Service, exchange: Exchange) -> None:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:

            async def post(body: bytes) -> None:
                answer = await client.post("/v1/sync", content=body)
                assert answer.status_code == 200
                frames = list(decode_all(answer.content))
                assert frames and all(isinstance(frame, Error) for frame in frames), (body, frames)

            loop = asyncio.get_running_loop()

            @settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
            @given(st.lists(_junk, min_size=1, max_size=3).map(b"".join).filter(bool))
            def fuzz(body: bytes) -> None:
                asyncio.run_coroutine_threadsafe(post(body), loop).result(20)

            await asyncio.to_thread(fuzz)
        assert all(writer.partition.end == 0 for writer in service.stores.log.writers.values())
        kept = sum(file.stat().st_size for file in (tmp_path / "quarantine").glob("*"))
        assert 0 < kept < 8 << 20

    _tell(tmp_path, story)


def test_the_other_paths_take_anything_too(tmp_path: Path) -> None:
    async def story(port: int, service: Service, exchange: Exchange) -> None:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            loop = asyncio.get_running_loop()

            async def ask(method: str, path: str, body: bytes, authorization: str) -> None:
                answer = await client.request(method, path, content=body, headers={"authorization": authorization})
                assert 200 <= answer.status_code < 500, (method, path, body, answer.text)
                if answer.status_code >= 400 and method != "HEAD":
                    assert answer.json()["code"].startswith("G")

            @settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
            @given(
                st.sampled_from(["GET", "POST", "HEAD", "PUT"]),
                st.sampled_from(
                    ["/v1/enrol", "/v1/rotate", "/v1/plan", "/health", "/metrics", "/v1/", "/%00", "/..%2f"]
                ),
                st.one_of(st.binary(max_size=100), st.just(b'{"token":"x","device":"y"}'), st.just(b'{"token":[[[[')),
                st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=30).map(
                    lambda t: f"Basic {t}"
                ),
            )
            def fuzz(method: str, path: str, body: bytes, authorization: str) -> None:
                asyncio.run_coroutine_threadsafe(ask(method, path, body, authorization), loop).result(20)

            await asyncio.to_thread(fuzz)

    _tell(tmp_path, story)


def test_random_bytes_on_the_socket_change_nothing(tmp_path: Path) -> None:
    async def story(port: int, service: Service, exchange: Exchange) -> None:
        for size in (1, 10, 100, 5000):
            for _ in range(5):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(os.urandom(size))
                await asyncio.wait_for(reader.read(), 5)

    _tell(tmp_path, story)


def test_an_honest_device_is_served_while_others_misbehave(tmp_path: Path) -> None:
    async def story(port: int, service: Service, exchange: Exchange) -> None:
        store = service.stores.enrolment
        token = store.token(user="ada", now_us=0, valid_us=1)
        given = store.enrol(token, device="phone", now_us=0)
        crowd = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
        for _, writer in crowd:
            writer.write(b"POST /v1/sync HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + bytes(50_000))
        epoch = Epoch(1, bytes(8))
        frames: list[Frame] = [
            Hello("phone", given.credential, epoch, b"n"),
            Data("s", epoch, 0, 1, b"", "none", payload=b"abc"),
        ]
        async with httpx.AsyncClient() as client:
            answer = await client.post(f"http://127.0.0.1:{port}/v1/sync", content=encode_all(frames))
        assert [type(frame).__name__ for frame in decode_all(answer.content)] == ["Welcome", "Ack"]
        for _, writer in crowd:
            writer.close()

    _tell(tmp_path, story)
