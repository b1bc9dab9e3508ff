"""A string of SQL becomes the nodes that the typed surface makes; what has no meaning everywhere is refused by name."""

from __future__ import annotations

import pytest

from catchment.errors import ProgramError, SourceLine
from catchment.program.nodes import Call, Cast, FieldRef, GetField, Literal, Node
from catchment.program.sql import parse
from catchment.program.types import (
    BOOL,
    DURATION,
    FLOAT,
    INSTANT,
    INT,
    NULL,
    STR,
    Column,
    ListType,
    RecordType,
    Schema,
)

PLACE = Schema("Place", (Column("name", STR), Column("Height_m", FLOAT)))
FIX = Schema(
    "Fix",
    (
        Column("user", STR),
        Column("at", INSTANT),
        Column("speed", FLOAT),
        Column("count", INT),
        Column("n", INT),
        Column("moving", BOOL),
        Column("gap", DURATION),
        Column("readings", ListType(INT)),
        Column("place", RecordType(PLACE), nullable=True),
        Column("Weird Name", STR),
    ),
)
TRIP = Schema("Trip", (Column("user", STR), Column("carbon_g", FLOAT)))

USER, AT, SPEED, N, MOVING = (FieldRef(name, "Fix") for name in ("user", "at", "speed", "n", "moving"))
READINGS, PLACE_REF = FieldRef("readings", "Fix"), FieldRef("place", "Fix")
MINUTE = Literal(60_000_000, DURATION)


def whole(value: int) -> Literal:
    return Literal(value, INT)


def text(value: str) -> Literal:
    return Literal(value, STR)


MEANINGS: dict[str, Node] = {
    "speed * 3.6 + 1": Call("add", (Call("mul", (SPEED, Literal(3.6, FLOAT))), whole(1))),
    "n + 2 * 3 - 4": Call("sub", (Call("add", (N, Call("mul", (whole(2), whole(3))))), whole(4))),
    "(n + 2) * 3": Call("mul", (Call("add", (N, whole(2))), whole(3))),
    "n / 2": Call("div", (N, whole(2))),
    "n // 2": Call("floordiv", (N, whole(2))),
    "n % 2": Call("mod", (N, whole(2))),
    "mod(n, 2)": Call("mod", (N, whole(2))),
    "speed ** 2": Call("pow", (SPEED, whole(2))),
    "-n": Call("neg", (N,)),
    "n - -5": Call("sub", (N, whole(-5))),
    "-9223372036854775808": whole(-(2**63)),
    "1e3": Literal(1000.0, FLOAT),
    ".5": Literal(0.5, FLOAT),
    "'it''s'": text("it's"),
    "NULL": Literal(None, NULL),
    "TRUE": Literal(True, BOOL),
    "n = 1": Call("eq", (N, whole(1))),
    "n == 1": Call("eq", (N, whole(1))),
    "n <> 1": Call("ne", (N, whole(1))),
    "n != 1 AND NOT moving OR speed >= 2": Call(
        "or",
        (
            Call("and", (Call("ne", (N, whole(1))), Call("not", (MOVING,)))),
            Call("ge", (SPEED, whole(2))),
        ),
    ),
    "user IS NULL": Call("is_null", (USER,)),
    "user IS NOT NULL": Call("not", (Call("is_null", (USER,)),)),
    "moving IS TRUE": Call("same", (MOVING, Literal(True, BOOL))),
    "moving IS NOT FALSE": Call("not", (Call("same", (MOVING, Literal(False, BOOL))),)),
    "n IS NOT DISTINCT FROM 1": Call("same", (N, whole(1))),
    "n IS DISTINCT FROM 1": Call("not", (Call("same", (N, whole(1))),)),
    "n BETWEEN 1 AND 2": Call("and", (Call("ge", (N, whole(1))), Call("le", (N, whole(2))))),
    "n NOT BETWEEN 1 AND 2": Call("not", (Call("and", (Call("ge", (N, whole(1))), Call("le", (N, whole(2))))),)),
    "user IN ('a', 'b')": Call("in_", (USER, text("a"), text("b"))),
    "user NOT IN ('a')": Call("not", (Call("in_", (USER, text("a"))),)),
    "user LIKE 'a%'": Call("starts_with", (USER, text("a"))),
    "user LIKE '%a'": Call("ends_with", (USER, text("a"))),
    "user NOT LIKE '%a%'": Call("not", (Call("contains", (USER, text("a"))),)),
    "user LIKE 'ada'": Call("eq", (USER, text("ada"))),
    "CASE WHEN n > 1 THEN 'many' ELSE 'one' END": Call("if_", (Call("gt", (N, whole(1))), text("many"), text("one"))),
    "CASE n WHEN 1 THEN 10 WHEN 2 THEN 20 END": Call(
        "if_",
        (
            Call("eq", (N, whole(1))),
            whole(10),
            Call("if_", (Call("eq", (N, whole(2))), whole(20), Literal(None, NULL))),
        ),
    ),
    "IF(moving, 1, 2)": Call("if_", (MOVING, whole(1), whole(2))),
    "if_(moving, 1, 2)": Call("if_", (MOVING, whole(1), whole(2))),
    "coalesce(speed, 0)": Call("coalesce", (SPEED, whole(0))),
    "ifnull(speed, 0)": Call("coalesce", (SPEED, whole(0))),
    "nullif(n, 0)": Call("null_if", (N, whole(0))),
    "null_if(n, 0)": Call("null_if", (N, whole(0))),
    "greatest(n, 1, 2)": Call("greatest", (Call("greatest", (N, whole(1))), whole(2))),
    "isnan(speed)": Call("is_nan", (SPEED,)),
    "round(speed)": Call("round", (SPEED,)),
    "round(speed, 1)": Call("round_to", (SPEED, Literal(0.1, FLOAT))),
    "user || '!' || 'a'": Call("concat", (Call("concat", (USER, text("!"))), text("a"))),
    "concat(user, '!')": Call("concat", (USER, text("!"))),
    "upper(trim(user))": Call("upper", (Call("trim", (USER,)),)),
    "trim(BOTH ' ' FROM user)": Call("trim", (USER,)),
    "length(user)": Call("length", (USER,)),
    "substring(user, 2, 3)": Call("substring", (USER, whole(1), whole(3))),
    "substring(user FROM 2 FOR 3)": Call("substring", (USER, whole(1), whole(3))),
    "substr(user, n)": Call("substring", (USER, Call("sub", (N, whole(1))), whole(2**31 - 1))),
    "starts_with(user, 'a')": Call("starts_with", (USER, text("a"))),
    "replace(user, 'a', 'b')": Call("replace", (USER, text("a"), text("b"))),
    "crc32(user)": Call("crc32", (USER,)),
    "unhex('00ff')": Call("unhex", (text("00ff"),)),
    "nan()": Call("nan", ()),
    "distance_m(speed, speed, speed, speed)": Call("distance_m", (SPEED,) * 4),
    "atan2(speed, 1)": Call("atan2", (SPEED, whole(1))),
    "hour(at)": Call("hour", (AT,)),
    "extract(year FROM at)": Call("year", (AT,)),
    "weekday(at)": Call("weekday", (AT,)),
    "hour(at AT TIME ZONE 'Europe/Zurich')": Call("hour", (Call("in_zone", (AT, text("Europe/Zurich"))),)),
    "date_trunc('minute', at)": Call("floor_to", (AT, MINUTE)),
    "floor_to(at, INTERVAL '1 minute')": Call("floor_to", (AT, MINUTE)),
    "at + INTERVAL '2 hours' - INTERVAL 1 MINUTE": Call(
        "sub", (Call("add", (AT, Literal(7_200_000_000, DURATION))), MINUTE)
    ),
    "at < TIMESTAMP '2024-02-29T00:00:00Z'": Call("lt", (AT, Cast(text("2024-02-29T00:00:00Z"), INSTANT))),
    "CAST(n AS DOUBLE)": Cast(N, FLOAT),
    "speed::BIGINT": Cast(SPEED, INT),
    "n::VARCHAR": Cast(N, STR),
    "size(readings)": Call("size", (READINGS,)),
    "item(readings, 0)": Call("item", (READINGS, whole(0))),
    "place.name": GetField(PLACE_REF, "name"),
    "Fix.speed": SPEED,
    "Fix.place.name": GetField(PLACE_REF, "name"),
    "SPEED": SPEED,
    '"Weird Name"': FieldRef("Weird Name", "Fix"),
    '"count" + 1': Call("add", (FieldRef("count", "Fix"), whole(1))),
}


@pytest.mark.parametrize("sql", MEANINGS)
def test_what_it_means(sql: str) -> None:
    assert parse(sql, (FIX,)) == MEANINGS[sql]


def test_the_sides_of_a_join() -> None:
    both = (FIX, TRIP)
    expected = Call("eq", (USER, FieldRef("user", "Trip", 1)))
    assert parse("left.user = right.user", both) == expected
    assert parse("fix.user = trip.user", both) == expected
    assert parse("carbon_g / speed", both) == Call("div", (FieldRef("carbon_g", "Trip", 1), SPEED))
    with pytest.raises(ProgramError, match="C134") as refused:
        parse("user = 'a'", both)
    assert refused.value.fix == "write left.user or right.user"


def test_the_authors_line_is_named() -> None:
    with pytest.raises(ProgramError) as refused:
        parse("sped", (FIX,), SourceLine("fixes.py", 12))
    assert str(refused.value).startswith("ProgramError[C135] fixes.py:12: there is no field 'sped'")
    assert refused.value.fix == "use speed"


# A mistake, its code, the culprit that must be named, and what to write instead (parsed here, so that it works).
REFUSED = [
    ("speed >", "C131", "'>'", "speed > 1"),
    ("speed > 1 AND", "C131", "'AND'", "speed > 1 AND moving"),
    ("speed, n", "C131", "','", "speed"),
    ("", "C131", "''", "speed"),
    ("'unclosed", "C131", "unclosed", "'closed'"),
    ("sum(speed)", "C132", "SUM(speed)", "speed"),
    ("count(*)", "C132", "COUNT(*)", "n"),
    ("(SELECT 1)", "C132", "SELECT 1", "1"),
    ("SELECT speed FROM fixes", "C132", "SELECT", "speed"),
    ("EXISTS(SELECT 1)", "C132", "EXISTS", "moving"),
    ("user IN (SELECT 1)", "C132", "IN (SELECT 1)", "user IN ('a')"),
    ("user IN ()", "C132", "user IN ()", "user IN ('a')"),
    ("speed AS s", "C132", "speed AS s", "speed"),
    ("speed; n", "C132", "speed", "speed"),
    ("now()", "C132", "NOW()", "at"),
    ("current_timestamp", "C132", "CURRENT_TIMESTAMP", "at"),
    ("current_date", "C132", "CURRENT_DATE", "at"),
    ("random()", "C132", "RANDOM()", "crc32(user) % 100"),
    ("user LIKE 'a_b'", "C132", "user LIKE 'a_b'", "starts_with(user, 'a')"),
    ("user LIKE 'a%b'", "C132", "user LIKE 'a%b'", "starts_with(user, 'a') AND ends_with(user, 'b')"),
    ("user LIKE user", "C132", "user LIKE user", "contains(user, 'a')"),
    ("user LIKE 'a%' ESCAPE '!'", "C132", "ESCAPE", "starts_with(user, 'a%')"),
    ("user ILIKE 'a%'", "C132", "ILIKE", "starts_with(lower(user), 'a')"),
    ("trim(LEADING ' ' FROM user)", "C132", "TRIM", "trim(user)"),
    ("trim(user, 'x')", "C132", "TRIM", "replace(user, 'x', '')"),
    ("TRY_CAST(user AS BIGINT)", "C132", "TRY_CAST", "CAST(user AS BIGINT)"),
    ("CAST(n AS DECIMAL(10, 2))", "C132", "DECIMAL(10, 2)", "CAST(n AS DOUBLE)"),
    ("CAST(n AS DATE)", "C132", "DATE", "floor_to(at, INTERVAL '1 day')"),
    ("readings[1]", "C132", "readings[1]", "item(readings, 0)"),
    ("INTERVAL '1 month'", "C132", "MONTH", "INTERVAL '30 days'"),
    ("INTERVAL '1.5 hours'", "C132", "INTERVAL", "INTERVAL '90 minutes'"),
    ("date_trunc('month', at)", "C132", "MONTH", "floor_to(at, INTERVAL '1 day')"),
    ("extract(doy FROM at)", "C132", "DAYOFYEAR", "extract(day FROM at)"),
    ("round(speed, n)", "C132", "ROUND(speed, n)", "round_to(speed, 0.1)"),
    ("greatest(n)", "C132", "GREATEST(n)", "greatest(n, 1)"),
    ("count(n) OVER ()", "C132", "OVER", "n"),
    ("speed IS nan", "C132", "IS nan", "is_nan(speed)"),
    ("log(speed)", "C132", "LOG(speed)", "ln(speed)"),
    ("user.name", "C132", "user.name", "place.name"),
    ("n & 1", "C132", "n & 1", "n % 2"),
    ("?", "C132", "?", "1"),
    ("9223372036854775808", "C133", "9223372036854775808", "9223372036854775808.0"),
    ("fix.sped", "C135", "'sped'", "fix.speed"),
    ("distance(speed)", "C136", "distance", "distance_m(speed, speed, speed, speed)"),
    ("rlike(user, 'a')", "C136", "rlike", "contains(user, 'a')"),
    ("user + 1", "C124", "add does not take str, int", "CAST(user AS BIGINT) + 1"),
    ("CAST(speed AS VARCHAR)", "C125", "float to str", "CAST(CAST(speed AS BIGINT) AS VARCHAR)"),
]


@pytest.mark.parametrize(("mistake", "code", "culprit", "instead"), REFUSED, ids=[case[0] for case in REFUSED])
def test_a_mistake_is_refused_and_its_repair_works(mistake: str, code: str, culprit: str, instead: str) -> None:
    with pytest.raises(ProgramError) as refused:
        parse(mistake, (FIX,))
    assert refused.value.code == code, refused.value
    assert culprit in refused.value.what, refused.value
    assert refused.value.why
    assert refused.value.fix
    parse(instead, (FIX,))
