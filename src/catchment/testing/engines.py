"""Engines by name, as tests run them: begin with a graph, feed entries, restart from a snapshot, ask for the outcome.

`reference` and `edge` are always there; another is known to tests once it is registered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeAlias

import msgspec

from catchment.engines import edge, reference
from catchment.errors import ProgramError, author_line
from catchment.plan.graph import Graph, Port
from catchment.plan.history import Entry, Outcome


class Restart(msgspec.Struct, frozen=True):
    """In a history for tests: the engine is stopped, and a fresh one goes on from its snapshot."""


RESTART = Restart()


class Running(Protocol):
    """A graph on an engine, in virtual time."""

    def feed(self, entry: Entry) -> None:
        """One more entry of the history."""
        ...

    def restart(self) -> None:
        """Take a snapshot, and go on in a fresh engine that was given nothing else."""
        ...

    def outcome(self, watch: Collection[Port] | None) -> Outcome:
        """All that was given so far, on the ports watched: on all of them, when none are named."""
        ...


Begin: TypeAlias = Callable[[Graph], Running]


class _Reference:
    """The reference engine evaluates all it was fed each time that it is asked; a restart takes nothing from it."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._fed: list[Entry] = []

    def feed(self, entry: Entry) -> None:
        self._fed.append(entry)

    def restart(self) -> None:
        return None

    def outcome(self, watch: Collection[Port] | None) -> Outcome:
        return reference.evaluate(self._graph, tuple(self._fed), watch=watch)


_engines: dict[str, Begin] = {"reference": _Reference, "edge": edge.Virtual}


def register(name: str, begin: Begin) -> None:
    """Make an engine known to tests under that name."""
    _engines[name] = begin


@contextmanager
def registered(name: str, begin: Begin) -> Iterator[None]:
    """Make an engine known for a while, as for one test."""
    register(name, begin)
    try:
        yield
    finally:
        del _engines[name]


def engines() -> tuple[str, ...]:
    """Names of the engines that are here."""
    return tuple(_engines)


def begin(engine: str, graph: Graph) -> Running:
    """The graph on that engine, before any entry."""
    if engine not in _engines:
        raise ProgramError(
            "T704",
            f"there is no engine {engine!r}",
            why=f"the engines here are: {', '.join(_engines)}",
            fix="name one of them, or register yours with catchment.testing.register(name, begin)",
            at=author_line(),
        )
    return _engines[engine](graph)


def feed(running: Running, history: Iterable[Entry | Restart]) -> None:
    """Feed a history, restarting where it says so."""
    for entry in history:
        if isinstance(entry, Restart):
            running.restart()
        else:
            running.feed(entry)
