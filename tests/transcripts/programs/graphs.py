"""Programs that one expression does not hold: feedback, delivery, timers, several sites."""

from __future__ import annotations

from typing import Any

import catchment as cm


class Task(cm.Record):
    """Something to be tried so many times."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    tries: cm.Field[int]


class Trip(cm.Record):
    """A trip of a user."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    carbon_g: cm.Field[float] = cm.field(step=0.1)


class Footprint(cm.Record):
    """What is delivered to a user."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    carbon_g: cm.Field[float | None]
    revision: cm.Field[int]


def _retry(name: str, *, for_ever: bool) -> cm.Program:
    program = cm.Program(name)
    again = program.loop(Task, "again")

    @program.stream(at=cm.CLOUD)
    def tasks(cloud: cm.CloudSite) -> cm.Stream[Task]:
        return cloud.source(Task)

    @program.stream(at=cm.CLOUD)
    def tried(tasks: cm.Stream[Task]) -> cm.Stream[Task]:
        return tasks.union(again)

    @program.stream(at=cm.CLOUD)
    def counted(tried: cm.Stream[Task]) -> Any:
        return tried.state(n=cm.count(), order="arrival")

    @program.stream(at=cm.CLOUD)
    def failed(tried: cm.Stream[Task]) -> cm.Stream[Task]:
        left = tried if for_ever else tried.where(Task.tries > 1)
        return left.select(Task, tries=Task.tries - 1)

    program.close_loop("again", failed)
    return program


retry = _retry("retry", for_ever=False)
retry_for_ever = _retry("retry_for_ever", for_ever=True)

footprints = cm.Program("footprints")


@footprints.stream(at=cm.DEVICE)
def trips(device: cm.DeviceSite) -> cm.Stream[Trip]:
    return device.sensor(Trip).where(Trip.carbon_g > 0)


@footprints.stream(at=cm.CLOUD)
def footprint(trips: cm.Stream[Trip]) -> cm.Stream[Footprint]:
    tens = cm.tumble(cm.seconds(10), keep=cm.minutes(1))
    return trips.key_by(Trip.user).window(tens).agg(Footprint, carbon_g=cm.sum(Trip.carbon_g))


footprints.deliver(footprint, to=cm.DEVICE, by=Footprint.user)

beats = cm.Program("beats")


@beats.stream(at=cm.DEVICE)
def beat(device: cm.DeviceSite) -> cm.Stream[cm.Beat]:
    return device.timer(cm.seconds(30))


@beats.stream(at=cm.DEVICE)
def minutes(beat: cm.Stream[cm.Beat]) -> Any:
    return beat.window(cm.tumble(cm.minutes(1))).agg(n=cm.count())
