"""Misfortunes of devices: they are killed, lose power, live twice; their disks lie, fill up, rot and fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from catchment.program.sync import Batch, Metered
from catchment.program.types import Duration
from catchment.sim.clock import HOUR_US, MINUTE_US, SECOND_US
from catchment.sim.device import DeviceNode
from catchment.sim.misfortunes.striking import device_of, kind
from catchment.sim.script import Misfortune

if TYPE_CHECKING:
    from catchment.sim.world import World


@kind("device killed")
def _device_killed(world: World, m: Misfortune) -> bool:
    device = device_of(world, m)
    if not device.is_up:
        return False
    device.kill()
    world.later(m.for_us, device.start)
    return True


@kind("device killed at an action")
def _device_killed_at(world: World, m: Misfortune) -> bool:
    device = device_of(world, m)
    return _light(world, device, m, device.kill, device.start, "device killed at an action")


@kind("device loses power at an action")
def _device_powerless_at(world: World, m: Misfortune) -> bool:
    device = device_of(world, m)
    return _light(world, device, m, device.power_off, device.power_on, "device loses power at an action")


def _light(
    world: World,
    device: DeviceNode,
    m: Misfortune,
    burnt: Callable[[], None],
    again: Callable[[], None],
    name: str,
) -> bool:
    process = device.process
    if process is None or not process.alive:
        return False

    def happen() -> None:
        world.said(device.place, "ends at this action")
        world.coverage.hit("burnt", name)
        burnt()
        # Healing starts whatever is down.
        world.later(m.for_us, again)

    process.light(m.count, happen)
    return True


@kind("device reboots")
def _device_reboots(world: World, m: Misfortune) -> bool:
    device = device_of(world, m)
    device.power_off()
    world.later(m.for_us, device.power_on)
    return True


@kind("device's disk lied")
def _disk_lied(world: World, m: Misfortune) -> bool:
    device = device_of(world, m)
    device.power_off()
    if device.disk.lie(m.count):
        world.excuse(device, "its disk lied", since_us=device.disk.made_us)
    world.later(m.for_us, device.power_on)
    return True


@kind("device's backup restored")
def _backup_restored(world: World, m: Misfortune) -> bool:
    device = device_of(world, m)
    image, made_us = device.disk.backup(), world.clock.now_us
    if image is None:
        return False

    def restore() -> None:
        device.power_off()
        device.disk.restore(image)
        world.excuse(device, "an old backup came back", since_us=made_us)
        world.later(SECOND_US, device.power_on)

    world.later(m.for_us, restore)
    return True


@kind("device's image rots")
def _image_rots(world: World, m: Misfortune) -> bool:
    device = device_of(world, m)
    device.power_off()
    if not device.disk.rot(m.count):
        return False
    world.excuse(device, "its flash rots")
    world.later(m.for_us, device.power_on)
    return True


@kind("device lives twice")
def _lives_twice(world: World, m: Misfortune) -> bool:
    """Its disk is cloned and the clone started beside it. Later one of the two is taken away, the other released."""
    device = device_of(world, m)
    image = device.disk.backup()
    if image is None or any(other.name == device.name and other is not device for other in world.devices):
        return False
    plan = world.script.devices[world.devices.index(device)]
    clone = world.clone(device, plan, image)
    clone.power_on()
    survivor, other = (device, clone) if m.count else (clone, device)

    def settle() -> None:
        other.power_off()
        other.is_gone = True
        world.excuse(other, "that copy was taken away")
        # What the other sent has arrived by then; whoever sees to it starts what is left anew.
        world.clock.after(MINUTE_US, lambda: world.release(device.name))
        survivor.kill()
        world.clock.after(MINUTE_US, survivor.start)

    world.undo.append(settle)
    return True


@kind("device's disk is full")
def _flash_full(world: World, m: Misfortune) -> bool:
    device = device_of(world, m)
    device.disk.set_full(True)
    world.later(m.for_us, lambda: device.disk.set_full(False))
    return True


@kind("device's disk is read-only")
def _flash_read_only(world: World, m: Misfortune) -> bool:
    device = device_of(world, m)
    device.disk.set_read_only(True)
    world.later(m.for_us, lambda: device.disk.set_read_only(False))
    return True


@kind("device's disk fails")
def _flash_fails(world: World, m: Misfortune) -> bool:
    device = device_of(world, m)
    device.disk.fails_at_commit = True

    def works() -> None:
        device.disk.fails_at_commit = False

    world.later(m.for_us, works)
    return True


@kind("device suspended")
def _suspended(world: World, m: Misfortune) -> bool:
    world.has_quick_links = False
    device = device_of(world, m)
    if device.process is None or not device.process.alive:
        return False
    device.process.stop(m.for_us)
    return True


@kind("device stops cleanly")
def _stops_cleanly(world: World, m: Misfortune) -> bool:
    device = device_of(world, m)
    process = device.process
    if process is None or not process.alive:
        return False
    world.clock.after(0, lambda: device.leave(m.for_us), process.strand)
    world.later(m.for_us, device.start)
    return True


@kind("device's wall clock jumps")
def _wall_jumps(world: World, m: Misfortune) -> bool:
    device_of(world, m).wall.jump(m.count * HOUR_US)
    return m.count != 0


@kind("device's policy changes")
def _policy_changes(world: World, m: Misfortune) -> bool:
    device = device_of(world, m)
    stream = device.streams[0].name
    policy = device.policy(stream)
    batch = Batch(records=1 + m.at_us % 7, within=Duration((1 + m.at_us % 5) * SECOND_US))
    process = device.process
    changed = msgspec.structs.replace(policy, batch=batch, priority=m.at_us % 3)
    if process is None or not process.alive:
        return False
    world.clock.after(0, lambda: device.change_policy(stream, changed), process.strand)
    return True


@kind("device's link is metered")
def _metered(world: World, m: Misfortune) -> bool:
    device = device_of(world, m)
    stream = device.streams[0].name
    policy = device.policy(stream)
    waits = msgspec.structs.replace(policy, metered=Metered(True, Duration(20 * SECOND_US)))
    process, exchange = device.process, device.exchange
    if process is None or not process.alive or exchange is None:
        return False
    exchange.metered(True)
    world.clock.after(0, lambda: device.change_policy(stream, waits), process.strand)
    world.later(m.for_us, lambda: device.exchange.metered(False) if device.exchange is not None else None)
    return True


@kind("device claims the future")
def _claims_the_future(world: World, m: Misfortune) -> bool:
    device = device_of(world, m)
    process = device.process
    if process is None or not process.alive or not device.is_joined:
        return False
    world.clock.after(0, device.claim_the_future, process.strand)
    return True
