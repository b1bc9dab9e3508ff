"""The physical plan: parts at sites and the sync streams between them, as data that any site can run from.

A part is the largest set of steps of one site that are connected; a stream that arrives there is an `Append` step
of the part, so that an engine needs to know nothing else. Plans name Python code and hold none.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Annotated

import msgspec
from msgspec import Meta

from catchment.errors import InternalError
from catchment.plan.crossing import Direction
from catchment.plan.graph import Graph, Port, Vertex
from catchment.program import steps
from catchment.program.site import Site
from catchment.program.sync import Sync
from catchment.program.types import Schema

FORMAT = "catchment-plan"
VERSION = 1
"""Of the format. It grows when a reader of the one before would misread what is written."""


class SyncStream(msgspec.Struct, frozen=True):
    """A stream between two parts: what it carries, from which port, to which source step, and how.

    `schema` is the fingerprint of its elements, for which the plan holds the schema. With `deliver`, each element
    goes to the devices that its field `deliver.by` names; without, it goes up from every device.
    """

    name: str
    direction: Direction
    from_part: str
    source: Port
    to_part: str
    target: str
    schema: str
    policy: Sync
    deliver: steps.Deliver | None = None


class Part(msgspec.Struct, frozen=True):
    """Connected steps of one site, each after those that it reads.

    `inputs` and `outputs` name sync streams, `sources` the steps that draw from outside (sensors, timers, ...), and
    `functions` the code that the site must have.
    """

    name: str
    site: Site
    vertices: tuple[Vertex, ...]
    loops: tuple[tuple[Port, str], ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    sources: tuple[str, ...]
    functions: tuple[str, ...]


class Plan(msgspec.Struct, frozen=True, dict=True):
    """A program, ready to be shipped: see docs/reference/plan-format.md.

    `streams` says where a named stream comes from: its part is the one that holds the step.
    """

    format: Annotated[str, Meta(pattern=f"^{FORMAT}$")]
    version: int
    program: str
    parts: tuple[Part, ...]
    syncs: tuple[SyncStream, ...]
    streams: dict[str, Port]
    schemas: dict[str, Schema]

    def part(self, name: str) -> Part:
        """The part of that name."""
        for part in self.parts:
            if part.name == name:
                return part
        raise InternalError(
            "I301",
            f"there is no part {name}",
            why="a sync stream names a part that is gone",
            fix="report this as a bug",
        )

    def at(self, site: Site) -> tuple[Part, ...]:
        """The parts that run at a site."""
        return tuple(part for part in self.parts if part.site == site)

    def graph(self, part: Part) -> Graph:
        """A part as a graph of its own, as engines take it."""
        own = {vertex.id for vertex in part.vertices}
        streams = tuple((name, port) for name, port in self.streams.items() if port[0] in own)
        return Graph(self.program, part.vertices, part.loops, streams)

    def sync(self, name: str) -> SyncStream:
        """The sync stream of that name."""
        for stream in self.syncs:
            if stream.name == name:
                return stream
        raise InternalError(
            "I302",
            f"there is no sync stream {name}",
            why="a part names a stream that is gone",
            fix="report this as a bug",
        )

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits that name this plan: equal plans, and only they, have equal ones."""
        from catchment.plan.document import encoded

        return hashlib.sha256(encoded(self)).hexdigest()[:16]


def _gone(code: str, what: str) -> InternalError:
    return InternalError(
        code, what, why="the plan is not consistent, or was asked for another's part", fix="report this as a bug"
    )
