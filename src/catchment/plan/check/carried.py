"""What a sync policy says of fields: they are those of the elements that it carries."""

from __future__ import annotations

from collections.abc import Iterator

from catchment.errors import ProgramError
from catchment.plan.crossing import crossings
from catchment.plan.graph import Graph
from catchment.program.types import FLOAT, INT


def check(graph: Graph) -> Iterator[ProgramError]:
    """Refuses two policies for one crossing, and a filter on fields that are not there or are not numbers."""
    try:
        crossed = crossings(graph)
    except ProgramError as error:
        yield error
        return
    for crossing in crossed:
        schema = graph.vertex(crossing.source[0]).schemas[crossing.source[1]]
        for name in crossing.policy.filter.fields if crossing.policy.filter is not None else ():
            if name in schema.names and schema.column(name).type in (FLOAT, INT):
                continue
            known = ", ".join(c.name for c in schema.fields if c.type in (FLOAT, INT)) or "none"
            yield ProgramError(
                "C275",
                f"the sync filter of {crossing.name} looks at {name!r}",
                why=f"it compares numbers that {schema.name} carries; these are: {known}",
                fix="name one of them, or compute it in a select before the crossing",
                at=graph.vertex(crossing.targets[0]).line.source(),
            )
