"""GENERATED daily life: a mobility model that writes the sensor files of as many phones as are wanted.

`devices(count, seed, folder)` gives each phone, its user and its sensors as `catchment device run --sensor` takes them.
The first phones replay tracks that people recorded (examples/data/gpx); all others live a day of this model:

- home and work within a town; errands in between. Which mode a way is gone in depends on its length, and on whether its
  person owns a bicycle or a car; with a bus people walk to the stop, wait, ride, and walk on.
- Ways follow a grid of streets. Walking and riding keep a pace of their own (Weidmann 1993; Schleinitz et al. 2017);
  what is driven follows the speeds and stops of a town (WLTC, phases low to high).
- Outdoors a fix every 5 s, with noise that wanders (first-order, 4 m) and an accuracy to match; indoors a poor fix
  every minute, and GSM through walls 18 dB weaker. The battery falls with the hours that the GPS is on.
- Some phones have an accelerometer: steps at about 1.9 Hz while walking, weaker and slower on a bicycle.

All of it follows from `seed`, and none of it is about anyone. Every file begins at `BEGIN`, so that sensors that are
replayed together stay together.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import catchment as cm
from catchment.device.sensors.recordings import Track

BEGIN = cm.instant("2026-03-02T06:30:00Z")
TOWN_DEG = (46.05, 14.505)
RADIUS_M = 4500.0
CENTRE_M = 900.0
FIX_S = 5
POOR_FIX_S = 60
SHAKES_PER_S = 5
WALL_DB = 18.0
DRIVEN_MPS = ((0.35, 25.3 / 3.6), (0.4, 44.5 / 3.6), (0.25, 60.7 / 3.6))
"""Share and speed of the stretches that are driven: WLTC low, medium and high, stops left out."""
ACCELEROMETERS = 10
"""One phone in so many has one."""

BETWEEN_TRACKS_US = 900_000_000
"""A recorded track that is played again begins elsewhere than it ended: so much later it is another trip."""

Sensors = dict[str, str]
Row = tuple[Any, ...]


class Moment(NamedTuple):
    """Where somebody is in a second of the day, and how."""

    east_m: float
    north_m: float
    mode: str
    indoors: bool


class Person:
    """Somebody's habits. `rests` is how long people stay where they are, as a share of what is usual."""

    def __init__(self, chance: random.Random, rests: float = 1.0) -> None:
        self.chance = chance
        self.rests = rests
        self.home = _within(chance, RADIUS_M)
        self.work = _within(chance, CENTRE_M)
        self.walks_mps = max(0.9, chance.gauss(1.34, 0.15))
        self.rides_mps = max(2.8, chance.gauss(4.25, 0.6))
        self.has_bike = chance.random() < 0.45
        self.has_car = chance.random() < 0.5

    def day(self) -> Iterator[Moment]:
        """Second by second: home, work, an errand, home."""
        chance = self.chance
        yield from self._stay(self.home, chance.uniform(5, 75) * 60)
        yield from self._go(self.home, self.work)
        yield from self._stay(self.work, chance.uniform(3.0, 4.0) * 3600)
        lunch = _near(chance, self.work, 400)
        yield from self._go(self.work, lunch)
        yield from self._stay(lunch, chance.uniform(20, 40) * 60)
        yield from self._go(lunch, self.work)
        yield from self._stay(self.work, chance.uniform(3.0, 4.5) * 3600)
        errand = _near(chance, self.work, 1500)
        yield from self._go(self.work, errand)
        yield from self._stay(errand, chance.uniform(10, 50) * 60)
        yield from self._go(errand, self.home)
        yield from self._stay(self.home, 1800)

    def _stay(self, place: tuple[float, float], seconds: float) -> Iterator[Moment]:
        for _ in range(round(seconds * self.rests)):
            yield Moment(*place, "still", True)

    def _go(self, start: tuple[float, float], end: tuple[float, float]) -> Iterator[Moment]:
        far_m = abs(start[0] - end[0]) + abs(start[1] - end[1])
        if far_m < 900:
            yield from self._move(start, end, "walk")
        elif self.has_bike and far_m < 6000:
            yield from self._move(start, end, "bike")
        else:
            # With a car as with a bus, one walks to where it stands and from where it stops.
            walk_m = 80.0 if self.has_car else 350.0
            stop, last = _towards(start, end, walk_m), _towards(end, start, walk_m)
            yield from self._move(start, stop, "walk")
            if not self.has_car:
                for _ in range(round(self.chance.uniform(30, 240))):
                    yield Moment(*stop, "still", False)
            yield from self._move(stop, last, "car" if self.has_car else "bus")
            yield from self._move(last, end, "walk")

    def _move(self, start: tuple[float, float], end: tuple[float, float], mode: str) -> Iterator[Moment]:
        """Along the streets: first one way, then across."""
        corner = (end[0], start[1])
        for here, there in ((start, corner), (corner, end)):
            far_m = math.dist(here, there)
            gone_m, speed_mps, cruise_mps, left_m = 0.0, 0.0, 0.0, 0.0
            while gone_m < far_m:
                if left_m <= 0:
                    # A junction: perhaps a stop, then another stretch.
                    left_m = self.chance.uniform(120, 420)
                    yield from self._halt(here, there, gone_m / far_m, mode)
                    cruise_mps = self._cruise(mode)
                speed_mps += max(-2.0, min(1.2, cruise_mps - speed_mps))
                moved_m = max(0.3, speed_mps + self.chance.gauss(0, 0.08 * cruise_mps))
                gone_m += moved_m
                left_m -= moved_m
                share = min(1.0, gone_m / far_m)
                east, north = (a + (b - a) * share for a, b in zip(here, there, strict=True))
                yield Moment(east, north, mode, False)

    def _halt(self, here: tuple[float, float], there: tuple[float, float], share: float, mode: str) -> Iterator[Moment]:
        likely = {"walk": 0.05, "bike": 0.15, "car": 0.3, "bus": 0.55}[mode]
        if self.chance.random() < likely:
            east, north = (a + (b - a) * min(1.0, share) for a, b in zip(here, there, strict=True))
            for _ in range(round(self.chance.uniform(5, 35))):
                yield Moment(east, north, mode, False)

    def _cruise(self, mode: str) -> float:
        if mode == "walk":
            return self.walks_mps
        if mode == "bike":
            return self.rides_mps
        speeds = [speed for _, speed in DRIVEN_MPS]
        mps = self.chance.choices(speeds, [share for share, _ in DRIVEN_MPS])[0]
        return mps * (0.8 if mode == "bus" else 1.0)


def devices(
    count: int,
    seed: int,
    folder: Path,
    *,
    speed: str = "60",
    tracks: Path | None = None,
    numbers: Iterable[int] | None = None,
    days: int = 1,
    rests: float = 1.0,
) -> Iterator[tuple[str, str, Sensors]]:
    """So many phones: device, user, and of each sensor what to give to `--sensor NAME=…`.

    Sensor files are written to `folder`. `speed` is how many times faster than life they are played; `tracks` is a
    folder of .gpx files that the first phones replay. `numbers` are those of the phones to write, where others write
    the rest. A day is lived `days` times, without nights; `rests` is how long people stay somewhere, on average, as a
    share of what is usual.
    """
    recorded = sorted(tracks.glob("*.gpx")) if tracks is not None else []
    for number in range(count) if numbers is None else numbers:
        device, user = f"phone-{number:03}", f"user-{number:03}"
        chance = random.Random(f"{seed}/{number}")
        place = folder / device
        place.mkdir(parents=True, exist_ok=True)
        if number < len(recorded):
            _write_track(place, recorded[number], chance, days)
            has_accelerometer = False
        else:
            has_accelerometer = number % ACCELEROMETERS == 0
            # Where people rest less than in life, some less than others, they are not all on their way together.
            own = rests if rests == 1.0 else rests * random.Random(f"{seed}/{number}/rests").uniform(0.3, 2.0)
            write_day(place, Person(chance, own), chance, accelerometer=has_accelerometer, days=days)
        played = f"speed={speed},sampled=true,then=done"
        names = {"gps": "gps", "gsm": "gsm", "battery": "battery"}
        sensors = {name: f"replay:{place / file}.csv,{played}" for name, file in names.items()}
        shaken = f"replay:{place / 'accelerometer.csv'},{played}"
        yield device, user, sensors | {"accelerometer": shaken if has_accelerometer else "none"}


def write_day(
    folder: Path, person: Person, chance: random.Random, *, accelerometer: bool = False, days: int = 1
) -> None:
    """The sensor files of a day, and beside them the truth: the mode of each second outdoors."""
    gps, gsm, battery, truth = [], [], [], []
    shakes: list[tuple[int, float]] = []
    noise = [0.0, 0.0]
    level = chance.uniform(0.35, 1.0)
    second = 0
    for second, moment in enumerate(person.day()):
        at = int(BEGIN) + second * 1_000_000
        noise = [0.97 * part + chance.gauss(0, 4.0 * 0.24) for part in noise]
        if second % (POOR_FIX_S if moment.indoors else FIX_S) == 0:
            accuracy_m = chance.uniform(35, 90) if moment.indoors else chance.uniform(3, 9)
            spread = 4.0 if moment.indoors else 1.0
            place = _degrees(moment.east_m + noise[0] * spread, moment.north_m + noise[1] * spread)
            gps.append((at, *place, round(accuracy_m, 1)))
        if not moment.indoors and second % FIX_S == 0:
            truth.append((at, "motor" if moment.mode in ("car", "bus") else moment.mode))
        if second % 30 == 0:
            heard_dbm = -68 - (WALL_DB if moment.indoors else 0.0) + chance.gauss(0, 2.0)
            cell = f"{math.floor(moment.east_m / 2000)}/{math.floor(moment.north_m / 2000)}"
            gsm.append((at, cell, round(heard_dbm, 1)))
        if second % 60 == 0:
            level = max(0.02, level - (0.0004 if moment.indoors else 0.0012))
            battery.append((at, round(level, 3), "false"))
        if accelerometer and not moment.indoors:
            shakes += _shakes(at, second, moment.mode, chance)
        elif accelerometer and second % 60 == 0:
            shakes.append((at, 1.0))
    lasts_us = (second + 1) * 1_000_000
    _write(folder / "gps.csv", "at,lat_deg,lon_deg,accuracy_m", gps, days, lasts_us)
    _write(folder / "gsm.csv", "at,cell,signal_dbm", gsm, days, lasts_us)
    _write(folder / "battery.csv", "at,level,charging", battery, days, lasts_us)
    _write(folder / "truth.csv", "at,mode", truth, days, lasts_us)
    if accelerometer:
        _write(folder / "accelerometer.csv", "at,magnitude_g", shakes, days, lasts_us)


_SWAY = {"walk": (0.28, 1.9), "bike": (0.06, 1.2), "car": (0.01, 0.4), "bus": (0.015, 0.4), "still": (0.004, 0.3)}


def _shakes(at: int, second: int, mode: str, chance: random.Random) -> Iterator[tuple[int, float]]:
    amplitude_g, hertz = _SWAY[mode]
    for part in range(SHAKES_PER_S):
        phase = 2 * math.pi * hertz * (second + part / SHAKES_PER_S)
        yield at + part * 1_000_000 // SHAKES_PER_S, round(1 + amplitude_g * math.sin(phase) + chance.gauss(0, 0.02), 3)


def _write_track(folder: Path, path: Path, chance: random.Random, days: int = 1) -> None:
    """A recorded track, moved to the day of the model; GSM and battery are generated."""
    points = list(_points(path))
    first = points[0][0]
    gps = [(int(BEGIN) + at - first, lat, lon, 5.0) for at, lat, lon in points]
    last_s = (points[-1][0] - first) // 1_000_000
    minutes = range(0, last_s + 1, 60)
    lasts_us = last_s * 1_000_000 + BETWEEN_TRACKS_US
    _write(folder / "gps.csv", "at,lat_deg,lon_deg,accuracy_m", gps, days, lasts_us)
    gsm = [(int(BEGIN) + s * 1_000_000, "recorded", round(-70 + chance.gauss(0, 2.0), 1)) for s in minutes]
    _write(folder / "gsm.csv", "at,cell,signal_dbm", gsm, days, lasts_us)
    battery = [(int(BEGIN) + s * 1_000_000, round(0.9 - s / 60 * 0.0012, 3), "false") for s in minutes]
    _write(folder / "battery.csv", "at,level,charging", battery, days, lasts_us)


def _points(path: Path) -> Iterator[tuple[int, float, float]]:
    """The points that have a time, in its order."""
    track, found = Track(path), []
    while (point := track.next()) is not None:
        if isinstance(point, dict) and "time" in point:
            found.append((int(cm.instant(point["time"])), float(point["lat_deg"]), float(point["lon_deg"])))
    yield from ((at, round(lat, 6), round(lon, 6)) for at, lat, lon in sorted(set(found)))


def _write(path: Path, header: str, rows: Iterable[Row], days: int, lasts_us: int) -> None:
    """The rows of a day, once for each day."""
    # Only the moment differs from day to day: the rest of a row is put into words once.
    told = [(at, ",".join(["", *map(str, read)]) + "\n") for at, *read in rows]
    with path.open("w") as file:
        file.write(header + "\n")
        for day in range(days):
            file.write("".join([f"{at + day * lasts_us}{read}" for at, read in told]))


def _within(chance: random.Random, radius_m: float) -> tuple[float, float]:
    far_m, angle = radius_m * math.sqrt(chance.random()), chance.uniform(0, 2 * math.pi)
    return far_m * math.cos(angle), far_m * math.sin(angle)


def _near(chance: random.Random, place: tuple[float, float], radius_m: float) -> tuple[float, float]:
    east, north = _within(chance, radius_m)
    return place[0] + east, place[1] + north


def _towards(start: tuple[float, float], end: tuple[float, float], far_m: float) -> tuple[float, float]:
    share = min(0.4, far_m / max(1.0, math.dist(start, end)))
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


def _degrees(east_m: float, north_m: float) -> tuple[float, float]:
    lat_deg = TOWN_DEG[0] + north_m / 111_195.0
    lon_deg = TOWN_DEG[1] + east_m / (111_195.0 * math.cos(math.radians(TOWN_DEG[0])))
    return round(lat_deg, 6), round(lon_deg, 6)
