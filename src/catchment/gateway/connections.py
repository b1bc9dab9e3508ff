"""The connections that a gateway holds, and what it says on them without being asked.

A device has one connection: a newer one displaces it. Results that other processes wrote and plans that were
published are handed to who is there; connections that fell silent are closed; devices whose partition went to another
gateway are sent there. Knows asyncio and links; must not know uploads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

from catchment.gateway.devices import Device, Devices, Link
from catchment.gateway.downhill import offers, results
from catchment.gateway.service import Service
from catchment.gateway.tally import Tally
from catchment.gateway.uplink import RETRY_US
from catchment.sync.frame import Bye, Frame, Moved, encode_all


class Connections:
    """Those of one gateway."""

    def __init__(self, service: Service, devices: Devices, tally: Tally) -> None:
        self.links: set[Link] = set()
        self._service = service
        self._devices = devices
        self._tally = tally
        self._limits = service.options.limits
        self._tasks: set[asyncio.Task[None]] = set()
        service.on_results = self._fresh
        service.on_given_up = self._given_up
        service.on_sweep = self._sweep
        service.metrics.gauge("connections", "Open WebSockets.", (), lambda: {(): len(self.links)})

    def downhill(self, device: Device, link: Link, *, offer: bool) -> list[Frame]:
        """Results that the device lacks; with `offer`, also the plan."""
        stores, bytes_max = self._service.stores, self._limits.frame_bytes // 4
        plan = offers(stores.plans, device, link, bytes_max=bytes_max) if offer else []
        if not device.results_due:
            return [*plan]
        found = results(stores.downlink, device, link, bytes_max=bytes_max)
        device.results_due = bool(found) or not link.has_room
        for frame in found:
            self._service.metrics.results.add(self._tally.label(frame.stream), by=frame.count)
        return [*plan, *found]

    def displace(self, device: Device, by: Link | None) -> None:
        old, device.link = device.link, None
        device.woken.set()
        if old is not None and old is not by:
            self.left(old)
            if old.is_open:
                self._spawn(self._send_away(old, Bye("another connection of this device took over")))

    def left(self, link: Link) -> None:
        """The connection is over."""
        device = link.device
        if device is None:
            return
        link.device = None
        if device.link is link:
            device.link = None
        now = self._service.clock_us()
        self._service.presence.disconnect(device.enrolled.device, now_us=now, sleep_us=link.sleep_us)

    def moved(self, partition: int) -> Moved:
        """Where a partition is written; nowhere for a moment, if nobody has taken it yet."""
        lease = self._service.stores.log.holder(partition)
        here = lease.holder in ("", self._service.options.name)
        return Moved("" if here else lease.address, partition, lease.generation, RETRY_US if here else 0)

    def _fresh(self, targets: Iterable[str]) -> None:
        """Other processes wrote results: hand them to who is there."""
        for target in targets:
            for device in self._devices.of_target(target):
                device.results_due = True
                device.woken.set()
                if device.link is not None:
                    self.push(device, device.link)

    async def results_within(self, device: Device, link: Link, wait_s: float) -> list[Frame]:
        """Results for a device that asked by HTTP and waits for some; nothing once another connection took over."""
        try:
            async with asyncio.timeout(wait_s):
                while device.link is link:
                    device.woken.clear()
                    frames = self.downhill(device, link, offer=False)
                    if frames:
                        return frames
                    await device.woken.wait()
        except TimeoutError:
            pass
        return []

    def push(self, device: Device, link: Link) -> None:
        """Hand the device what it lacks, unless that is being done."""
        if link.is_open and not link.pushing:
            link.pushing = True
            self._spawn(self._push(device, link))

    async def _push(self, device: Device, link: Link) -> None:
        try:
            while link.is_open and device.link is link:
                frames = self.downhill(device, link, offer=True)
                if not frames:
                    return
                await link.send(encode_all(frames))
        except OSError:
            link.shut()
        finally:
            link.pushing = False

    def _given_up(self, partitions: list[int]) -> None:
        """Send devices to the gateways that took their partitions."""
        for device in self._devices:
            if device.partition in partitions:
                self._devices.drop(device.enrolled.device)
                if device.link is not None and device.link.is_open:
                    self._spawn(self._send_away(device.link, self.moved(device.partition)))

    def _sweep(self, now_us: int) -> None:
        """Close connections that are silent, and offer plans that were published."""
        for link in list(self.links):
            patience_us = self._limits.hello_us if link.device is None else self._limits.idle_us
            if now_us - link.heard_us > patience_us and link.is_open:
                self._spawn(self._send_away(link, Bye("nothing was heard for long")))
            elif link.device is not None and not link.pushing:
                current = self._service.stores.plans.current(link.device.enrolled.program)
                if current is not None and current != link.plan:
                    self.push(link.device, link)

    async def _send_away(self, link: Link, frame: Frame) -> None:
        try:
            await link.send(encode_all([frame]))
            await link.close(1001)
        except OSError:
            # It has gone already.
            link.shut()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        # The loop holds its tasks weakly.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
