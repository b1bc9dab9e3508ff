"""What the cloud does meanwhile: sinks write results, some twice; the reader confirms, falls behind, restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catchment.errors import CatchmentError
from catchment.gateway.downlink import Keep, Result, to_device
from catchment.gateway.downlink import Mark as SinkMark
from catchment.sim.device import RESULT, RESULTS
from catchment.sim.misfortunes.striking import device_of, kind
from catchment.sim.script import Misfortune
from catchment.sync.codecs import codec

if TYPE_CHECKING:
    from catchment.sim.world import World


@kind("results")
def _results(world: World, m: Misfortune) -> bool:
    """A sink writes results for a device, and as often as not writes them again, since its query restarted."""
    device = device_of(world, m)
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


@kind("reader confirms")
def _confirms(world: World, m: Misfortune) -> bool:
    try:
        world.consumer.confirm()
    except (CatchmentError, OSError):
        return False
    return world.consumer.entries > 0


@kind("reader falls behind")
def _falls_behind(world: World, m: Misfortune) -> bool:
    world.reader_pauses_until_us = world.clock.now_us + m.for_us
    world.lasts(world.clock.now_us + m.for_us)
    return _confirms(world, m)


@kind("reader restarts")
def _restarts(world: World, m: Misfortune) -> bool:
    world.consumer.restart()
    return True
