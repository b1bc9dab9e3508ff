"""Hopping windows in the cloud: beside Spark's own on the same log, and a week's words beside counting them anew.

A reading a second of 4,000 users lies in a gateway's log, in uploads of a minute; a batch is about a minute. Two sides,
in turn, round after round, for each size and distance of windows:

    catchment    the program of bench/windows_program.py, as the cloud runs it
    native       Spark's `window()`, aggregated by window and user with a watermark, in append mode

Both keep mean and count of each user and window as Parquet, held against each other by a digest of all of them. The
native side is given what suits it: all users in step, so that its one watermark for all drops nothing (it is asked
whether it did). Seconds are the processor's, of the JVM and the Python workers too, after each query's first batch.

Then Sonora's Table 2, as queries too: the week's ten words of each of 33 by 33 cells, each day.

    daily        windows of seven days every day: a text is read, and counted for its day, once
    anew         each day the week's texts are read and counted from the beginning, as a nightly job would

Quick: 2,000 users for three minutes, 2,400 texts a day instead of 6,000.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds

import catchment as cm
from bench import fleet_log, harness, windows_program, words_program
from bench.harness import Bar, Side
from bench.spark_sides import bytes_in, decoded, digest, program, side, written
from bench.windows_program import UPLOAD, Pace, Speed
from bench.words_program import BEGIN_US, POPULAR, WEEK, Days

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LEAST = {(60, 5): 1.0, (60, 1): 2.0, (600, 10): 2.5}
"""Size and distance of windows in seconds, and how many times less of the processor's time they are to take."""
LEAST_ANEW = 3.5
PHONES = 40


def read(home: Path, columns: list[str]) -> pa.Table:
    """What a side kept."""
    return ds.dataset(home, format="parquet").to_table(columns=columns).combine_chunks()


def paces_in(home: Path) -> list[object]:
    """How many windows a side kept, and a digest of them in order of user and time."""
    table = read(home, list(Pace.schema.names))
    return [table.num_rows, digest(table, by=("user", "at"))]


def words_in(home: Path, week: int) -> list[object]:
    """How many weeks of cells a side kept, and a digest of them; `week` is how many days apart its weeks are told."""
    table = read(home, list(POPULAR.names))
    last = (table["at"].to_numpy() - BEGIN_US) // fleet_log.DAY_US
    # The first whole week ends with its seventh day, whether the next is told after it or overlaps it.
    number = (last - (WEEK - 1)) // week
    listed = [" ".join(words) for words in table["keywords"].to_pylist()]
    found = pa.table({"week": number, "cell": table["cell"], "keywords": listed, "mentions": table["mentions"]})
    whole = found.filter(pa.array((last >= WEEK - 1) & (number < WEEK)))
    return [whole.num_rows, digest(whole, by=("week", "cell"))]


def against_native(spark: SparkSession, home: Path, log: Path, batches: int, window: tuple[int, int]) -> list[Side]:
    """Both sides, for one size and distance of windows."""
    size_s, every_s = window
    # A little more, so that the last batch holds the last round of uploads whole.
    batch_bytes = round(bytes_in(log) * 1.02 / batches)
    plan = cm.build(windows_program.paces(size_s, every_s))

    def native() -> DataFrame:
        return windows_program.native(decoded(spark, log, batch_bytes, Speed.schema), size_s, every_s)

    return [
        side("catchment", home, program(spark, plan, log, batch_bytes, Pace.schema), paces_in),
        side("native", home, written(native), paces_in),
    ]


def against_anew(spark: SparkSession, home: Path, texts_a_day: int) -> list[Side]:
    """Seven days, each with six before it: told once, or each with its week."""
    told = {
        "daily": (1, list(range(2 * WEEK - 1))),
        "anew": (WEEK, [first + day for first in range(WEEK) for day in range(WEEK)]),
    }
    sides = []
    for name, (every, order) in told.items():
        days = Days(order, PHONES, texts_a_day // PHONES)
        plan = cm.build(words_program.words(every, home / f"{name}-results"))
        log = fleet_log.write(
            home / name, plan, users=PHONES, points_each=days.texts, walk=days.walk, upload=days.each
        ).log
        # A batch is what is new since the last result: a day, or a week.
        skip = 1 if every == WEEK else WEEK - 1
        batch_bytes = round(bytes_in(log) * 1.02 / (len(order) // every))
        sides.append(
            side(
                name,
                home / name,
                program(spark, plan, log, batch_bytes, POPULAR),
                partial(words_in, week=every),
                skip=skip,
                share=WEEK * every / len(order),
            )
        )
    return sides


def main() -> int:
    quick = harness.arguments(__doc__).parse_args().quick
    users, minutes, texts_a_day = (2_000, 3, 2_400) if quick else (4_000, 8, 6_000)
    from catchment.engines.spark.session import start_session

    ratios: dict[str, float] = {}
    bars: list[Bar] = []
    cpu_s: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        plan = cm.build(windows_program.paces(*next(iter(LEAST))))
        readings = minutes * UPLOAD + 1
        fleet = fleet_log.write(home, plan, users=users, points_each=readings, walk=windows_program.walk, upload=UPLOAD)
        spark = start_session("bench cloud_windows")
        races = [
            (
                f"{size_s} s every {every_s} s",
                "native",
                least,
                f"of {fleet.points:,} readings",
                against_native(spark, home / f"{size_s}-{every_s}", fleet.log, minutes, (size_s, every_s)),
            )
            for (size_s, every_s), least in LEAST.items()
        ]
        races.append(
            ("7 days every day", "anew", LEAST_ANEW, f"of {WEEK} days", against_anew(spark, home, texts_a_day))
        )
        for number, (name, peer, least, what, sides) in enumerate(races):
            # The first race warms Spark up for those after it.
            race = harness.race(sides, rounds=1 if quick else 2, warm_ups=1 if number == 0 else 0)
            ratio = ratios[name] = race.ratio(sides[0].name, over=peer)
            cpu_s[name] = {each: round(race.median(each), 3) for each in race.seconds}
            bars.append(Bar(f"{name}: at least {least:g} times less of the processor than {peer}", ratio, least))
            print(f"{name}: {cpu_s[name]} CPU-seconds {what}", flush=True)
        spark.stop()
    figures = {"readings": fleet.points, "texts_a_day": texts_a_day, "cpu_s": cpu_s}
    return harness.conclude("cloud_windows", quick=quick, ratios=ratios, bars=bars, figures=figures)


if __name__ == "__main__":
    sys.exit(main())
