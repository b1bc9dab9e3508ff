"""Misfortunes of the log's disk: full, failing in each of its calls, rotting."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from catchment.sim.clock import SECOND_US
from catchment.sim.misfortunes.striking import kind
from catchment.sim.script import Misfortune

if TYPE_CHECKING:
    from catchment.sim.world import World


@kind("log's disk is full")
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


@kind("log's writes fail")
def _writes_fail(world: World, m: Misfortune) -> bool:
    return _failing(world, m, "write_errno")


@kind("log's writes fail and cannot be taken back")
def _truncates_fail(world: World, m: Misfortune) -> bool:
    return _failing(world, m, "write_errno", "truncate_errno")


@kind("log's syncs fail")
def _syncs_fail(world: World, m: Misfortune) -> bool:
    return _failing(world, m, "sync_errno", *(("truncate_errno",) if m.who % 2 else ()))


@kind("log's files cannot be replaced")
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


@kind("log rots")
def _log_rots(world: World, m: Misfortune) -> bool:
    return not world.is_rotten and _rot(world, m, ".seg")


@kind("marks rot")
def _marks_rot(world: World, m: Misfortune) -> bool:
    return not world.is_rotten and _rot(world, m, ".marks")
