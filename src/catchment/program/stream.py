"""Streams as an author composes them. A stream is a declaration: nothing flows until a plan of it runs.

`Stream[R]` holds elements of record `R`; a `KeyedStream[R]` also knows its key, and only it offers joins and
`process`. Each method checks what it is given at once, with the author's line; what it checks is in `making`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeVar, cast, overload

from catchment.errors import ProgramError, SourceLine, author_line
from catchment.program import steps
from catchment.program.aggregate import Aggregate
from catchment.program.declared import Declared, Made, NoSuchStepError
from catchment.program.expression import Expr
from catchment.program.function import Function
from catchment.program.making import pairs, state, stateless, windows
from catchment.program.making.draft import Draft, Given, schema_of
from catchment.program.nodes import FieldRef
from catchment.program.process import Process
from catchment.program.record import Record
from catchment.program.steps import Order
from catchment.program.sync import Sync
from catchment.program.types import Duration, Schema
from catchment.program.typing import infer
from catchment.program.window import Closing, Window, closing_or_usual

R = TypeVar("R", bound=Record)
S = TypeVar("S", bound=Record)
L = TypeVar("L", bound=Record)


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
        node = FieldRef(name, self.schema.name)
        return Expr(node, infer(node, (self.schema,), author_line()).type)

    def __iter__(self) -> Iterator[NoReturn]:
        raise ProgramError(
            "C271",
            f"a stream of {self.schema.name} was iterated",
            why="it is a declaration: there are no elements before a plan of it runs",
            fix="say what happens to each element: where, select, map(function), subscribe(function)",
            at=author_line(),
        )

    @property
    def given(self) -> Given:
        """What a step on this stream is given."""
        return Given(self.schema, self.keys)

    def then(self, draft: Draft, at: SourceLine, *others: Stream[Any]) -> Any:
        """The stream that a step makes of this one, and of others."""
        inputs = tuple((stream.declared, stream.port) for stream in (self, *others))
        waits = isinstance(draft.step, steps.LATE_PORTS)
        late = tuple(stream.schema for stream in (self, *others)) if waits else ()
        made = Declared(draft.step, inputs, (draft.schema, *late), at)
        return KeyedStream(made, keys=draft.keys) if draft.keys else Stream(made)

    def where(self, predicate: Expr[bool] | Expr[bool | None] | str) -> Self:
        """Keep the elements for which the predicate is true: `where(Fix.accuracy_m <= 20)`."""
        at = author_line()
        return cast(Self, self.then(stateless.where(self.given, predicate, at), at))

    @overload
    def select(self, record: type[S], /, **columns: Any) -> Stream[S]: ...
    @overload
    def select(self, record: None = None, /, **columns: Any) -> Stream[Any]: ...
    def select(self, record: type[Record] | None = None, /, **columns: Any) -> Stream[Any]:
        """New fields computed from the old: `select(Speed, user=Fix.user, kmh=Fix.speed_mps * 3.6)`.

        Fields of `record` that are not named are taken from the element by name.
        """
        at = author_line()
        made: Stream[Any] = self.then(stateless.select(self.given, schema_of(record, at), columns, at), at)
        return made

    def map(self, function: Function[[R], S]) -> Stream[S]:
        """A declared function of each element."""
        at = author_line()
        made: Stream[S] = self.then(stateless.apply(self.given, function, at, many=False), at)
        return made

    def flat_map(self, function: Function[[R], Any]) -> Stream[Any]:
        """A declared function of each element that gives many."""
        at = author_line()
        made: Stream[Any] = self.then(stateless.apply(self.given, function, at, many=True), at)
        return made

    def union(self, *others: Stream[R]) -> Stream[R]:
        """The elements of all."""
        at = author_line()
        made: Stream[R] = self.then(stateless.union(self.schema, others, at), at, *others)
        return made

    def key_by(self, *keys: Expr[Any] | str) -> KeyedStream[R]:
        """Say which fields are the key: `key_by(Fix.user)`."""
        at = author_line()
        made: KeyedStream[R] = self.then(stateless.key_by(self.given, keys, at), at)
        return made

    def window(self, window: Window) -> WindowedStream[R]:
        """Aggregate by windows: of the key on a keyed stream, of the whole stream otherwise."""
        return WindowedStream(self, windows.check(window, author_line()))

    @overload
    def zip(self, other: Stream[Any], into: type[L], /, **columns: Any) -> Stream[L]: ...
    @overload
    def zip(self, other: Stream[Any], into: None = None, /, **columns: Any) -> Stream[Any]: ...
    def zip(self, other: Stream[Any], into: type[Record] | None = None, /, **columns: Any) -> Stream[Any]:
        """The n-th element of this stream with the n-th of the other, per key where both are keyed."""
        at = author_line()
        draft = pairs.pair(steps.Zip, self.given, other, schema_of(into, at), columns, at)
        made: Stream[Any] = self.then(draft, at, other)
        return made

    @overload
    def combine(self, other: Stream[Any], into: type[L], /, **columns: Any) -> Stream[L]: ...
    @overload
    def combine(self, other: Stream[Any], into: None = None, /, **columns: Any) -> Stream[Any]: ...
    def combine(self, other: Stream[Any], into: type[Record] | None = None, /, **columns: Any) -> Stream[Any]:
        """Whenever either has a new element: the latest of both; null for the side that had none yet."""
        at = author_line()
        draft = pairs.pair(steps.Combine, self.given, other, schema_of(into, at), columns, at, optional=(0, 1))
        made: Stream[Any] = self.then(draft, at, other)
        return made

    def changes(self, *values: Expr[Any] | str) -> Self:
        """Keep an element when one of these values differs from that of the last element kept (per key)."""
        at = author_line()
        return cast(Self, self.then(state.changes(self.given, values, at), at))

    def moved(
        self, *, by: float, lat_deg: Expr[float] | str | None = None, lon_deg: Expr[float] | str | None = None
    ) -> Self:
        """Keep an element when it is more than `by` metres from the last one kept (per key): `moved(by=metres(10))`."""
        at = author_line()
        return cast(Self, self.then(state.moved(self.given, by, lat_deg, lon_deg, at), at))

    @overload
    def state(
        self, into: type[S], /, *, order: Order = ..., closing: Closing | None = ..., **aggregates: Aggregate[Any]
    ) -> Stream[S]: ...
    @overload
    def state(
        self, into: None = None, /, *, order: Order = ..., closing: Closing | None = ..., **aggregates: Aggregate[Any]
    ) -> Stream[Any]: ...
    def state(
        self,
        into: type[Record] | None = None,
        /,
        *,
        order: Order = "event_time",
        closing: Closing | None = None,
        **aggregates: Aggregate[Any],
    ) -> Stream[Any]:
        """A stateful stream: after each element, the aggregates of all elements so far, per key where it has one."""
        at = author_line()
        made: Stream[Any] = self.then(state.state(self.given, order, closing, aggregates, at), at)
        return into_record(made, into, at)

    def fold(
        self,
        function: Function[[S, R], S],
        initial: S,
        *,
        order: Order = "event_time",
        closing: Closing | None = None,
    ) -> Stream[S]:
        """A stateful stream: `state = function(state, element)`, given after each element."""
        at = author_line()
        made: Stream[S] = self.then(state.fold(self.given, function, initial, order, closing, at), at)
        return made

    def subscribe(self, function: Function[[R], Any]) -> Self:
        """Call a declared function with each element, for its effect; the stream goes on unchanged."""
        at = author_line()
        return cast(Self, self.then(stateless.subscribe(self.given, function, at), at))

    def sync(self, policy: Sync) -> Self:
        """Bind a sync policy to the next crossing of sites downstream."""
        self.declared.policies.append(policy)
        return self

    @property
    def late(self) -> Stream[R]:
        """The elements that came too late for this step, as a stream of its input's record."""
        return self._late(0)

    @property
    def late_right(self) -> Stream[Any]:
        """The right side's elements that came too late for this join, zip or combine."""
        return self._late(1)

    def _late(self, side: int) -> Stream[Any]:
        found, port = self.declared, self.port
        while isinstance(found.step, steps.Select):  # what gave the result its record
            found, port = found.inputs[0]
        if port != 0 or steps.LATE + side >= len(found.schemas):
            raise ProgramError(
                "C210",
                "this step has no late elements" if side == 0 else "this step has no late elements of a right side",
                why="only steps that wait for progress can be too late: windows, joins, state and process",
                fix="ask .late of the result of agg(), join(), process() or state()",
                at=author_line(),
            )
        return Stream(found, steps.LATE + side)

    if not TYPE_CHECKING:  # a type checker says so by itself

        def __getattr__(self, name: str) -> NoReturn:
            if name in ("join", "join_latest", "process"):
                raise NoSuchStepError(
                    "C272",
                    f"{name} was asked of a stream of {self.schema.name} that has no key",
                    why="state is kept for each value of a key; a select that leaves the key out drops it",
                    fix=f"keep the key to here, and say it: key_by(...).{name}(...)",
                    at=author_line(),
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class KeyedStream(Stream[R]):
    """A stream that knows its key: it offers state, `process` and joins."""

    @overload
    def join(
        self,
        other: KeyedStream[Any],
        into: type[L],
        /,
        *,
        within: tuple[Duration, Duration] | Window,
        outer: bool = ...,
        closing: Closing | None = ...,
        **columns: Any,
    ) -> Stream[L]: ...
    @overload
    def join(
        self,
        other: KeyedStream[Any],
        into: None = None,
        /,
        *,
        within: tuple[Duration, Duration] | Window,
        outer: bool = ...,
        closing: Closing | None = ...,
        **columns: Any,
    ) -> Stream[Any]: ...
    def join(
        self,
        other: KeyedStream[Any],
        into: type[Record] | None = None,
        /,
        *,
        within: tuple[Duration, Duration] | Window,
        outer: bool = False,
        closing: Closing | None = None,
        **columns: Any,
    ) -> Stream[Any]:
        """Pairs of one key, `within` a window or `(before, after)`: how far the right one may lie from the left one."""
        at = author_line()
        draft = pairs.join(
            self.given, other, schema_of(into, at), columns, at, within=within, outer=outer, closing=closing
        )
        made: Stream[Any] = self.then(draft, at, other)
        return made

    @overload
    def join_latest(
        self,
        state: Stream[Any],
        into: type[L],
        /,
        *,
        outer: bool = ...,
        closing: Closing | None = ...,
        **columns: Any,
    ) -> Stream[L]: ...
    @overload
    def join_latest(
        self,
        state: Stream[Any],
        into: None = None,
        /,
        *,
        outer: bool = ...,
        closing: Closing | None = ...,
        **columns: Any,
    ) -> Stream[Any]: ...
    def join_latest(
        self,
        state: Stream[Any],
        into: type[Record] | None = None,
        /,
        *,
        outer: bool = False,
        closing: Closing | None = None,
        **columns: Any,
    ) -> Stream[Any]:
        """Each element with the latest element of a stateful stream that is not after it."""
        at = author_line()
        draft = pairs.pair(
            steps.Join,
            self.given,
            state,
            schema_of(into, at),
            columns,
            at,
            optional=(1,) if outer else (),
            how="latest",
            outer=outer,
            closing=closing_or_usual(closing, at),
        )
        made: Stream[Any] = self.then(draft, at, state)
        return made

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
        made: Stream[S] = self.then(state.process(self.given, process, order, closing, ttl, at), at)
        return made


class WindowedStream(Generic[R]):
    """A stream cut into windows, waiting to be told what to compute."""

    def __init__(self, source: Stream[R], window: Window) -> None:
        self._source = source
        self._window = window

    @overload
    def agg(self, into: type[S], /, **aggregates: Aggregate[Any]) -> Stream[S]: ...
    @overload
    def agg(self, into: None = None, /, **aggregates: Aggregate[Any]) -> Stream[Any]: ...
    def agg(self, into: type[Record] | None = None, /, **aggregates: Aggregate[Any]) -> Stream[Any]:
        """Aggregates of each window: `agg(mean_mps=mean(Fix.speed_mps))`.

        The result has the key's fields, `window_start`, `window_end`, `revision`, and the aggregates; a record given
        takes from these by name, and its event time is the last microsecond of the window.
        """
        at = author_line()
        source = self._source
        made: Stream[Any] = source.then(windows.aggregate(source.given, self._window, aggregates, at), at)
        return into_record(made, into, at)

    def top(self, k: int, *, by: Expr[Any] | str) -> Stream[Any]:
        """The k elements of each window with the largest `by`, largest first, with their `rank` from 1."""
        at = author_line()
        source = self._source
        made: Stream[Any] = source.then(windows.top(source.given, self._window, k, by, at), at)
        return made

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            if hasattr(Stream, name) or name in ("join", "join_latest", "process"):
                raise NoSuchStepError(
                    "C273",
                    f"{name} was asked of a window",
                    why="a window gives a stream once it is said what to compute of its elements",
                    fix=f"say it first: window(...).agg(n=count()).{name}(...)",
                    at=author_line(),
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def into_record(stream: Stream[Any], record: type[Record] | None, at: SourceLine) -> Stream[Any]:
    """The stream with the fields of a record, taken by name."""
    if record is None:
        return stream
    made: Stream[Any] = stream.then(stateless.into(stream.given, record.schema, at), at)
    return made


__all__ = ["Declared", "KeyedStream", "Made", "Stream", "WindowedStream", "into_record"]
