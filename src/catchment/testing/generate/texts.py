"""The text of one more stream, over those that a program has: chosen from what their schemas allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from catchment.program import steps
from catchment.program.stream import KeyedStream, Stream
from catchment.program.types import BOOL, FLOAT, INT, STR, Column, ScalarType
from catchment.testing.generate.declared import Fix

Draw = Callable[[st.SearchStrategy[Any]], Any]
RESERVED = ("window_start", "window_end", "revision", "at", "rank")


@dataclass(frozen=True)
class Text:
    """The text of a stream, and what is known of it that its schema does not say."""

    text: str
    in_loop: bool = False
    """Nothing between the sources and it waits for progress, so it may be fed back."""
    silent: bool = False
    """It promises nothing: what waits for progress would wait for ever."""
    revised: bool = False
    """Its elements may be revised: nothing more is computed of them."""
    inexact: frozenset[str] = frozenset()
    """Fields that engines may round differently: nothing is compared with them."""

    def as_stream(self, name: str, stream: Stream[Any]) -> Said:
        """The stream, once it is declared."""
        return Said(name, stream, self.in_loop, self.silent, self.revised, self.inexact)


@dataclass(frozen=True)
class Said:
    """A stream of the program, and what is known of it."""

    name: str
    stream: Stream[Any]
    in_loop: bool = False
    silent: bool = False
    revised: bool = False
    inexact: frozenset[str] = frozenset()

    def like(self, text: str, **changed: Any) -> Text:
        """The text of a stream of the same kind."""
        known = {n: getattr(self, n) for n in ("in_loop", "silent", "revised", "inexact")}
        return Text(text, **{**known, **changed})

    def fields(self, *kinds: ScalarType) -> list[Column]:
        """Its fields of these types whose values are the same on every engine."""
        return [c for c in self.stream.schema.fields if c.type in kinds and c.name not in self.inexact]

    def ref(self, column: Column) -> str:
        """A field as text."""
        return f'{self.name}["{column.name}"]'

    @property
    def has_late(self) -> bool:
        """Whether elements can come too late for it."""
        return isinstance(self.stream.declared.step, steps.LATE_PORTS) and self.stream.port == 0

    @property
    def is_fix(self) -> bool:
        """Whether its elements are whole fixes."""
        return self.stream.schema == Fix.schema


@dataclass
class Pool:
    """The streams that a program has so far."""

    known: list[Said] = field(default_factory=list)

    def add(self, said: Said) -> None:
        """One more."""
        self.known.append(said)

    def usable(self, wanted: Callable[[Said], bool] = lambda said: True) -> list[Said]:
        """Streams that more can be computed of, the latest first: programs are to be chains more often than fans."""
        return [said for said in reversed(self.known) if not said.revised and wanted(said)]


def stateless(draw: Draw, said: Said, pool: Pool, number: int) -> Text:
    """A step that treats each element by itself, or compares it with the last one kept."""
    choices: list[Callable[[Draw, Said, int], Text]] = [where, select, changes, key_by]
    if said.is_fix:
        choices += [mapped, moved]
    if said.has_late:
        choices += [late, late]
    choices += [lambda draw, said, number: union(draw, said, pool)]
    return draw(st.sampled_from(choices))(draw, said, number)  # type: ignore[no-any-return]


def predicate(draw: Draw, said: Said) -> str:
    """A condition on an element, which may be null and may fail."""
    found = []
    for column in said.fields(INT, FLOAT):
        ref = said.ref(column)
        found += [f"{ref} > 1", f"{ref} <= 0", f"~({ref} == 2)", f"10 / {ref} > 4", f"{ref} * 4611686018427387904 < 0"]
    found += [f'{said.ref(column)} == "a"' for column in said.fields(STR)]
    found += [f"{said.ref(column)}.is_null()" for column in said.fields(INT, FLOAT, STR, BOOL)]
    found += [said.ref(column) for column in said.fields(BOOL)]
    if not found:
        found = [f"~{said.ref(said.stream.schema.fields[0])}.is_null()"]
    one = draw(st.sampled_from(found))
    if draw(st.integers(0, 3)) < 3:
        return str(one)
    return f"({one}) {draw(st.sampled_from('&|'))} ({draw(st.sampled_from(found))})"


def where(draw: Draw, said: Said, number: int) -> Text:
    """A filter."""
    return said.like(f"{said.name}.where({predicate(draw, said)})")


def select(draw: Draw, said: Said, number: int) -> Text:
    """Most fields, and a new one."""
    kept = [c for c in said.stream.schema.fields if draw(st.integers(0, 5)) < 5]
    columns = [f"{c.name}={said.ref(c)}" for c in kept]
    computed = [f"{predicate(draw, said)}"]
    for column in said.fields(INT, FLOAT):
        ref = said.ref(column)
        computed += [f"{ref} + {ref}", f"{ref}.or_else(3)", f"-{ref}", f"cm.least({ref}, 2)", f"{ref} % 3"]
    computed += [f"cm.concat({said.ref(column)}, {said.ref(column)})" for column in said.fields(STR)]
    new = draw(st.sampled_from(computed))
    return said.like(f"{said.name}.select({', '.join([*columns, f'x{number}={new}'])})")


def changes(draw: Draw, said: Said, number: int) -> Text:
    """Elements that differ."""
    fields_ = said.fields(INT, FLOAT, STR, BOOL)
    if not fields_:
        return where(draw, said, number)
    chosen = draw(st.lists(st.sampled_from(fields_), min_size=1, max_size=2, unique_by=lambda c: c.name))
    return said.like(f"{said.name}.changes({', '.join(said.ref(column) for column in chosen)})")


def key_by(draw: Draw, said: Said, number: int) -> Text:
    """A key, and nothing else."""
    keys = keys_of(draw, said)
    return said.like(f"{said.name}{keys}" if keys else f"{said.name}.where({predicate(draw, said)})")


def keys_of(draw: Draw, said: Said) -> str:
    """`.key_by(...)` with one or two fields, the user more often than others; empty where none can be a key."""
    fields_ = [c for c in said.fields(INT, STR, BOOL) if c.name not in RESERVED]
    if not fields_:
        return ""
    user = [column for column in fields_ if column.name == "user"]
    if user and draw(st.booleans()):
        return f".key_by({said.ref(user[0])})"
    chosen = draw(st.lists(st.sampled_from(fields_), min_size=1, max_size=2, unique_by=lambda c: c.name))
    return f".key_by({', '.join(said.ref(column) for column in chosen)})"


def keyed(draw: Draw, said: Said) -> str:
    """The stream with a key: its own, or a new one."""
    if isinstance(said.stream, KeyedStream) and draw(st.booleans()):
        return said.name
    return f"{said.name}{keys_of(draw, said)}"


def mapped(draw: Draw, said: Said, number: int) -> Text:
    """A declared function."""
    call = draw(st.sampled_from(["map(delayed)", "flat_map(doubled)", "subscribe(looked_at)"]))
    return said.like(f"{said.name}.{call}")


def moved(draw: Draw, said: Said, number: int) -> Text:
    """Elements that lie apart, were speed and floor a place."""
    columns = f'lat_deg={said.name}["speed_mps"], lon_deg={said.name}["floor"]'
    return said.like(f"{keyed(draw, said)}.moved(by=cm.metres(150000), {columns})")


def late(draw: Draw, said: Said, number: int) -> Text:
    """What came too late."""
    return Text(f"{said.name}.late", silent=True)


def union(draw: Draw, said: Said, pool: Pool) -> Text:
    """With another of the same record, or with itself."""
    like = pool.usable(lambda other: other.stream.schema.fingerprint == said.stream.schema.fingerprint)
    other = draw(st.sampled_from(like))
    return said.like(
        f"{said.name}.union({other.name})",
        in_loop=said.in_loop and other.in_loop,
        silent=said.silent or other.silent,
        inexact=said.inexact | other.inexact,
    )


def closing(draw: Draw, pool: Pool) -> str:
    """What the loop is closed with: fixes that come round with a lower floor, and end."""
    said = draw(st.sampled_from([said for said in pool.known if said.is_fix and said.in_loop]))
    floor = f'{said.name}["floor"]'
    return f"{said.name}.where(({floor} > 0) & ({floor} < 5)).select(Fix, floor={floor} - 1)"
