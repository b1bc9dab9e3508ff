"""Streams as an author composes them. A stream is a declaration: nothing flows until a plan of it runs.

`Stream[R]` holds elements of record `R`; a `KeyedStream[R]` also knows its key, and only it offers state and
`process`. Each method checks what it is given at once, with the author's line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from catchment.errors import ProgramError, SourceLine, author_line
from catchment.program import steps
from catchment.program.aggregate import Aggregate, columns_of, named
from catchment.program.columns import (
    at_column,
    by_name,
    check_keys,
    conform,
    key_columns,
    named_columns,
    outer_side,
    plain_columns,
    scope_of,
    sided,
    surviving_keys,
    window_columns,
)
from catchment.program.expression import Expr, literal
from catchment.program.function import Function, record_schema, require
from catchment.program.nodes import FieldRef, Node
from catchment.program.process import Process
from catchment.program.record import Record
from catchment.program.site import Site
from catchment.program.sync import Sync
from catchment.program.types import BOOL, FLOAT, INT, NULL, Column, Duration, Schema
from catchment.program.typing import infer
from catchment.program.window import Closing, Window

R = TypeVar("R", bound=Record)
S = TypeVar("S", bound=Record)
L = TypeVar("L", bound=Record)
Order = Literal["event_time", "arrival"]


@dataclass(eq=False)
class Made:
    """All steps made so far from the sources of one program: what is made and then forgotten is found here."""

    program: str | None = None
    steps: list[Declared] = field(default_factory=list)


@dataclass(eq=False)
class Declared:
    """A step as the author wrote it: its data, what it reads, and where it stands in the program and the file."""

    step: steps.Step
    inputs: tuple[tuple[Declared, int], ...]
    schemas: tuple[Schema, ...]
    at: SourceLine
    site: Site | None = None
    stream: str | None = None
    policies: list[Sync] = field(default_factory=list)
    made: Made = field(default_factory=Made)

    def __post_init__(self) -> None:
        for upstream, _ in self.inputs:
            if self.made.program is not None and upstream.made.program not in (None, self.made.program):
                raise ProgramError(
                    "C224",
                    f"a stream of {upstream.made.program} is used in {self.made.program}",
                    why="a program is planned and shipped by itself; it shares no steps with another",
                    fix=f"declare the stream in {self.made.program} too, from the same function",
                    at=self.at,
                )
            if upstream.made.program is not None or self.made.program is None:
                self.made = upstream.made
        self.made.steps.append(self)


class Stream(Generic[R]):
    """An unbounded, ordered sequence of elements of one record."""

    def __init__(self, declared: Declared, port: int = 0, keys: tuple[str, ...] = ()) -> None:
        self.declared = declared
        self.port = port
        self.keys = keys

    @property
    def schema(self) -> Schema:
        """The fields of an element."""
        return self.declared.schemas[self.port]

    def __getitem__(self, name: str) -> Expr[Any]:
        """A field by name, for streams whose record was not declared as a class."""
        column = self.schema.column(name)
        return Expr(FieldRef(name, self.schema.name), column.type)

    def _then(
        self, step: steps.Step, schema: Schema, at: SourceLine, *others: Stream[Any], keys: tuple[str, ...] = ()
    ) -> Stream[Any]:
        inputs = tuple((s.declared, s.port) for s in (self, *others))
        late = tuple(s.schema for s in (self, *others)) if isinstance(step, steps.LATE_PORTS) else ()
        made = Declared(step, inputs, (schema, *late), at)
        return KeyedStream(made, keys=keys) if keys else Stream(made)

    def _same(self, step: steps.Step, at: SourceLine, *others: Stream[Any]) -> Any:
        return self._then(step, self.schema, at, *others, keys=self.keys)

    def expression(self, given: Any, at: SourceLine) -> Node:
        """The node of an expression, a string of SQL, or a constant, over this stream's elements."""
        if isinstance(given, Expr):
            return given.node
        if isinstance(given, str):
            from catchment.program.sql import parse

            return parse(given, at=at)
        return literal(given)

    def where(self, predicate: Expr[bool] | Expr[bool | None] | str) -> Stream[R]:
        """Keep the elements for which the predicate is true: `where(Fix.accuracy_m <= 20)`."""
        at = author_line()
        node = self.expression(predicate, at)
        kind = infer(node, (self.schema,), at).type
        if kind not in (BOOL, NULL):
            raise ProgramError(
                "C200",
                f"where was given a {kind}",
                why="a filter keeps the elements for which a boolean is true",
                fix="compare it: where(Fix.speed_mps > 0)",
                at=at,
            )
        kept: Stream[R] = self._same(steps.Where(node), at)
        return kept

    def select(self, record: type[S] | None = None, /, **columns: Any) -> Stream[S]:
        """New fields computed from the old: `select(Speed, user=Fix.user, kmh=Fix.speed_mps * 3.6)`.

        Fields of `record` that are not named are taken from the element by name.
        """
        at = author_line()
        given = {name: self.expression(value, at) for name, value in columns.items()}
        if record is not None:
            given = {**{n: FieldRef(n) for n in record.schema.names if n in self.schema.names}, **given}
        return self._project(given, record.schema if record is not None else None, at)

    def _project(self, given: dict[str, Node], target: Schema | None, at: SourceLine) -> Stream[Any]:
        columns = named_columns(given, (self.schema,), at)
        schema = conform(columns, target, (self.schema,), at)
        ordered = {c.name: c for c in columns}
        step = steps.Select(tuple(ordered[name] for name in schema.names if name in ordered), schema)
        return self._then(step, schema, at, keys=surviving_keys(self.keys, step.columns))

    def map(self, function: Function[[R], S]) -> Stream[S]:
        """A declared function of each element."""
        return self._apply(function, many=False)

    def flat_map(self, function: Function[[R], Any]) -> Stream[Any]:
        """A declared function of each element that gives many."""
        return self._apply(function, many=True)

    def _apply(self, function: Any, *, many: bool) -> Stream[Any]:
        at = author_line()
        word = "flat_map" if many else "map"
        known = require(function, word)
        takes = record_schema(known.annotations[0], f"the parameter of {known.body.__name__}")
        gives = record_schema(known.returns, f"the result of {known.body.__name__}")
        if known.many != many:
            raise ProgramError(
                "C201",
                f"{word} was given {known.body.__name__}, which gives {'many' if known.many else 'one'}",
                why="map gives one element for each, flat_map as many as the function lists",
                fix=f"use {'flat_map' if known.many else 'map'}",
                at=at,
            )
        if takes != self.schema:
            raise ProgramError(
                "C202",
                f"{known.body.__name__} takes {takes.name}, and the stream has {self.schema.name}",
                why="a function is given the elements of the stream it stands on",
                fix=f"select({takes.name}, ...) first, or declare the function for {self.schema.name}",
                at=at,
            )
        return self._then(steps.Map(known.reference, gives, many), gives, at)

    def union(self, *others: Stream[R]) -> Stream[R]:
        """The elements of all."""
        at = author_line()
        for other in others:
            if other.schema.fingerprint != self.schema.fingerprint:
                raise ProgramError(
                    "C203",
                    f"union of {self.schema.name} and {other.schema.name}",
                    why="a stream holds elements of one record",
                    fix=f"select({self.schema.name}, ...) on the other first",
                    at=at,
                )
        united: Stream[R] = self._then(steps.Union(), self.schema, at, *others)
        return united

    def key_by(self, *keys: Expr[Any]) -> KeyedStream[R]:
        """Say which fields are the key: `key_by(Fix.user)`."""
        at = author_line()
        names = []
        for key in keys:
            if not isinstance(key, Expr) or not isinstance(key.node, FieldRef):
                raise ProgramError(
                    "C204",
                    f"key_by was given {key!r}",
                    why="a key is a field, so that it has a name where the results go",
                    fix="compute it with select(name=...) first, then key_by(that field)",
                    at=at,
                )
            kind = infer(key.node, (self.schema,), at).type
            if kind == FLOAT:
                raise ProgramError(
                    "C205",
                    f"{key.node.name} is a float and cannot be a key",
                    why="two floats that should be the same key may differ in the last bit",
                    fix="round it to whole steps with floor(...).cast(int), or key by another field",
                    at=at,
                )
            names.append(key.node.name)
        if not names:
            raise ProgramError(
                "C206",
                "key_by() names no field",
                why="a keyed stream has state for each value of its key",
                fix="name a field: key_by(Fix.user)",
                at=at,
            )
        owner = next((n for n in names if self.schema.column(n).stamp is not None), None)
        made = Declared(steps.KeyBy(tuple(names), owner), ((self.declared, self.port),), (self.schema,), at)
        return KeyedStream(made, keys=tuple(names))

    def window(self, window: Window) -> WindowedStream[R]:
        """Aggregate by windows: of the key on a keyed stream, of the whole stream otherwise."""
        return WindowedStream(self, window)

    def zip(self, other: Stream[S], into: type[L] | None = None, /, **columns: Any) -> Stream[L]:
        """The n-th element of this stream with the n-th of the other, per key where both are keyed."""
        return self._pair(steps.Zip, other, into, columns)

    def combine(self, other: Stream[S], into: type[L] | None = None, /, **columns: Any) -> Stream[L]:
        """Whenever either has a new element: the latest of both; null for the side that had none yet."""
        return self._pair(steps.Combine, other, into, columns, optional=(0, 1))

    def _pair(
        self,
        kind: Callable[..., steps.Step],
        other: Stream[Any],
        into: type[Record] | None,
        columns: dict[str, Any],
        *,
        optional: tuple[int, ...] = (),
        **more: Any,
    ) -> Stream[Any]:
        at = author_line()
        check_keys(self.schema, self.keys, other.schema, other.keys, at)
        sides = (outer_side(self.schema, 0 in optional), outer_side(other.schema, 1 in optional))
        given = {name: sided(self.expression(value, at), sides, at) for name, value in columns.items()}
        if into is not None:
            given = {**by_name(into.schema, sides), **given}
        elif not columns:
            given = {**by_name(sides[1], sides), **by_name(sides[0], sides)}
        found = named_columns(given, sides, at)
        schema = conform(found, into.schema if into is not None else None, sides, at)
        ordered = {c.name: c for c in found}
        step = kind(
            keys=self.keys,
            right_keys=other.keys,
            columns=tuple(ordered[name] for name in schema.names if name in ordered),
            scope=scope_of(self.schema, self.keys),
            record=schema,
            **more,
        )
        keys = tuple(k for k in self.keys if k in schema.names)
        return self._then(step, schema, at, other, keys=keys if len(keys) == len(self.keys) else ())

    def changes(self, *values: Expr[Any]) -> Stream[R]:
        """Keep an element when one of these values differs from that of the last element kept (per key)."""
        at = author_line()
        nodes = tuple(self.expression(v, at) for v in values) or tuple(FieldRef(n) for n in self.schema.names)
        for node in nodes:
            infer(node, (self.schema,), at)
        kept: Stream[R] = self._same(steps.Changes(nodes, self.keys), at)
        return kept

    def moved(self, *, by: float, lat_deg: Expr[float] | None = None, lon_deg: Expr[float] | None = None) -> Stream[R]:
        """Keep an element when it is more than `by` metres from the last one kept (per key): `moved(by=metres(10))`."""
        at = author_line()
        nodes = []
        for given, name in ((lat_deg, "lat_deg"), (lon_deg, "lon_deg")):
            if given is None and name not in self.schema.names:
                raise ProgramError(
                    "C207",
                    f"moved does not find {name} on {self.schema.name}",
                    why="it measures the distance between places",
                    fix=f"say where it is: moved(by=..., {name}={self.schema.name}.{name[:3]})",
                    at=at,
                )
            node = self.expression(given, at) if given is not None else FieldRef(name)
            if infer(node, (self.schema,), at).type not in (FLOAT, INT):
                raise ProgramError(
                    "C208",
                    f"{name} is not a number",
                    why="moved measures distance from degrees",
                    fix="give a float field in degrees",
                    at=at,
                )
            nodes.append(node)
        if not by > 0:
            raise ProgramError(
                "C209",
                f"moved(by={by}) keeps everything",
                why="by is a distance in metres",
                fix="give by=metres(10)",
                at=at,
            )
        moved: Stream[R] = self._same(steps.Moved(float(by), nodes[0], nodes[1], self.keys), at)
        return moved

    def state(
        self,
        into: type[S] | None = None,
        /,
        *,
        order: Order = "event_time",
        closing: Closing | None = None,
        **aggregates: Aggregate[Any],
    ) -> KeyedStream[S]:
        """A stateful stream: after each element, the aggregates of all elements so far, per key where it has one."""
        found: KeyedStream[S] = running(self, into, order, closing, aggregates)
        return found

    def fold(
        self,
        function: Function[[S, R], S],
        initial: S,
        *,
        order: Order = "event_time",
        closing: Closing | None = None,
    ) -> KeyedStream[S]:
        """A stateful stream: `state = function(state, element)`, given after each element."""
        found: KeyedStream[S] = folded(self, function, initial, order, closing)
        return found

    def subscribe(self, function: Function[[R], Any]) -> Stream[R]:
        """Call a declared function with each element, for its effect; the stream goes on unchanged."""
        at = author_line()
        known = require(function, "subscribe")
        passed: Stream[R] = self._same(steps.Subscribe(known.reference), at)
        return passed

    def sync(self, policy: Sync) -> Stream[R]:
        """Bind a sync policy to the next crossing of sites downstream."""
        self.declared.policies.append(policy)
        return self

    @property
    def late(self) -> Stream[Any]:
        """The elements that came too late for this step, as a stream of its input's record."""
        return self._late(0)

    @property
    def late_right(self) -> Stream[Any]:
        """The right side's elements that came too late for this join, zip or combine."""
        return self._late(1)

    def _late(self, side: int) -> Stream[Any]:
        found = self.declared
        while isinstance(found.step, steps.Select):  # what gave the result its record
            found = found.inputs[0][0]
        if steps.LATE + side >= len(found.schemas):
            raise ProgramError(
                "C210",
                "this step has no late elements",
                why="only steps that wait for progress can be too late: windows, joins, state and process",
                fix="ask .late of the result of agg(), join(), process() or state()",
                at=author_line(),
            )
        return Stream(found, steps.LATE + side)


class KeyedStream(Stream[R]):
    """A stream that knows its key: it offers state, `process` and joins."""

    def join(
        self,
        other: KeyedStream[S],
        into: type[L] | None = None,
        /,
        *,
        within: tuple[Duration, Duration] | Window,
        outer: bool = False,
        closing: Closing | None = None,
        **columns: Any,
    ) -> Stream[L]:
        """Pairs of one key, `within` a window or `(before, after)`: how far the right one may lie from the left one."""
        more: dict[str, Any] = {"outer": outer}
        if isinstance(within, tuple):
            before, after = within
            if before < 0 or after < 0:
                raise ProgramError(
                    "C211",
                    f"join within ({before}, {after}) is empty",
                    why="before and after are how much earlier and later the right element may be",
                    fix="give two durations of zero or more",
                    at=author_line(),
                )
            more |= {"how": "interval", "before": before, "after": after, "closing": closing or Closing()}
        else:
            more |= {"how": "window", "window": within, "closing": within.closing}
        return self._pair(_join, other, into, columns, optional=(1,) if outer else (), **more)

    def join_latest(
        self,
        state: KeyedStream[S],
        into: type[L] | None = None,
        /,
        *,
        outer: bool = False,
        closing: Closing | None = None,
        **columns: Any,
    ) -> Stream[L]:
        """Each element with the latest element of a stateful stream that is not after it."""
        more = {"how": "latest", "outer": outer, "closing": closing or Closing()}
        return self._pair(_join, state, into, columns, optional=(1,) if outer else (), **more)

    def process(
        self,
        process: Process[R, S, Any],
        *,
        order: Order = "event_time",
        closing: Closing | None = None,
        ttl: Duration | None = None,
    ) -> Stream[S]:
        """An author's own keyed step; `ttl` forgets a key's state when it had no element for so long in event time."""
        at = author_line()
        if not isinstance(process, Process):
            raise ProgramError(
                "C212",
                f"process was given {process!r}",
                why="a keyed step is an instance of a Process class, with its parameters",
                fix="write process(SegmentTrips(gap=minutes(5)))",
                at=at,
            )
        takes = record_schema(process.element_type, f"the element of {type(process).__name__}")
        gives = record_schema(process.output_type, f"the output of {type(process).__name__}")
        if takes != self.schema:
            raise ProgramError(
                "C213",
                f"{type(process).__name__} takes {takes.name}, and the stream has {self.schema.name}",
                why="a process is given the elements of the stream it stands on",
                fix=f"select({takes.name}, ...) first, or declare the process for {self.schema.name}",
                at=at,
            )
        reference = vars(process)["reference"]
        step = steps.Processed(
            reference,
            process.parameters,
            self.keys,
            scope_of(self.schema, self.keys),
            gives,
            order,
            closing or Closing(),
            ttl,
        )
        keys = self.keys if all(k in gives.names for k in self.keys) else ()
        return self._then(step, gives, at, keys=keys)


class WindowedStream(Generic[R]):
    """A stream cut into windows, waiting to be told what to compute."""

    def __init__(self, source: Stream[R], window: Window) -> None:
        self._source = source
        self._window = window

    def agg(self, into: type[S] | None = None, /, **aggregates: Aggregate[Any]) -> Stream[S]:
        """Aggregates of each window: `agg(mean_mps=mean(Fix.speed_mps))`.

        The result has the key's fields, `window_start`, `window_end`, `revision`, and the aggregates; a record given
        takes from these by name, and its event time is the last microsecond of the window.
        """
        at = author_line()
        source = self._source
        found = named(source.schema, aggregates, at)
        if not found:
            raise ProgramError(
                "C214",
                "agg() computes nothing",
                why="a window gives its aggregates",
                fix="name one: agg(n=count())",
                at=at,
            )
        full = Schema(
            f"{source.schema.name}_windows", (*window_columns(source.schema, source.keys), *columns_of(found))
        )
        step = steps.Aggregated(self._window, found, source.keys, scope_of(source.schema, source.keys), full)
        return into_record(source._then(step, full, at, keys=source.keys), into, at)

    def top(self, k: int, *, by: Expr[Any]) -> Stream[Any]:
        """The k elements of each window with the largest `by`, largest first, with their `rank` from 1."""
        at = author_line()
        source = self._source
        node = source.expression(by, at)
        infer(node, (source.schema,), at)
        if k < 1:
            raise ProgramError(
                "C215", f"top({k}) asks for nothing", why="k is how many elements", fix="give k=1 or more", at=at
            )
        fields = tuple(c for c in source.schema.fields if c.name not in source.keys)
        full = Schema(
            f"{source.schema.name}_top",
            (*window_columns(source.schema, source.keys), Column("rank", INT), *plain_columns(fields)),
        )
        step = steps.TopK(k, node, self._window, source.keys, scope_of(source.schema, source.keys), full)
        return source._then(step, full, at, keys=source.keys)


def running(
    source: Stream[Any],
    into: type[Any] | None,
    order: Order,
    closing: Closing | None,
    aggregates: dict[str, Aggregate[Any]],
) -> Any:
    """The stateful stream of aggregates, keyed or of the whole stream."""
    at = author_line()
    found = named(source.schema, aggregates, at)
    full = Schema(
        f"{source.schema.name}_state", (*key_columns(source.schema, source.keys), at_column(), *columns_of(found))
    )
    step = steps.Running(found, source.keys, scope_of(source.schema, source.keys), full, order, closing or Closing())
    return into_record(source._then(step, full, at, keys=source.keys), into, at)


def folded(source: Stream[Any], function: Any, initial: Any, order: Order, closing: Closing | None) -> Any:
    """The stateful stream of a declared fold, keyed or of the whole stream."""
    at = author_line()
    known = require(function, "fold")
    gives = record_schema(known.returns, f"the result of {known.body.__name__}")
    if record_schema(known.annotations[0], "the state") != gives or len(known.annotations) != 2:
        raise ProgramError(
            "C216",
            f"{known.body.__name__} is not a fold of {gives.name}",
            why="a fold takes the state and an element, and gives the next state",
            fix=f"declare it as def {known.body.__name__}(state: {gives.name}, element: {source.schema.name}) -> "
            f"{gives.name}",
            at=at,
        )
    if record_schema(known.annotations[1], "the element") != source.schema:
        raise ProgramError(
            "C217",
            f"{known.body.__name__} folds {record_schema(known.annotations[1], 'the element').name}, "
            f"and the stream has {source.schema.name}",
            why="a fold is given the elements of the stream it stands on",
            fix=f"declare its second parameter as {source.schema.name}",
            at=at,
        )
    scope = scope_of(source.schema, source.keys)
    step = steps.Fold(known.reference, tuple(initial), source.keys, scope, gives, order, closing or Closing())
    keys = source.keys if all(k in gives.names for k in source.keys) else ()
    return source._then(step, gives, at, keys=keys)


def _join(**said: Any) -> steps.Step:
    return steps.Join(**said)


def into_record(stream: Stream[Any], into: type[Record] | None, at: SourceLine) -> Stream[Any]:
    """The stream with the fields of a record, taken by name."""
    if into is None:
        return stream
    schema = stream.schema
    given = {name: FieldRef(name) for name in into.schema.names if name in schema.names}
    when = into.schema.event_time
    if when is not None and when not in given and schema.event_time is not None:
        given[when] = FieldRef(schema.event_time)
    return stream._project({**given}, into.schema, at)
