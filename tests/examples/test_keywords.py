"""Popular keywords: the week's words of every cell against a count by hand, and an ask that is answered at once."""

from __future__ import annotations

import importlib.util
import math
from collections import Counter
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import catchment as cm
from catchment.cloud.leaving import outputs_of
from catchment.engines.spark.stages import cut
from catchment.program_file import load_program
from catchment.testing import History, run

EXAMPLE = Path(__file__).parents[2] / "examples" / "keywords"
DAYS, TEXTS_A_DAY = 9, 10


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"keywords_{name}", EXAMPLE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


TEXTS, PROGRAM = module("texts"), load_program(str(EXAMPLE / "keywords.py"))
MODEL = __import__("keywords")


def written() -> list[dict[str, Any]]:
    """Texts of nine days, in one corner of the grid so that cells have several."""
    made = []
    for n, text in enumerate(islice(TEXTS.texts(seed=1), DAYS * TEXTS_A_DAY)):
        day, number = divmod(n, TEXTS_A_DAY)
        at = cm.days(day) + cm.minutes(7 * number)
        place = {"lat_deg": 45.90 + number / 400, "lon_deg": 14.30 + number / 300}
        made.append({"user": f"user{number % 3}", "at": at, **text, **place})
    return made


def by_hand(texts: list[dict[str, Any]], cell: int, last_day: int) -> tuple[tuple[str, ...], int]:
    """The ten words of a cell, by looking at every text."""
    row, column = divmod(cell, MODEL.SIDE)
    middle = (45.90 + (row + 0.5) * MODEL.CELL_LAT_DEG, 14.30 + (column + 0.5) * MODEL.CELL_LON_DEG)
    counts: Counter[str] = Counter()
    for text in texts:
        day = text["at"] // cm.days(1)
        north_m = (text["lat_deg"] - middle[0]) * 111_195
        east_m = (text["lon_deg"] - middle[1]) * 111_195 * math.cos(math.radians(text["lat_deg"]))
        if last_day - 7 < day <= last_day and math.hypot(north_m, east_m) <= MODEL.NEAR_M:
            counts.update({word for word in text["text"].split() if len(word) > 2} - MODEL.COMMON)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return tuple(ranked[:10]), sum(counts.values())


@pytest.fixture(scope="module")
def ran() -> Any:
    history = History(PROGRAM).send(*written(), to="texts")
    for place in ({"lat_deg": 45.906, "lon_deg": 14.308}, {"lat_deg": 46.20, "lon_deg": 14.70}):
        history.send({"user": "ada", "at": cm.days(DAYS) + cm.minutes(30), **place}, to="asks")
    return run(PROGRAM, history.end(), engine="edge")


def test_each_weeks_words_of_each_cell_are_those_counted_by_hand(ran: Any) -> None:
    texts = written()
    assert len(ran["popular"]) > 100
    for found in ran["popular"]:
        last_day = found["at"] // cm.days(1)
        assert (found["keywords"], found["mentions"]) == by_hand(texts, found["cell"], last_day)


def test_an_ask_is_answered_by_its_cell_and_elsewhere_with_nothing(ran: Any) -> None:
    here, nowhere = ran["answers"]
    # The first to say something there after it had closed: the week that ended on the last whole day but one.
    assert (here["user"], here["cell"]) == ("ada", 0)
    assert here["keywords"] == by_hand(written(), 0, DAYS - 2)[0]
    assert (nowhere["keywords"], nowhere["user"]) == ((), "ada")


def test_what_people_talk_of_in_a_neighbourhood_is_found() -> None:
    texts = [
        text for text in islice(TEXTS.texts(seed=2), 4_000) if TEXTS.topic(text["lat_deg"], text["lon_deg"]) == "rain"
    ]
    counts = Counter(
        word for text in texts for word in text["text"].split() if word not in MODEL.COMMON and len(word) > 2
    )
    assert counts.most_common(1)[0][0] == "rain"


def test_grid_and_generator_mean_the_same_place() -> None:
    assert (TEXTS.SOUTH_DEG, TEXTS.WEST_DEG) == (MODEL.SOUTH_DEG, MODEL.WEST_DEG)
    extent = (MODEL.SIDE * MODEL.CELL_LAT_DEG, MODEL.SIDE * MODEL.CELL_LON_DEG)
    assert pytest.approx(extent) == TEXTS.SIDE_DEG


def test_texts_and_asks_of_a_cell_meet_in_one_bucket_on_spark() -> None:
    plan = cm.build(PROGRAM)
    (part,) = plan.at(cm.CLOUD)
    assert set(cut(plan.graph(part), outputs_of(plan, part)).routes.values()) == {("cell",)}


def test_a_week_is_made_of_daily_tallies() -> None:
    from catchment.plan.graph import graph_of
    from catchment.plan.rewrites import panes

    _, changes = panes.rewrite(graph_of(PROGRAM))
    (change,) = [change for change in changes if change.step == "popular/aggregated"]
    assert change.done
    assert "combines 7 panes" in change.what
