"""Transcripts as such: what a story may say, what it is told when it says it wrongly, and that it can fail."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest

from catchment.errors import ProgramError
from catchment.testing import Story, cases, perform, stories
from catchment.testing.transcripts.story import load

RECORDS = '''
"""Records."""
import catchment as cm
class Fix(cm.Record):
    user: cm.Field[str] = cm.key(stamp="user")
    at: cm.Field[cm.Instant] = cm.event_time()
    speed_mps: cm.Field[float | None] = cm.field(default=None)
    took: cm.Field[cm.Duration | None] = cm.field(default=None)
    tags: cm.Field[tuple[str, ...]] = cm.field(default=())
SOURCES = {"fixes": Fix}
'''
GOOD = """
name: good
shows: how it is done
stream: fixes.where(Fix.speed_mps > 1)
input: [{at: 1, user: ada, speed_mps: 2}]
expect: [{at: 1, speed_mps: 2.0}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "records.py").write_text(RECORDS)
    return tmp_path


def tell(folder: Path, text: str, name: str = "good") -> Story:
    (folder / f"{name}.yaml").write_text(text)
    return load(folder / f"{name}.yaml")


def refused(code: str, folder: Path, text: str) -> ProgramError:
    with pytest.raises(ProgramError) as caught:
        perform(tell(folder, text))
    assert caught.value.code == code
    return caught.value


def test_a_story_is_performed(folder: Path) -> None:
    perform(tell(folder, GOOD))
    assert [(story.name, engine) for story, engine in cases(folder)] == [("good", "reference"), ("good", "edge")]
    assert [str(story) for story in stories(str(folder))] == ["good"]


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("expect: [{at: 1, speed_mps: 2.0}]", "expect: []"),
        ("expect: [{at: 1, speed_mps: 2.0}]", "expect: [{speed_mps: 2.1}]"),
        ("expect: [{at: 1, speed_mps: 2.0}]", "expect: [{at: 1}, {at: 1}]"),
        ("expect: [{at: 1, speed_mps: 2.0}]", "expect_some: [{at: 2}]"),
        ("expect: [{at: 1, speed_mps: 2.0}]", "expect_failures: [{reason: overflow}]"),
        ("speed_mps: 2}]", "speed_mps: 2}, {expect: []}]"),
    ],
)
def test_a_story_fails_where_the_engine_gives_something_else(folder: Path, written: str, instead: str) -> None:
    assert written in GOOD
    with pytest.raises(AssertionError, match="good on reference: how it is done"):
        perform(tell(folder, GOOD.replace(written, instead)))


def test_what_is_expected_on_the_way_is_what_came_since(folder: Path) -> None:
    lines = (
        "[{at: 1, user: ada, speed_mps: 2}, {expect: [{at: 1}]}, {at: 2, user: ada, speed_mps: 3}, {expect: [{at: 2}]}]"
    )
    perform(tell(folder, f"name: good\nshows: it\nstream: fixes.where(Fix.speed_mps > 1)\ninput: {lines}\n"))


def test_times_lists_and_failures_are_told_as_people_write_them(folder: Path) -> None:
    text = """
name: good
shows: values
stream: fixes.where(10 / Fix.speed_mps > 1)
input:
  - {at: 1.5, user: ada, speed_mps: 2, took: 200 ms, tags: [a, b]}
  - {at: "1970-01-01T00:01:00Z", user: ada, speed_mps: 0, took: 1 h}
expect: [{at: 1500 ms, took: 0.2, tags: [a, b]}]
expect_failures: [{step: where, reason: division by zero, row: {at: 1 min, took: 3600}}]
"""
    perform(tell(folder, text))
    perform(tell(folder, text.replace("row: {at: 1 min, took: 3600}", "row: [ada, 60000000, 0.0, 3600000000, []]")))


def test_a_difference_must_be_there_and_is_an_error_when_it_is_gone(folder: Path) -> None:
    wrong = GOOD.replace("expect: [{at: 1, speed_mps: 2.0}]", "expect: []\ndiffers_on: {reference: it is not done yet}")
    perform(tell(folder, wrong))
    with pytest.raises(AssertionError, match="it is not done yet"):
        perform(tell(folder, GOOD + "differs_on: {reference: it is not done yet}\n"))


@pytest.mark.parametrize(
    "text",
    [
        "- just a list",
        GOOD + "expects: []\n",
        GOOD.replace("name: good", "name: other"),
        GOOD.replace("shows: how it is done\n", ""),
        GOOD.replace("stream:", "program: records\nstream:"),
        GOOD.replace("speed_mps: 2}", "speed: 2}"),
        GOOD.replace("{at: 1, speed_mps: 2.0}", "{speed: 2.0}"),
        GOOD.replace("input: [", "input: [rest, "),
        GOOD.replace("where(Fix", "where(Fix ("),
        GOOD.replace("input: [", "input: [{"),
    ],
)
def test_a_malformed_story(folder: Path, text: str) -> None:
    refused("T705", folder, text)
    perform(tell(folder, GOOD))


def test_a_story_that_expects_nothing(folder: Path) -> None:
    refused("T706", folder, GOOD.partition("expect")[0])
    perform(tell(folder, GOOD.partition("expect")[0] + "expect_some: []\n"))


def test_a_program_that_is_not_there(folder: Path) -> None:
    named = GOOD.replace("stream: fixes.where(Fix.speed_mps > 1)", "program: graphs.fast")
    refused("T712", folder, named)
    (folder / "programs" / "graphs.py").write_text('"""Programs."""\n')
    refused("T707", folder, named)
    (folder / "programs" / "speeds.py").write_text(
        RECORDS + "from catchment.testing import alone\n"
        "fast = alone(lambda fixes: fixes.where(Fix.speed_mps > 1), fixes=Fix)\n"
    )
    perform(tell(folder, named.replace("graphs.fast", "speeds.fast")))


def test_a_story_without_a_folder_of_programs(tmp_path: Path) -> None:
    refused("T707", tmp_path, GOOD)


def test_a_time_that_is_none(folder: Path) -> None:
    refused("T708", folder, GOOD + "quiet: a while\n")
    refused("T708", folder, GOOD + "quiet: 3 weeks\n")
    perform(tell(folder, GOOD + "quiet: 3 d\n"))


def test_without_yaml_it_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_yaml(name: str, *rest: Any, **more: Any) -> Any:
        if name == "yaml":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_yaml)
    refused("T709", folder, GOOD)
