"""Legs: the parts of a trip that somebody goes in one mode. A trip ends where nothing was heard for `gap`."""

from __future__ import annotations

from collections.abc import Iterable

import catchment as cm
from impacts import Impact


class Leg(cm.Record):
    """A part of a trip in one mode."""

    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    trip: cm.Field[cm.Instant]
    started: cm.Field[cm.Instant]
    mode: cm.Field[str]
    distance_m: cm.Field[float] = cm.field(step=0.1)
    carbon_g: cm.Field[float] = cm.field(step=0.001)


class Travelling(cm.State):
    """The leg that somebody is on."""

    trip: int | None = None
    started: int = 0
    last: int = 0
    mode: str = ""
    distance_m: float = 0.0
    carbon_g: float = 0.0


class SplitLegs(cm.Process[Impact, Leg, Travelling]):
    """Gives a leg when the mode changes, and when the trip is over."""

    gap: cm.Duration

    def on_element(self, element: Impact, state: Travelling, context: cm.Context) -> Iterable[Leg]:
        """A way-point goes on with the leg, or begins another."""
        at = int(element.at)
        given = []
        if state.trip is None:
            state.trip = state.started = at
            state.mode = element.mode
        elif element.mode != state.mode:
            given.append(_leg(element.user, state))
            state.started, state.mode, state.distance_m, state.carbon_g = state.last, element.mode, 0.0, 0.0
        state.last = at
        state.distance_m += element.distance_m
        state.carbon_g += element.carbon_g
        context.wake("over", at + self.gap)
        return given

    def on_timer(self, timer: str, state: Travelling, context: cm.Context) -> Iterable[Leg]:
        """Nothing was heard for so long: the trip was over then."""
        leg = _leg(context.key[0], state)
        context.forget()
        return (leg,)


def _leg(user: str, state: Travelling) -> Leg:
    return Leg(
        user=user,
        at=cm.Instant(state.last),
        trip=cm.Instant(state.trip or 0),
        started=cm.Instant(state.started),
        mode=state.mode,
        distance_m=round(state.distance_m, 1),
        carbon_g=round(state.carbon_g, 3),
    )
