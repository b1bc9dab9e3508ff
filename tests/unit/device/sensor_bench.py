"""What tests of sensors share: records, and sensors made as a command line makes them."""

from pathlib import Path
from typing import Any

from catchment.device.sensors.named import Made, Surrounded, make, parse
from catchment.device.surroundings import Surroundings
from catchment.program.sampling import Sampling
from catchment.program.types import FLOAT, INSTANT, INT, STR, Column, Schema

OUTSIDE = Surroundings()
FIX = Schema(
    "Fix",
    (
        Column("user", STR, key=True, stamp="user"),
        Column("at", INSTANT, event_time=True),
        Column("lat_deg", FLOAT),
        Column("lon_deg", FLOAT),
        Column("elevation_m", FLOAT, nullable=True),
    ),
)
READING = Schema(
    "Reading",
    (Column("at", INSTANT, event_time=True), Column("amount", INT), Column("note", STR, default="", has_default=True)),
)
TRACK = """<?xml version="1.0"?><gpx xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>
<trkpt lat="46.5" lon="13.7"><ele>1614.6</ele><time>2024-05-01T10:00:00Z</time></trkpt>
<trkpt lat="46.6" lon="13.8"><time>2024-05-01T10:00:02.1234567Z</time></trkpt>
<trkpt lat="up" lon="13.9"><time>2024-05-01T10:00:03Z</time></trkpt>
<trkpt lat="46.8" lon="13.9"><time>2024-05-01T10:00:06+02:00</time></trkpt>
</trkseg></trk></gpx>"""
MAY_FIRST_US = 1_714_557_600_000_000


class Told:
    """Who is told what was left out."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def around(self, now_us: int = 0) -> Surrounded:
        return Surrounded("phone", "ada", now_us, self.lines.append)


def made(text: str, schema: Schema = READING, *, told: Told | None = None, sampling: Sampling | None = None) -> Made:
    return make(parse(text), schema, sampling, (told or Told()).around())


def rows(sensor: Made, now_us: int, limit: int = 100, around: Surroundings = OUTSIDE) -> list[Any]:
    taken = sensor.sensor.take(now_us, around, limit)
    return [sensor.fitting.row(r.values, now_us if r.at_us is None else r.at_us) for r in taken]


def table(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
