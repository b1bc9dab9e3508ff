"""`catchment state PROGRAM KEY`: what the program remembers of a key, while it runs or not."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments."""
    parser.add_argument("program", help="the program's name")
    parser.add_argument("key", nargs="+", help="the key's values, in the order of its fields")
    parser.add_argument("--data", type=Path, default=Path("catchment-data"), help="where programs keep everything")


def run(arguments: argparse.Namespace) -> int:
    """Print a JSON object: what each step remembers, as of the last batch."""
    from catchment.cloud.remembered import plan_of, remembered
    from catchment.engines.spark.session import start_session

    plan_of(arguments.data, arguments.program)
    spark = start_session("catchment state", "local[1]", quick=True)
    try:
        found = remembered(spark, arguments.data.resolve(), arguments.program, arguments.key)
    finally:
        spark.stop()
    print(msgspec.json.format(msgspec.json.encode(found)).decode())
    return 0
