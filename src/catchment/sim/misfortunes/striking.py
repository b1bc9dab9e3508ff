"""How a misfortune strikes: kinds by name, each a function of its own, and whom it concerns.

What lasts is undone after `for_us`, or when the world is healed. A misfortune that finds nothing to strike (a device
that is down already) does nothing, and is not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from catchment.sim.device import DeviceNode
from catchment.sim.gateway import GatewayNode
from catchment.sim.script import Misfortune

if TYPE_CHECKING:
    from catchment.sim.world import World

Strike: TypeAlias = Callable[["World", Misfortune], bool]
_STRIKES: dict[str, Strike] = {}


def kind(name: str) -> Callable[[Strike], Strike]:
    """Under this name in scripts, that is what happens; it returns whether there was something to strike."""

    def note(strike: Strike) -> Strike:
        _STRIKES[name] = strike
        return strike

    return note


def kinds() -> frozenset[str]:
    """All that there are."""
    return frozenset(_STRIKES)


def strike(world: World, number: int, misfortune: Misfortune) -> None:
    """Have it happen. `number` counts those of the script."""
    if world.has_ended:
        return
    struck = _STRIKES[misfortune.kind](world, misfortune)
    world.said("fate", f"{number}: {misfortune.kind} ({misfortune.who}){'' if struck else ': nothing to strike'}")
    if struck:
        world.coverage.hit("misfortune", misfortune.kind)


def device_of(world: World, misfortune: Misfortune) -> DeviceNode:
    """Whom it concerns, of the devices."""
    return world.devices[misfortune.who % len(world.devices)]


def gateway_of(world: World, misfortune: Misfortune) -> GatewayNode:
    """Whom it concerns, of the gateways."""
    return world.gateways[misfortune.who % len(world.gateways)]
