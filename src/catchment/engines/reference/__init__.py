"""Slow and obvious: definitions evaluated over whole inputs, the oracle of every other engine.

`evaluate(graph, history)` gives the outcome. Read docs/reference/semantics.md beside the files here; each holds one of
its sections: `watermarks` and `waiting` (progress, order, late ports), `windows`, `sessions`, `counts`, `states`,
`processes`, `filters`, `joins`, `pairs`, `aggregates`, `union`, `stateless`, and `evaluation` (events and rounds).
It knows the plan and what an author wrote; it must not know `operators` or another engine, which it judges.
"""

from catchment.engines.reference.evaluation import evaluate

__all__ = ["evaluate"]
