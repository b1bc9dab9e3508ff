"""Where people stayed: counted for each user, kept as tables of two kinds, and in a window that stays open for long."""

import catchment as cm


class Stay(cm.Record):
    """Somebody was somewhere."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    place: cm.Field[str]


class Count(cm.Record):
    """How often, and at how many places."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    stays: cm.Field[int]
    places: cm.Field[int]


stays = cm.Program("stays")


@stays.stream(at=cm.DEVICE, sync=cm.Sync(batch=cm.Batch(records=20, within=cm.seconds(0.2))))
def seen(device: cm.DeviceSite) -> cm.Stream[Stay]:
    """What the device says."""
    return device.sensor(Stay, "places")


@stays.stream(at=cm.CLOUD)
def counts(seen: cm.Stream[Stay]) -> cm.Stream[Count]:
    """After each stay; what is counted as one place is remembered by its name."""
    return seen.key_by(Stay.user).state(Count, stays=cm.count(), places=cm.count_distinct(Stay.place))


@stays.stream(at=cm.CLOUD)
def years(seen: cm.Stream[Stay]) -> cm.Stream[Count]:
    """A window that nobody sees the end of."""
    year = cm.tumble(cm.days(365))
    return seen.key_by(Stay.user).window(year).agg(Count, stays=cm.count(), places=cm.count_distinct(Stay.place))


stays.deliver(counts, by=Count.user, keep="all")
stays.deliver(years, by=Count.user)
stays.sink(counts, "parquet", path="kept", every=cm.seconds(0.5))
stays.sink(counts, "postgres", url="$STAYS_DATABASE", table="stay")
