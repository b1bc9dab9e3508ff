"""Sender and receiver under drops, repeats, reorders, garbling and crashes of both ends, in virtual time."""

import pytest

from tests.unit.sync.sync_world import World


@pytest.mark.parametrize("seed", range(60))
def test_everything_arrives_once_and_in_order_whatever_fails(seed: int) -> None:
    world = World(seed)
    for _ in range(120):
        world.tick()
    world.heal()
    logged = [row for _, _, _, row in world.gateway.log if row is not None]
    assert logged == world.appended
    assert world.consumed == world.gateway.results
    assert len(logged) > 50
