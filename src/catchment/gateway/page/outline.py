"""The outline of a plan: parts at their sites, what is in them in words, and the streams between them, to be drawn.

Knows plans. What has passed along a stream is counted elsewhere, under the names that are given here.
"""

from __future__ import annotations

from typing import Any

from catchment.plan import wording
from catchment.plan.physical import Part, Plan
from catchment.program import steps
from catchment.program.site import DEVICE


def outline(plan: Plan) -> dict[str, Any]:
    """The plan as nodes and edges."""
    boxes = [_box(plan, part) for part in plan.parts]
    edges: list[dict[str, Any]] = []
    for stream in plan.syncs:
        edges.append(
            {
                "name": stream.name,
                "stream": f"{plan.program}/{stream.name}",
                "from": stream.from_part,
                "to": stream.to_part,
                "direction": stream.direction,
                "policy": wording.policy(stream.policy) if stream.direction == "up" else "",
                "deliver": "" if stream.deliver is None else f"to each {stream.deliver.to}, {stream.deliver.keep}",
                "record": plan.schemas[stream.schema].name,
            }
        )
    return {"program": plan.program, "plan": plan.fingerprint, "parts": boxes, "edges": edges}


def _box(plan: Plan, part: Part) -> dict[str, Any]:
    return {
        "name": part.name,
        "site": part.site.name.lower(),
        "is_device": part.site == DEVICE,
        "steps": [
            {"id": vertex.id, "stream": vertex.stream, "says": wording.step(vertex.step)}
            for vertex in part.vertices
            if not isinstance(vertex.step, steps.KeyBy)
        ],
        "streams": sorted({name for name, port in plan.streams.items() if port[0] in {v.id for v in part.vertices}}),
    }
