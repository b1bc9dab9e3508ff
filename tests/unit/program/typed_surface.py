"""What a type checker sees of a program: mypy and pyright read this file in `make check`, and it runs in a test.

`assert_type` says what each expression is. A line of `mistakes` with an ignore is one that both checkers must find, for
an ignore that is not needed is an error too.
"""
# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_type

import catchment as cm


class Fix(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    lat_deg: cm.Field[float] = cm.field(step=1e-6)
    lon_deg: cm.Field[float] = cm.field(step=1e-6)
    speed_mps: cm.Field[float | None] = cm.field(step=0.1, default=None)
    floor: cm.Field[int] = cm.field(default=0)


class Speed(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    kmh: cm.Field[float]


class Memory(cm.State):
    last_kmh: float | None = None


class Faster(cm.Process[Fix, Speed, Memory]):
    than_kmh: float

    def on_element(self, element: Fix, state: Memory, context: cm.Context) -> list[Speed]:
        assert_type(element.speed_mps, float | None)
        assert_type(state.last_kmh, float | None)
        assert_type(context.at, cm.Instant)
        kmh = (element.speed_mps or 0.0) * 3.6
        return [Speed(user=element.user, at=element.at, kmh=kmh)] if kmh > self.than_kmh else []


@cm.function
def speed(fix: Fix) -> Speed:
    return Speed(user=fix.user, at=fix.at, kmh=(fix.speed_mps or 0.0) * 3.6)


@cm.function
def twice(fix: Fix) -> Iterable[Fix]:
    return [fix, fix]


@cm.function
def told(fix: Fix) -> None:
    return None


@cm.function
def fastest(state: Speed, element: Speed) -> Speed:
    return max(state, element, key=lambda each: each.kmh)


# A field is an expression on the class and a value on an instance.
fix = Fix(user="ada", at=cm.Instant(5), lat_deg=46.0, lon_deg=11.0)
assert_type(fix.user, str)
assert_type(fix.speed_mps, float | None)
assert_type(Fix.user, cm.Expr[str])
assert_type(Fix.speed_mps, cm.Expr[float | None])
assert_type(Fix.floor + 1, cm.Expr[int])
assert_type(Fix.lat_deg * 2, cm.Expr[float])
assert_type(Fix.at - Fix.at, cm.Expr[cm.Duration])
assert_type(Fix.at + cm.minutes(1), cm.Expr[cm.Instant])
assert_type((Fix.floor > 0) & (Fix.user == "ada"), cm.Expr[bool])

program = cm.Program("typed")


@program.stream(at=cm.DEVICE, sync=cm.Sync(batch=cm.Batch(within=cm.seconds(5))))
def fixes(device: cm.DeviceSite) -> cm.Stream[Fix]:
    every = cm.adaptive(cm.seconds(5), slow_down=4, when=device.battery.low)
    read = device.sensor(Fix, every=every)
    assert_type(read, cm.Stream[Fix])
    return read.where(Fix.floor == 0).moved(by=cm.metres(10))


@program.stream(at=cm.CLOUD)
def speeds(fixes: cm.Stream[Fix]) -> cm.Stream[Speed]:
    # What keeps elements as they are keeps their key, also for the checker.
    return fixes.key_by(Fix.user).where(Fix.speed_mps.or_else(0.0) > 1).process(Faster(than_kmh=5.0), ttl=cm.days(1))


@program.stream(at=cm.CLOUD)
def windows(speeds: cm.Stream[Speed]) -> cm.Stream[Speed]:
    cut = speeds.key_by(Speed.user).window(cm.hop(cm.hours(1), cm.minutes(5)))
    # What was not given a record fits the record that the function says.
    return cut.agg(kmh=cm.max(Speed.kmh))


@program.stream(at=cm.CLOUD)
def keyed(speeds: cm.Stream[Speed]) -> cm.KeyedStream[Speed]:
    return speeds.key_by(Speed.user)


assert_type(keyed, cm.KeyedStream[Speed])


@program.stream(at=cm.CLOUD)
def pairs(keyed: cm.KeyedStream[Speed], windows: cm.Stream[Speed]) -> cm.Stream[Speed]:
    return keyed.join(windows.key_by(Speed.user), Speed, within=(cm.minutes(1), cm.minutes(1)))


program.deliver(windows, to=cm.DEVICE, by=Speed.user)
program.sink(pairs, "parquet", path="pairs/")


def types(fixes: cm.Stream[Fix], speeds: cm.KeyedStream[Speed]) -> None:
    """What each step gives; called with streams of no program."""
    keyed = fixes.key_by(Fix.user)
    assert_type(keyed, cm.KeyedStream[Fix])
    assert_type(keyed.where(Fix.floor == 0), cm.KeyedStream[Fix])
    assert_type(keyed.changes(Fix.floor).subscribe(told), cm.KeyedStream[Fix])
    assert_type(keyed.process(Faster(than_kmh=5.0)), cm.Stream[Speed])
    assert_type(fixes.map(speed), cm.Stream[Speed])
    assert_type(fixes.select(Speed, kmh=Fix.floor * 1.0), cm.Stream[Speed])
    assert_type(fixes.select(user=Fix.user), cm.Stream[Any])
    assert_type(fixes.flat_map(twice), cm.Stream[Any])
    assert_type(fixes.union(fixes), cm.Stream[Fix])
    cut = speeds.window(cm.hop(cm.hours(1), cm.minutes(5)))
    assert_type(cut, cm.WindowedStream[Speed])
    assert_type(cut.agg(Speed, kmh=cm.max(Speed.kmh)), cm.Stream[Speed])
    assert_type(cut.agg(Speed, kmh=cm.max(Speed.kmh)).late, cm.Stream[Speed])
    assert_type(cut.top(3, by=Speed.kmh), cm.Stream[Any])
    assert_type(speeds.join(speeds, Speed, within=cm.tumble(cm.minutes(1))), cm.Stream[Speed])
    assert_type(speeds.join_latest(speeds, Speed, outer=True, kmh=Speed.kmh), cm.Stream[Speed])
    assert_type(speeds.zip(speeds, Speed), cm.Stream[Speed])
    assert_type(speeds.combine(speeds), cm.Stream[Any])
    assert_type(speeds.state(Speed, kmh=cm.max(Speed.kmh)), cm.Stream[Speed])
    start = Speed(user="", at=cm.Instant(0), kmh=0.0)
    assert_type(speeds.fold(fastest, start), cm.Stream[Speed])


def mistakes(fixes: cm.Stream[Fix], keyed: cm.KeyedStream[Fix]) -> None:
    """Never called: each line is one that both checkers refuse."""
    fixes.process(Faster(than_kmh=5.0))  # type: ignore[attr-defined]
    fixes.window(cm.tumble(60)).where(Fix.floor == 0)  # type: ignore[attr-defined]
    fixes.where(Fix.floor)  # type: ignore[arg-type]
    fixes.where(Fix.depth_m > 1)  # type: ignore[attr-defined]
    fixes.map(fastest)  # type: ignore[arg-type]
    fixes.union(fixes.map(speed))  # type: ignore[arg-type]
    fixes.window(60)  # type: ignore[arg-type]
    fixes.sync("fast")  # type: ignore[arg-type]
    keyed.process(Faster())  # type: ignore[call-arg]
    keyed.process(Faster(than_kmh="fast"))  # type: ignore[arg-type]
    keyed.join(fixes, within=cm.tumble(60))  # type: ignore[call-overload]
    Fix(user="ada")  # type: ignore[call-arg]
    Fix(user="ada", at=cm.Instant(1), lat_deg="north", lon_deg=1.0)  # type: ignore[arg-type]
    Fix.floor + "one"  # type: ignore[operator]
    program.stream(at="device")  # type: ignore[arg-type]
