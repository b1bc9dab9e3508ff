"""A source that cannot be read is refused before anything starts, at its line; its repair is not."""

from __future__ import annotations

from typing import Any

import pytest

import catchment as cm
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


def plan(record: type[cm.Record], connector: str, **options: Any) -> Any:
    program = cm.Program("p")

    @program.stream(at=cm.CLOUD)
    def read(cloud: cm.CloudSite) -> cm.Stream[Any]:
        return cloud.read(record, connector, **options)

    return cm.build(program)


@pytest.mark.parametrize(
    ("code", "record", "connector", "options"),
    [
        ("E036", Sale, "kafka", {"topic": "sales"}),
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
