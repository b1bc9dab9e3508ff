"""The demo's certificate: KEPT for a run that lost nothing, and BROKEN, with the example, for each way to lose."""

from __future__ import annotations

import random
from typing import Any

import pytest

import catchment as cm
from catchment.demo.certificate import Ideal, compared
from catchment.gateway.log import Entry, Kind
from catchment.gateway.log.entry import Online
from catchment.plan.build import build
from catchment.plan.physical import Plan
from catchment.program.reliability import IN_STREAM_ORDER, LOSSLESS
from catchment.reliability import Report, verify
from catchment.sync.codecs import codec
from tests.unit.gateway.page_kit import program

PLAN = program()
START = "phone · walks/steps · start 1/0000"
Rows = list[tuple[Any, ...]]


def upload(first: int, count: int, device: str = "phone", user: str = "ada") -> Entry:
    schema = PLAN.schemas[PLAN.sync("steps").schema]
    rows = [("", 1_000_000 * n, 46.0, 14.5, "walk") for n in range(first, first + count)]
    return Entry(
        kind=Kind.DATA,
        device=device,
        user=user,
        stream="walks/steps",
        schema=schema.fingerprint,
        codec="delta/deflate",
        epoch_counter=1,
        first=first,
        count=count,
        upto=first + count,
        received_us=5_000_000,
        payload=codec("delta/deflate").encode(schema, rows),
    )


def due(numbers: range) -> Rows:
    return [("ada", 1_000_000 * n, 46.0, 14.5, "walk", 1.5) for n in numbers]


def report(entries: list[Entry], held: Rows, numbered: int, before: int) -> Report:
    ideal = Ideal(PLAN)
    for entry in entries:
        ideal.take(entry)
    streams = list(compared(ideal, {"sums": {"ada": before}}, {"sums": {"ada": held}}, {START: numbered}))
    return verify({name: ideal for name, ideal, _ in streams}, {name: real for name, _, real in streams})


def test_what_arrived_once_and_in_order_is_kept() -> None:
    found = report([upload(0, 3), upload(3, 2)], due(range(5)), 5, 5)
    assert found.holds(LOSSLESS & IN_STREAM_ORDER)
    assert {stream.stream for stream in found.streams} == {START, "sums → ada"}


def test_what_was_logged_since_may_be_held_already_or_not_yet() -> None:
    for held in range(3, 6):
        assert report([upload(0, 3), upload(3, 2)], due(range(held)), 3, 3).holds(LOSSLESS & IN_STREAM_ORDER)


@pytest.mark.parametrize(
    ("held", "numbered", "fault"),
    [
        (due(range(4)), 5, "missing"),
        ([*due(range(4)), due(range(9, 10))[0]], 5, "incorrect"),
        ([*due(range(5)), due(range(5))[0]], 5, "incorrect"),
        ([*due(range(3)), *due(range(4, 5)), *due(range(3, 4))], 5, "incorrect"),
        (due(range(5)), 6, "missing"),
    ],
    ids=[
        "a result is lost",
        "a result is another",
        "a result came twice",
        "results changed places",
        "an upload is lost",
    ],
)
def test_whatever_was_lost_is_found(held: Rows, numbered: int, fault: str) -> None:
    found = report([upload(0, 3), upload(3, 2)], held, numbered, 5)
    assert not found.holds(LOSSLESS & IN_STREAM_ORDER)
    assert getattr(found.measured, fault) > 0


def test_an_upload_that_is_logged_twice_is_found() -> None:
    found = report([upload(0, 3), upload(0, 3)], due(range(3)), 3, 3)
    assert found.stream(START).measured.duplicates > 0
    assert not found.holds(LOSSLESS & IN_STREAM_ORDER)


class Going(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    mode: cm.Field[str]


class Gone(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    modes: cm.Field[int]
    steps: cm.Field[int]


class Used(cm.Record):
    mode: cm.Field[str] = cm.key()
    at: cm.Field[cm.Instant] = cm.event_time()
    steps: cm.Field[int]


def ways(*, of_everybody: bool = False) -> Plan:
    """Ways and minutes of each user; beside them what is of no user, which is delivered to one where that is wanted."""
    walks = cm.Program("walks")

    @walks.stream(at=cm.DEVICE)
    def goings(device: cm.DeviceSite) -> cm.Stream[Going]:
        return device.sensor(Going, "gps")

    @walks.stream(at=cm.CLOUD)
    def trips(goings: cm.Stream[Going]) -> cm.Stream[Gone]:
        apart = cm.session(cm.seconds(20), idle=cm.seconds(40))
        return goings.key_by(Going.user).window(apart).agg(Gone, modes=cm.count_distinct(Going.mode), steps=cm.count())

    @walks.stream(at=cm.CLOUD)
    def minutes(goings: cm.Stream[Going]) -> cm.Stream[Gone]:
        each = cm.tumble(cm.minutes(1), idle=cm.seconds(40))
        return goings.key_by(Going.user).window(each).agg(Gone, modes=cm.count_distinct(Going.mode), steps=cm.count())

    @walks.stream(at=cm.CLOUD)
    def uses(goings: cm.Stream[Going]) -> cm.Stream[Used]:
        return goings.key_by(Going.mode).window(cm.tumble(cm.minutes(1))).agg(Used, steps=cm.count())

    walks.deliver(trips, by=Gone.user, keep="all")
    walks.deliver(minutes, by=Gone.user, keep="all")
    if of_everybody:
        walks.deliver(uses, by=Used.mode, keep="all")
    return build(walks)


def going(plan: Plan, seed: int) -> list[Entry]:
    """Uploads of three users with two devices each, promises, absences and ticks."""
    chance = random.Random(seed)
    schema = plan.schemas[plan.sync("goings").schema]
    clocks = {f"phone-{n}": 1_000_000 for n in range(6)}
    first = dict.fromkeys(clocks, 0)
    whose = {device: f"user-{int(device[-1]) % 3}" for device in clocks}
    log = [Entry(kind=Kind.JOINED, device=device, user=user, received_us=0) for device, user in whose.items()]
    now_us = 0
    for _ in range(200):
        now_us += chance.randrange(3_000_000)
        device = chance.choice(list(clocks))
        about: dict[str, Any] = {"device": device, "user": whose[device], "received_us": now_us}
        match chance.randrange(8):
            case 0:
                log.append(Entry(kind=Kind.TICK, received_us=now_us))
            case 1:
                online = chance.choice([Online.ONLINE, Online.OFFLINE])
                log.append(Entry(kind=Kind.PRESENCE, count=online, base_us=now_us, **about))
            case _:
                rows = []
                for _ in range(chance.randrange(1, 5)):
                    clocks[device] += chance.randrange(40_000_000)
                    rows.append(("", clocks[device], chance.choice(["walk", "bike"])))
                count, start = len(rows), first[device]
                first[device] += count
                numbers: dict[str, Any] = {"epoch_counter": 1, "first": start, "count": count, "upto": start + count}
                payload = codec("delta/deflate").encode(schema, rows)
                how: dict[str, Any] = {"stream": "walks/goings", "schema": schema.fingerprint, "codec": "delta/deflate"}
                numbers["promise_us"] = clocks[device]
                log.append(Entry(kind=Kind.DATA, payload=payload, **how, **numbers, **about))
    return log


@pytest.mark.parametrize("seed", range(4))
def test_the_reference_engine_judges_each_user_alone_as_all_together(seed: int) -> None:
    ideal = Ideal(ways())
    for entry in going(ideal.plan, seed):
        ideal.take(entry)
    due = ideal.judge(len(ideal.log))
    assert set(due) == {"user-0", "user-1", "user-2"}
    assert {user: {stream: ideal.given[stream].get(user, []) for stream in rows} for user, rows in due.items()} == due
    assert all(sum(len(rows[stream]) for rows in due.values()) > 10 for stream in ("trips", "minutes"))
    for upto in range(0, len(ideal.log), 50):
        for user, rows in ideal.judge(upto).items():
            assert all(due[user][stream][: len(begun)] == begun for stream, begun in rows.items())


def test_what_waits_for_everybody_is_not_judged_of_one_user_alone() -> None:
    ideal = Ideal(ways(of_everybody=True))
    for entry in going(ideal.plan, 1):
        ideal.take(entry)
    assert ideal.judge(len(ideal.log)) == {}
    assert ideal.given["uses"], "the edge engine judges it"
