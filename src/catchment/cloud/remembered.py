"""What a program remembers of a key, as of its last batch: read from its checkpoints, whether it runs or not.

Knows the program's directory and its plan; how state is stored is the engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catchment.cloud.leaving import outputs_of
from catchment.engines.spark.stages import Stages, cut
from catchment.engines.spark.state.lookup import look_up
from catchment.errors import ProgramError
from catchment.plan import document
from catchment.plan.physical import Plan
from catchment.program.site import CLOUD

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OF_TEXT: dict[str, Callable[[str], Any]] = {
    "int": int,
    "instant": int,
    "duration": int,
    "float": float,
    "bool": "true".__eq__,
}


def plan_of(data: Path, program: str) -> Plan:
    """The plan that a program was last run with here."""
    path = data / "programs" / program / "plan.json"
    if not path.exists():
        raise ProgramError(
            "E132",
            f"{program} was never run in {data}",
            why=f"there is no {path}",
            fix="name the program as cm.Program(name) does, and its --data directory; `catchment status` lists them",
        )
    return document.read(path.read_bytes())


def remembered(spark: SparkSession, data: Path, program: str, key: Sequence[str]) -> dict[str, Any]:
    """By step, what is remembered of a key; the key's values as text, in the order of its fields."""
    plan = plan_of(data, program)
    found: dict[str, Any] = {}
    keys: set[str] = set()
    for part in plan.at(CLOUD):
        checkpoint = data / "programs" / program / part.name / "checkpoint"
        if not part.inputs or not (checkpoint / "commits").exists():
            continue
        stages = cut(plan.graph(part), outputs_of(plan, part))
        for fields, values in _routes(stages, key):
            keys.add(", ".join(fields))
            if values is not None:
                found |= look_up(spark, str(checkpoint), stages, values)
    if not found:
        raise ProgramError(
            "E133",
            f"{program} keeps nothing by {' '.join(key)}",
            why=f"its state goes by: {'; '.join(sorted(keys)) or 'no key, or it has done no batch yet'}",
            fix="give a value for each of these fields, in this order",
        )
    return found


def _routes(stages: Stages, key: Sequence[str]) -> list[tuple[tuple[str, ...], tuple[Any, ...] | None]]:
    """The fields that state goes by, each with the key as values of their types, if it has as many."""
    made: dict[tuple[str, ...], tuple[Any, ...] | None] = {}
    for arrival, fields in stages.routes.items():
        if not fields:
            continue
        made[fields] = None
        if len(fields) == len(key):
            schema = stages.rest.vertex(arrival).schemas[0]
            types = [str(schema.column(name).type) for name in fields]
            made[fields] = tuple(_OF_TEXT.get(kind, str)(text) for kind, text in zip(types, key, strict=True))
    return list(made.items())
