"""The text of pairs: joins of every kind, zip and combine, of two streams that can have one kind of key."""

from __future__ import annotations

from hypothesis import strategies as st

from catchment.program.types import INT, STR, Column
from catchment.testing.generate.texts import RESERVED, Draw, Pool, Said, Text
from catchment.testing.generate.waiting import by_closing, window, windowed


def paired(draw: Draw, left: Said, pool: Pool, number: int) -> Text:
    """This stream with another, or with itself."""
    right = draw(st.sampled_from(pool.usable(lambda said: not said.silent)))
    if not left.stream.keys and not right.stream.keys and draw(st.integers(0, 4)) == 4:
        columns = _columns(draw, left, right, number, ())
        how = draw(st.sampled_from(["zip", "combine"]))
        return Text(f"{left.name}.{how}({right.name}, {columns})", inexact=_inexact(left, right, number))
    keys = _keys(draw, left, right)
    if keys is None:
        return windowed(draw, left, number)
    one, other = f"{left.name}.key_by({left.ref(keys[0])})", f"{right.name}.key_by({right.ref(keys[1])})"
    columns = _columns(draw, left, right, number, (keys[0],))
    how = draw(st.sampled_from(["window", "interval", "latest", "zip", "combine"]))
    outer = draw(st.sampled_from(["", ", outer=True"]))
    match how:
        case "window":
            within = window(draw, of_time=True, keep=False)[0]
            said = f"join({other}, within={within}{outer}, {columns})"
        case "interval":
            apart = f"(cm.Duration({draw(st.sampled_from([0, 4]))}), cm.Duration({draw(st.sampled_from([0, 9]))}))"
            said = f"join({other}, within={apart}{outer}{by_closing(draw)}, {columns})"
        case "latest":
            said = f"join_latest({other}{outer}{by_closing(draw)}, {columns})"
        case _:
            said = f"{how}({other}, {columns})"
    return Text(f"{one}.{said}", inexact=_inexact(left, right, number))


def _keys(draw: Draw, left: Said, right: Said) -> tuple[Column, Column] | None:
    """A field of each side, of one type: the same name where there is one, or any."""
    pairs = [
        (one, other)
        for one in left.fields(INT, STR)
        for other in right.fields(INT, STR)
        if one.type == other.type and not {one.name, other.name} & set(RESERVED)
    ]
    same = [pair for pair in pairs if pair[0].name == pair[1].name]
    if not pairs:
        return None
    return draw(st.sampled_from(same if same and draw(st.integers(0, 3)) else pairs))  # type: ignore[no-any-return]


def _columns(draw: Draw, left: Said, right: Said, number: int, keys: tuple[Column, ...]) -> str:
    """The key, and a few fields of both sides under names of their own."""
    said = {key.name: left.ref(key) for key in keys}
    if draw(st.booleans()) and left.stream.schema.event_time is not None:
        said.setdefault("at", f'{left.name}["{left.stream.schema.event_time}"]')
    for side, each in (("l", left), ("r", right)):
        fields = st.sampled_from(each.stream.schema.fields)
        for column in draw(st.lists(fields, max_size=2, unique_by=lambda c: c.name)):
            said[f"{side}{number}_{column.name}"] = left.ref(column) if side == "l" else _named(left, right, column)
    numbers = left.fields(INT)
    if numbers and draw(st.integers(0, 5)) == 5:
        said[f"q{number}"] = f"10 / {left.ref(numbers[0])}"
    if not said:
        said[f"l{number}_none"] = "1"
    return ", ".join(f"{name}={text}" for name, text in said.items())


def _named(left: Said, right: Said, column: Column) -> str:
    """A field of the right side, marked as such where both are of one record."""
    same = left.stream.schema.name == right.stream.schema.name
    return f"cm.right({right.ref(column)})" if same else right.ref(column)


def _inexact(left: Said, right: Said, number: int) -> frozenset[str]:
    return frozenset(
        [
            *left.inexact,
            *(f"l{number}_{name}" for name in left.inexact),
            *(f"r{number}_{name}" for name in right.inexact),
            f"q{number}",
        ]
    )
