"""A program whose state lives on the device: a running sum there, and results of the cloud that it reacts to."""

import catchment as cm
from tests.thread.program import Reading, Total

carried = cm.Program("carried")


@carried.stream(at=cm.DEVICE)
def readings(device: cm.DeviceSite) -> cm.Stream[Reading]:
    """The sensor's good readings."""
    return device.sensor(Reading, "meter").where(Reading.amount >= 0)


@carried.stream(at=cm.DEVICE, sync=cm.Sync(batch=cm.Batch(records=20, within=cm.seconds(0.2))))
def sums(readings: cm.Stream[Reading]) -> cm.Stream[Total]:
    """Summed on the device."""
    return readings.key_by(Reading.user).state(Total, count=cm.count(), total=cm.sum(Reading.amount))


@carried.stream(at=cm.CLOUD)
def totals(sums: cm.Stream[Total]) -> cm.Stream[Total]:
    """In the cloud nothing is left to do."""
    return sums.where(Total.count > 0)


carried.deliver(totals, by=Total.user, keep="all")
