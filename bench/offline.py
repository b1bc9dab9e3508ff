"""Sonora's Figure 12: what a phone sent over time, with a disconnection of a minute, and with one of seven days.

A device's whole stack (agent, edge engine, outbox, sync streams) on virtual time: a GPS fix each second around the
disconnection of a minute and each five seconds around the one of seven days, in batches of five seconds and of a
minute. The link carries what the model of energy says of Sonora's phone, 0.1 s each way. While it is down no byte gets
through; what is shown is what has left the phone up to a moment, and how far the log is behind the sensor.

The bars: nothing is lost, repeated or reordered; the backlog of a week is gone in minutes once the phone has noticed
that the link is back, which takes no longer than it was away, and at most five minutes; and an element of the backlog
costs no more bytes than one that was sent at once.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import catchment as cm
from bench import harness
from bench.harness import Bar
from bench.phone import SECOND_US, Phone, following, track_file

MINUTE_S, DAY_S = 60, 86_400


class Absence(NamedTuple):
    """A disconnection, and what is around it, in seconds."""

    name: str
    every_s: int
    batch_s: int
    before_s: int
    away_s: int
    after_s: int

    @property
    def fixes(self) -> int:
        """How many there are at most."""
        return (self.before_s + self.away_s + self.after_s + 5 * MINUTE_S) // self.every_s + 2


class Moment(NamedTuple):
    """How things stand at a time."""

    at_s: float
    sent_bytes: int
    taken: int
    logged: int


class Told(NamedTuple):
    """What became of an absence."""

    moments: list[Moment]
    wrong: int
    """Fixes that are not in the log, or not once, or not in their place."""
    attempts: int
    """In vain, while the link was down."""
    noticed_s: float
    """From the link's return to the first word that got through."""
    caught_up_s: float
    """From then on, until the log held all that had waited."""
    waited: int
    backlog_bytes: float
    """For each element that had waited."""
    usual_bytes: float
    """For each element before."""

    @property
    def catch_up(self) -> float:
        """Elements per second."""
        return self.waited / max(self.caught_up_s, 1e-6)


def tell(absence: Absence, directory: Path) -> Told:
    """Live through it."""
    track = track_file(directory / f"{absence.away_s}.csv", absence.fixes)
    policy = cm.Sync(batch=cm.Batch(records=1000, within=cm.seconds(absence.batch_s)))
    phone = Phone(following(policy, every_s=absence.every_s), f"gps=replay:{track}")
    phone.start()
    moments: list[Moment] = []
    for for_s in _steps(absence.before_s, 12):
        moments.append(_after(phone, for_s))
    usual = (moments[-1].sent_bytes - moments[5].sent_bytes) / (moments[-1].logged - moments[5].logged)
    phone.gateway.away = True
    attempts = phone.requests
    for for_s in _steps(absence.away_s, 24):
        moments.append(_after(phone, for_s))
    attempts = phone.requests - attempts
    phone.gateway.away = False
    back = moments[-1]
    waiting = moments[-1]
    step_s = 0.5
    while waiting.sent_bytes == back.sent_bytes:
        waiting = _after(phone, step_s)
    caught = waiting
    while caught.logged < waiting.taken:
        caught = _after(phone, step_s)
    moments += [waiting, caught]
    for for_s in _steps(absence.after_s, 6):
        moments.append(_after(phone, for_s))
    positions = [tuple(map(float, line.split(","))) for line in track.read_text("ascii").splitlines()[1:]]
    logged = phone.positions()
    wrong = sum(one != other for one, other in zip(logged, positions, strict=False))
    wrong += max(0, back.taken - len(logged)) + max(0, len(logged) - moments[-1].taken)
    return Told(
        moments,
        wrong,
        attempts,
        waiting.at_s - back.at_s,
        caught.at_s - waiting.at_s,
        waiting.taken - back.logged,
        (caught.sent_bytes - back.sent_bytes) / max(caught.logged - back.logged, 1),
        usual,
    )


def _steps(seconds: int, count: int) -> Iterator[float]:
    return iter([seconds / count] * count)


def _after(phone: Phone, for_s: float) -> Moment:
    phone.run(round(for_s * SECOND_US))
    assert phone.agent is not None
    return Moment(phone.elapsed_s, phone.carried_bytes, phone.agent.taken, phone.logged("fixes"))


def figure(told: Told, absence: Absence) -> str:
    """The figure as a table with a bar for each moment: KB sent so far."""
    most = told.moments[-1].sent_bytes
    rows = [
        [
            _time(one.at_s),
            f"{one.sent_bytes / 1000:.1f}",
            str(one.taken - one.logged),
            "#" * round(40 * one.sent_bytes / most),
        ]
        for one in told.moments
    ]
    return harness.table(["at", "KB sent", "elements waiting", f"link down from {_time(absence.before_s)} on"], rows)


def _time(seconds: float) -> str:
    days, rest = divmod(round(seconds), DAY_S)
    return (f"{days} d " if days else "") + f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"


def main() -> int:
    quick = harness.arguments(__doc__).parse_args().quick
    days = 1 if quick else 7
    absences = [
        Absence("1 minute", every_s=1, batch_s=5, before_s=2 * MINUTE_S, away_s=MINUTE_S, after_s=2 * MINUTE_S),
        Absence(
            f"{days} days" if days > 1 else "1 day",
            every_s=5,
            batch_s=MINUTE_S,
            before_s=60 * MINUTE_S,
            away_s=days * DAY_S,
            after_s=60 * MINUTE_S,
        ),
    ]
    with tempfile.TemporaryDirectory() as directory:
        found = {absence.name: tell(absence, Path(directory)) for absence in absences}
    for absence in absences:
        print(f"away for {absence.name}, a fix each {absence.every_s} s\n\n{figure(found[absence.name], absence)}\n")
    rows = [
        [
            name,
            str(one.waited),
            str(one.attempts),
            f"{one.noticed_s:.1f}",
            f"{one.caught_up_s:.1f}",
            f"{one.catch_up:,.0f}",
            f"{one.backlog_bytes:.1f}",
            f"{one.usual_bytes:.1f}",
        ]
        for name, one in found.items()
    ]
    headings = ["away for", "had waited", "attempts in vain", "noticed after s", "caught up in s"]
    headings += ["elements/s", "bytes each", "bytes each before"]
    print(harness.table(headings, rows) + "\n")
    short, long = found.values()
    fed_per_s = 1 / absences[1].every_s
    return harness.conclude(
        "offline",
        quick=quick,
        ratios={
            f"catch-up over the sensor's rate, {name}": one.catch_up * absence.every_s
            for absence, (name, one) in zip(absences, found.items(), strict=True)
        },
        bars=[
            Bar("elements lost, repeated or out of place", float(short.wrong + long.wrong), at_most=0),
            Bar("times as fast as it gathered, after the long absence", long.catch_up / fed_per_s, at_least=1000),
            Bar(
                "bytes of an element that waited over one that did not",
                long.backlog_bytes / long.usual_bytes,
                at_most=1,
            ),
            Bar("s until the link's return was noticed, after a minute", short.noticed_s, at_most=MINUTE_S),
            Bar("s until the link's return was noticed, after the long absence", long.noticed_s, at_most=5 * MINUTE_S),
        ],
        figures={name: {**one._asdict(), "moments": one.moments} for name, one in found.items()},
    )


if __name__ == "__main__":
    sys.exit(main())
