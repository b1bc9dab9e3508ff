"""Windows: what sessions and joins cannot be told."""

from __future__ import annotations

from collections.abc import Iterator

from catchment.errors import ProgramError
from catchment.plan.graph import Graph
from catchment.program import steps
from catchment.program.window import SessionWindow, TimeWindow


def check(graph: Graph) -> Iterator[ProgramError]:
    """Refuses revisions where a result has no lasting name, and joins in windows that the two sides would not share."""
    for vertex in graph.vertices:
        match vertex.step:
            case steps.Aggregated() | steps.TopK() if (
                isinstance(vertex.step.window, SessionWindow) and vertex.step.window.closing.keep > 0
            ):
                yield ProgramError(
                    "C255",
                    f"{vertex.id} keeps sessions for revision",
                    why="a late element may join two sessions into one: a result would have no lasting name to revise",
                    fix="leave keep= out of session(...), and give it a longer grace= or take its .late elements",
                    at=vertex.line.source(),
                )
            case steps.Join(window=window) if window is not None:
                if not isinstance(window, TimeWindow):
                    yield ProgramError(
                        "C258",
                        f"{vertex.id} joins within a window that is not one of time",
                        why="sessions and counts are of one stream; the two sides share only windows of time",
                        fix="use within=tumble(minutes(1)), or within=(before, after)",
                        at=vertex.line.source(),
                    )
                elif window.closing.keep > 0:
                    yield ProgramError(
                        "C256",
                        f"{vertex.id} keeps a window of pairs for revision",
                        why="a late element would add pairs, and which of the old ones it replaces has no name",
                        fix="leave keep= out of the window, and give it a longer grace= or take its .late elements",
                        at=vertex.line.source(),
                    )
            case _:
                pass
