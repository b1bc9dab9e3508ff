"""What a changed program may keep of the state of the one before, and what it is told where it may not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import catchment as cm
from catchment.cloud.upgrade import Forms, Upgrade, upgrade
from catchment.errors import ProgramError
from catchment.plan.physical import Plan


class Fix(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    speed_mps: cm.Field[float]


class Count(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    count: cm.Field[int]


class Speed(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    speed_mps: cm.Field[float | None]


def walks(*, faster_than: float = 1.0, slowest: bool = False, fastest: bool = False, sent: bool = True) -> Plan:
    """Devices send speeds if `sent`: whatever the cloud does not use stays there."""
    program = cm.Program("walks")

    @program.stream(at=cm.DEVICE)
    def fixes(device: cm.DeviceSite) -> cm.Stream[Fix]:
        return device.sensor(Fix)

    @program.stream(at=cm.CLOUD)
    def fast(fixes: cm.Stream[Fix]) -> cm.Stream[Fix]:
        return fixes.where(Fix.speed_mps > faster_than)

    @program.stream(at=cm.CLOUD)
    def counts(fast: cm.Stream[Fix]) -> cm.Stream[Count]:
        return fast.key_by(Fix.user).state(Count, count=cm.count())

    program.deliver(counts, by=Count.user)
    if sent:

        @program.stream(at=cm.CLOUD)
        def all_of_them(fast: cm.Stream[Fix]) -> cm.Stream[Fix]:
            return fast.where(Fix.speed_mps < 100.0)

        program.deliver(all_of_them, by=Fix.user)
    if slowest or fastest:

        @program.stream(at=cm.CLOUD)
        def speeds(fast: cm.Stream[Fix]) -> cm.Stream[Speed]:
            aggregate = cm.min if slowest else cm.max
            return fast.key_by(Fix.user).state(Speed, speed_mps=aggregate(Fix.speed_mps))

        program.deliver(speeds, by=Speed.user)
    return cm.build(program)


def upgraded(known: Plan, plan: Plan) -> Upgrade:
    return upgrade(known, upgrade(None, {}, known).forms, plan)


def test_the_same_program_goes_on_as_it_is() -> None:
    made = upgraded(walks(), walks())
    assert (made.changed, made.began, made.ended, made.renamed) == (False, [], [], {})
    assert made.plan == walks()


def test_stateless_steps_may_change_and_outputs_may_come_and_go() -> None:
    made = upgraded(walks(), walks(faster_than=2.0, slowest=True))
    assert (made.changed, made.began, made.ended) == (True, ["speeds/running"], [])
    made = upgraded(walks(slowest=True), walks())
    assert (made.began, made.ended) == ([], ["speeds/running"])


def test_what_devices_have_sent_must_still_be_enough() -> None:
    made = upgraded(walks(), walks(sent=False))
    assert set(walks().schemas) <= set(made.plan.schemas), "what was written before is still read"
    assert upgraded(made.plan, walks(sent=False)).plan == made.plan, "nor is it forgotten at the next start"
    with pytest.raises(ProgramError, match="E034") as refused:
        upgraded(walks(sent=False), walks())
    assert "speed_mps is new and has no default" in refused.value.why


def test_a_changed_step_with_state_is_refused_and_named_with_its_line() -> None:
    with pytest.raises(ProgramError, match="E034") as refused:
        upgraded(walks(slowest=True), walks(fastest=True))
    assert "speeds/running" in str(refused.value)
    assert "aggregates" in refused.value.why
    assert refused.value.at is not None
    assert refused.value.at.file.endswith("test_upgrade.py")


def test_state_that_would_be_read_in_another_form_is_refused() -> None:
    plan = walks()
    (part,) = upgrade(None, {}, plan).forms
    with pytest.raises(ProgramError, match="another form"):
        upgrade(plan, {part: Forms([])}, plan)


def heard(*, banded: bool) -> Plan:
    """Devices send what they hear, and the cloud keeps the last of it."""

    class Hotspot(cm.Record):
        dbm: cm.Field[float]

    hotspot: type[cm.Record] = Hotspot
    if banded:

        class Banded(Hotspot):
            band: cm.Field[str] = cm.field(default="2.4 GHz")

        Banded.schema = msgspec.structs.replace(Banded.schema, name="Hotspot")
        hotspot = Banded

    class Scan(cm.Record):
        user: cm.Field[str] = cm.key(stamp="user")
        at: cm.Field[cm.Instant] = cm.event_time()
        heard: cm.Field[hotspot]  # type: ignore[valid-type]

    program = cm.Program("walks")

    @program.stream(at=cm.DEVICE)
    def scans(device: cm.DeviceSite) -> cm.Stream[Any]:
        return device.sensor(Scan)

    @program.stream(at=cm.CLOUD)
    def changed(scans: cm.Stream[Any]) -> cm.Stream[Any]:
        return scans.key_by("user").changes("heard.dbm")

    program.deliver(changed, by="user")
    return cm.build(program)


def test_state_made_of_nested_records_of_fewer_fields_is_refused_in_words_that_tell() -> None:
    with pytest.raises(ProgramError, match="E034") as refused:
        upgraded(heard(banded=False), heard(banded=True))
    assert "heard of what goes into it is a Hotspot of other fields than before" in refused.value.why
