"""The input of a story, line by line, as entries of a history.

A line is a reading (the fields of its record, with `from`, `of`, `to` and `late` beside them), or one of the words
below.
"""

from __future__ import annotations

from typing import Any

from catchment.program.types import Schema
from catchment.testing.history import History
from catchment.testing.transcripts.story import Story, malformed
from catchment.testing.transcripts.values import duration, moment, value

WORDS = ("quiet", "tick", "jump", "offline", "online", "promise", "end")


def say(story: Story, history: History, line: Any) -> None:
    """Let what the line says happen."""
    if line == "restart":
        history.restart()
        return
    if not isinstance(line, dict):
        raise malformed(story.path, f"{line!r} is no line of an input", f"write a reading, restart, or one of {WORDS}")
    match line:
        case {"quiet": length, **rest} if not rest:
            history.quiet(duration(length))
        case {"tick": now, **rest} if not rest:
            history.tick(moment(now))
        case {"jump": by, **rest} if not rest:
            history.jump(duration(by))
        case {"offline": str(device), **rest} if rest.keys() <= {"of"}:
            history.offline(device, owner=rest.get("of"))
        case {"online": str(device), **rest} if rest.keys() <= {"of"}:
            history.online(device, owner=rest.get("of"))
        case {"promise": at, **rest} if rest.keys() <= {"from", "to", "of"}:
            history.promise(moment(at), device=rest.get("from"), to=rest.get("to"), owner=rest.get("of"))
        case {"end": str(who), **rest} if not rest:
            history.end(*([] if who == "all" else [who]))
        case _:
            _reading(story, history, dict(line))


def _reading(story: Story, history: History, line: dict[str, Any]) -> None:
    device, owner, to = (line.pop(word, None) for word in ("from", "of", "to"))
    late = line.pop("late", False)
    schema = history.source_step(to).schemas[0]
    stray = next((name for name in line if name not in schema.names), None)
    if stray is not None:
        raise malformed(story.path, f"{stray!r} is no field of {schema.name}", f"its fields: {', '.join(schema.names)}")
    history.send(_values(schema, line), to=to, device=device, owner=owner, promise=not late)


def _values(schema: Schema, line: dict[str, Any]) -> dict[str, Any]:
    return {name: value(written, schema.column(name).type) for name, written in line.items()}
