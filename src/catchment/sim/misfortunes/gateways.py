"""Misfortunes of gateways and of the machine that they share: killed, held up, slow, without power, clocks set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catchment.sim.clock import HOUR_US, SECOND_US
from catchment.sim.misfortunes.striking import gateway_of, kind
from catchment.sim.script import Misfortune

if TYPE_CHECKING:
    from catchment.sim.world import World


@kind("gateway killed")
def _gateway_killed(world: World, m: Misfortune) -> bool:
    gateway = gateway_of(world, m)
    if not gateway.is_up:
        return False
    gateway.kill()
    world.later(m.for_us, gateway.start)
    return True


@kind("gateway killed at an action")
def _gateway_killed_at(world: World, m: Misfortune) -> bool:
    gateway = gateway_of(world, m)
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


@kind("gateway stops cleanly")
def _gateway_stops(world: World, m: Misfortune) -> bool:
    gateway = gateway_of(world, m)
    if not gateway.is_up:
        return False
    gateway.stop()
    world.later(m.for_us + SECOND_US, gateway.start)
    return True


@kind("gateway held")
def _gateway_held(world: World, m: Misfortune) -> bool:
    world.has_quick_links = False
    gateway = gateway_of(world, m)
    if gateway.process is None or not gateway.process.alive:
        return False
    gateway.process.stop(m.for_us)
    return True


@kind("gateway stands still at an action")
def _gateway_stalls(world: World, m: Misfortune) -> bool:
    world.has_quick_links = False
    gateway = gateway_of(world, m)
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


@kind("gateway's disk is slow")
def _gateway_slow(world: World, m: Misfortune) -> bool:
    world.has_quick_links = False
    gateway = gateway_of(world, m)
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


@kind("gateway's clock jumps")
def _gateway_clock(world: World, m: Misfortune) -> bool:
    gateway_of(world, m).wall.jump(m.count * HOUR_US)
    world.has_good_clocks = False
    return m.count != 0


@kind("machine loses power")
def _machine_powerless(world: World, m: Misfortune) -> bool:
    world.gateways_lose_power()
    for gateway in world.gateways:
        world.later(m.for_us, gateway.start)
    return True


@kind("machine loses power at an action")
def _machine_powerless_at(world: World, m: Misfortune) -> bool:
    gateway = gateway_of(world, m)
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
