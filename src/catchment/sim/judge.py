"""The judgement at the end of a world: what every device made, against what the log and the devices hold.

A stream that promised to lose nothing is held to it by the reliability verifier, the one that judges real runs; of one
that may give elements up, those given up and those reported are compared. What is excused is in the ledger, with its
reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catchment.program.reliability import IN_STREAM_ORDER, LOSSLESS
from catchment.program.types import Instant
from catchment.reliability import Element, verify
from catchment.sim.broken import Broken
from catchment.sim.consumer import Arrival
from catchment.sim.ledger import Account, Fate, Made, Name
from catchment.sim.network import Conditions

if TYPE_CHECKING:
    from catchment.sim.world import World

CLOCK_SLACK_US = 600_000
"""Beyond the bound that provenance gives: how far a crystal may run off before the gateway looks again."""


def judge(world: World) -> None:
    """Raises `Broken` where a promise was not kept."""
    ideal: dict[str, list[Element]] = {}
    real: dict[str, list[Element]] = {}
    for name, account in sorted(world.ledger.accounts.items()):
        arrived = world.consumer.arrived.get(name, [])
        by_serial = {arrival.serial: arrival for arrival in arrived}
        _known(name, account, by_serial)
        _losses(world, name, account, by_serial)
        _times(world, name, account.made, by_serial)
        stream = f"{name.device}/{name.stream}/{name.copy}"
        due = [made for made in account.made if made.serial in by_serial or _must_arrive(account, made)]
        ideal[stream] = [Element(made.serial, (made.reading_us,), Instant(made.serial)) for made in due]
        real[stream] = [Element(one.serial, (one.reading_us,), Instant(order)) for order, one in enumerate(arrived)]
    strangers = set(world.consumer.arrived) - set(world.ledger.accounts)
    if strangers:
        raise Broken("nothing arrives that nobody made", str(strangers))
    if ideal:
        report = verify(ideal, real)
        if not report.held.implies(LOSSLESS & IN_STREAM_ORDER):
            raise Broken("the verifier finds the run lossless and in order", f"it held {report.held}:\n{report}")
    _results(world)


def _must_arrive(account: Account, made: Made) -> bool:
    return made.fate is Fate.KEPT and not made.excused and not account.is_lossy


def _known(name: Name, account: Account, by_serial: dict[int, Arrival]) -> None:
    for serial, arrival in by_serial.items():
        if serial >= len(account.made):
            raise Broken("nothing arrives that nobody made", f"{name} has made {len(account.made)}, not {serial}")
        made = account.made[serial]
        if made.fate is Fate.REFUSED:
            raise Broken("what was refused does not arrive", f"{name} {serial} was refused, and is in the log")
        if arrival.reading_us != made.reading_us:
            raise Broken("an element arrives as it was made", f"{name} {serial}: {arrival} is not {made}")


def _losses(world: World, name: Name, account: Account, by_serial: dict[int, Arrival]) -> None:
    """Losses that devices reported are those that happened."""
    missing = _missing(name, account, by_serial)
    if missing > account.given_up + account.uncertain:
        # Fewer may be missing than made room: what was on its way when it was given up has arrived.
        raise Broken(
            "what was given up was counted",
            f"{name}: {missing} kept elements are missing, {account.given_up} made room, ± {account.uncertain}",
        )
    if world.ledger.went_back(name.device, name.stream):
        # What was reported is told per device: it is of all its copies, and of what a disk has forgotten since.
        return
    given_up = account.refused + account.given_up
    reported = world.consumer.lost(name.device, name.stream)
    gone = len(account.made) - len(by_serial)
    # What was on its way when it made room is counted, has arrived, and need not be told.
    if not gone - account.uncertain <= reported <= given_up + account.uncertain:
        raise Broken(
            "losses reported are losses that happened",
            f"{name}: {reported} reported, {given_up} given up, {gone} gone, give or take {account.uncertain}",
        )
    skipped = world.consumer.skipped(name.device, name.stream)
    if abs(skipped - (len(account.made) - len(by_serial))) > account.uncertain:
        raise Broken(
            "every number is an element or a gap",
            f"{name}: {skipped} numbers skipped, {len(by_serial)} of {len(account.made)} there, ± {account.uncertain}",
        )


def _missing(name: Name, account: Account, by_serial: dict[int, Arrival]) -> int:
    """How many elements were kept, are not excused, and are not there."""
    missing = sum(made.fate is Fate.KEPT and not made.excused and made.serial not in by_serial for made in account.made)
    for first, count, kept in account.batches:
        batch = account.made[first : first + count]
        there = sum(made.serial in by_serial for made in batch)
        if there > kept:
            raise Broken("what was refused does not arrive", f"{name}: {there} of {count} from {first}, {kept} kept")
        missing += 0 if batch[0].excused else kept - there
    return missing


def _times(world: World, name: Name, made: list[Made], by_serial: dict[int, Arrival]) -> None:
    """Event times are right within the bound that provenance gives, where the assumptions behind it hold."""
    if not (world.has_good_clocks and world.has_quick_links) or not _is_quick(world.script.usual):
        return
    for serial, arrival in by_serial.items():
        off_us = abs(arrival.at_us - made[serial].true_us)
        if not arrival.is_bridged and off_us > arrival.error_us + CLOCK_SLACK_US:
            raise Broken(
                "event times are as right as they say",
                f"{name} {serial} is {off_us / 1e6:.3f} s off and says {arrival.error_us / 1e6:.3f} s",
            )


def _is_quick(usual: Conditions) -> bool:
    """Whether messages are as quick as a gateway that places readings takes some of them to be."""
    return usual.delay_us[1] <= 500_000 and not usual.reorder


def _results(world: World) -> None:
    for device in world.devices:
        sent, seen = world.results.get(device.name, []), device.seen
        # What it had and acknowledged before its disk went back in time is gone; the rest still comes, in order.
        may_lack = world.results_excused.get(device.name, 0)
        if seen != [one for number, one in enumerate(sent) if number >= may_lack or one in seen]:
            raise Broken("results arrive once and in order", f"{device.place} was sent {sent} and has {seen}")
