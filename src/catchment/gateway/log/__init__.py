"""The log: the durable, append-only, partitioned store of everything that arrived, before any processing.

`entry` says what is logged, `marks` what follows from it (how far each device came), `files` keeps it in a directory.
"""

from catchment.gateway.log.entry import NO_INSTANT, Entry, Kind, Online, Reached, joined, presence, reached_of, tick
from catchment.gateway.log.marks import Marks

__all__ = ["NO_INSTANT", "Entry", "Kind", "Marks", "Online", "Reached", "joined", "presence", "reached_of", "tick"]
