"""Misfortunes of the network: devices away for seconds or weeks, bad links, gateways that nobody reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from catchment.sim.clock import DAY_US, MINUTE_US, SECOND_US
from catchment.sim.device import DeviceNode
from catchment.sim.misfortunes.striking import device_of, kind
from catchment.sim.network import Conditions
from catchment.sim.script import Misfortune

if TYPE_CHECKING:
    from catchment.sim.world import World


def _link(world: World, device: DeviceNode, conditions: Conditions | None) -> None:
    for gateway in world.gateways:
        world.network.set(device.place, gateway.address, conditions)


@kind("device offline")
def _offline(world: World, m: Misfortune) -> bool:
    device = device_of(world, m)
    _link(world, device, Conditions(cut=True))
    world.later(m.for_us, lambda: _link(world, device, None))
    return True


@kind("device offline for long")
def _offline_long(world: World, m: Misfortune) -> bool:
    """Hours to weeks. Sensors are read rarely meanwhile and gateways are suspended, or a world would take as long."""
    world.has_quick_links = False
    device = device_of(world, m)
    _link(world, device, Conditions(cut=True))
    world.set_pace(max(1, m.for_us // (40 * 4 * SECOND_US)))
    for gateway in world.gateways:
        gateway.sleep(max(SECOND_US, m.for_us - MINUTE_US))
    for other in world.devices:
        # The others sleep meanwhile, as this one may.
        asleep = other is not device or m.count == 0
        if asleep and other.process is not None and other.process.alive:
            other.process.stop(m.for_us - MINUTE_US)
    back_us = world.clock.now_us + m.for_us
    world.lasts(back_us + MINUTE_US)

    def back() -> None:
        _link(world, device, None)
        if world.lasting_us <= back_us + MINUTE_US:
            # Nobody else is away for longer.
            world.set_pace(1)

    world.later(m.for_us, back)
    if m.for_us > DAY_US:
        world.coverage.hit("misfortune", "device offline for days")
    return True


@kind("device's link is bad")
def _bad_link(world: World, m: Misfortune) -> bool:
    world.has_quick_links = False
    device = device_of(world, m)
    share = m.count / 10
    _link(
        world,
        device,
        Conditions(delay_us=(1_000, 4 * SECOND_US), loss=share, duplicate=share / 2, reorder=share, garble=share / 4),
    )
    world.later(m.for_us, lambda: _link(world, device, None))
    return True


@kind("gateways cut off")
def _cut_off(world: World, m: Misfortune) -> bool:
    usual = world.network.usual
    world.network.usual = msgspec.structs.replace(usual, cut=True)

    def back() -> None:
        world.network.usual = usual

    world.later(m.for_us, back)
    return True
