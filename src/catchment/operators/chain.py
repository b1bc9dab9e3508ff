"""A chain of stateless steps as one generated Python function: no call, and no row built, between its steps.

Each step writes its part with the methods below. The chain is made in two forms: `element`, which takes one element,
and `rows`, which loops over many. Counters of what each step gave are local to the function, so that the time
context of every step is known although no step runs by itself.

Knows Python source and expressions; the meaning of a step is in the step's own file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from catchment.operators.contract import Quarantine
from catchment.operators.expressions import Emitter
from catchment.operators.projection import column_sources, functions_of, time_position
from catchment.plan.history import Source
from catchment.program.nodes import FieldRef, Node
from catchment.program.row_error import RowError
from catchment.program.steps import Named
from catchment.program.types import Row, Schema


@dataclass(frozen=True, slots=True)
class Fused:
    """A compiled chain."""

    element: Callable[[int, Source, Row], None]
    rows: Callable[[Source, Iterable[Row]], None] | None
    """Takes many elements of one source, where the first schema says when they happened."""
    counts: Callable[[], list[int]]
    """How many elements came in, and how many each step gave since."""
    set_counts: Callable[[list[int]], None]
    source: str
    """The Python source, for those who want to see it."""


class _Skip(NamedTuple):
    """A line that leaves this element; inside a loop over what one element gave, only this one of them."""

    looping: bool


class _Count(NamedTuple):
    """A line that counts one more."""

    number: int


class _Form(NamedTuple):
    """How one of the two forms counts, and how it leaves an element."""

    counter: str
    skip: str


class Chain:
    """Source under construction. Where a step stands: `schema`, and how to read the element at that point."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.bindings: dict[str, Any] = {"RowError": RowError}
        self._first = schema
        self._at = "at"
        self._asks_when = False  # whether the time of what came in is used anywhere
        self._row: str | None = "row"
        self._fields: dict[str, str] = {name: f"row[{index}]" for index, name in enumerate(schema.names)}
        self._lines: list[tuple[int, str | _Skip | _Count]] = []
        self._depth = 0
        self._looping = False
        self._names = 0
        self._steps = 0
        self._counters = ["n0"]  # of each step the counter that holds what it gave; the first is what came in

    # What steps write with.

    def keep_if(self, predicate: Node) -> None:
        """Go on only where the predicate is true."""
        emitter = self._emitter((predicate,))
        emitter.share(predicate)
        test = emitter.truth(predicate)
        if emitter.analysis[predicate].may_fail:
            name = self._name()
            with self._failing():
                self._line(f"{name} = {test}")
            test = name
        self._line(f"if not {test}:")
        self._skip()
        self._gave_fewer()

    def replace(self, columns: tuple[Named, ...], record: Schema) -> None:
        """Go on with a row of these columns."""
        emitter = self._emitter(tuple(column.value for column in columns))
        sources = column_sources(emitter, columns, record)
        fails = any(emitter.analysis[column.value].may_fail for column in columns)
        names: list[str] = []
        with self._failing() if fails else self._safely():
            for source in sources:
                if source.isidentifier() or source in self._fields.values():
                    names.append(source)
                else:
                    names.append(self._name())
                    self._line(f"{names[-1]} = {source}")
        self._becomes(record, names, row=None)
        if fails:
            self._gave_fewer()
        else:
            self._counters.append(self._counters[-1])

    def call(self, function: Callable[[Row], Any]) -> None:
        """Call for an effect; go on with the same row unless it raised."""
        with self._failing():
            self._line(f"{self._bind(function)}({self._whole()})")
        self._gave_fewer()

    def map(self, function: Callable[[Row], Row], record: Schema) -> None:
        """Go on with the row that the function gives."""
        given, name = self._whole(), self._name()
        with self._failing():
            self._line(f"{name} = {self._bind(function)}({given})")
        self._becomes(record, [f"{name}[{index}]" for index in range(len(record.fields))], row=name)
        self._gave_fewer()

    def flat_map(self, function: Callable[[Row], list[Row]], record: Schema) -> None:
        """Go on with each row that the function gives."""
        given, name, one = self._whole(), self._name(), self._name()
        with self._failing():
            self._line(f"{name} = {self._bind(function)}({given})")
        self._line(f"for {one} in {name}:")
        self._depth += 1
        self._looping = True
        self._becomes(record, [f"{one}[{index}]" for index in range(len(record.fields))], row=one)
        self._gave_fewer()

    def pass_on(self) -> None:
        """A step that gives each element as it came."""
        self._counters.append(self._counters[-1])

    def next_step(self) -> None:
        """What is written from here on is another step's."""
        self._steps += 1

    # How the two forms are made.

    def compile(self, give: Callable[..., None], quarantines: list[Quarantine], *, numbered: bool = False) -> Fused:
        """The functions, which call `give` with what the chain gives and quarantine by the step that failed.

        `give` takes (at, source, row), or where `numbered`, (number, at, source, row), counting from 0.
        """
        counters = list(dict.fromkeys(self._counters))
        time = time_position(self._first)
        text = ["def make(emit, fail):", f"    {' = '.join(counters)} = 0"]
        nonlocals = f"        nonlocal {', '.join(counters)}"
        text += ["    def element(at, source, row):", nonlocals, "        n0 += 1"]
        text += self._body(2, _Form("n{}", "return"), numbered)
        if time is not None:
            # Local counters are cheaper, and the loop is all that counts meanwhile.
            local = [f"c{counter[1:]}" for counter in counters]
            text += ["    def rows(source, given):", nonlocals]
            text += [f"        {one} = {counter}" for counter, one in zip(counters, local, strict=True)]
            text += ["        try:"]
            text += ["            for row in given:", "                c0 += 1"]
            text += [f"                at = row[{time}]"] if self._asks_when else []
            text += [*self._body(4, _Form("c{}", "continue"), numbered), "        finally:"]
            text += [f"            {counter} = {one}" for counter, one in zip(counters, local, strict=True)]
        text += ["    def counts():", f"        return [{', '.join(self._counters)}]"]
        text += ["    def set_counts(given):", nonlocals]
        text += [f"        {counter} = given[{self._counters.index(counter)}]" for counter in counters]
        text += [f"    return element, {'rows' if time is not None else 'None'}, counts, set_counts"]
        source = "\n".join(text) + "\n"
        scope: dict[str, Any] = dict(self.bindings)
        exec(compile(source, "<chain>", "exec"), scope)
        element, rows, counts, set_counts = scope["make"](give, quarantines)
        return Fused(element, rows, counts, set_counts, source)

    def _body(self, depth: int, form: _Form, numbered: bool) -> Iterator[str]:
        self._asks_when = self._asks_when or self._at == "at"
        first = f"{form.counter.format(self._counters[-1][1:])} - 1, " if numbered else ""
        emit = f"emit({first}{self._at}, source, {self._whole()})"
        for extra, line in [*self._lines, (self._depth, emit)]:
            indent = "    " * (depth + extra)
            match line:
                case _Skip(looping):
                    yield f"{indent}{'continue' if looping else form.skip}"
                case _Count(number):
                    yield f"{indent}{form.counter.format(number)} += 1"
                case _:
                    yield f"{indent}{line}"

    def _line(self, line: str | _Skip | _Count) -> None:
        self._lines.append((self._depth, line))

    def _skip(self) -> None:
        self._lines.append((self._depth + 1, _Skip(self._looping)))

    def _name(self) -> str:
        self._names += 1
        return f"v{self._names}"

    def _bind(self, function: Callable[..., Any]) -> str:
        name = f"f{len(self.bindings)}"
        self.bindings[name] = function
        return name

    def _emitter(self, nodes: tuple[Node, ...]) -> Emitter:
        emitter = Emitter((self.schema,), functions_of(nodes), self._field, f"s{self._steps}_")
        # One name may not stand for two objects in two steps, so all bindings are in one place.
        emitter.bindings = self.bindings
        return emitter

    def _field(self, ref: FieldRef) -> str:
        return self._fields[ref.name]

    def _whole(self) -> str:
        """The source of the row at this point."""
        if self._row is None:
            return "(" + "".join(f"{self._fields[name]}, " for name in self.schema.names) + ")"
        return self._row

    def _becomes(self, record: Schema, names: list[str], row: str | None) -> None:
        self.schema, self._row = record, row
        self._fields = dict(zip(record.names, names, strict=True))
        if record.event_time is not None:
            time = self._fields[record.event_time]
            if record.column(record.event_time).nullable:
                name = self._name()
                self._line(f"{name} = {self._at} if {time} is None else {time}")
                self._asks_when = self._asks_when or self._at == "at"
                time = name
            self._at = time

    def _gave_fewer(self) -> None:
        number = len(self._counters)
        self._counters.append(f"n{number}")
        self._line(_Count(number))

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Lines that may fail the row: it goes to quarantine as this step was given it."""
        given = self._whole()
        self._line("try:")
        self._depth += 1
        yield
        self._depth -= 1
        self._line("except RowError as error:")
        self._lines.append((self._depth + 1, f"fail[{self._steps}](error, {given})"))
        self._skip()

    @contextmanager
    def _safely(self) -> Iterator[None]:
        yield
