"""What each kind of misfortune does to a world.

Every kind is a function of its own, named in `script.KINDS`. What lasts is undone after `for_us`, or when the world is
healed. A misfortune that finds nothing to strike (a device that is down already) does nothing, and is not counted.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from catchment.errors import CatchmentError
from catchment.gateway.downlink import Keep, Result, to_device
from catchment.gateway.downlink import Mark as SinkMark
from catchment.program.sync import Batch, Metered
from catchment.program.types import Duration
from catchment.sim.clock import DAY_US, HOUR_US, MINUTE_US, SECOND_US
from catchment.sim.device import RESULT, RESULTS, DeviceNode
from catchment.sim.gateway import GatewayNode
from catchment.sim.network import Conditions
from catchment.sim.script import Misfortune
from catchment.sync.codecs import codec

if TYPE_CHECKING:
    from catchment.sim.world import World

Strike: TypeAlias = Callable[["World", Misfortune], bool]
_STRIKES: dict[str, Strike] = {}


def strike(world: World, number: int, misfortune: Misfortune) -> None:
    """Have it happen. `number` counts those of the script."""
    if world.has_ended:
        return
    struck = _STRIKES[misfortune.kind](world, misfortune)
    world.said("fate", f"{number}: {misfortune.kind} ({misfortune.who}){'' if struck else ': nothing to strike'}")
    if struck:
        world.coverage.hit("misfortune", misfortune.kind)


def kinds() -> frozenset[str]:
    """All that there are."""
    return frozenset(_STRIKES)


def _kind(name: str) -> Callable[[Strike], Strike]:
    def note(strike: Strike) -> Strike:
        _STRIKES[name] = strike
        return strike

    return note


def _device(world: World, misfortune: Misfortune) -> DeviceNode:
    return world.devices[misfortune.who % len(world.devices)]


def _gateway(world: World, misfortune: Misfortune) -> GatewayNode:
    return world.gateways[misfortune.who % len(world.gateways)]


# -- devices -------------------------------------------------------------------------------------------------------


@_kind("device killed")
def _device_killed(world: World, m: Misfortune) -> bool:
    device = _device(world, m)
    if not device.is_up:
        return False
    device.kill()
    world.later(m.for_us, device.start)
    return True


@_kind("device killed at an action")
def _device_killed_at(world: World, m: Misfortune) -> bool:
    device = _device(world, m)
    return _light(world, device, m, device.kill, device.start, "device killed at an action")


@_kind("device loses power at an action")
def _device_powerless_at(world: World, m: Misfortune) -> bool:
    device = _device(world, m)
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


@_kind("device reboots")
def _device_reboots(world: World, m: Misfortune) -> bool:
    device = _device(world, m)
    device.power_off()
    world.later(m.for_us, device.power_on)
    return True


@_kind("device's disk lied")
def _disk_lied(world: World, m: Misfortune) -> bool:
    device = _device(world, m)
    device.power_off()
    if device.disk.lie(m.count):
        world.ledger.excuse(device.name, device.copy, "its disk lied")
    world.later(m.for_us, device.power_on)
    return True


@_kind("device's backup restored")
def _backup_restored(world: World, m: Misfortune) -> bool:
    device = _device(world, m)
    image = device.disk.backup()
    if image is None:
        return False

    def restore() -> None:
        device.power_off()
        device.disk.restore(image)
        world.ledger.excuse(device.name, device.copy, "an old backup came back")
        world.later(SECOND_US, device.power_on)

    world.later(m.for_us, restore)
    return True


@_kind("device's image rots")
def _image_rots(world: World, m: Misfortune) -> bool:
    device = _device(world, m)
    device.power_off()
    if not device.disk.rot(m.count):
        return False
    world.ledger.excuse(device.name, device.copy, "its flash rots")
    world.later(m.for_us, device.power_on)
    return True


@_kind("device lives twice")
def _lives_twice(world: World, m: Misfortune) -> bool:
    """Its disk is cloned and the clone started beside it. Later one of the two is taken away, the other released."""
    device = _device(world, m)
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
        world.ledger.excuse(other.name, other.copy, "that copy was taken away")
        world.release(device.name)
        # Whoever sees to it starts what is left anew.
        survivor.kill()
        survivor.start()

    world.undo.append(settle)
    return True


@_kind("device's disk is full")
def _flash_full(world: World, m: Misfortune) -> bool:
    device = _device(world, m)
    device.disk.set_full(True)
    world.later(m.for_us, lambda: device.disk.set_full(False))
    return True


@_kind("device's disk is read-only")
def _flash_read_only(world: World, m: Misfortune) -> bool:
    device = _device(world, m)
    device.disk.set_read_only(True)
    world.later(m.for_us, lambda: device.disk.set_read_only(False))
    return True


@_kind("device's disk fails")
def _flash_fails(world: World, m: Misfortune) -> bool:
    device = _device(world, m)
    device.disk.fails_at_commit = True

    def works() -> None:
        device.disk.fails_at_commit = False

    world.later(m.for_us, works)
    return True


@_kind("device suspended")
def _suspended(world: World, m: Misfortune) -> bool:
    world.has_quick_links = False
    device = _device(world, m)
    if device.process is None or not device.process.alive:
        return False
    device.process.stop(m.for_us)
    return True


@_kind("device stops cleanly")
def _stops_cleanly(world: World, m: Misfortune) -> bool:
    device = _device(world, m)
    process = device.process
    if process is None or not process.alive:
        return False
    world.clock.after(0, lambda: device.leave(m.for_us), process.strand)
    world.later(m.for_us, device.start)
    return True


@_kind("device's wall clock jumps")
def _wall_jumps(world: World, m: Misfortune) -> bool:
    _device(world, m).wall.jump(m.count * HOUR_US)
    return m.count != 0


@_kind("device's policy changes")
def _policy_changes(world: World, m: Misfortune) -> bool:
    device = _device(world, m)
    stream = device.streams[0].name
    policy = device.policy(stream)
    batch = Batch(records=1 + m.at_us % 7, within=Duration((1 + m.at_us % 5) * SECOND_US))
    process = device.process
    changed = msgspec.structs.replace(policy, batch=batch, priority=m.at_us % 3)
    if process is None or not process.alive:
        return False
    world.clock.after(0, lambda: device.change_policy(stream, changed), process.strand)
    return True


@_kind("device's link is metered")
def _metered(world: World, m: Misfortune) -> bool:
    device = _device(world, m)
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


# -- the network ---------------------------------------------------------------------------------------------------


def _link(world: World, device: DeviceNode, conditions: Conditions | None) -> None:
    for gateway in world.gateways:
        world.network.set(device.place, gateway.address, conditions)


@_kind("device offline")
def _offline(world: World, m: Misfortune) -> bool:
    device = _device(world, m)
    _link(world, device, Conditions(cut=True))
    world.later(m.for_us, lambda: _link(world, device, None))
    return True


@_kind("device offline for long")
def _offline_long(world: World, m: Misfortune) -> bool:
    """Hours to weeks. Sensors are read rarely meanwhile and gateways are suspended, or a world would take as long."""
    world.has_quick_links = False
    device = _device(world, m)
    _link(world, device, Conditions(cut=True))
    world.set_pace(max(1, m.for_us // (40 * 4 * SECOND_US)))
    for gateway in world.gateways:
        if gateway.process is not None and gateway.process.alive:
            gateway.process.stop(max(SECOND_US, m.for_us - MINUTE_US))
    for other in world.devices:
        # The others sleep meanwhile, as this one may.
        asleep = other is not device or m.count == 0
        if asleep and other.process is not None and other.process.alive:
            other.process.stop(m.for_us - MINUTE_US)
    world.lasts(world.clock.now_us + m.for_us + MINUTE_US)

    def back() -> None:
        _link(world, device, None)
        world.set_pace(1)

    world.later(m.for_us, back)
    if m.for_us > DAY_US:
        world.coverage.hit("misfortune", "device offline for days")
    return True


@_kind("device's link is bad")
def _bad_link(world: World, m: Misfortune) -> bool:
    world.has_quick_links = False
    device = _device(world, m)
    share = m.count / 10
    _link(
        world,
        device,
        Conditions(delay_us=(1_000, 4 * SECOND_US), loss=share, duplicate=share / 2, reorder=share, garble=share / 4),
    )
    world.later(m.for_us, lambda: _link(world, device, None))
    return True


@_kind("gateways cut off")
def _cut_off(world: World, m: Misfortune) -> bool:
    usual = world.network.usual
    world.network.usual = msgspec.structs.replace(usual, cut=True)

    def back() -> None:
        world.network.usual = usual

    world.later(m.for_us, back)
    return True


# -- gateways ------------------------------------------------------------------------------------------------------


@_kind("gateway killed")
def _gateway_killed(world: World, m: Misfortune) -> bool:
    gateway = _gateway(world, m)
    if not gateway.is_up:
        return False
    gateway.kill()
    world.later(m.for_us, gateway.start)
    return True


@_kind("gateway killed at an action")
def _gateway_killed_at(world: World, m: Misfortune) -> bool:
    gateway = _gateway(world, m)
    process = gateway.process
    if process is None or not process.alive:
        return False

    def happen() -> None:
        world.said(gateway.name, "is killed at this action")
        world.coverage.hit("burnt", m.kind)
        gateway.kill()
        world.later(m.for_us, gateway.start)

    process.light(m.count, happen)
    return True


@_kind("gateway stops cleanly")
def _gateway_stops(world: World, m: Misfortune) -> bool:
    gateway = _gateway(world, m)
    if not gateway.is_up:
        return False
    gateway.stop()
    world.later(m.for_us + SECOND_US, gateway.start)
    return True


@_kind("gateway held")
def _gateway_held(world: World, m: Misfortune) -> bool:
    world.has_quick_links = False
    gateway = _gateway(world, m)
    if gateway.process is None or not gateway.process.alive:
        return False
    gateway.process.stop(m.for_us)
    return True


@_kind("gateway stands still at an action")
def _gateway_stalls(world: World, m: Misfortune) -> bool:
    world.has_quick_links = False
    gateway = _gateway(world, m)
    process = gateway.process
    if process is None or not process.alive:
        return False

    def happen() -> None:
        world.said(gateway.name, f"stands still at this action for {m.for_us / 1e6:.0f} s")
        if process.stall(m.for_us):
            world.coverage.hit("burnt", m.kind)
        world.said(gateway.name, "goes on")

    process.light(m.count, happen)
    return True


@_kind("gateway's disk is slow")
def _gateway_slow(world: World, m: Misfortune) -> bool:
    world.has_quick_links = False
    gateway = _gateway(world, m)
    process = gateway.process
    if process is None or not process.alive:
        return False

    def happen() -> None:
        strand = world.clock.current
        if strand is None or strand.process is not process or strand is process.strand:
            # Only a partition's thread waits for the disk, so look again at the next action.
            process.light(1, happen)
            return
        world.said(gateway.name, f"waits for its disk for {m.for_us / 1e6:.1f} s")
        if process.stall(m.for_us, strand):
            world.coverage.hit("burnt", m.kind)

    process.light(m.count, happen)
    return True


@_kind("gateway's clock jumps")
def _gateway_clock(world: World, m: Misfortune) -> bool:
    _gateway(world, m).wall.jump(m.count * HOUR_US)
    world.has_good_clocks = False
    return m.count != 0


@_kind("machine loses power")
def _machine_powerless(world: World, m: Misfortune) -> bool:
    world.gateways_lose_power()
    for gateway in world.gateways:
        world.later(m.for_us, gateway.start)
    return True


@_kind("machine loses power at an action")
def _machine_powerless_at(world: World, m: Misfortune) -> bool:
    gateway = _gateway(world, m)
    process = gateway.process
    if process is None or not process.alive:
        return False

    def happen() -> None:
        world.said(gateway.name, "loses power at this action")
        world.coverage.hit("burnt", m.kind)
        world.gateways_lose_power()
        for each in world.gateways:
            world.later(m.for_us, each.start)

    process.light(m.count, happen)
    return True


# -- the log's disk ------------------------------------------------------------------------------------------------


@_kind("log's disk is full")
def _log_full(world: World, m: Misfortune) -> bool:
    medium = world.medium
    usual = medium.capacity_bytes
    medium.capacity_bytes = medium.used_bytes() + 2_000 * m.who

    def room() -> None:
        medium.capacity_bytes = usual

    world.later(m.for_us, room)
    return True


def _failing(world: World, m: Misfortune, *switches: str, code: int = errno.EIO) -> bool:
    for switch in switches:
        setattr(world.medium, switch, code)

    def work() -> None:
        for switch in switches:
            setattr(world.medium, switch, None)

    world.later(m.for_us, work)
    return True


@_kind("log's writes fail")
def _writes_fail(world: World, m: Misfortune) -> bool:
    return _failing(world, m, "write_errno")


@_kind("log's writes fail and cannot be taken back")
def _truncates_fail(world: World, m: Misfortune) -> bool:
    return _failing(world, m, "write_errno", "truncate_errno")


@_kind("log's syncs fail")
def _syncs_fail(world: World, m: Misfortune) -> bool:
    return _failing(world, m, "sync_errno", *(("truncate_errno",) if m.who % 2 else ()))


@_kind("log's files cannot be replaced")
def _replaces_fail(world: World, m: Misfortune) -> bool:
    return _failing(world, m, "replace_errno")


def _rot(world: World, m: Misfortune, ending: str) -> bool:
    """A bit turns, a gateway finds out when it starts, and somebody restores the file from a copy."""
    rot = world.medium.rot(ending)
    if rot is None:
        return False
    world.said("log's disk", f"a bit of {rot.path} turned at {rot.position}")
    world.is_rotten = True

    def restore() -> None:
        if world.is_rotten:
            world.is_rotten = False
            world.medium.restore_rotten()
            # What may have been decided by the harmed file is decided anew.
            for gateway in world.gateways:
                gateway.kill()
                gateway.start()

    world.undo.append(restore)
    world.later(m.for_us, restore)
    for gateway in world.gateways:
        gateway.kill()
        world.later(SECOND_US, gateway.start)
    return True


@_kind("log rots")
def _log_rots(world: World, m: Misfortune) -> bool:
    return not world.is_rotten and _rot(world, m, ".seg")


@_kind("marks rot")
def _marks_rot(world: World, m: Misfortune) -> bool:
    return not world.is_rotten and _rot(world, m, ".marks")


# -- the cloud -----------------------------------------------------------------------------------------------------


@_kind("results")
def _results(world: World, m: Misfortune) -> bool:
    """A sink writes results for a device, and as often as not writes them again, since its query restarted."""
    device = _device(world, m)
    sent = world.results.setdefault(device.name, [])
    rows = [(len(sent) + number, f"key-{(len(sent) + number) % 3}") for number in range(m.count)]
    world.sink_epoch += 1
    mark = SinkMark("program", "query", 1, world.sink_epoch, f"range-{world.sink_epoch}")
    results = [
        Result(
            to_device(device.name),
            RESULTS,
            bytes.fromhex(RESULT.fingerprint),
            "none",
            codec("none").encode(RESULT, [row]),
            key=row[1].encode(),
        )
        for row in rows
    ]
    for _ in range(1 + m.at_us % 2):
        world.shared.downlink.append(mark, results, keep=Keep.ALL, now_us=world.clock.now_us)
    sent.extend(rows)
    return True


@_kind("reader confirms")
def _confirms(world: World, m: Misfortune) -> bool:
    try:
        world.consumer.confirm()
    except (CatchmentError, OSError):
        return False
    return world.consumer.entries > 0


@_kind("reader falls behind")
def _falls_behind(world: World, m: Misfortune) -> bool:
    world.reader_pauses_until_us = world.clock.now_us + m.for_us
    world.lasts(world.clock.now_us + m.for_us)
    return _confirms(world, m)


@_kind("reader restarts")
def _restarts(world: World, m: Misfortune) -> bool:
    world.consumer.restart()
    return True
