"""The journal: what a gateway says of itself, one JSON object per line.

An event has a name that tools can count on and fields that people can read. Secrets and payloads never appear; what a
client sent appears only as names that were checked. uvicorn's own lines take the same form.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TextIO

import msgspec

_LOGGER = logging.getLogger("catchment.gateway")


def say(event: str, *, level: int = logging.INFO, **fields: object) -> None:
    """Write an event."""
    if _LOGGER.isEnabledFor(level):
        _LOGGER.log(level, event, extra={"fields": fields})


class Lines(logging.Formatter):
    """A record as a line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.name != _LOGGER.name:
            line["from"] = record.name
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


def write_to(stream: TextIO, *, level: int = logging.INFO) -> None:
    """Send every line of this process there."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Lines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
