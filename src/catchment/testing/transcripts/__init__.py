"""Transcripts: stories as YAML that every engine performs: what arrives, silences, restarts, and what must come out.

The format is in docs/reference/transcripts.md. `cases(folder)` are the pairs of story and engine for a parametrised
test.
"""

from catchment.testing.transcripts.performance import perform
from catchment.testing.transcripts.story import Story, cases, stories

__all__ = ["Story", "cases", "perform", "stories"]
