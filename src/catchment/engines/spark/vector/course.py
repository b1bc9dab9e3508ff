"""The course of a batch at a step: what its inputs bring, in the order in which the step takes it.

At one event a step takes what is new of its first input, then of the next, and so on; of one input and at one place
elements come before the rest, as steps give results before promises. Knows flows and places; not what a step does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from catchment.engines.spark.rows import Array, Rows
from catchment.engines.spark.vector.flow import Control, Flow
from catchment.engines.spark.vector.places import entered, event_at

_LEAST = -(1 << 62)


def spread(flow: Flow) -> Flow:
    """What enters a graph, with room for all that happens at each event."""
    rows = flow.rows
    rows = Rows(rows.at, rows.source, entered(rows.place), rows.sources, rows.columns)
    return Flow(rows, [(entered(place), *what) for place, *what in flow.controls])


@dataclass(slots=True)
class Course:
    """What a step's inputs bring, in the order in which the step takes it: at one event, port by port."""

    controls: list[tuple[int, Control]]
    """The port of each, and what it says."""
    cuts: list[Array]
    """Of each port, how many of its elements come before each control."""
    following: list[Array]
    """Of each port, the control before which each element comes, by number."""
    places: Array
    """Of each control: later than that of the one before."""
    rows: list[Rows]
    """The elements of each port, at places that fit those."""


def course(flows: Sequence[Flow]) -> Course:
    """The course of a batch."""
    controls = [(port, each) for port, flow in enumerate(flows) for each in flow.controls]
    if len(flows) > 1:
        controls.sort(key=lambda said: (event_at(said[1][0]), said[0]))
    places = np.array([each[0] for _, each in controls], np.int64)
    if len(flows) == 1 and (not len(places) or bool((np.diff(places) > 0).all())):
        rows = flows[0].rows
        cuts = np.searchsorted(rows.place, places, side="right")
        return Course(controls, [cuts], [_following(cuts, len(rows))], places, [rows])
    ports = np.array([port for port, _ in controls], np.int64)
    numbers = np.arange(len(controls), dtype=np.int64)
    # Less the number of the controls before it, a place may be as large as any before it: each control adds one.
    least = places - numbers
    cuts_of, following_of = [], []
    for port, flow in enumerate(flows):
        place = flow.rows.place
        here = event_at(places)
        bounds = np.where(ports > port, entered(here + 1), np.where(ports < port, entered(here), places + 1))
        cuts = np.searchsorted(place, bounds, side="left")
        cuts_of.append(cuts)
        following_of.append(_following(cuts, len(place)))
        given = np.diff(cuts, prepend=0) > 0
        least[given] = np.maximum(least[given], place[cuts[given] - 1] - numbers[given])
    reached = np.maximum.accumulate(least)
    anew = []
    for flow, following in zip(flows, following_of, strict=True):
        rows = flow.rows
        before = np.append(_LEAST, reached)[following]
        place = np.maximum(rows.place - following, before) + following
        anew.append(Rows(rows.at, rows.source, place, rows.sources, rows.columns))
    return Course(controls, cuts_of, following_of, reached + numbers, anew)


def _following(cuts: Array, count: int) -> Array:
    found: Array = np.searchsorted(cuts, np.arange(count), side="right")
    return found
