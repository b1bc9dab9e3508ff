"""Random programs and histories for rewrites: small, made to meet the shapes that rewrites look for.

A program is drawn as data (`Drawn`), so that a failing one prints as what it is; `program_of` builds it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import strategies as st

import catchment as cm
from catchment.plan.graph import Graph
from catchment.plan.history import Element, Entry, History, Presence, Progress, Source, Tick
from catchment.program import steps


class Reading(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    x: cm.Field[float] = cm.field(step=0.5)
    n: cm.Field[int | None]
    kind: cm.Field[str] = cm.field(default="walk")
    spare: cm.Field[bytes] = cm.field(default=b"")


class Summary(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    total: cm.Field[float | None]


@cm.function
def odd(x: float) -> float:
    """Fails for some, so that it may only be moved where nobody sees the difference."""
    if x > 9:
        raise ValueError("too large")
    return x * 2 + 1


PER_N = (Reading.n * 0 + 100) // Reading.n  # fails where n is 0

PREDICATES: tuple[cm.Expr[Any], ...] = (
    Reading.x > 3,
    Reading.n > 2,  # may be null
    Reading.kind == "walk",
    Reading.n.is_null() | (Reading.x < 8),
    Reading.user != "eve",
    PER_N > 20,  # may fail
    odd(Reading.x) > 5,  # may fail
)
SELECTS: tuple[dict[str, Any], ...] = (
    {},
    {"x": Reading.x * 2},
    {"kind": cm.concat(Reading.kind, "!")},
    {"n": PER_N},  # may fail
    {"x": odd(Reading.x), "n": odd(Reading.x).cast(int)},  # may fail, and shares
    {
        "x": cm.distance_m(Reading.x, 0.0, 1.0, Reading.x),
        "n": cm.when(cm.distance_m(Reading.x, 0.0, 1.0, Reading.x) > 5, 1).otherwise(Reading.n),
    },
    {"x": cm.when(Reading.n > 2, odd(Reading.x)).otherwise(odd(Reading.x) + 1)},
    # Shared, but not computed for every row: computing it first would fail rows that are well.
    {
        "x": cm.when(Reading.n > 2, odd(Reading.x)).otherwise(Reading.x),
        "n": cm.when(Reading.n > 3, odd(Reading.x).cast(int)).otherwise(Reading.n),
    },
    # Shared, but something else fails first: computing it first would give another reason.
    {"x": PER_N.or_else(1) * odd(Reading.x), "n": odd(Reading.x).cast(int)},
)
AGGREGATES: tuple[dict[str, cm.Aggregate[Any]], ...] = (
    {"total": cm.sum(Reading.x)},
    {"total": cm.mean(Reading.x)},
    {"total": cm.max(Reading.x)},
    {"total": cm.last(Reading.x)},
    {"total": cm.sum(cm.when(Reading.kind == "walk", Reading.x).otherwise(0.5))},
)


class Op(NamedTuple):
    """A step of a stream, and which of the choices above (or which earlier stream) it takes."""

    name: str
    choice: int = 0


class Piece(NamedTuple):
    """A stream function: its site, the streams that it reads, its steps, and what it ends with."""

    site: cm.Site
    reads: tuple[int, ...]
    ops: tuple[Op, ...]
    end: Op | None
    thinned: bool = False


Drawn = tuple[Piece, ...]

_OPS = st.one_of(
    *[st.builds(Op, st.just("where"), st.integers(0, len(PREDICATES) - 1))] * 3,
    st.builds(Op, st.just("select"), st.integers(0, len(SELECTS) - 1)),
    st.sampled_from([Op("key_by"), Op("changes"), Op("twice")]),
)
_ENDS = st.one_of(
    st.none(),
    st.builds(Op, st.sampled_from(["tumble", "hop", "state"]), st.integers(0, len(AGGREGATES) - 1)),
    st.just(Op("late")),
    st.just(Op("top")),
    st.just(Op("join")),
)


@st.composite
def programs(draw: st.DrawFn) -> Drawn:
    """One to four streams, each reading earlier ones, none lower than what it reads."""
    pieces = [Piece(cm.DEVICE, (), tuple(draw(st.lists(_OPS, max_size=2))), None)]
    for number in range(1, draw(st.integers(2, 4))):
        whole = [index for index, piece in enumerate(pieces) if piece.end is None]
        reads = tuple(draw(st.lists(st.sampled_from(whole), min_size=1, max_size=2)))
        lowest = max((pieces[index].site for index in reads), key=_SITES.index)
        site = draw(st.sampled_from(_SITES[_SITES.index(lowest) :]))
        ops = tuple(draw(st.lists(_OPS, max_size=4)))
        thinned = draw(st.integers(0, 7)) == 0 and number == 1
        pieces.append(Piece(site, reads, ops, draw(_ENDS), thinned))
    return tuple(pieces)


_SITES = [cm.DEVICE, cm.REGION, cm.CLOUD]


def program_of(drawn: Drawn) -> cm.Program:
    """The program that was drawn."""
    program = cm.Program("drawn")
    made: list[cm.Stream[Any]] = []
    for number, piece in enumerate(drawn):
        made.append(_declare(program, f"s{number}", piece, made))
    return program


def _declare(program: cm.Program, name: str, piece: Piece, made: list[cm.Stream[Any]]) -> cm.Stream[Any]:
    def source(device: cm.DeviceSite) -> cm.Stream[Any]:
        return _grown(device.sensor(Reading), piece)

    def derived() -> cm.Stream[Any]:
        first, *others = (made[index] for index in piece.reads)
        return _grown(first.union(*others) if others else first, piece)

    function: Any = derived if piece.reads else source
    function.__name__ = name
    if not piece.reads:
        function.__annotations__["device"] = cm.DeviceSite
    policy = cm.Sync(filter=cm.significant_change(Reading.x, by=1.0)) if piece.thinned else None
    declared: cm.Stream[Any] = program.stream(at=piece.site, sync=policy)(function)
    return declared


def _grown(stream: cm.Stream[Any], piece: Piece) -> cm.Stream[Any]:
    for op in piece.ops:
        match op.name:
            case "where":
                stream = stream.where(PREDICATES[op.choice])
            case "select":
                stream = stream.select(Reading, **SELECTS[op.choice])
            case "key_by":
                stream = stream.key_by(Reading.user)
            case "changes":
                stream = stream.changes(Reading.kind, Reading.n)
            case "twice":
                stream = stream.where(Reading.x > 1).union(stream.where(Reading.x > 1).where(Reading.kind == "walk"))
    return _ended(stream, piece.end)


def _ended(stream: cm.Stream[Any], end: Op | None) -> cm.Stream[Any]:
    keyed = stream.key_by(Reading.user)
    match end:
        case None:
            # Used, so that it is not a step that goes nowhere.
            return keyed
        case Op("tumble", choice):
            return keyed.window(cm.tumble(10)).agg(Summary, **AGGREGATES[choice])
        case Op("hop", choice):
            return keyed.window(cm.hop(20, 5, grace=2)).agg(**AGGREGATES[choice])
        case Op("state", choice):
            return keyed.state(Summary, total=AGGREGATES[choice]["total"])
        case Op("top"):
            return stream.window(cm.tumble(10)).top(2, by=Reading.x).select(user=cm.col("user"), n=cm.col("n"))
        case Op("late"):
            late = keyed.window(cm.tumble(10)).agg(n=cm.count()).late
            return late.where(Reading.x > 2)
        case Op("join"):
            other = stream.select(Reading, x=Reading.x + 1).key_by(Reading.user)
            pairs = keyed.join(other, within=cm.tumble(10), user=Reading.user, x=Reading.x, n=cm.right(Reading.n))
            return pairs.where(pairs["x"] > 2)
    raise AssertionError(end)


_SOURCES = (Source("d1", "ada"), Source("d2", "eve"), Source("d3", "ada"))


@st.composite
def histories(draw: st.DrawFn, graph: Graph) -> History:
    """A history for the sensors of a graph, ended by promises that close every window."""
    begins = [vertex.id for vertex in graph.vertices if isinstance(vertex.step, steps.Sensor)]
    entries: list[Entry] = []
    for source in _SOURCES:
        entries += [Progress(begin, source, 0) for begin in begins]
    for _ in range(draw(st.integers(1, 12))):
        source = draw(st.sampled_from(_SOURCES))
        begin = draw(st.sampled_from(begins))
        kind = draw(st.integers(0, 9))
        at = draw(st.integers(0, 40))
        if kind < 7:
            row = (
                source.owner,
                at,
                draw(st.integers(0, 24)) / 2,
                draw(st.none() | st.integers(0, 6)),
                draw(st.sampled_from(["walk", "bike"])),
                b"\x01",
            )
            entries.append(Element(begin, at, source, row))
        elif kind < 8:
            entries.append(Progress(begin, source, at))
        elif kind < 9:
            entries.append(Tick(at))
        else:
            entries.append(Presence(source, draw(st.none() | st.just(at))))
    for source in _SOURCES:
        entries += [Progress(begin, source, 1_000) for begin in begins]
    return tuple(entries)
