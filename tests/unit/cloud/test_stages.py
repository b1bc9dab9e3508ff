"""How a part is cut for Spark: what is in front, what decides a bucket, and what is refused."""

from __future__ import annotations

import pytest

import catchment as cm
from catchment.engines.spark.stages import cut
from catchment.errors import ProgramError
from catchment.plan.graph import Graph


class Fix(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    cell: cm.Field[str]
    speed_mps: cm.Field[float]


class Count(cm.Record):
    at: cm.Field[cm.Instant] = cm.event_time()
    n: cm.Field[int]


class Cell(cm.Record):
    cell: cm.Field[str | None] = cm.key()
    at: cm.Field[cm.Instant] = cm.event_time()
    n: cm.Field[int]


def cloud(make: object) -> Graph:
    program = cm.Program("walks")

    @program.stream(at=cm.DEVICE)
    def fixes(device: cm.DeviceSite) -> cm.Stream[Fix]:
        return device.sensor(Fix)

    @program.stream(at=cm.DEVICE)
    def others(device: cm.DeviceSite) -> cm.Stream[Fix]:
        return device.sensor(Fix, "others")

    program.stream(at=cm.CLOUD)(make)  # type: ignore[arg-type]
    plan = cm.build(program)
    return plan.graph(next(part for part in plan.parts if part.site == cm.CLOUD and len(part.vertices) > 1))


def test_the_owner_alone_decides_the_bucket() -> None:
    def counts(fixes: cm.Stream[Fix]) -> cm.Stream[cm.Record]:
        return fixes.where(Fix.speed_mps > 1).key_by(Fix.user, Fix.cell).state(n=cm.count())

    stages = cut(cloud(counts), {})
    (arrival,) = stages.frontier.values()
    assert stages.routes[arrival] == ("user",)
    assert {vertex.stream for vertex in stages.front.vertices} >= {"counts"}
    assert all(vertex.step.__class__.__name__ in ("Append", "Running") for vertex in stages.rest.vertices)


def test_a_union_before_the_frontier_keeps_its_promises_in_the_bucket() -> None:
    def counts(fixes: cm.Stream[Fix], others: cm.Stream[Fix]) -> cm.Stream[cm.Record]:
        return fixes.union(others).key_by(Fix.user).state(n=cm.count())

    stages = cut(cloud(counts), {})
    assert len(stages.entrances) == 2
    assert len(set(stages.entrances.values())) == 2
    assert [vertex.step.__class__.__name__ for vertex in stages.rest.vertices] == [
        "Append",
        "Append",
        "Union",
        "Running",
    ]


def test_two_keys_in_one_part_are_refused() -> None:
    def counts(fixes: cm.Stream[Fix]) -> cm.Stream[cm.Record]:
        per_user = fixes.key_by(Fix.user).state(cell=cm.last(Fix.cell))
        return per_user.key_by(per_user["cell"]).state(n=cm.count())

    with pytest.raises(ProgramError, match="C330") as refused:
        cut(cloud(counts), {})
    assert refused.value.at is not None

    def repaired(fixes: cm.Stream[Fix]) -> cm.Stream[cm.Record]:
        per_user = fixes.key_by(Fix.user).state(cell=cm.last(Fix.cell))
        return per_user.key_by(per_user["user"], per_user["cell"]).state(n=cm.count())

    assert cut(cloud(repaired), {}).rest.vertices


def test_a_key_that_is_computed_anew_under_its_old_name_is_refused() -> None:
    def counts(fixes: cm.Stream[Fix]) -> cm.Stream[cm.Record]:
        per_cell = fixes.key_by(Fix.cell).state(n=cm.count(), user=cm.last(Fix.user))
        renamed = per_cell.select(Cell, cell=per_cell["user"], n=per_cell["n"])
        return renamed.key_by(Cell.cell).state(n=cm.count())

    with pytest.raises(ProgramError, match="C331") as refused:
        cut(cloud(counts), {})
    assert refused.value.at is not None

    def kept(fixes: cm.Stream[Fix]) -> cm.Stream[cm.Record]:
        per_cell = fixes.key_by(Fix.cell).state(n=cm.count(), user=cm.last(Fix.user))
        return per_cell.select(Cell, n=per_cell["n"]).key_by(Cell.cell).state(n=cm.count())

    assert cut(cloud(kept), {}).rest.vertices


def test_two_keys_side_by_side_have_an_arrival_each() -> None:
    def both(fixes: cm.Stream[Fix]) -> cm.Stream[Count]:
        per_user = fixes.key_by(Fix.user).state(n=cm.count()).select(Count, n=cm.col("n"))
        per_cell = fixes.key_by(Fix.cell).state(n=cm.count()).select(Count, n=cm.col("n"))
        return per_user.union(per_cell)

    stages = cut(cloud(both), {})
    assert sorted(filter(None, stages.routes.values())) == [("cell",), ("user",)]


def test_an_output_of_the_front_comes_out_of_the_rest() -> None:
    def fast(fixes: cm.Stream[Fix]) -> cm.Stream[Fix]:
        return fixes.where(Fix.speed_mps > 1)

    stages = cut(cloud(fast), {"fast": ("fast/where", 0)})
    assert stages.outputs == {"fast": ("fast/where:0", 0)}
    assert stages.routes == {"fast/where:0": None}
    assert [vertex.id for vertex in stages.rest.vertices] == ["fast/where:0"]
