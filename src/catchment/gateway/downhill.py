"""What flows down to a device: results that it lacks, and the plan that it should run.

Results are sent in the order of their numbers and not again on a connection that is alive; a new connection begins
where the device says it holds them. Reads the stores; must not know sockets.
"""

from __future__ import annotations

from catchment.gateway.devices import RESULTS_IN_FLIGHT, Device, Link
from catchment.gateway.downlink import Downlink
from catchment.gateway.plans import Plans
from catchment.sync.frame import Data, PlanOffer
from catchment.sync.parts import Epoch, Gap, Mark

DOWNLINK_EPOCH = 1
"""The counter of every epoch of results: the store outlives gateways, and its nonce tells stores apart."""


def results(store: Downlink, device: Device, link: Link, *, bytes_max: int) -> list[Data]:
    """Results to send now, noted as sent on the link."""
    if not link.has_room:
        return []
    enrolled = device.enrolled
    frames: list[Data] = []
    found = store.pending(enrolled.device, enrolled.user, link.have, bytes_max=bytes_max)
    for one in found[: RESULTS_IN_FLIGHT - len(link.in_flight)]:
        epoch = Epoch(DOWNLINK_EPOCH, one.epoch_nonce)
        gaps = (Gap(0, one.skipped),) if one.skipped else ()
        first = one.first - one.skipped
        frames.append(Data(one.stream, epoch, first, one.count, one.schema, one.codec, gaps=gaps, payload=one.payload))
        link.have[(one.stream, one.epoch_nonce)] = one.upto
        if link.is_open:
            link.in_flight.append(Mark(one.stream, epoch, one.upto))
    return frames


def offers(plans: Plans, device: Device, link: Link, *, bytes_max: int) -> list[PlanOffer]:
    """The current plan, if the device on this connection neither has it nor was offered it.

    By HTTP a welcome names the plan and the device fetches it; on a connection it is handed over, once.
    """
    program = device.enrolled.program
    current = plans.current(program)
    if current is None or current == link.plan or not link.is_open:
        return []
    plan = plans.plan(program)
    link.plan = plan.fingerprint
    pieces = [plan.body[at : at + bytes_max] for at in range(0, len(plan.body), bytes_max)] or [b""]
    return [PlanOffer(plan.fingerprint, part, len(pieces), piece) for part, piece in enumerate(pieces)]
