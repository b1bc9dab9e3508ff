"""The thread: readings of a device, the good ones, summed per user in the cloud, and the sum back on the device."""

import catchment as cm


class Reading(cm.Record):
    """What the sensor says."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    amount: cm.Field[int]


class Total(cm.Record):
    """The sum of a user's good readings up to a moment."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    count: cm.Field[int]
    total: cm.Field[int | None]


thread = cm.Program("thread")


@thread.stream(at=cm.DEVICE, sync=cm.Sync(batch=cm.Batch(records=20, within=cm.seconds(0.2))))
def readings(device: cm.DeviceSite) -> cm.Stream[Reading]:
    """The sensor's readings that are not negative."""
    return device.sensor(Reading, "meter").where(Reading.amount >= 0)


@thread.stream(at=cm.CLOUD)
def totals(readings: cm.Stream[Reading]) -> cm.Stream[Total]:
    """Count and sum per user after each reading."""
    return readings.key_by(Reading.user).state(Total, count=cm.count(), total=cm.sum(Reading.amount))


thread.deliver(totals, by=Total.user)
