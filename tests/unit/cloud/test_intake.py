"""Uploads that travel to their buckets as they came give what they give when they are decoded where the log is read."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

import catchment as cm
from catchment.cloud.intake import Intake
from catchment.cloud.leaving import outputs_of
from catchment.engines.spark.buckets import Running
from catchment.engines.spark.events import Arrived
from catchment.engines.spark.front import Front
from catchment.engines.spark.results import Results
from catchment.engines.spark.stages import Stages, cut
from catchment.gateway.log.entry import Entry, Kind, forgotten, joined, presence, tick
from catchment.gateway.log.files import layout
from catchment.gateway.log.files.arrow import read_arrow
from catchment.gateway.log.files.disk import LocalDisk
from catchment.gateway.log.files.partition import Limits, Partition
from catchment.gateway.log.files.reader import open_log
from catchment.plan.physical import Part, Plan
from catchment.program.types import FLOAT, STR, Column, ListType, RecordType, Schema
from catchment.sync.codecs.codec import codec
from tests.unit.spark.bucketed import Memory

BUCKETS = 4
SECOND = 1_000_000


class Fix(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    speed: cm.Field[int]


class Beat(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    rate: cm.Field[int]


def per_user() -> cm.Program:
    program = cm.Program("walks")

    @program.stream(at=cm.DEVICE)
    def fixes(device: cm.DeviceSite) -> cm.Stream[Fix]:
        return device.sensor(Fix)

    @program.stream(at=cm.DEVICE)
    def beats(device: cm.DeviceSite) -> cm.Stream[Beat]:
        return device.sensor(Beat)

    @program.stream(at=cm.CLOUD)
    def speeds(fixes: cm.Stream[Fix]) -> cm.Stream[cm.Record]:
        window = cm.tumble(cm.seconds(10))
        return fixes.where(Fix.speed / Fix.speed > 0).key_by(Fix.user).window(window).agg(most=cm.max(Fix.speed))

    @program.stream(at=cm.CLOUD)
    def rates(beats: cm.Stream[Beat]) -> cm.Stream[cm.Record]:
        return beats.key_by(Beat.user).state(n=cm.count(), total=cm.sum(Beat.rate))

    program.deliver(speeds, by="user")
    program.deliver(rates, by="user")
    return program


def everyone() -> cm.Program:
    program = cm.Program("walks")

    @program.stream(at=cm.DEVICE)
    def fixes(device: cm.DeviceSite) -> cm.Stream[Fix]:
        return device.sensor(Fix)

    @program.stream(at=cm.CLOUD)
    def fast(fixes: cm.Stream[Fix]) -> cm.Stream[Fix]:
        return fixes.where(Fix.speed > 3)

    program.deliver(fast, by="user")
    return program


def entries(plan: Plan, part: Part, seed: int) -> list[Entry]:
    """Uploads of four devices of three users, one of them nobody's, and what else a log holds; some of it is bad."""
    chance = random.Random(seed)
    now = 0
    first: dict[tuple[str, str], int] = defaultdict(int)
    owners = {"a": "ada", "b": "ada", "c": "cyd", "d": ""}
    found = [joined(device=device, user=user, now=0) for device, user in owners.items()]
    for _ in range(chance.randrange(20, 60)):
        now += chance.randrange(3 * SECOND)
        device = chance.choice("abcd")
        user = owners[device]
        kind = chance.random()
        if kind < 0.1:
            found.append(tick(now=now, reached={}))
        elif kind < 0.2:
            found.append(presence(device=device, user=user, online=chance.random() < 0.5, since=now - SECOND, now=now))
        elif kind < 0.23:
            found.append(forgotten(device=device, user=user, all_of_user=False, now=now))
        else:
            sync = plan.sync(chance.choice(part.inputs))
            schema = plan.schemas[sync.schema]
            said = user if chance.random() < 0.9 else "mallory"
            count = chance.randrange(5)
            rows = [(said, now + n, chance.randrange(6)) for n in range(count)]
            name = chance.choice(("delta", "msgpack"))
            payload = codec(name).encode(schema, rows) if count else b""
            promised = (now - 2 * SECOND) if chance.random() < 0.7 else -(1 << 63)
            found.append(
                Entry(
                    kind=Kind.DATA if count else Kind.PROMISE,
                    device=device,
                    user=user,
                    stream=f"{plan.program}/{sync.name}" if chance.random() < 0.9 else "another/stream",
                    schema=schema.fingerprint if chance.random() < 0.95 else "00" * 8,
                    codec=name,
                    first=first[device, sync.name],
                    count=count,
                    shift_us=chance.choice((0, 7)),
                    base_us=now,
                    promise_us=promised,
                    received_us=now,
                    payload=payload if chance.random() < 0.95 else b"\xff" + payload,
                )
            )
            first[device, sync.name] += count
    return found


def run(root: Path, plan: Plan, part: Part, stages: Stages, seed: int) -> tuple[dict[str, list[Any]], int]:
    """What each output gives, by user in order, in batches cut at random; and how many elements were shared decoded."""
    chance = random.Random(seed)
    intake = Intake(plan, part)
    front = Front(stages, BUCKETS, intake.entrances)

    def opens(arrived: Arrived) -> Arrived:
        return front.entered(intake.open(Arrived(arrived.count, uploads=arrived.uploads)))

    log = open_log(str(root))
    stores = [Memory() for _ in range(BUCKETS)]
    begin, end = log.start(0), log.end(0)
    given: dict[str, list[Any]] = defaultdict(list)
    decoded = 0
    while begin < end:
        upto = log.boundary(0, begin, bytes_max=chance.randrange(1, 4000), end=end)
        packets: dict[int, list[bytes]] = defaultdict(list)
        for batch in read_arrow(log, 0, begin, upto, batch_bytes=600):
            arrived = intake.read(batch)
            for bucket, packet in front.spread(arrived if front.is_undecoded else intake.open(arrived)):
                packets[bucket].append(packet)
        for bucket, brought in packets.items():
            whole = Arrived.joined([Arrived.unpack(packet) for packet in brought])
            decoded += sum(len(rows) for rows in whole.rows.values())
            running = Running(stages, keys_of_a_shard=2, opens=opens)
            for output, _, count, packet in running.take(whole, {"0": upto}, stores[bucket])[1]:
                given[output] += Results([packet], count)
        begin = upto
    return given, decoded


def by_owner(given: dict[str, list[Any]]) -> dict[str, dict[Any, list[Any]]]:
    """Of each output, the results by whom they are of, in order: between buckets there is none."""
    found: dict[str, dict[Any, list[Any]]] = {}
    for output, results in given.items():
        into = found[output] = defaultdict(list)
        for result in results:
            into[result[2] if output != "quarantine" else ""].append(result)
    if "quarantine" in found:
        found["quarantine"][""].sort(key=repr)
    return found


@pytest.mark.parametrize("make", [per_user, everyone])
@pytest.mark.parametrize("seed", range(12))
def test_undecoded_uploads_give_the_same(make: Any, seed: int, tmp_path: Path) -> None:
    plan = cm.build(make())
    part = next(part for part in plan.parts if part.site == cm.CLOUD)
    disk = LocalDisk(tmp_path)
    layout.create(disk, partitions=1)
    writer = Partition(disk, 0, holder="w", address="", now_us=0, salt=lambda: 7, limits=Limits(reserve_bytes=0))
    for entry in entries(plan, part, seed):
        writer.append([entry], now_us=0)
    writer.close()
    stages = cut(plan.graph(part), outputs_of(plan, part))
    assert stages.ways is not None
    whole, decoded = run(tmp_path, plan, part, stages, seed)
    assert not decoded, "nothing was decoded where the log is read"
    parted, decoded = run(tmp_path, plan, part, replace(stages, ways=None), seed)
    assert decoded
    assert by_owner(whole) == by_owner(parted)
    assert {"quarantine"} < set(whole), "something was refused, and something came out"


def test_whether_an_upload_is_refused_does_not_hang_on_those_beside_it(tmp_path: Path) -> None:
    """Devices of the program before send a field more, in which nobody looks: there it may be broken, elsewhere not."""
    plan = cm.build(everyone())
    part = next(part for part in plan.parts if part.site == cm.CLOUD)
    schema = plan.schemas[plan.sync("fixes").schema]
    wide = Schema("Fix", (*schema.fields, Column("note", STR)))
    plan = msgspec.structs.replace(plan, schemas={**plan.schemas, wide.fingerprint: wide})
    sound = codec("delta").encode(wide, [("", 5, 7, "a word")])
    payloads = [sound, sound.replace(b"a word", b"a\xffword"), b"\xff" + sound]
    layout.create(LocalDisk(tmp_path), partitions=1)
    limits = Limits(reserve_bytes=0)
    writer = Partition(LocalDisk(tmp_path), 0, holder="w", address="", now_us=0, salt=lambda: 7, limits=limits)
    whose = Entry(kind=Kind.DATA, device="a", user="ada", stream="walks/fixes", codec="delta", count=1, received_us=0)
    for payload in payloads:
        writer.append([msgspec.structs.replace(whose, schema=wide.fingerprint, payload=payload)], now_us=0)
    writer.close()
    intake, log = Intake(plan, part), open_log(str(tmp_path))

    def opened(batch_bytes: int) -> tuple[int, list[bytes]]:
        """How many elements came of it, and which payloads were refused."""
        parts = [intake.open(intake.read(batch)) for batch in read_arrow(log, 0, 0, batch_bytes=batch_bytes)]
        rows = [rows for part in parts for rows in part.rows.values()]
        return sum(map(len, rows)), [what["payload"] for part in parts for *_, what in part.refused]

    assert opened(1) == opened(1 << 20) == (2, payloads[2:])


class Hotspot(cm.Record):
    dbm: cm.Field[float]
    band: cm.Field[str] = cm.field(default="2.4 GHz")


class Scan(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    nearest: cm.Field[Hotspot | None]
    heard: cm.Field[tuple[Hotspot, ...]]


def test_nested_records_of_the_program_before_are_read_with_the_defaults_of_new_fields(tmp_path: Path) -> None:
    program = cm.Program("walks")

    @program.stream(at=cm.DEVICE)
    def scans(device: cm.DeviceSite) -> cm.Stream[Scan]:
        return device.sensor(Scan)

    @program.stream(at=cm.CLOUD)
    def known(scans: cm.Stream[Scan]) -> cm.Stream[Scan]:
        return scans.where(Scan.user != "")

    program.deliver(known, by="user")
    plan = cm.build(program)
    part = next(part for part in plan.parts if part.site == cm.CLOUD)
    hotspot = RecordType(Schema("Hotspot", (Column("dbm", FLOAT),)))
    kinds = {"nearest": hotspot, "heard": ListType(hotspot)}
    now = plan.schemas[plan.sync("scans").schema]
    fields = [msgspec.structs.replace(field, type=kinds.get(field.name, field.type)) for field in now.fields]
    before = Schema("Scan", tuple(fields))
    plan = msgspec.structs.replace(plan, schemas={**plan.schemas, before.fingerprint: before})
    layout.create(LocalDisk(tmp_path), partitions=1)
    limits = Limits(reserve_bytes=0)
    writer = Partition(LocalDisk(tmp_path), 0, holder="w", address="", now_us=0, salt=lambda: 7, limits=limits)
    rows: dict[Schema, list[Any]] = {
        before: [("ada", 5, (-60.0,), ((-60.0,), (-70.0,))), ("ada", 6, None, ())],
        now: [("ada", 7, (-50.0, "5 GHz"), ((-50.0, "5 GHz"),))],
    }
    for schema, sent in rows.items():
        payload = codec("delta").encode(schema, sent)
        whose = Entry(kind=Kind.DATA, device="a", user="ada", stream="walks/scans", codec="delta", received_us=0)
        entry = msgspec.structs.replace(whose, schema=schema.fingerprint, payload=payload, count=len(sent))
        writer.append([entry], now_us=0)
    writer.close()
    intake = Intake(plan, part)
    (batch,) = read_arrow(open_log(str(tmp_path)), 0, 0, batch_bytes=1 << 20)
    opened = intake.open(intake.read(batch))
    assert opened.refused == []
    (found,) = opened.rows.values()
    assert found.objects() == [
        ("ada", 5, (-60.0, "2.4 GHz"), ((-60.0, "2.4 GHz"), (-70.0, "2.4 GHz"))),
        ("ada", 6, None, ()),
        *rows[now],
    ]


def test_a_key_that_an_author_s_function_makes_is_not_known_before() -> None:
    program = cm.Program("walks")

    @program.stream(at=cm.DEVICE)
    def fixes(device: cm.DeviceSite) -> cm.Stream[Fix]:
        return device.sensor(Fix)

    @program.stream(at=cm.CLOUD)
    def counts(fixes: cm.Stream[Fix]) -> cm.Stream[cm.Record]:
        return fixes.map(turned).key_by(Fix.user).state(n=cm.count())

    @program.stream(at=cm.CLOUD)
    def by_speed(fixes: cm.Stream[Fix]) -> cm.Stream[cm.Record]:
        return fixes.key_by(Fix.speed).state(n=cm.count())

    program.deliver(counts, by="user")
    plan = cm.build(program)
    part = next(part for part in plan.parts if part.site == cm.CLOUD and part.inputs)
    assert cut(plan.graph(part), {}).ways is None


@cm.function(runs_on=(cm.CLOUD, cm.DEVICE))
def turned(fix: Fix) -> Fix:
    """The same of somebody else."""
    return Fix(user=fix.user[::-1], at=fix.at, speed=fix.speed)
