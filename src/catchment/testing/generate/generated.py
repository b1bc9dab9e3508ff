"""Random programs, as the text of their streams.

Each stream is drawn over those before it, from what its schema allows; what the build would refuse is not drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from hypothesis import strategies as st

from catchment.plan.graph import Graph, graph_of
from catchment.program.program import Program
from catchment.program.stream import Stream
from catchment.testing.alone import add_source, add_stream
from catchment.testing.generate import declared, pairing, texts, waiting
from catchment.testing.generate.texts import Pool, Said

Draw = Callable[[st.SearchStrategy[Any]], Any]
Make = Callable[[Draw, Said, Pool, int], texts.Text]
About = Literal["anything", "stateless", "windows", "top", "state", "fold", "process", "pairs"]
ABOUT: tuple[About, ...] = get_args(About)
""""Anything" may also have feedback; the others begin with one kind of step."""


@dataclass(frozen=True)
class Generated:
    """A program as text: the streams by name, and the stream that its loop is closed with, if it has one."""

    streams: dict[str, str]
    loop: str | None = None

    @property
    def program(self) -> Program:
        """The program."""
        return _Declaring(self.loop is not None).all_of(self)

    @property
    def graph(self) -> Graph:
        """Its graph."""
        return graph_of(self.program)

    def __repr__(self) -> str:
        lines = [f"{name} = {text}" for name, text in self.streams.items()]
        return "\n".join(["", *lines, *([f"the loop `again` is closed with {self.loop}"] if self.loop else [])])


@dataclass
class _Declaring:
    """A program that is being declared, stream by stream."""

    has_loop: bool
    program: Program = field(init=False)
    scope: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        import catchment

        self.program = Program("generated")
        self.scope = {**vars(declared), "cm": catchment}
        for name, record in declared.SOURCES.items():
            self.scope[name] = add_source(self.program, name, record)
        if self.has_loop:
            self.scope["again"] = self.program.loop(declared.Fix, "again")

    def add(self, name: str, text: str) -> Stream[Any]:
        """Declare one more stream."""
        self.scope[name] = add_stream(self.program, name, lambda: eval(text, self.scope))
        stream: Stream[Any] = self.scope[name]
        return stream

    def all_of(self, generated: Generated) -> Program:
        """Declare all of them."""
        for name, text in generated.streams.items():
            self.add(name, text)
        if generated.loop is not None:
            self.program.close_loop("again", self.add("closed", generated.loop))
        return self.program


@st.composite
def programs(draw: Draw, *, about: About = "anything", streams_max: int = 4) -> Generated:
    """Programs of up to so many streams besides their two sources; the first of them is of the kind asked for."""
    has_loop = about == "anything" and draw(st.integers(0, 7)) == 7
    declaring = _Declaring(has_loop)
    pool = Pool([Said(name, declaring.program.streams[name], in_loop=True) for name in declared.SOURCES])
    streams: dict[str, str] = {}

    def add(said: texts.Text) -> None:
        name = f"s{len(streams)}"
        streams[name] = said.text
        pool.add(said.as_stream(name, declaring.add(name, said.text)))

    if has_loop:
        add(texts.Text("fixes.union(again)", in_loop=True))
    if about != "anything":
        add(_KINDS[about](draw, pool.known[0], pool, 0))
    for number in range(len(streams), draw(st.integers(1, streams_max))):
        add(_one_more(draw, pool, number))
    return Generated(streams, texts.closing(draw, pool) if has_loop else None)


def _one_more(draw: Draw, pool: Pool, number: int) -> texts.Text:
    """A stream over one of those before it, waiting more often than not."""
    said = draw(st.sampled_from(pool.usable()))
    kinds = [texts.stateless, *([_by_arrival] if said.silent else _WAITING)]
    return draw(st.sampled_from(kinds))(draw, said, pool, number)  # type: ignore[no-any-return]


def _waiting(kind: Callable[[Draw, Said, int], texts.Text]) -> Make:
    return lambda draw, said, pool, number: kind(draw, said, number)


_by_arrival = _waiting(waiting.by_arrival)
_WAITING: list[Make] = [
    *map(_waiting, (waiting.windowed, waiting.top, waiting.state, waiting.fold, waiting.process)),
    pairing.paired,
]
_KINDS: dict[str, Make] = {
    "stateless": texts.stateless,
    "windows": _waiting(waiting.windowed),
    "top": _waiting(waiting.top),
    "state": _waiting(waiting.state),
    "fold": _waiting(waiting.fold),
    "process": _waiting(waiting.process),
    "pairs": pairing.paired,
}
