"""A source that cannot be read is refused before anything starts, at its line; its repair is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import catchment as cm
from catchment.cloud.sources.kafka import client
from catchment.cloud.sources.session import with_sources
from catchment.cloud.supervisor import check_runs
from catchment.errors import ProgramError


class Sale(cm.Record):
    shop: cm.Field[str] = cm.key()
    at: cm.Field[cm.Instant] = cm.event_time()
    cents: cm.Field[int]


class Mine(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()


class Nested(cm.Record):
    at: cm.Field[cm.Instant] = cm.event_time()
    marks: cm.Field[tuple[int, ...]]


class Beat(cm.Record):
    at: cm.Field[cm.Instant] = cm.event_time()
    number: cm.Field[int]


KAFKA = {"servers": "broker:9092", "topic": "sales"}


def plan(record: type[cm.Record], connector: str, **options: Any) -> Any:
    program = cm.Program("p")

    @program.stream(at=cm.CLOUD)
    def read(cloud: cm.CloudSite) -> cm.Stream[Any]:
        return cloud.read(record, connector, **options)

    return cm.build(program)


@pytest.mark.parametrize(
    ("code", "record", "connector", "options"),
    [
        ("E036", Sale, "postgres", {"table": "sales"}),
        ("E053", Sale, "kafka", {"topic": "sales"}),
        ("E053", Sale, "kafka", KAFKA | {"topic": ""}),
        ("E053", Sale, "kafka", KAFKA | {"format": "avro"}),
        ("E053", Sale, "kafka", KAFKA | {"start": "yesterday"}),
        ("E053", Sale, "kafka", KAFKA | {"key": "nowhere"}),
        ("E053", Sale, "kafka", KAFKA | {"partition": "shop"}),
        ("E053", Sale, "kafka", KAFKA | {"messages_per_batch": 0}),
        ("E054", Mine, "kafka", KAFKA),
        ("E053", Sale, "files", {}),
        ("E053", Sale, "files", {"path": "arrived/", "topic": "sales"}),
        ("E053", Sale, "files", {"path": "arrived/", "format": "xml"}),
        ("E053", Sale, "files", {"path": "arrived/", "late": -1}),
        ("E053", Beat, "rate", {"rows_per_second": 0}),
        ("E054", Mine, "files", {"path": "arrived/"}),
        ("E055", Nested, "files", {"path": "arrived/"}),
        ("E055", Sale, "rate", {}),
    ],
)
def test_it_is_refused(code: str, record: type[cm.Record], connector: str, options: dict[str, Any]) -> None:
    with pytest.raises(ProgramError, match=code) as refused:
        check_runs(plan(record, connector, **options))
    assert refused.value.at is not None
    assert refused.value.at.file.endswith("test_source_checks.py")


def test_its_repair_is_not() -> None:
    check_runs(plan(Sale, "files", path="arrived/", format="parquet", late=cm.minutes(1)))
    check_runs(plan(Beat, "rate", rows_per_second=5))
    check_runs(
        plan(Nested, "kafka", **KAFKA, format="msgpack", timestamp="at", start="latest", client="client.properties")
    )


def test_client_properties_are_read_before_anything_starts(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    read = plan(Sale, "kafka", **KAFKA, client=str(path))
    with pytest.raises(ProgramError, match="E206") as refused:
        with_sources(read, {})
    assert refused.value.at is not None
    path.write_text('# who we are\nsecurity.protocol=SASL_SSL\n\nsasl.jaas.config = a b="c";\n')
    (part,) = read.at(cm.CLOUD)
    properties = client(part.vertices[0])
    assert properties == {"security.protocol": "SASL_SSL", "sasl.jaas.config": 'a b="c";'}


def test_a_plan_that_reads_no_kafka_needs_no_jars() -> None:
    assert with_sources(plan(Beat, "rate"), {"spark.cores.max": "2"}) == {"spark.cores.max": "2"}
