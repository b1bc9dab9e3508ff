"""What an author may say of a sink, per connector: its options, checked and made into a plan's data.

    program.sink(trips, "parquet", path="kept/trips", by=Trip.mode, every=cm.minutes(1))
    program.sink(trips, "postgres", url="$FLEET_DATABASE", table="trip", keep="latest")
    program.sink(trips, "callback", function=notify)

Knows records and functions; how a sink writes is the cloud's business.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from catchment.errors import ProgramError, SourceLine
from catchment.program.clock_units import seconds
from catchment.program.expression import Expr
from catchment.program.function import Function, require
from catchment.program.mark import Mark
from catchment.program.nodes import FieldRef
from catchment.program.plain import plain
from catchment.program.steps import SURROUNDINGS
from catchment.program.types import ListType, RecordType, ScalarType, Schema

PARQUET, POSTGRES, CALLBACK = "parquet", "postgres", "callback"
WINDOW = ("window_start", "window_end")
REVISION = "revision"
_PARTITIONED = ("str", "int", "bool", "instant")
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_WITH_SECRET = re.compile(r"//[^/@\s]*:[^/@\s$]+@|[?&\s]password\s*=\s*[^$\s]", re.IGNORECASE)

Options = dict[str, Any]


def options_of(connector: str, schema: Schema, said: Options, at: SourceLine) -> Options:
    """The options as a plan holds them; refuses what no sink could do."""
    if connector not in _CONNECTORS:
        raise ProgramError(
            "C290",
            f"there is no sink {connector!r}",
            why=f"results are kept by {', '.join(name for name in _CONNECTORS if name != SURROUNDINGS)}",
            fix='name one of them: program.sink(trips, "parquet", path="kept/trips")',
            at=at,
        )
    needed, more, read = _CONNECTORS[connector]
    for name in said:
        if name not in (*needed, *more):
            raise ProgramError(
                "C291",
                f"{connector} has no option {name!r}",
                why=f"its options are {', '.join((*needed, *more)) or 'none'}",
                fix=f"leave {name} out",
                at=at,
            )
    for name in needed:
        if name not in said:
            raise ProgramError(
                "C292",
                f"{connector} is not told its {name}",
                why=f"{_WHY[name]}",
                fix=f'write program.sink(..., "{connector}", {_EXAMPLE[name]})',
                at=at,
            )
    held = {name: plain(value, f"sink({name}=)", at) for name, value in read(schema, dict(said), at).items()}
    if "every" in held and not (isinstance(held["every"], int) and held["every"] >= 0):
        raise _wrong("every", held["every"], "results gather for a length of time", "every=cm.seconds(10)", at)
    return {name: held[name] for name in sorted(held)}


def identity(schema: Schema) -> tuple[str, ...]:
    """The fields that name a result which a later one may take the place of: its key, and its window if it has one."""
    return (*schema.keys, *(name for name in WINDOW if name in schema.names and name not in schema.keys))


def is_revised(schema: Schema) -> bool:
    """Whether results carry revisions, of which the highest holds."""
    return REVISION in schema.names and bool(identity(schema))


def _parquet(schema: Schema, said: Options, at: SourceLine) -> Options:
    path = said["path"]
    plain(path, "sink(path=)", at)
    if not isinstance(path, str) or not path or "://" in path:
        raise _wrong("path", path, "files go to a directory that every executor sees", 'path="kept/trips"', at)
    by = said.get("by", ())
    names = [_field(one, schema) for one in (by if isinstance(by, (tuple, list)) else (by,))]
    for name in names:
        kind = schema.column(name).type if name in schema.names else None
        if not isinstance(kind, ScalarType) or kind.name not in _PARTITIONED:
            fields = [c.name for c in schema.fields if isinstance(c.type, ScalarType) and c.type.name in _PARTITIONED]
            raise ProgramError(
                "C293",
                f"files of {schema.name} cannot be divided by {name}",
                why=f"a folder is named by a text, a whole number, a truth or the day of an instant: "
                f"{', '.join(fields) or 'none here'}",
                fix=f"write by={schema.name}.{fields[0]}" if fields else "leave by= out",
                at=at,
            )
    return {"path": path, "by": names, "every": said.get("every", seconds(10))}


def _field(said: Any, schema: Schema) -> str:
    match said.node if isinstance(said, Expr) else said:
        case str(name):
            return name
        case FieldRef(name, record) if record in (None, schema.name):
            return name
        case FieldRef(name, record):
            return f"{record}.{name}"
        case _:
            return "what is computed"


def _postgres(schema: Schema, said: Options, at: SourceLine) -> Options:
    url, table, keep = said["url"], said["table"], said.get("keep", "all")
    if not isinstance(url, str) or not url:
        raise _wrong("url", url, "it says where the database is", 'url="$FLEET_DATABASE"', at)
    if _WITH_SECRET.search(url):
        raise ProgramError(
            "C294",
            "the url of a database has a password in it",
            why="a plan is kept and shipped, and whoever reads it could open the database",
            fix='name a variable of the environment: url="$FLEET_DATABASE"',
            at=at,
        )
    words = table.split(".") if isinstance(table, str) else []
    if not 1 <= len(words) <= 2 or not all(_NAME.fullmatch(word) for word in words):
        raise _wrong("table", table, "a table's name is small letters, digits and _", 'table="trip"', at)
    if keep not in ("all", "latest"):
        raise _wrong("keep", keep, "a table keeps all results, or the latest of each key", 'keep="latest"', at)
    if keep == "latest" and not schema.keys:
        raise ProgramError(
            "C295",
            f"the latest of {schema.name} is not known: it has no key",
            why='keep="latest" holds one row for each key',
            fix=f'declare a key on {schema.name}, such as user: cm.Field[str] = cm.key(), or say keep="all"',
            at=at,
        )
    return {"url": url, "table": table, "keep": keep, "every": said.get("every", 0)}


def _callback(schema: Schema, said: Options, at: SourceLine) -> Options:
    function: Function[..., Any] = require(said["function"], "sink(function=)")
    wanted = (ListType(RecordType(schema)), RecordType(Mark.schema))
    given = function.parameters
    fits = (
        len(given) == 2
        and isinstance(given[0], ListType)
        and isinstance(given[0].element, RecordType)
        and given[0].element.schema.fingerprint == schema.fingerprint
        and given[1] == wanted[1]
    )
    if not fits:
        raise ProgramError(
            "C296",
            f"{function.body.__name__} cannot be called with results of {schema.name}",
            why=f"it takes ({', '.join(map(str, given))}), and is called with (list[{schema.name}], Mark)",
            fix=f"declare it (results: tuple[{schema.name}, ...], mark: cm.Mark) -> None",
            at=at,
        )
    return {"function": function.reference}


def _nothing(schema: Schema, said: Options, at: SourceLine) -> Options:
    return said


def _wrong(name: str, value: Any, why: str, fix: str, at: SourceLine) -> ProgramError:
    return ProgramError("C297", f"sink({name}=) cannot be {value!r}", why=why, fix=f"write {fix}", at=at)


_WHY = {
    "path": "its files go to a directory",
    "url": "its rows go to a database",
    "table": "its rows go to a table",
    "function": "it calls a function that is declared with @cm.function",
}
_EXAMPLE = {
    "path": 'path="kept/trips"',
    "url": 'url="$FLEET_DATABASE"',
    "table": 'table="trip"',
    "function": "function=notify",
}
_Read = Callable[[Schema, Options, SourceLine], Options]
_CONNECTORS: dict[str, tuple[tuple[str, ...], tuple[str, ...], _Read]] = {
    PARQUET: (("path",), ("by", "every"), _parquet),
    POSTGRES: (("url", "table"), ("keep", "every"), _postgres),
    CALLBACK: (("function",), (), _callback),
    SURROUNDINGS: ((), (), _nothing),
}
"""What each must be told, what it may be told, and what reads it."""
