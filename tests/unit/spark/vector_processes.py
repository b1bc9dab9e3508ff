"""Processes of random programs: event-time timers of all kinds, forgetting, failing; one in both of its forms."""

from __future__ import annotations

import numpy as np

import catchment as cm
from catchment.program.elements import NOT_SET
from tests.unit.edge.generated_records import Fix, Seen, Total


class Timely(cm.Process[Fix, Total, Seen]):
    """Sets, replaces and cancels timers in event time, also for what has passed; forgets, and fails now and then."""

    gap: int

    def on_element(self, element: Fix, state: Seen, context: cm.Context) -> list[Total]:
        state.count += 1
        match element.place:
            case 0:
                context.wake("a", element.at + self.gap)
            case 1:
                context.wake("b", element.at - self.gap)
            case 2:
                context.wake("c", element.at)
            case 3:
                context.cancel("a")
            case 4:
                context.forget()
            case _:
                raise ValueError(element.place)
        return [Total(at=element.at, n=state.count), Total(at=cm.Instant(context.now or 0), n=1)]

    def on_timer(self, timer: str, state: Seen, context: cm.Context) -> list[Total]:
        state.count += 100
        if timer == "b" and state.count % 3:
            context.wake("a", context.at + 1)
        if timer == "c":
            context.wake("a", 0)
            context.wake("b", context.at + 2)
        if state.count % 7 == 0:
            raise ValueError(timer)
        return [Total(at=context.at, n=state.count + len(timer))]


class Stay(cm.State):
    """What is remembered of a stay."""

    count: int = 0
    speeds: float = 0.0
    last: int = 0
    tags: list[str] = []  # noqa: RUF012  a field of a struct, which copies it


class Stays(cm.Process[Fix, Total, Stay]):
    """How many elements came before a pause, told when the pause is as long as the gap; fails at place 5."""

    gap: int

    def on_element(self, element: Fix, state: Stay, context: cm.Context) -> list[Total]:
        if element.place == 5:
            raise ValueError(element.place)
        state.count += 1
        state.last = element.at
        state.speeds += 0.25 * element.place
        if element.tag:
            state.tags.append(element.tag)
        context.wake("pause", element.at + self.gap)
        return [Total(at=element.at, n=state.count)] if element.flag else []

    def on_timer(self, timer: str, state: Stay, context: cm.Context) -> list[Total]:
        context.forget()
        return [Total(at=context.at, n=1000 + state.count + 10_000 * len(state.tags) + round(state.speeds * 4) * 10**6)]


class StaysAtOnce(Stays):
    """The same, with columns."""

    def on_elements(self, elements: cm.Elements) -> None:
        if (elements["place"] == 5).any():
            raise ValueError(5)
        at, starts, state = elements.at, elements.starts, elements.state
        pause = elements.timers["pause"]
        count = np.zeros(len(at), np.int64)
        ended: list[tuple[int, int, int]] = []
        for key, (begin, end) in enumerate(zip(starts.tolist(), starts.tolist()[1:], strict=False)):
            so_far, tags, places = int(state["count"][key]), state["tags"][key], state["speeds"][key]
            for number in range(begin, end):
                if pause[key] < at[number] and pause[key] != NOT_SET:
                    n = 1000 + so_far + 10_000 * len(tags) + round(places * 4) * 10**6
                    ended.append((number, int(pause[key]), n))
                    so_far, tags, places = 0, [], 0.0
                so_far += 1
                places += 0.25 * elements["place"][number]
                if elements["tag"][number]:
                    tags = [*tags, elements["tag"][number]]
                count[number] = so_far
                pause[key] = at[number] + self.gap
            state["count"][key], state["tags"][key], state["speeds"][key] = so_far, tags, places
            state["last"][key] = at[end - 1]
        told = np.flatnonzero(elements["flag"])
        elements.give(told, {"at": at[told], "n": count[told]})
        if ended:
            cause, moment, n = (np.array(column) for column in zip(*ended, strict=True))
            elements.give(cause, {"at": moment, "n": n}, due=moment)
