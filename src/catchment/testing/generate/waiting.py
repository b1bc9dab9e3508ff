"""The text of steps that wait: windows of every kind, tops, state, folds and processes."""

from __future__ import annotations

from hypothesis import strategies as st

from catchment.program.types import BOOL, FLOAT, INT, STR
from catchment.testing.generate.texts import Draw, Said, Text, keyed, keys_of


def closing(draw: Draw) -> list[str]:
    """Grace, idle and offline, some of the time."""
    said = []
    if draw(st.integers(0, 2)) == 2:
        said.append(f"grace={draw(st.sampled_from([1, 3, 20]))}")
    if draw(st.booleans()):
        said.append(f"idle={draw(st.sampled_from([5, 20]))}")
    if draw(st.integers(0, 2)) == 2:
        offline = ["cm.CLOSE_AND_REVISE", "cm.wait(cm.Duration(15))", "cm.wait()"]
        said.append(f"offline={draw(st.sampled_from(offline))}")
    return said


def by_closing(draw: Draw) -> str:
    """`closing=...`, some of the time."""
    said = closing(draw)
    return f", closing=cm.Closing({', '.join(said)})" if said else ""


def window(draw: Draw, *, of_time: bool = False, keep: bool = True) -> tuple[str, bool]:
    """A window, and whether its results may be revised."""
    shape = draw(st.sampled_from(["tumble(10", "hop(10, 5", "hop(10, 3", "hop(7, 1", "tumble(25"]))
    kind = 0 if of_time else draw(st.integers(0, 4))
    said = closing(draw)
    if kind == 3:
        return f"cm.session({', '.join([str(draw(st.sampled_from([1, 5, 12]))), *said])})", False
    if kind == 4:
        size = draw(st.integers(1, 4))
        said = [each for each in said if not each.startswith("offline")]
        return f"cm.count_window({', '.join([str(size), f'every={draw(st.integers(1, size))}', *said])})", False
    if keep and draw(st.integers(0, 2)) == 2:
        return f"cm.{', '.join([shape, f'keep={draw(st.sampled_from([4, 30]))}', *said])})", True
    return f"cm.{', '.join([shape, *said])})", False


def aggregates(draw: Draw, said: Said, number: int) -> tuple[str, frozenset[str]]:
    """Some aggregates, and the names of those that engines may round differently."""
    found = ["cm.count()"]
    for column in said.fields(INT, FLOAT):
        ref = said.ref(column)
        found += [f"cm.{name}({ref})" for name in ("sum", "mean", "variance")]
        found += [f"cm.dft({ref}, bins=3)"]
    for column in said.fields(INT, FLOAT, STR, BOOL):
        ref = said.ref(column)
        found += [f"cm.{name}({ref})" for name in ("min", "max", "first", "last", "count_distinct", "collect")]
        found += [f"cm.top(2, {ref})"]
    found += [f"Places()({said.ref(column)})" for column in said.fields(STR)]
    found += [f"cm.sum(10 / {said.ref(column)})" for column in said.fields(INT)]
    chosen = draw(st.lists(st.sampled_from(found), min_size=1, max_size=3, unique=True))
    named = {f"a{number}_{place}": text for place, text in enumerate(chosen)}
    rounded = ("mean", "variance", "dft", "sum(10")
    inexact = frozenset(name for name, text in named.items() if text.startswith(tuple(f"cm.{r}" for r in rounded)))
    return ", ".join(f"{name}={text}" for name, text in named.items()), inexact


def _some_key(draw: Draw, said: Said) -> str:
    return keyed(draw, said) if draw(st.integers(0, 4)) else said.name


def windowed(draw: Draw, said: Said, number: int) -> Text:
    """Aggregates of a window."""
    shape, revised = window(draw)
    columns, inexact = aggregates(draw, said, number)
    return Text(f"{_some_key(draw, said)}.window({shape}).agg({columns})", revised=revised, inexact=inexact)


def top(draw: Draw, said: Said, number: int) -> Text:
    """The largest of a window."""
    fields = said.fields(INT, FLOAT, STR)
    if not fields or "rank" in said.stream.schema.names:
        return windowed(draw, said, number)
    shape, revised = window(draw)
    by = said.ref(draw(st.sampled_from(fields)))
    by = draw(st.sampled_from([by, f"10 / {by}"])) if "10 /" not in by and _is_number(said, by) else by
    text = f"{_some_key(draw, said)}.window({shape}).top({draw(st.integers(1, 3))}, by={by})"
    return Text(text, revised=revised, inexact=said.inexact)


def _is_number(said: Said, ref: str) -> bool:
    return any(said.ref(column) == ref for column in said.fields(INT, FLOAT))


def state(draw: Draw, said: Said, number: int) -> Text:
    """Aggregates so far, by event time or by arrival."""
    columns, inexact = aggregates(draw, said, number)
    order = draw(st.sampled_from(["", ', order="arrival"']))
    return Text(f"{_some_key(draw, said)}.state({columns}{order}{by_closing(draw)})", inexact=inexact)


def fold(draw: Draw, said: Said, number: int) -> Text:
    """An author's fold."""
    if not said.is_fix:
        return state(draw, said, number)
    order = draw(st.sampled_from(["", ', order="arrival"']))
    return Text(f"{_some_key(draw, said)}.fold(tallied, NOBODY{order}{by_closing(draw)})")


def process(draw: Draw, said: Said, number: int) -> Text:
    """An author's process."""
    keys = keys_of(draw, said)
    if not said.is_fix or not keys:
        return windowed(draw, said, number)
    order = draw(st.sampled_from(["", ', order="arrival"']))
    ttl = draw(st.sampled_from(["", ", ttl=cm.Duration(7)"]))
    return Text(f"{said.name}{keys}.process(Busy(){order}{ttl}{by_closing(draw)})")


def by_arrival(draw: Draw, said: Said, number: int) -> Text:
    """What can be computed of a stream that promises nothing."""
    columns, inexact = aggregates(draw, said, number)
    return Text(f'{_some_key(draw, said)}.state({columns}, order="arrival")', silent=True, inexact=inexact)
