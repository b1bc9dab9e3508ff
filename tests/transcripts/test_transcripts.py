"""Every story on every engine that is here. A story is data: see docs/reference/transcripts.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from catchment.testing import Story, cases, perform

STORIES = Path(__file__).parent


@pytest.mark.parametrize(("story", "engine"), cases(STORIES), ids=str)
def test_story(story: Story, engine: str) -> None:
    perform(story, engine)
