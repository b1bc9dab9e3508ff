"""The idle fleet of bench/ingest.py: devices that are connected, say a sign of life each minute, and nothing else."""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from pathlib import Path

from bench.ingest_load import BOOT, Ours, enrol, websocket
from catchment.sync.frame import Beat, encode

BEAT_S = 60.0


class Device(asyncio.Protocol):
    """One connection."""

    def __init__(self, speech: Ours) -> None:
        self.speech = speech
        self.is_open = True
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self.speech.greet())

    def data_received(self, data: bytes) -> None:
        _, answer = self.speech.heard(data)
        if answer and self.transport is not None:
            self.transport.write(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False

    def beat(self) -> None:
        """A sign of life."""
        if self.transport is not None and self.is_open:
            self.transport.write(websocket(encode(Beat(BOOT, int(time.monotonic() * 1e6)))))


async def run(port: int, count: int, seconds: float, data: Path) -> None:
    """Connect everyone, say so, hold the connections, and say how many are left."""
    loop = asyncio.get_running_loop()
    devices: list[Device] = []
    for number, credential in enumerate(enrol(data, count)):
        device = Device(Ours(number, credential, b""))
        await loop.create_connection(lambda device=device: device, "127.0.0.1", port)  # type: ignore[misc]
        devices.append(device)
    async with asyncio.timeout(120):
        while not all(device.speech.is_joined for device in devices):
            await asyncio.sleep(0.1)
    print(json.dumps({"joined": count}), flush=True)
    until = time.monotonic() + seconds
    position = 0.0
    while time.monotonic() < until:
        await asyncio.sleep(0.1)
        before, position = position, position + 0.1 / BEAT_S * count
        for number in range(int(before), int(position)):
            devices[number % count].beat()
    held = sum(device.is_open and device.speech.is_joined for device in devices)
    print(json.dumps({"held": held}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="idle devices")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--devices", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    asyncio.run(run(arguments.port, arguments.devices, arguments.seconds, arguments.data))


if __name__ == "__main__":
    main()
