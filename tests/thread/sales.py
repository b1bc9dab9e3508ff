"""Sales that arrive as messages of Kafka, kept as files with the place of each: a program that needs no device."""

import os

import catchment as cm


class Sale(cm.Record):
    """A sale: its shop is the message's key, its place what the broker gave it."""

    shop: cm.Field[str] = cm.key()
    at: cm.Field[cm.Instant] = cm.event_time()
    cents: cm.Field[int]
    note: cm.Field[str | None]
    partition: cm.Field[int]
    offset: cm.Field[int]
    sent: cm.Field[cm.Instant]


sales = cm.Program("sales")


@sales.stream(at=cm.CLOUD)
def sold(cloud: cm.CloudSite) -> cm.Stream[Sale]:
    """What Spark's own source for Kafka gives."""
    return cloud.read(
        Sale,
        "kafka",
        servers=os.environ["CATCHMENT_TEST_KAFKA"],
        topic="sales",
        format="json",
        key="shop",
        timestamp="sent",
        partition="partition",
        offset="offset",
        late=cm.minutes(2),
        messages_per_batch=100,
    )


@sales.stream(at=cm.CLOUD)
def turnover(sold: cm.Stream[Sale]) -> cm.Stream[cm.Record]:
    """What each shop took in ten seconds."""
    return sold.key_by(Sale.shop).window(cm.tumble(cm.seconds(10))).agg(cents=cm.sum(Sale.cents), n=cm.count())


sales.sink(sold, "parquet", path="kept", every=cm.seconds(0.2))
sales.sink(turnover, "parquet", path="turnover", every=cm.seconds(0.2))
