"""Real gateways, killed: what a device was told is durable is in the log, once and in order."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import re
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from catchment.gateway.log import Kind
from catchment.gateway.log.files.reader import open_log
from catchment.gateway.stores import open_enrolment
from catchment.sync.frame import Ack, Data, Error, Frame, Hello, Moved, Welcome, decode_all, encode_all
from catchment.sync.parts import Epoch

pytestmark = pytest.mark.process
LOST = (OSError, EOFError, TimeoutError, WebSocketException)


class Gateway:
    """A gateway process."""

    def __init__(self, data: Path, name: str, port: int = 0, *arguments: str) -> None:
        self.data = data
        self.name = name
        self.port = port
        self.arguments = arguments
        self.process: subprocess.Popen[str] | None = None

    async def start(self) -> None:
        command = [sys.executable, "-m", "catchment", "gateway", "run", "--data", str(self.data), "--name", self.name]
        command += ["--port", str(self.port), "--reserve-mb", "1", *self.arguments]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ
        )
        assert self.process.stdout is not None
        line = await asyncio.to_thread(self.process.stdout.readline)
        found = re.search(r"https?://[\w.]+:(\d+)", line)
        assert found, line
        self.port = int(found[1])
        scheme = "https" if "https" in line else "http"
        async with httpx.AsyncClient(verify=False) as client:
            for _ in range(200):
                with contextlib.suppress(httpx.HTTPError):
                    await client.get(f"{scheme}://127.0.0.1:{self.port}/health")
                    return
                await asyncio.sleep(0.05)
        raise AssertionError("the gateway does not answer")

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


class Phone:
    """A device that sends numbers, one upload each, and goes where it is sent."""

    def __init__(self, name: str, credential: str, ports: list[int]) -> None:
        self.name = name
        self.credential = credential
        self.ports = itertools.cycle(ports)
        self.port = next(self.ports)
        self.epoch = Epoch(1, b"one boot")
        self.token = b""
        self.nonce = 0
        self.acknowledged = 0
        self.context: ssl.SSLContext | None = None

    async def run(self, until: asyncio.Event) -> None:
        while not until.is_set():
            try:
                async with self._connection() as socket:
                    if await self._greet(socket):
                        await self._send(socket, until)
            except LOST:
                # A device knows more than one gateway: it asks another when one does not answer.
                self.port = next(self.ports)
            await asyncio.sleep(0.05)

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[ClientConnection]:
        scheme = "ws" if self.context is None else "wss"
        socket = await connect(
            f"{scheme}://127.0.0.1:{self.port}/v1/sync", ssl=self.context, compression=None, open_timeout=5
        )
        try:
            yield socket
        finally:
            await socket.close()

    async def _greet(self, socket: ClientConnection) -> bool:
        token = self.token
        while True:
            hello = Hello(self.name, self.credential, self.epoch, b"%d" % self.nonce, token)
            answer = (await self._exchange(socket, hello))[0]
            if isinstance(answer, Moved):
                self.port = int(answer.gateway.rpartition(":")[2]) if answer.gateway else self.port
                return False
            if not isinstance(answer, Welcome):
                return False
            if not answer.challenge:
                self.token, self.nonce = answer.token, self.nonce + 1
                self.acknowledged = max([self.acknowledged, *(mark.upto for mark in answer.marks)])
                return True
            token = answer.challenge

    async def _send(self, socket: ClientConnection, until: asyncio.Event) -> None:
        while not until.is_set():
            first = self.acknowledged
            frames = [
                Data("s", self.epoch, number, 1, b"", "none", payload=b"%s %d" % (self.name.encode(), number))
                for number in range(first, first + 3)
            ]
            for answer in await self._exchange(socket, *frames):
                if isinstance(answer, Ack):
                    self.acknowledged = max(self.acknowledged, answer.marks[0].upto)
                elif isinstance(answer, Moved | Error):
                    return

    async def _exchange(self, socket: ClientConnection, *frames: Frame) -> list[Frame]:
        await socket.send(encode_all(frames))
        body = await asyncio.wait_for(socket.recv(), 5)
        assert isinstance(body, bytes)
        return list(decode_all(body))


def _phones(data: Path, count: int, ports: list[int]) -> list[Phone]:
    data.mkdir(exist_ok=True)
    store = open_enrolment(data)
    phones = []
    for number in range(count):
        token = store.token(user="ada", now_us=0, valid_us=1)
        given = store.enrol(token, device=f"phone-{number}", now_us=0)
        phones.append(
            Phone(given.device, given.credential, ports[number % len(ports) :] + ports[: number % len(ports)])
        )
    store.close()
    return phones


async def _while_sending(phones: list[Phone], story: Callable[[], Awaitable[None]]) -> None:
    until = asyncio.Event()
    running = [asyncio.create_task(phone.run(until)) for phone in phones]
    try:
        await story()
    finally:
        until.set()
        await asyncio.gather(*running)


def _check(data: Path, phones: list[Phone], at_least: int) -> None:
    reader = open_log(data / "log")
    of_device: dict[str, list[bytes]] = {phone.name: [] for phone in phones}
    for number in range(reader.partitions):
        for _, entry in reader.read(number, 0):
            if entry.kind == Kind.DATA:
                of_device[entry.device].append(entry.payload)
    for phone in phones:
        expected = [b"%s %d" % (phone.name.encode(), number) for number in range(len(of_device[phone.name]))]
        assert of_device[phone.name] == expected
        assert len(expected) >= phone.acknowledged >= at_least


def test_a_gateway_killed_again_and_again_keeps_its_word(tmp_path: Path) -> None:
    async def story() -> None:
        gateway = Gateway(tmp_path, "one")
        await gateway.start()
        phones = _phones(tmp_path, 6, [gateway.port])
        moments = random.Random(3)

        async def kills() -> None:
            for _ in range(4):
                await asyncio.sleep(moments.uniform(0.3, 0.9))
                gateway.kill()
                await gateway.start()
            await asyncio.sleep(0.7)

        await _while_sending(phones, kills)
        assert gateway.stop() == 0
        _check(tmp_path, phones, at_least=20)

    asyncio.run(story())


def test_of_two_gateways_one_is_killed_and_the_other_takes_over(tmp_path: Path) -> None:
    async def story() -> None:
        one, two = Gateway(tmp_path, "one"), Gateway(tmp_path, "two")
        await one.start()
        await two.start()
        phones = _phones(tmp_path, 6, [one.port, two.port])

        async def kill() -> None:
            await asyncio.sleep(3.0)
            before = [phone.acknowledged for phone in phones]
            assert {phone.port for phone in phones} == {one.port, two.port}
            two.kill()
            await asyncio.sleep(9.0)
            assert all(phone.acknowledged > known + 10 for phone, known in zip(phones, before, strict=True))

        await _while_sending(phones, kill)
        assert one.stop() == 0
        _check(tmp_path, phones, at_least=10)

    asyncio.run(story())


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_with_a_certificate_a_gateway_speaks_tls_and_nothing_else(tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1"
    words += f" -addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {certificate}"
    subprocess.run(words.split(), check=True, capture_output=True)

    async def story() -> None:
        gateway = Gateway(tmp_path / "data", "one", 0, "--certificate", str(certificate), "--key", str(key))
        await gateway.start()
        context = ssl.create_default_context(cafile=str(certificate))
        (phone,) = _phones(tmp_path / "data", 1, [gateway.port])
        phone.context = context
        async with httpx.AsyncClient(verify=context) as client:
            assert (await client.get(f"https://127.0.0.1:{gateway.port}/ready")).status_code == 200
        async with httpx.AsyncClient() as plain:
            with pytest.raises(httpx.HTTPError):
                await plain.get(f"http://127.0.0.1:{gateway.port}/ready")
        await _while_sending([phone], lambda: asyncio.sleep(0.7))
        assert gateway.stop() == 0
        _check(tmp_path / "data", [phone], at_least=5)

    asyncio.run(story())
