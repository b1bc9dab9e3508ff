"""The program: named streams, each at a site, made from sensors, sources and one another.

A stream function is called once, when it is declared; its parameters are the streams of those names, or the site it
runs at (annotated `DeviceSite` or `CloudSite`). What it returns becomes the stream of its name.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, cast, overload

from catchment.errors import ProgramError, SourceLine, author_line
from catchment.program import steps
from catchment.program.declared import Declared, Made
from catchment.program.expression import Expr
from catchment.program.function import Function
from catchment.program.making.draft import Draft
from catchment.program.mark import Mark
from catchment.program.nodes import FieldRef
from catchment.program.places import PLACES, Beat, CloudSite, DeviceSite
from catchment.program.record import Record, _RecordMeta
from catchment.program.reliability import Reliability
from catchment.program.sinks import options_of
from catchment.program.site import DEVICE, Site
from catchment.program.stream import Stream, into_record
from catchment.program.sync import Sync
from catchment.program.types import STR, Duration

R = TypeVar("R", bound=Record)
S = TypeVar("S", bound=Stream[Any])


class Program:
    """One stream program for a whole fleet."""

    def __init__(self, name: str) -> None:
        if not name.isidentifier():
            raise ProgramError(
                "C230",
                f"{name!r} is not a program's name",
                why="names of streams, tables and checkpoints are made of it",
                fix="use letters, digits and underscores, such as peir",
                at=author_line(),
            )
        self.name = name
        self.at = author_line()
        self.streams: dict[str, Stream[Any]] = {}
        self.sites: dict[str, Site] = {}
        self.policies: dict[str, Sync] = {}
        self.reliability: dict[str, Reliability] = {}
        self.outputs: list[Declared] = []
        self.loops: dict[str, tuple[Declared, Stream[Any] | None]] = {}
        self.made = Made(name)

    def stream(
        self, *, at: Site, sync: Sync | None = None, reliability: Reliability | None = None
    ) -> Callable[[Callable[..., S]], S]:
        """Declare a stream: the function's name, its site, and how it crosses to another."""
        if not isinstance(at, Site):
            raise ProgramError(
                "C276",
                f"at={at!r} is not a site",
                why="a stream runs on the devices, in a region, in the fleet's network or in the cloud",
                fix="write at=cm.DEVICE, cm.REGION, cm.FLEET or cm.CLOUD",
                at=author_line(),
            )
        if sync is not None and not isinstance(sync, Sync):
            raise ProgramError(
                "C284",
                f"sync={sync!r} is not a policy",
                why="it says how elements cross: their batches, their codec, what happens while nobody answers",
                fix="write sync=cm.Sync(batch=cm.Batch(records=100)), or leave it out",
                at=author_line(),
            )

        def declare(function: Callable[..., S]) -> S:
            line = SourceLine(function.__code__.co_filename, function.__code__.co_firstlineno)
            name = function.__name__
            if name in self.streams:
                raise ProgramError(
                    "C231",
                    f"{self.name} already has a stream {name!r}",
                    why="a stream is known by its function's name",
                    fix="give one of them another name",
                    at=line,
                )
            result = self._call(function, name, at, line)
            if not isinstance(result, Stream):
                raise ProgramError(
                    "C232",
                    f"{name} returns a {type(result).__name__}, not a stream",
                    why="a stream function returns the stream that it makes",
                    fix="return the last step; a window needs .agg(...) to become a stream",
                    at=line,
                )
            wanted = record_of(inspect.get_annotations(function).get("return"), function)
            if wanted is not None and wanted.schema != result.schema:
                result = into_record(result, wanted, line)
            if result.declared.stream not in (None, name):
                # Another stream as it is, at a site of its own: a step of this one, so that it has a name and a place.
                result = result.then(Draft(steps.Union(), result.schema, result.keys), line)
            self._adopt(result.declared, name, at)
            if sync is not None:
                self.policies[name] = sync
            self.streams[name] = result
            self.sites[name] = at
            if reliability is not None:
                self.reliability[name] = reliability
            return cast(S, result)  # what the function's own annotation says

        return declare

    def _call(self, function: Callable[..., Any], name: str, at: Site, line: SourceLine) -> Any:
        before = len(self.made.steps)
        try:
            result = function(**self._arguments(function, at, line))
        except BaseException:
            del self.made.steps[before:]
            raise
        for made in self.made.steps[before:]:
            self._adopt(made, name, at)
        return result

    def deliver(
        self,
        stream: Stream[R],
        *,
        by: Expr[Any] | str,
        to: Site = DEVICE,
        keep: Literal["latest", "all"] = "latest",
    ) -> Stream[R]:
        """Bring results back to the devices of the user (or device) that `by` names, where they are a sensor."""
        at = author_line()
        node = FieldRef(by) if isinstance(by, str) else by.node if isinstance(by, Expr) else None
        field = node if isinstance(node, FieldRef) else None
        if (
            to != DEVICE
            or field is None
            or field.record not in (None, stream.schema.name)
            or field.name not in stream.schema.names
            or stream.schema.column(field.name).type != STR
        ):
            raise ProgramError(
                "C233",
                "deliver does not know to whom",
                why="results go to the devices of the user, or to the device, that a text field of theirs names",
                fix=f"write deliver(..., to=cm.DEVICE, by={stream.schema.name}.user)",
                at=at,
            )
        name = field.name
        stamp = stream.schema.column(name).stamp or "user"
        step = steps.Deliver(name, "device" if stamp == "device" else "user", keep)
        made = Declared(step, ((stream.declared, stream.port),), (stream.schema,), at, site=DEVICE)
        self._name(made, f"deliver_{self.name_of(stream, at)}")
        self.outputs.append(made)
        return Stream(made)

    @overload
    def sink(
        self,
        stream: Stream[Any],
        connector: Literal["parquet"],
        *,
        path: str,
        by: Expr[Any] | str | Sequence[Expr[Any] | str] = ...,
        every: Duration = ...,
    ) -> None: ...
    @overload
    def sink(
        self,
        stream: Stream[Any],
        connector: Literal["postgres"],
        *,
        url: str,
        table: str,
        keep: Literal["all", "latest"] = ...,
        every: Duration = ...,
    ) -> None: ...
    @overload
    def sink(
        self, stream: Stream[R], connector: Literal["callback"], *, function: Function[[tuple[R, ...], Mark], None]
    ) -> None: ...
    @overload
    def sink(self, stream: Stream[Any], connector: Literal["surroundings"]) -> None: ...
    def sink(self, stream: Stream[Any], connector: str, **options: Any) -> None:
        """Keep results outside: as files that readers can trust, as a table, or by calling a function of yours.

        On a device, `sink(inferred, "surroundings")` says what is around it: sampling rules go by the latest value of
        `indoors`, `metered`, `battery_low` and `battery_level` among the record's fields.
        """
        at = author_line()
        self.name_of(stream, at)
        held = options_of(connector, stream.schema, options, at)
        self._refuse_shared(connector, held, at)
        made = Declared(
            steps.Sink(connector, held),
            ((stream.declared, stream.port),),
            (stream.schema,),
            at,
            site=stream_site(stream),
        )
        self._name(made, f"{connector}_{self.name_of(stream, at)}")
        self.outputs.append(made)

    def loop(self, record: type[R], name: str) -> Stream[R]:
        """The start of a feedback edge; `close_loop(name, stream)` says what comes round."""
        at = author_line()
        if name in self.loops:
            raise ProgramError(
                "C277",
                f"{self.name} already has a loop {name!r}",
                why="a loop is known by its name, which close_loop closes",
                fix="give one of them another name",
                at=at,
            )
        made = Declared(steps.Feedback(record.schema, name), (), (record.schema,), at, made=self.made)
        self.loops[name] = (made, None)
        return Stream(made)

    def close_loop(self, name: str, stream: Stream[Any]) -> None:
        """Feed a stream back to the loop of that name."""
        at = author_line()
        if name not in self.loops:
            raise ProgramError(
                "C234",
                f"there is no loop {name!r}",
                why="a feedback edge begins with loop(Record, name)",
                fix=f"declare {name} = program.loop(..., {name!r}) and use it in a stream first",
                at=at,
            )
        start, closed = self.loops[name]
        if closed is not None:
            raise ProgramError(
                "C278",
                f"the loop {name!r} is closed twice",
                why="one stream comes round, and the second would take the place of the first",
                fix=f"unite them first: close_loop({name!r}, a.union(b))",
                at=at,
            )
        if start.schemas[0].fingerprint != stream.schema.fingerprint:
            raise ProgramError(
                "C235",
                f"the loop {name!r} begins with {start.schemas[0].name} and is fed {stream.schema.name}",
                why="what comes round is what the loop declares",
                fix=f"select({start.schemas[0].name}, ...) before closing it",
                at=at,
            )
        self.loops[name] = (start, stream)

    def name_of(self, stream: Stream[Any], at: SourceLine) -> str:
        """The name of a declared stream of this program."""
        for name, known in self.streams.items():
            if known.declared is stream.declared and known.port == stream.port:
                return name
        raise ProgramError(
            "C236",
            f"that stream is not one of {self.name}'s",
            why="only a stream that has a name can be delivered or kept",
            fix="make it with @program.stream(at=...), and name that function",
            at=at,
        )

    def _arguments(self, function: Callable[..., Any], at: Site, line: SourceLine) -> dict[str, Any]:
        found: dict[str, Any] = {}
        hints = inspect.get_annotations(function)
        for name in inspect.signature(function).parameters:
            hint = hints.get(name)
            place = next((p for p in PLACES if hint is p or str(hint).rpartition(".")[2] == p.__name__), None)
            if place is not None:
                if place.site != at:
                    raise ProgramError(
                        "C237",
                        f"{function.__name__} runs at {at} and asks for a {place.__name__}",
                        why="a stream draws only from the site that it runs at",
                        fix=f"use at=cm.{place.site.name}, or take the stream of another function as a parameter",
                        at=line,
                    )
                found[name] = place(self.made)
            elif name in self.streams:
                found[name] = self.streams[name]
                expected = record_of(hint, function)
                if expected is not None and expected.schema != found[name].schema:
                    raise ProgramError(
                        "C279",
                        f"{function.__name__} takes {name} as a stream of {expected.schema.name}",
                        why=f"{name} is a stream of {found[name].schema.name}",
                        fix=f"annotate it {name}: cm.Stream[{found[name].schema.name}]",
                        at=line,
                    )
            else:
                known = ", ".join(self.streams) or "none yet"
                raise ProgramError(
                    "C238",
                    f"{function.__name__}({name}): there is no stream {name!r}",
                    why=f"a parameter is an earlier stream of the program by name; there are: {known}",
                    fix="declare that stream first, or annotate the parameter with DeviceSite or CloudSite",
                    at=line,
                )
        return found

    def _refuse_shared(self, connector: str, held: dict[str, Any], at: SourceLine) -> None:
        for known in (made.step for made in self.outputs):
            if not isinstance(known, steps.Sink) or known.connector != connector:
                continue
            for name in ("path", "table"):
                if name in held and all(known.options.get(one) == held.get(one) for one in (name, "url")):
                    raise ProgramError(
                        "C298",
                        f"two streams are kept in {held[name]}",
                        why="a folder or a table holds the results of one stream, and says how far they go",
                        fix=f'give one of them a {name} of its own: {name}="{held[name].rstrip("/")}_2"',
                        at=at,
                    )

    def _adopt(self, declared: Declared, name: str, site: Site) -> None:
        if declared.stream is not None:
            return
        self._name(declared, name)
        declared.site = site
        for upstream, _ in declared.inputs:
            self._adopt(upstream, name, site)

    def _name(self, declared: Declared, name: str) -> None:
        declared.stream = name


def stream_site(stream: Stream[Any]) -> Site | None:
    """Where a stream is made."""
    return stream.declared.site


def record_of(hint: Any, function: Callable[..., Any]) -> type[Record] | None:
    """The record that an annotation such as `cm.Stream[Fix]` names, if it can be told here."""
    if isinstance(hint, str):
        cells = inspect.getclosurevars(function).nonlocals
        try:
            hint = eval(hint, {**function.__globals__, **cells})
        except NameError:
            return None  # a record of an enclosing function, which the stream's own schema already speaks for
    args = typing.get_args(hint)
    return args[0] if args and isinstance(args[0], _RecordMeta) and args[0] is not Record else None  # type: ignore[return-value]


__all__ = ["Beat", "CloudSite", "DeviceSite", "Program"]
